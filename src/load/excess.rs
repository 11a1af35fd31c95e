//! The things whose number is limited in load reports.

use core::fmt;

/// A kind of item in load reports that has a limit ([`load::Limits`](crate::load::Limits),
/// [`load::ReportLimits`](crate::load::ReportLimits)).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Excess {
    /// Clusters: the entries of a report, or the names in a selection.
    Clusters,
    /// Localities.
    Localities,
    /// Endpoints.
    Endpoints,
    /// Named metrics.
    Metrics,
    /// Categories of dropped calls.
    Categories,
    /// Bytes of all names in a message.
    NameBytes,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clusters => "clusters",
            Self::Localities => "localities",
            Self::Endpoints => "endpoints",
            Self::Metrics => "metrics",
            Self::Categories => "categories of dropped calls",
            Self::NameBytes => "bytes of names",
        })
    }
}

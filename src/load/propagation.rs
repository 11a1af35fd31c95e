//! Which metrics of a per-call report go into load reports.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::counters::UTILIZATIONS;

/// The metrics that a cluster's `lrs_report_endpoint_metrics` lists (gRFC A85): without the field none (R-LRS-27).
///
/// ```
/// use xds_machine::load::Propagation;
///
/// let listed = Propagation::new(["cpu_utilization", "named_metrics.foo"]);
/// assert!(listed.takes("cpu_utilization") && listed.takes("named_metrics.foo"));
/// assert!(!listed.takes("mem_utilization") && !listed.takes("named_metrics.bar"));
/// assert!(Propagation::new(["named_metrics.*"]).takes("named_metrics.bar"));
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Propagation {
    names: BTreeSet<String>,
    all_named: bool,
}

impl Propagation {
    /// Reads the list. Unknown strings are ignored.
    pub fn new<'a>(list: impl IntoIterator<Item = &'a str>) -> Self {
        let mut read = Self::default();
        for name in list {
            match name.strip_prefix(NAMED) {
                Some("*") => read.all_named = true,
                Some(metric) if !metric.is_empty() => _ = read.names.insert(name.into()),
                None if UTILIZATIONS.contains(&name) => _ = read.names.insert(name.into()),
                Some(_) | None => {}
            }
        }
        read
    }

    /// Returns whether the metric is listed, by its name in load reports: a utilization, or `named_metrics.NAME`.
    pub fn takes(&self, name: &str) -> bool {
        self.names.contains(name) || (self.all_named && name.starts_with(NAMED))
    }
}

const NAMED: &str = "named_metrics.";

#[cfg(test)]
mod tests {
    use super::*;

    /// R-LRS-27.
    #[test]
    fn unknown_strings_are_ignored_and_an_empty_list_takes_no_metrics() {
        let listed = Propagation::new(["rps_fractional", "named_metrics.", "named_metrics", "*", "request_cost.x"]);
        assert_eq!(listed, Propagation::default());
        for name in ["cpu_utilization", "named_metrics.foo", "named_metrics.", "*"] {
            assert!(!listed.takes(name), "{name}");
        }
        let all = Propagation::new(["named_metrics.*", "application_utilization"]);
        assert!(all.takes("named_metrics.foo") && all.takes("application_utilization"));
        assert!(!all.takes("cpu_utilization") && !all.takes("foo"));
    }
}

//! Domains: which virtual host of a RouteConfiguration an authority belongs to (gRFC A27, "Routing").

use core::cmp::Reverse;

use crate::links::VirtualHost;

/// A domain of a virtual host: a name, or a pattern with an asterisk at one end.
#[derive(Clone, Copy)]
enum Domain<'a> {
    Exact(&'a str),
    Suffix(&'a str),
    Prefix(&'a str),
    Any,
}

impl<'a> Domain<'a> {
    /// Reads a domain. Returns `None` if the text is empty, or has an asterisk elsewhere than at one end.
    fn read(text: &'a str) -> Option<Self> {
        let domain = match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(""), _) => return Some(Self::Any),
            (Some(suffix), _) => Self::Suffix(suffix),
            (_, Some(prefix)) => Self::Prefix(prefix),
            _ => Self::Exact(text),
        };
        let (Self::Exact(rest) | Self::Suffix(rest) | Self::Prefix(rest)) = domain else { return Some(domain) };
        (!rest.is_empty() && !rest.contains('*')).then_some(domain)
    }

    /// Returns how good a match is, the best first: by kind, then by length (R-RTE-03). Returns `None` if the domain
    /// does not match.
    fn rank(self, authority: &str) -> Option<(u8, Reverse<usize>)> {
        // R-RTE-04: The case of letters does not count. R-RTE-05: The port is part of the authority.
        let bytes = authority.as_bytes();
        let is = |part: Option<&[u8]>, text: &str| part.is_some_and(|part| part.eq_ignore_ascii_case(text.as_bytes()));
        let (matches, kind, len) = match self {
            Self::Exact(text) => (is(Some(bytes), text), 0, text.len()),
            Self::Suffix(text) => (is(bytes.len().checked_sub(text.len()).map(|at| &bytes[at..]), text), 1, text.len()),
            Self::Prefix(text) => (is(bytes.get(..text.len()), text), 2, text.len()),
            Self::Any => (true, 3, 0),
        };
        matches.then_some((kind, Reverse(len)))
    }
}

/// Returns whether a text is a domain of a virtual host: a name, `*`, or a name with an asterisk at one end (R-RTE-02).
pub(crate) fn is_pattern(text: &str) -> bool {
    Domain::read(text).is_some()
}

/// Returns the index of the virtual host for an authority: an exact domain comes before the longest suffix, that before
/// the longest prefix, and that before `*`; among equals the first host counts (R-RTE-03).
///
/// ```
/// use xds_machine_grpc::domains::best_host;
/// use xds_machine_grpc::links::VirtualHost;
///
/// let host = |domain: &str| VirtualHost { name: domain.into(), domains: vec![domain.into()], clusters: vec![] };
/// let hosts = ["*", "api.*", "*.example.com", "API.example.com"].map(host);
/// assert_eq!(best_host(&hosts, "api.example.com"), Some(3));
/// assert_eq!(best_host(&hosts, "www.example.com"), Some(2));
/// assert_eq!(best_host(&hosts, "api.example.com:443"), Some(1));
/// assert_eq!(best_host(&hosts[3..], "example.com"), None);
/// ```
pub fn best_host(hosts: &[VirtualHost], authority: &str) -> Option<usize> {
    let rank =
        |host: &VirtualHost| host.domains.iter().filter_map(|domain| Domain::read(domain)?.rank(authority)).min();
    let ranked = hosts.iter().enumerate().filter_map(|(at, host)| Some((rank(host)?, at)));
    ranked.min().map(|(_, at)| at)
}

//! The choice of a virtual host by the data plane authority (R-RTE-03, R-RTE-04, R-RTE-05).

use crate::links::VirtualHost;

/// How a domain matches, from the best to the worst; of two wildcards of a kind the longer one is better.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Match {
    Any,
    Prefix(usize),
    Suffix(usize),
    Exact,
}

/// Returns the index of the virtual host for an authority, which includes the port.
///
/// R-RTE-03: an exact domain goes before the longest `*suffix`, this before the longest `prefix*`, and this before
/// `*`; of equals the first. R-RTE-04: case does not matter.
pub fn virtual_host(hosts: &[VirtualHost], authority: &str) -> Option<usize> {
    let mut best: Option<(Match, usize)> = None;
    for (index, host) in hosts.iter().enumerate() {
        let found = host.domains.iter().filter_map(|domain| matches(domain, authority)).max();
        if let Some(found) = found.filter(|found| best.is_none_or(|(best, _)| *found > best)) {
            best = Some((found, index));
        }
    }
    best.map(|(_, index)| index)
}

fn matches(domain: &str, authority: &str) -> Option<Match> {
    // Bytes, because a wildcard may end within a character of the authority.
    let (domain, authority) = (domain.as_bytes(), authority.as_bytes());
    match domain {
        b"*" => Some(Match::Any),
        [b'*', suffix @ ..] => {
            let start = authority.len().checked_sub(suffix.len())?;
            authority[start..].eq_ignore_ascii_case(suffix).then_some(Match::Suffix(suffix.len()))
        }
        [prefix @ .., b'*'] => {
            let start = authority.get(..prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then_some(Match::Prefix(prefix.len()))
        }
        _ => authority.eq_ignore_ascii_case(domain).then_some(Match::Exact),
    }
}

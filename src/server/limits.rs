//! Checks of a request against the limits.

use super::claims::Claims;
use super::config::Limits;
use super::size::Size;
use super::subscription::Subscription;
use crate::error::PeerMisbehaved;
use crate::name::TypeUrl;

/// Checks the size of the names of a type. `at`: the index of the type, if it was requested before. An unchanged size
/// is never rejected.
pub(super) fn check_size(
    limits: &Limits,
    types: &[Subscription],
    type_url: &TypeUrl,
    size: Size,
    at: Option<usize>,
) -> Result<(), PeerMisbehaved> {
    if at.is_some_and(|at| types[at].wanted.size() == size) {
        return Ok(());
    }
    let others = types.iter().enumerate().filter(|&(other, _)| at != Some(other));
    let all = others.fold(size, |all, (_, other)| all + other.wanted.size());
    let (count, limit) = (size.names, limits.names_per_type);
    if count > limit {
        return Err(PeerMisbehaved::TooManyNames { type_url: type_url.clone(), count, limit });
    }
    let (count, limit) = (all.names, limits.names_per_stream);
    if count > limit {
        return Err(PeerMisbehaved::TooManyNamesOnStream { count, limit });
    }
    let (len, limit) = (all.bytes, limits.name_bytes_per_stream);
    if len > limit {
        return Err(PeerMisbehaved::TooManyNameBytes { len, limit });
    }
    Ok(())
}

/// Checks the bytes of claimed names and versions, together with those of other types that are still kept.
pub(super) fn check_claims(limits: &Limits, types: &[Subscription], bytes: usize) -> Result<(), PeerMisbehaved> {
    if bytes == 0 {
        return Ok(());
    }
    let len = bytes + types.iter().filter_map(|of| of.pending.claims()).map(Claims::bytes).sum::<usize>();
    let limit = limits.name_bytes_per_stream;
    if len > limit {
        return Err(PeerMisbehaved::TooManyInitialVersionBytes { len, limit });
    }
    Ok(())
}

//! The choice of a locality, and of the calls that are dropped: by random numbers that are passed in.

use super::assignment::{Drop, Priority};

/// Scales a random number of 64 bits to a number less than `below`.
fn scale(random: u64, below: u64) -> u64 {
    let scaled = (u128::from(random) * u128::from(below)) >> 64;
    u64::try_from(scaled).unwrap_or_default()
}

/// Returns the index of a locality by weight, among those that are usable; `None` if there are none. R-EDS-23: The
/// weights count as they are, without overprovisioning. `random` is any number, evenly distributed.
///
/// ```
/// use xds_machine_grpc::endpoints::{Priority, pick_locality};
///
/// assert_eq!(pick_locality(&Priority::default(), 7, |_| true), None);
/// ```
pub fn pick_locality(priority: &Priority, random: u64, usable: impl Fn(usize) -> bool) -> Option<usize> {
    let weighted = || {
        let all = priority.localities.iter().enumerate().filter(|(at, _)| usable(*at));
        all.map(|(at, locality)| (at, u64::from(locality.weight.get())))
    };
    let mut left = scale(random, weighted().map(|(_, weight)| weight).sum());
    for (at, weight) in weighted() {
        match left.checked_sub(weight) {
            Some(less) => left = less,
            None => return Some(at),
        }
    }
    None
}

/// Returns the category by which a call is dropped. R-EDS-24: The categories are checked in order, each with a random
/// number of its own, once the endpoint is chosen and its connection is ready; circuit breakers are checked after that.
///
/// ```
/// use xds_machine_grpc::endpoints::{Drop, drop_category};
///
/// let drop = |category: &str, per_million| Drop { category: category.into(), per_million };
/// let drops = [drop("a", 0), drop("b", 500_000)];
/// assert_eq!(drop_category(&drops, || u64::MAX / 4).map(|drop| &*drop.category), Some("b"));
/// assert_eq!(drop_category(&drops, || u64::MAX / 4 * 3), None);
/// ```
pub fn drop_category(drops: &[Drop], mut random: impl FnMut() -> u64) -> Option<&Drop> {
    drops.iter().find(|drop| scale(random(), 1_000_000) < u64::from(drop.per_million))
}

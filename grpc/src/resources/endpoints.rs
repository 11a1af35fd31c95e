//! Decodes ClusterLoadAssignments (R-EDS-01 to R-EDS-19).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use bytes::Bytes;
use xds_machine::{ResourceName, message};

use super::generated::cluster_load_assignment::{Policy, policy::DropOverload};
use super::generated::{ClusterLoadAssignment, FractionalPercent, LbEndpoint, LocalityLbEndpoints, lb_endpoint};
use super::message::{NOT_PRESENT, decode, ip};
use super::view::{Context, View};
use crate::endpoints::{Assignment, Drop, Endpoint, Health, Locality, Priority};
use crate::faults::{Faults, Walk};

/// `envoy.config.core.v3.HealthStatus`: the statuses of endpoints that may be used.
const UNKNOWN: i32 = 0;
const HEALTHY: i32 = 1;
const DRAINING: i32 = 3;

const MILLION: u32 = 1_000_000;

/// Decodes a ClusterLoadAssignment (R-EDS).
///
/// # Errors
///
/// All faults of the core rules.
pub fn decode_endpoints(name: &ResourceName, body: &Bytes, _: &Context) -> Result<View<Assignment>, Faults> {
    let (assignment, mut walk) = decode::<ClusterLoadAssignment>("ClusterLoadAssignment", name, body)?;
    let priorities = priorities(&mut walk, &assignment.endpoints);
    let drops = walk.within("policy", |walk| drops(walk, assignment.policy.as_ref()));
    View::judge(walk, Some(Assignment { priorities, drops }), body)
}

/// The localities by the number of their priority. A server chooses the numbers, so no memory is allocated by them.
type ByPriority = BTreeMap<u32, Vec<Locality>>;

fn priorities(walk: &mut Walk, entries: &[LocalityLbEndpoints]) -> Vec<Priority> {
    let (mut by_priority, mut names, mut addresses) = (ByPriority::new(), BTreeSet::new(), BTreeSet::new());
    for (at, entry) in entries.iter().enumerate() {
        walk.within(format_args!("endpoints[{at}]"), |walk| {
            let Some(locality) = locality(walk, entry, &mut addresses) else { return };
            // R-EDS-04: A locality is in a priority at most once.
            let message::Locality { region, zone, sub_zone } = locality.name.clone();
            if !names.insert((region, zone, sub_zone, entry.priority)) {
                walk.fault(format!("duplicate locality in priority {}", entry.priority));
            }
            by_priority.entry(entry.priority).or_default().push(locality);
        });
    }
    walk.within("endpoints", |walk| check_priorities(walk, &by_priority));
    by_priority.into_values().map(|localities| Priority { localities }).collect()
}

fn check_priorities(walk: &mut Walk, by_priority: &ByPriority) {
    // R-EDS-05: The priorities have no gaps, among the entries that remain.
    let gap = (0u32..).zip(by_priority.keys()).find(|(expected, priority)| expected != *priority);
    if let Some((expected, priority)) = gap {
        walk.fault(format!("priority {expected} is missing before priority {priority}"));
    }
    // R-EDS-06: The sum of the weights of a priority's localities has at most 32 bits.
    for (priority, localities) in by_priority {
        let sum: u64 = localities.iter().map(|locality| u64::from(locality.weight.get())).sum();
        if sum > u64::from(u32::MAX) {
            walk.fault(format!("sum of locality weights for priority {priority} exceeds uint32 max"));
        }
    }
}

fn locality(walk: &mut Walk, entry: &LocalityLbEndpoints, seen: &mut BTreeSet<SocketAddr>) -> Option<Locality> {
    // R-EDS-02: An entry without weight is ignored, faults included.
    let weight = NonZeroU32::new(entry.load_balancing_weight.as_ref().map_or(0, |weight| weight.value))?;
    // R-EDS-03: The locality is required; its names may be empty.
    let Some(name) = &entry.locality else {
        walk.fault_at("locality", NOT_PRESENT);
        return None;
    };
    let name =
        message::Locality { region: name.region.clone(), zone: name.zone.clone(), sub_zone: name.sub_zone.clone() };
    // R-EDS-15: A locality without usable endpoints is kept.
    let endpoints = entry
        .lb_endpoints
        .iter()
        .enumerate()
        .filter_map(|(at, one)| walk.within(format_args!("lb_endpoints[{at}]"), |walk| endpoint(walk, one, seen)));
    Some(Locality { name, weight, endpoints: endpoints.collect() })
}

fn endpoint(walk: &mut Walk, entry: &LbEndpoint, seen: &mut BTreeSet<SocketAddr>) -> Option<Endpoint> {
    let health = match entry.health_status {
        UNKNOWN => Health::Unknown,
        HEALTHY => Health::Healthy,
        DRAINING => Health::Draining,
        // R-EDS-10: An endpoint that is not used has no faults (R-EDS-09).
        _ => return None,
    };
    // R-EDS-08: A missing weight is 1; a weight of 0 is a fault.
    let weight = NonZeroU32::new(entry.load_balancing_weight.as_ref().map_or(1, |weight| weight.value));
    if weight.is_none() {
        walk.fault_at("load_balancing_weight", "must be greater than 0");
    }
    // R-EDS-11: An endpoint by name only is a fault.
    let Some(lb_endpoint::HostIdentifier::Endpoint(endpoint)) = &entry.host_identifier else {
        walk.fault_at("endpoint", NOT_PRESENT);
        return None;
    };
    let mut unique = |walk: &mut Walk, address: SocketAddr| {
        // R-EDS-13: An address is in the resource at most once, in whatever spelling.
        if !seen.insert(address) {
            walk.fault(format!("duplicate endpoint address \"{address}\""));
        }
        address
    };
    walk.within("endpoint", |walk| {
        let address = walk.within("address", |walk| ip(walk, endpoint.address.as_ref()).map(|ip| unique(walk, ip)));
        // R-EDS-14: Additional addresses are validated like the first.
        let additional = endpoint.additional_addresses.iter().enumerate().filter_map(|(at, one)| {
            walk.within(format_args!("additional_addresses[{at}].address"), |walk| {
                ip(walk, one.address.as_ref()).map(|ip| unique(walk, ip))
            })
        });
        let additional = additional.collect();
        Some(Endpoint { address: address?, additional, weight: weight?, health })
    })
}

fn drops(walk: &mut Walk, policy: Option<&Policy>) -> Vec<Drop> {
    let all = policy.map_or(&[][..], |policy| &policy.drop_overloads);
    let each = all.iter().enumerate();
    each.filter_map(|(at, one)| walk.within(format_args!("drop_overloads[{at}]"), |walk| drop(walk, one))).collect()
}

/// R-EDS-16: A category of calls to be dropped has a name and a share.
fn drop(walk: &mut Walk, drop: &DropOverload) -> Option<Drop> {
    if drop.category.is_empty() {
        walk.fault_at("category", "empty drop category name");
    }
    walk.within("drop_percentage", |walk| match &drop.drop_percentage {
        Some(share) => Some(Drop { category: drop.category.clone(), per_million: per_million(walk, share)? }),
        None => {
            walk.fault(NOT_PRESENT);
            None
        }
    })
}

/// R-EDS-17: A share is at most 100 %, and large numbers do not wrap around.
fn per_million(walk: &mut Walk, share: &FractionalPercent) -> Option<u32> {
    let factor = match share.denominator {
        0 => 10_000,
        1 => 100,
        2 => 1,
        _ => {
            walk.fault_at("denominator", "unknown denominator type");
            return None;
        }
    };
    Some(share.numerator.saturating_mul(factor).min(MILLION))
}

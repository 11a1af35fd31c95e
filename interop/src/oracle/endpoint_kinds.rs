//! The kinds of endpoints in a case: see `kinds.rs`.

use std::collections::BTreeSet;

use super::case::{Address, Assignment, Locality};
use super::kinds::Kinds;

/// Adds the kinds of a ClusterLoadAssignment.
pub fn collect(of: &Assignment, kinds: &mut Kinds) {
    let mut put = |is: bool, kind: &'static str| {
        if is {
            kinds.insert(kind);
        }
    };
    put(of.broken, "endpoints broken");
    put(of.overprovisioned, "R-EDS-18 overprovisioned");
    put(of.at.is_empty() && !of.broken, "R-EDS-01 empty");
    put(of.at.iter().any(|at| at.weight == Some(0)), "R-EDS-02 weight 0");
    put(of.at.iter().any(|at| at.weight.is_none()), "R-EDS-02 no weight");
    let kept = || of.at.iter().filter(|at| at.weight.is_some_and(|weight| weight > 0));
    put(kept().any(|at| at.id.is_none()), "R-EDS-03 no locality");
    let places: BTreeSet<_> = kept().map(|at| (at.id, at.priority)).collect();
    put(places.len() < kept().count(), "R-EDS-04 twice");
    let priorities: BTreeSet<u32> = kept().map(|at| at.priority).collect();
    put(priorities.iter().zip(0..).any(|(priority, place)| *priority != place), "R-EDS-05 gap");
    put(priorities.iter().any(|priority| *priority > 1 << 20), "R-EDS-05 huge");
    let sum = |priority: u32| {
        kept().filter(|at| at.priority == priority).filter_map(|at| at.weight).map(u64::from).sum::<u64>()
    };
    put(priorities.iter().any(|priority| sum(*priority) > u32::MAX.into()), "R-EDS-06 overflow");
    put(kept().any(|at| at.leds), "R-EDS-15 LEDS");
    put(kept().any(|at| !at.leds && at.usable() == 0), "R-EDS-15 unreachable");
    for at in kept() {
        put(
            at.ends.iter().filter_map(|end| end.weight).map(u64::from).sum::<u64>() > u32::MAX.into(),
            "R-EDS-07 overflow",
        );
    }
    let ends = || kept().flat_map(|at| &at.ends);
    let dropped = |health: u32| !matches!(health, 0 | 1 | 3);
    put(ends().any(|end| dropped(end.health)), "R-EDS-09 unhealthy");
    put(ends().any(|end| end.health == 3), "R-EDS-09 draining");
    let odd = |to: &Address| !matches!(to, Address::Backend(_) | Address::Dead(_) | Address::Ip(_));
    put(ends().any(|end| dropped(end.health) && (odd(&end.to) || end.weight == Some(0))), "R-EDS-10 unhealthy and odd");
    let used: Vec<_> = ends().filter(|end| !dropped(end.health)).collect();
    put(used.iter().any(|end| end.weight == Some(0)), "R-EDS-08 weight 0");
    put(used.iter().any(|end| !end.more.is_empty()), "R-EDS-14 additional");
    let addresses: Vec<&Address> = used.iter().flat_map(|end| std::iter::once(&end.to).chain(&end.more)).collect();
    put(addresses.iter().enumerate().any(|(at, one)| addresses[at + 1..].contains(one)), "R-EDS-13 twice");
    let spelled = addresses.iter().filter(|to| matches!(to, Address::Ip(_)));
    put(spelled.count() > 1, "R-EDS-13 spelling");
    for to in addresses {
        put(matches!(to, Address::Ip(text) if text.contains(['[', '%'])), "R-EDS-12 odd IP");
        put(*to == Address::Named, "R-EDS-11 named");
        put(*to == Address::Host, "R-EDS-12 host");
        put(*to == Address::Pipe, "R-EDS-12 pipe");
        put(*to == Address::None, "R-EDS-12 none");
        put(matches!(to, Address::Port(_)), "R-EDS-12 port");
    }
    for drop in &of.drops {
        put(drop.category.is_empty(), "R-EDS-16 no category");
        put(drop.amount.is_none(), "R-EDS-16 no amount");
        put(drop.amount.is_some_and(|(_, of)| of > 2), "R-EDS-16 denominator");
        put(drop.amount.is_some_and(|(numerator, of)| wraps(numerator, of)), "R-EDS-17 wrap");
        put(drop.amount.is_some_and(|(numerator, of)| of == 0 && (100..1000).contains(&numerator)), "R-EDS-17 all");
    }
}

/// Returns whether the parts of a million exceed 32 bits.
fn wraps(numerator: u32, denominator: u32) -> bool {
    let times = [10_000, 100, 1];
    times.get(denominator as usize).is_some_and(|times| u64::from(numerator) * times > u32::MAX.into())
}

impl Locality {
    /// Returns the number of endpoints that may be called.
    fn usable(&self) -> usize {
        self.ends.iter().filter(|end| matches!(end.health, 0 | 1)).count()
    }
}

//! The circles of a graph: sets of files in which each file leads to each other file.

use std::collections::{BTreeMap, BTreeSet};

use super::arrows::Arrows;

/// Returns the circles, the largest first.
pub(super) fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        next.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|&from| (from, reached(from, &next))).collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|reached| reached.contains(to));
    let circle = |&file: &&str| -> BTreeSet<String> {
        let others = next.keys().filter(|&&other| leads(file, other) && leads(other, file));
        others.map(|&other| other.to_owned()).collect()
    };
    let circles: BTreeSet<BTreeSet<String>> = next.keys().map(circle).filter(|circle| !circle.is_empty()).collect();
    let mut circles: Vec<BTreeSet<String>> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Returns the files that a file leads to.
fn reached<'a>(from: &'a str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        let unseen = next.get(file).into_iter().flatten().filter(|&&to| reached.insert(to));
        open.extend(unseen.copied().collect::<Vec<_>>());
    }
    reached
}

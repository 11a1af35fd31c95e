//! The table, and the conditions that have to hold.

use std::fmt::Write;

use jiff::Timestamp;

use super::cast::{ENVOYS, REPLICAS};
use super::story::{Act, Told};
use crate::wait::so;

pub struct Summary {
    pub table: String,
    /// The requests without an answer.
    lost: Vec<String>,
    /// The number of Envoys that moved from the killed replica to the other one, or were there.
    moved: usize,
    /// Changes that no Envoy accepted.
    silent: usize,
}

pub fn of(told: &Told) -> Result<Summary, String> {
    let mut table = String::from("| what | how it went |\n|---|---|\n");
    let mut lost = Vec::new();
    for (node, requests) in ENVOYS.iter().zip(&told.requests) {
        let errors = requests.iter().filter_map(|request| {
            let error = request.answer.as_ref().err()?;
            Some(format!("{node} at {:.2} s: {error}", seconds(told.begin, request.at)))
        });
        let before = lost.len();
        lost.extend(errors);
        let slowest = requests.iter().map(|request| request.took).max().unwrap_or_default();
        let count = requests.len();
        let _ = writeln!(
            table,
            "| requests through {node} | {count}, {} lost, the slowest {slowest:.0?} |",
            lost.len() - before
        );
    }
    let mut delays: Vec<f64> = told.changes.iter().filter_map(|change| last_ack(told, change.at)).collect();
    let silent = told.changes.len() - delays.len();
    delays.sort_by(f64::total_cmp);
    let transactions = told.changes.iter().filter(|change| change.is_transaction).count();
    let middle = delays.get(delays.len() / 2).copied().unwrap_or_default();
    let most = delays.last().copied().unwrap_or_default();
    let _ = writeln!(
        table,
        "| changes | {}, of which {transactions} transactions; accepted by both Envoys after {:.0} ms (median), {:.0} ms (most) |",
        told.changes.len(),
        middle * 1e3,
        most * 1e3
    );
    let mut moved = 0;
    for act in told.acts.iter().filter(|act| act.is_kill) {
        let at = seconds(told.begin, act.at);
        let how = match REPLICAS.iter().position(|name| *name == act.who) {
            Some(killed) => after_replica(told, act, killed, &mut moved),
            None => after_member(told, act),
        };
        let _ = writeln!(table, "| {} killed at {at:.1} s | {how} |", act.who);
    }
    Ok(Summary { table, lost, moved, silent })
}

/// Returns the time from a change to the last ACK before the next change. If there is none, because a replica was away
/// from etcd, a later ACK is for several changes at once: then the first ACKs of both Envoys count.
fn last_ack(told: &Told, at: Timestamp) -> Option<f64> {
    let next = told.changes.iter().map(|change| change.at).find(|next| *next > at).unwrap_or(told.end);
    let acks = told.events.iter().flatten().filter(|seen| seen.event == "ack" && seen.at >= at && seen.at < next);
    acks.map(|seen| seconds(at, seen.at)).reduce(f64::max).or_else(|| {
        let all = || told.events.iter().flatten().filter(|seen| seen.event == "ack" && seen.at >= at);
        let first = |node| all().filter(|seen| seen.node == node).map(|seen| seconds(at, seen.at)).reduce(f64::min);
        Some(first(ENVOYS[0])?.max(first(ENVOYS[1])?))
    })
}

fn after_replica(told: &Told, act: &Act, killed: usize, moved: &mut usize) -> String {
    let other = &told.events[1 - killed];
    let words = ENVOYS.iter().map(|node| {
        let streams = |event: &&super::story::Seen| event.node == *node && event.event == "subscribed";
        let Some(back) = other.iter().filter(streams).find(|seen| seen.at > act.at) else {
            let was = other.iter().any(|seen| streams(&seen));
            *moved += usize::from(was);
            return format!("{node} {}", if was { "was at the other one" } else { "has not come back" });
        };
        *moved += 1;
        format!("{node} was at the other one after {:.0} ms", seconds(act.at, back.at) * 1e3)
    });
    words.collect::<Vec<_>>().join("; ")
}

fn after_member(told: &Told, act: &Act) -> String {
    let change = told.changes.iter().find(|change| change.at > act.at);
    let done = change.map_or(f64::NAN, |change| seconds(act.at, change.done));
    let ack = change.and_then(|change| last_ack(told, change.at).map(|ack| ack + seconds(act.at, change.at)));
    format!(
        "the next change is in etcd after {:.0} ms, and accepted by both Envoys after {:.0} ms",
        done * 1e3,
        ack.unwrap_or(f64::NAN) * 1e3
    )
}

/// Returns the seconds between two moments.
pub fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

impl Summary {
    /// Checks that nothing was lost.
    pub fn check(&self) -> Result<(), String> {
        so(self.lost.is_empty(), || format!("{} requests lost: {}", self.lost.len(), self.lost.join("; ")))?;
        so(self.moved == 2, || "an Envoy has not come back".into())?;
        so(self.silent == 0, || format!("{} changes were accepted by no Envoy", self.silent))
    }
}

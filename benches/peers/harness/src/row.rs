//! A line of the output.

use serde_json::{Value, json};

use crate::cap;
use crate::clock::Took;

/// A measurement. The program that runs all peers adds the peer's name and version in front.
#[derive(Clone, Debug)]
pub struct Row {
    pub workload: String,
    pub n: usize,
    pub s: usize,
    pub changed: usize,
    pub took: Took,
    /// The number of measurements; `took` is the median.
    pub rounds: usize,
    /// Memory, or the size of the response to one stream.
    pub bytes: f64,
    /// The number of resources that one stream was sent.
    pub resources: usize,
    pub floor_ns: f64,
    /// The fault of the result, if it has one.
    pub wrong: Option<String>,
    /// How the peer was driven.
    pub drive: &'static str,
}

impl Row {
    pub fn print(&self) {
        let Self { workload, n, s, changed, took, rounds, bytes, resources, floor_ns, wrong, drive } = self;
        let ratio = if *floor_ns > 0.0 { json!(round(took.ns / floor_ns, 1e6)) } else { Value::Null };
        let outcome = wrong.as_ref().map_or("ok".into(), |wrong| format!("wrong: {wrong}"));
        let row = json!({
            "workload": workload, "n": n, "s": s, "changed": changed, "ns": took.ns.round(),
            "wall_ns": took.wall_ns.round(), "rounds": rounds, "bytes": round(*bytes, 10.0), "resources": resources,
            "floor_ns": floor_ns.round(), "ratio": ratio, "peak_bytes": cap::peak(), "outcome": outcome,
            "drive": drive,
        });
        println!("{row}");
    }
}

fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

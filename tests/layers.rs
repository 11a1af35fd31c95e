//! The machines beside streams of resources: load reports.

#[path = "layers/load.rs"]
mod load;

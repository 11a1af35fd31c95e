//! What is measured, and against what: each workload stands beside a floor, the same bytes through prost or a memcpy, in
//! the same run.

pub mod alloc;
pub mod floor;
pub mod workload;

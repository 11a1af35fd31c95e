//! Measures each workload beside a floor, the same bytes through prost or a memcpy, in the same run. README.md explains
//! the figures.

pub mod alloc;
pub mod data;
#[cfg(feature = "programs")]
pub mod e2e;
#[cfg(feature = "programs")]
pub mod figures;
pub mod floor;
pub mod measure;
pub mod stream;
pub mod work;

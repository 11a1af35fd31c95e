//! Reads what people and peers write, JSON or YAML, as Envoy does: the same bytes have the same meaning here and there.
//!
//! A text becomes a tree first, and the tree a message. What differs from Envoy on purpose: an unknown field of
//! an operator's file is an error, and JSON is strict JSON.

mod descriptors;
mod message;
mod scalar;
mod tree;
mod well_known;
mod yaml;

pub use descriptors::{DESCRIPTORS, ENCODED, any_name};
pub use message::{Rules, read};
pub use tree::Tree;

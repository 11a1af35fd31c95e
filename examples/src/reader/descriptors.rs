//! The descriptors of all messages of Envoy's API.

use std::sync::LazyLock;

use prost_reflect::DescriptorPool;

/// The set of descriptors, encoded.
pub const ENCODED: &[u8] = include_bytes!("../../descriptors/envoy.bin");

/// The descriptors of all messages of Envoy's API, contrib included; see the page beside the set.
pub static DESCRIPTORS: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(ENCODED).expect("a descriptor set, checked by tests"));

/// Returns the full name of the message that a type URL names: what follows its last slash.
pub fn any_name(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or_default()
}

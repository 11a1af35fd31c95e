//! The machines by themselves: the rules of the protocol, and their methods. One crate, because each test crate
//! rebuilds the machines.

mod api;
mod layers;
mod protocol;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

fn hash(value: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

//! Questions that only walks can ask. Each is seen to fail with a seeded bug.

mod apart;
mod cost;
mod hunger;

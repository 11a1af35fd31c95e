//! What the programs share.

pub mod codec;

//! What the programs share.

pub mod codec;
pub mod element;
pub mod line;

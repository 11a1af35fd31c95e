//! What the programs share.

pub mod arguments;
pub mod codec;
pub mod dial;
pub mod element;
pub mod line;
pub mod references;

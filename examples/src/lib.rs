//! Modules that the example programs share.

pub mod arguments;
pub mod canonical;
pub mod codec;
pub mod control_plane;
pub mod dial;
pub mod dialects;
pub mod discovery_file;
pub mod element;
pub mod line;
pub mod references;

//! Modules that the example programs share.

pub mod canonical;
pub mod control_plane;
pub mod dialects;
pub mod discovery_file;
pub mod duration;
pub mod element;
pub mod grpc;
pub mod json;
pub mod line;
pub mod printable;
pub mod raw;
pub mod reader;
pub mod references;
pub mod xds_channel;

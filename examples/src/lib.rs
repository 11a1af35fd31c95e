//! Modules that the example programs share.

pub mod canonical;
pub mod dialects;
pub mod discovery_file;
pub mod element;
pub mod folder;
pub mod line;
pub mod log;
pub mod observe;
pub mod references;

//! What the programs share.

pub mod canonical;
pub mod codec;
pub mod discovery_file;
pub mod folder;
pub mod log;
pub mod services;
pub mod serving;

//! The program `control_plane`: serves a folder of resources to xDS clients.

pub mod accept;
pub mod arguments;
pub mod connection;
pub mod feed;
pub mod folder;
pub mod groups;
pub mod health;
pub mod log;
pub mod metrics;
mod regexes;
pub mod rest;
pub mod run;
pub mod tls;

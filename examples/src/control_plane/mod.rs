//! The program `control_plane`: serves the resources of a folder or of an etcd to xDS clients.

mod about;
pub mod accept;
pub mod arguments;
pub mod connection;
pub mod etcd;
pub mod feed;
pub mod folder;
pub mod groups;
pub mod health;
mod listen;
pub mod loads;
pub mod log;
pub mod metrics;
pub mod news;
mod regexes;
pub mod rest;
pub mod run;
mod source;
pub mod tls;

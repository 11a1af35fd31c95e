//! `control_plane` as a process.

mod codec;
mod conversation;
mod groups;
mod loads;
mod messages;
mod operation;
mod port;
mod support;
mod tls;
mod unknown;

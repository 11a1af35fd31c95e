//! Resources from an etcd: each key `PREFIX/GROUP/TYPE/NAME` holds one.
//!
//! `key`, `value`, `listing`, `watching` and `keys` do no I/O: they lead from keys and values to resources, from
//! answers to listings and changes, and from these to the news of the views. `client` makes the calls, and `follow` is
//! the loop over them: list, watch from the next revision, and begin again when either ends.

pub mod arguments;
mod client;
pub mod follow;
#[rustfmt::skip]
#[allow(clippy::all, missing_docs, unreachable_pub)]
pub mod generated;
mod history;
pub mod key;
pub mod keys;
mod listing;
mod value;
mod watching;

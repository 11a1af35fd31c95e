//! Single methods, types and limits: the guarantees to a caller of the crate.

mod caller;
mod delivery;
mod known;
mod labels;
mod limits;
mod names;
mod portions;
mod slow;
mod sources;
mod store;
mod streams_of_servers;
mod ttl;
mod unstable;
mod watch;
mod watch_actions;
mod watch_servers;
mod words;
mod xdstp;

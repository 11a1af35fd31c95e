//! The machines by themselves: their stories, what real clients said, tables that must be true, and one thing at a time.
//! One crate, for each has to build the machines anew.

mod bad_input;
mod caller;
mod dialects;
#[allow(unreachable_pub)]
mod input;
mod known;
mod labels;
mod limits;
mod names;
mod portions;
mod recordings;
#[allow(unreachable_pub)]
mod replay;
mod rules;
#[allow(unreachable_pub)]
mod script;
mod scripts;
mod sources;
mod store;
mod streams_of_servers;
mod ttl;
mod unstable;
mod watch;
mod watch_actions;
mod watch_servers;
mod wire;
mod words;
mod xdstp;

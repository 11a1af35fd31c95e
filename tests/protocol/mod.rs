//! A rule of the protocol: stories, what real clients said, tables that must be true, what is on the wire.

mod bad_input;
mod dialects;
mod recordings;
mod rules;
mod scripts;
mod wire;

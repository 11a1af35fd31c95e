//! The rules of the protocol: stories, recordings of real clients, checked tables, and the wire format.

mod bad_input;
mod dialects;
mod recordings;
mod rules;
mod scripts;
mod wire;

//! The machines by themselves: the rules of the protocol, and their methods. One crate, for each has to build the machines
//! anew.

mod api;
mod protocol;

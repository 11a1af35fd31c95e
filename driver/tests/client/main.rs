//! The drivers of clients, against the scripted servers of `xds-machine-testing` and over a clock that tests advance.

mod links;
mod one;
mod support;

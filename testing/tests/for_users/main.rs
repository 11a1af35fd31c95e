//! What the crate gives its users, used as they would. One program, because each test program rebuilds the machines.

mod driver;
mod duo;
mod source;

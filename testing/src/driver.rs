//! For the author of a driver: scripted peers over an in-memory transport.

mod check;
mod pipe;

pub use self::check::{Failure, Listener, Network, check_driver, check_server_driver};
pub use self::pipe::{Pipe, Received};

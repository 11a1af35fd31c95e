//! The control side of a server: how the kit changes the server's resources.

mod dir;
mod exec;
mod grpc;
mod stdio;

use crate::run::{Op, Trouble};

pub use self::dir::Directory;
pub use self::exec::Exec;
pub use self::grpc::Grpc;
pub use self::stdio::Adapter;

/// A control, which changes the resources of a server.
pub trait Control {
    /// Changes the server's resources: all at once, as far as the control can. Afterwards the server has taken the
    /// changes, or will take them by itself.
    ///
    /// # Errors
    ///
    /// If the control refuses, or is gone.
    fn apply(&mut self, ops: &[Op]) -> Result<(), Trouble>;

    /// Returns whether changes of several types are taken at once. If not, the order in which a server pushes them says
    /// nothing.
    fn is_atomic(&self) -> bool;

    /// Returns whether the server, or a program that knows it, confirms to the control that a change is taken.
    fn is_confirmed(&self) -> bool {
        false
    }
}

/// No control: the kit changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Control for Nothing {
    fn apply(&mut self, _: &[Op]) -> Result<(), Trouble> {
        Err(Trouble("there is no control".into()))
    }

    fn is_atomic(&self) -> bool {
        false
    }
}

//! The control side of a server: how the kit changes what the server has.

mod dir;
mod exec;
mod grpc;
mod stdio;

use crate::run::{Op, Trouble};

pub use self::dir::Directory;
pub use self::exec::Exec;
pub use self::grpc::Grpc;
pub use self::stdio::Adapter;

/// A control.
pub trait Control {
    /// Changes what the server has: all at once, as far as the control can. The server has taken the changes, or will
    /// by itself.
    ///
    /// # Errors
    ///
    /// If the control refuses, or is gone.
    fn apply(&mut self, ops: &[Op]) -> Result<(), Trouble>;

    /// Returns whether changes of several types are taken at once. If not, the order in which a server pushes them says
    /// nothing.
    fn is_atomic(&self) -> bool;

    /// Returns whether the control hears from the server, or from who knows it, that a change is taken.
    fn is_confirmed(&self) -> bool {
        false
    }
}

/// No control: the kit only asks.
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

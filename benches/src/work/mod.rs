//! The workloads: F1 to F12, P1, H1, and C1.

mod client;
mod first;
mod hostile;
mod memory;
mod named;
mod nothing;
mod poll;
mod push;
mod status;

pub use self::client::{FullResponse, OneByOne, Received, all};
pub use self::first::{FirstSync, FurtherSync, Reconnect};
pub use self::hostile::{Hostile, NAMES};
pub use self::memory::{idle_stream, names, store};
pub use self::named::{Change, EVENTS, Named, all_names};
pub use self::nothing::{Poll, Stale, TIMES, Timeout};
pub use self::poll::{LookUps, NamedPoll, NotModified};
pub use self::push::{FullState, OneChange};
pub use self::status::Status;

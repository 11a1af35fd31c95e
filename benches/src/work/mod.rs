//! The workloads: F1 to F12, P1, H1, L1, L2, C1, and G1.

#[cfg(feature = "programs")]
mod chain;
mod client;
mod first;
mod hostile;
mod load;
mod memory;
mod named;
mod nothing;
mod poll;
mod push;
mod status;

#[cfg(feature = "programs")]
pub use self::chain::{DecodeEndpoints, Endpoint};
pub use self::client::{FullResponse, OneByOne, Received, all};
pub use self::first::{FirstSync, FurtherSync, Reconnect};
pub use self::hostile::{Hostile, NAMES};
pub use self::load::{Add, LookUp, idle_entry};
pub use self::memory::{idle_stream, names, store};
pub use self::named::{Change, EVENTS, Named, all_names};
pub use self::nothing::{Poll, Stale, TIMES, Timeout};
pub use self::poll::{LookUps, NamedPoll, NotModified};
pub use self::push::{FullState, OneChange};
pub use self::status::Status;

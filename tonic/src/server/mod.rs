//! A control plane over gRPC.
//!
//! A [`ControlPlane`] serves all xDS services in both variants, from the resources of [`Group`]s of nodes. Its
//! [`XdsService`] can be added to a tonic server, a router, or anything that takes a tower service.
//!
//! Load reports (LRS) are served beside them, if the control plane is built with [`LoadReports`].
//!
//! A stream is one task, which the HTTP/2 library runs anyway: the machine lives in the body of the response. Responses
//! are passed to the transport as pages that all streams share, and are composed only when the client's window has
//! room, so a slow client holds its window and the rest of one response at most.
//!
//! [`ControlPlane::poll`] answers polls over REST from the same groups.

mod body;
mod client_status;
mod connection;
mod control_plane;
mod frames;
mod group;
mod load;
mod observer;
mod poll;
mod push;
mod requests;
mod service;
mod session;
mod stream;
mod verdicts;

pub use connection::{Connection, Incoming};
pub use control_plane::{Builder, ControlPlane, Limits};
pub use group::{Group, next_epoch};
pub use load::{LoadReports, LoadStream};
pub use observer::{Observer, Sent};
pub use push::{Outcome, Push, Rejection};
pub use service::XdsService;
pub use stream::{StreamInfo, TypeInfo};
pub use verdicts::{Rejected, RejectedResource, ResourceDelivery};
pub use xds_machine_driver::server::{Shared, Store, Wakers};

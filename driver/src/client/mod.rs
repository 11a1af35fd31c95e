//! Drivers of clients: one stream, one client over all its streams, and the streams of several servers.
//!
//! - A [`Link`] is one stream: it moves messages between a transport and a [`Machine`]. `Link` is polled, so one task
//!   can have several.
//! - [`run_stream`] drives a [`Client`](xds_machine::client::Client) over one stream, and [`run`](fn@run) over all of
//!   them, with the waiting in between.
//! - [`Links`] drives the streams of [`Servers`](xds_machine::servers::Servers), which it opens through a
//!   [`Connector`].
//!
//! A transport is a [`Stream`](futures_core::Stream) of responses and a [`Sink`](futures_sink::Sink) of requests, both
//! as messages: [`Wire`](xds_machine::proto::Wire) encodes and decodes them where the transport has bytes. The sink is
//! asked for room before a request is composed, so a sink that says "ready" only when the request would really leave
//! gets the most recent subscriptions.
//!
//! ```
//! use std::convert::Infallible;
//! use std::task::Poll;
//!
//! use futures_util::{future, sink, stream};
//! use xds_machine::client::{Action, Client, Config};
//! use xds_machine::message::{Node, delta};
//! use xds_machine::{Delta, Instant, TypeUrl, type_url};
//! use xds_machine_driver::Runtime;
//! use xds_machine_driver::client::{Reason, run_stream};
//!
//! /// A clock that stands still.
//! #[derive(Clone)]
//! struct Still;
//!
//! impl Runtime for Still {
//!     type Sleep = future::Pending<()>;
//!
//!     fn now(&self) -> Instant {
//!         Instant::EPOCH
//!     }
//!
//!     fn sleep_until(&self, _: Instant) -> Self::Sleep {
//!         future::pending()
//!     }
//! }
//!
//! let mut client = Client::<Delta>::new(Config::new(Node::new("me")));
//! client.resources_mut(&TypeUrl::from(type_url::CLUSTER)).subscribe(["a"])?;
//!
//! // A server that takes the request and ends the stream.
//! let inbound = stream::empty::<Result<delta::Response, Infallible>>();
//! let outbound = sink::drain::<delta::Request>();
//! let mut app = |_: &mut Client<Delta>, action: Action| match action {
//!     Action::Apply(update) => Some(update.check(|cluster| if cluster.body().is_empty() { Err("empty") } else { Ok(()) })),
//!     _ => None,
//! };
//! let ended = futures_executor::block_on(run_stream(&mut client, inbound, outbound, &Still, &mut app));
//! assert!(matches!(ended.reason, Reason::Finished));
//! assert!(!ended.answered, "such an end does not reset the backoff");
//! # Ok::<(), xds_machine::Misuse>(())
//! ```

mod ended;
mod link;
mod links;
mod machine;
mod run;

pub use ended::{Ended, Reason};
pub use link::Link;
pub use links::{Connector, Event, LinkState, Links};
pub use machine::{Machine, OfServers};
pub use run::{Application, run, run_stream};

//! REST-JSON polling: the second way to subscribe, beside streams and files.
//!
//! A client posts a `DiscoveryRequest` of one type as JSON, again and again, and the server answers with a
//! `DiscoveryResponse`, or with "not modified". There are no streams, no nonces, no ACKs, and neither ADS nor the
//! incremental variant (R-REST-02): the version in the next request is that of the last accepted response.
//!
//! ```text
//!                ┌──────────┐  poll_transmit: path, request      ┌──────────┐
//!   subscribe ──►│          │───────────── POST ────────────────►│ Question │
//!                │   Poll   │                                    │   Held   │◄── Source
//!     Verdict ──►│          │◄── 200 │ 304 │ nothing ────────────│          │
//!                └──────────┘  handle_answer                     └──────────┘  answer, poll
//! ```
//!
//! # The client
//!
//! A [`Poll`] has one type and its names, at most one request (R-REST-03), and a client for which each poll is a stream
//! of one request and at most one response. So updates, verdicts, differences, TTLs and states are those of
//! [`client`](crate::client). After *every* outcome the next poll is due after the refresh delay and a random part of
//! up to as much (R-REST-06); there is no back-off. A response is complete, whatever the type: a resource that it lacks
//! does not exist (R-REST-25). A response with the content that is held is no update (R-REST-15).
//!
//! An application gives each poll one server: the versions of different servers have no order, and each change of the
//! server brings an update (R-REST-27).
//!
//! After every event a driver calls [`poll_action`](Poll::poll_action) until there is none, and passes on the verdicts;
//! posts the request of [`poll_transmit`](Poll::poll_transmit); drops the request under way if [`asked`](Poll::asked)
//! is not its token; and waits for the answer, for [`poll_timeout`](Poll::poll_timeout) and for the application. The
//! driver converts JSON and limits the size of a body: the machine reads and writes messages.
//!
//! ```
//! use core::time::Duration;
//! use xds_machine::client::{self, Config};
//! use xds_machine::message::Node;
//! use xds_machine::poll::{self, Action, Answer, Poll, Reply};
//! use xds_machine::server::{self, Cache, Resource};
//! use xds_machine::{Instant, TypeUrl, type_url};
//!
//! let clusters = TypeUrl::from(type_url::CLUSTER);
//! let mut store = Cache::new(1);
//! store.insert(&clusters, Resource::new("c", &b"\x0a\x01c"[..]));
//!
//! let now = Instant::EPOCH;
//! let config = poll::Config::new(Config::new(Node::new("me")), Duration::from_secs(1))?;
//! let mut poll = Poll::new(config, type_url::CLUSTER)?;
//! poll.subscribe(["*"])?;
//!
//! let post = poll.poll_transmit(now).expect("the first poll is due at once");
//! assert_eq!(post.path, "/v3/discovery:clusters");
//! let Reply::Response(response) = poll::answer(&store, &server::Config::ads(), post.request) else { panic!("200") };
//! let random = 0; // the driver's
//! poll.handle_answer(now, post.asked, Answer::Response((&response).into()), random)?;
//! let Some(Action::Client(client::Action::Apply(update))) = poll.poll_action() else { panic!("an update") };
//! poll.handle_verdict(now, update.accept())?;
//!
//! let next = now + Duration::from_secs(1);
//! assert_eq!(poll.poll_timeout(), Some(next));
//! poll.handle_timeout(next, random);
//! let post = poll.poll_transmit(next).expect("the next poll");
//! assert_eq!(&post.request.version, response.version());
//! assert_eq!(poll::answer(&store, &server::Config::ads(), post.request), Reply::NotModified);
//! # Ok::<(), xds_machine::Misuse>(())
//! ```
//!
//! # The server
//!
//! A server has no stream and no state: [`answer`] is a function of the request and the source, so that any replica
//! answers any poll. [`Held`] is a poll that waits for a change, and [`hold`] returns how long it may wait. [`Offers`]
//! remembers the versions that clients were sent last, for clients that report a rejection. A poll for a resource with
//! a TTL is answered with a response, changed or not, because "not modified" renews no TTL.

mod action;
mod client;
mod config;
mod server;

pub use self::action::{Action, Answer, Asked, Counters, Transmit};
pub use self::client::Poll;
pub use self::config::Config;
pub use self::server::{Held, Offers, Question, Reply, answer, hold};

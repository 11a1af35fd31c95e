//! The status of clients (CSDS, `envoy.service.status.v3`): the resources that a client has, and those that a
//! management server has sent to its clients.
//!
//! ```text
//!  Client::states ──► dump ──► ItemRef .. ────────────────────────┐
//! Contents, Clock ───►                                             ▼
//!  Server, Source ──► view ──► Nodes ──► ClientConfig, Response ──► proto::client_status
//!                               ▲
//!                     Matchers ─┘  which nodes
//! ```
//!
//! # The contract
//!
//! This module has no machine, and no machine keeps state for it: [`dump`](fn@dump) is a function of a client's
//! [states](crate::client::Client::states), and [`view`](fn@view) of a server machine and its source. A server keeps no
//! names for a view. The caller provides two things: the wall clock ([`Clock`]), and the contents of held resources
//! ([`Contents`]), which the client machine passes on and does not keep. A service is one function from a [`Request`]
//! to a [`Response`], which is called once for each request and never unasked (R-CSDS-16).
//!
//! A client's dump has the rows of gRFC A40, A57 and A88 (R-CSDS-05):
//!
//! | status | version, time, contents | error |
//! |---|---|---|
//! | `REQUESTED` | | |
//! | `ACKED` | of the held resource | |
//! | `NACKED` | of the held resource, if any is held | the reason, the rejected version, the time |
//! | `DOES_NOT_EXIST` by a response | of the held resource, if it is kept | the version and time of that response |
//! | `DOES_NOT_EXIST`, `TIMEOUT` by the existence time-out | | without version and time |
//! | `RECEIVED_ERROR` | of the held resource, if any is held | the error, the version and time of that response |
//!
//! A server's view has the status of the form that the server would serve now ([`ConfigStatus`]). A newer form than the
//! rejected one is `STALE`, because the client has not judged it.
//!
//! ```
//! use core::time::Duration;
//! use xds_machine::client::{Action, Client, Config, ResourceStatus};
//! use xds_machine::csds::{self, Clock, Contents};
//! use xds_machine::message::{Any, Node, sotw};
//! use xds_machine::{Instant, Sotw, TypeUrl, type_url};
//!
//! let (now, listeners) = (Instant::EPOCH, TypeUrl::from(type_url::LISTENER));
//! let mut client = Client::<Sotw>::new(Config::new(Node::new("n")));
//! client.resources_mut(&listeners).subscribe(["a", "b"])?;
//! client.handle_open();
//! let first = client.poll_transmit().expect("a request");
//! client.handle_sent(now, first.sent);
//! # let any = Any { type_url: listeners.clone(), value: (&b"\x0a\x01a"[..]).into() };
//! # let (resources, nonce) = (vec![sotw::Item::Bare(any)], "n".into());
//! # let (control_plane, errors) = (String::new(), vec![]);
//! # let (version, type_url) = ("7".into(), listeners.clone());
//! # let response = sotw::Response { version, resources, type_url, nonce, control_plane, errors };
//! client.handle_response(now, response)?; // with listener `a`, version 7
//!
//! let mut contents = Contents::new();
//! let Some(Action::Apply(update)) = client.poll_action() else { panic!("an update") };
//! contents.handle_update(&update);
//! let verdict = update.accept();
//! let rejections = verdict.rejections().to_vec();
//! client.handle_verdict(now, verdict)?;
//! contents.handle_verdict(0, &listeners, &rejections, |of, name| {
//!     client.resources(of).state(name).is_some_and(|state| state.version.is_some())
//! });
//!
//! let clock = Clock::new(Instant::EPOCH, Duration::from_secs(1_700_000_000));
//! let items: Vec<_> = csds::dump(client.states(), &clock, Some(&contents)).collect();
//! let [a, b] = &items[..] else { panic!("two items") };
//! assert_eq!(a.client_status, Some(ResourceStatus::Acked));
//! assert_eq!(a.version.expect("it is held"), &"7");
//! assert_eq!(a.contents.expect("it was kept"), &b"\x0a\x01a"[..]);
//! assert_eq!(b.version, None);
//! # Ok::<(), xds_machine::Error>(())
//! ```

mod borrowed;
mod clock;
mod contents;
mod dump;
mod matcher;
mod message;
mod metadata;
mod view;

pub use self::borrowed::{ErrorRef, ItemRef};
pub use self::clock::{Clock, Timestamp};
pub use self::contents::Contents;
pub use self::dump::{dump, dump_servers, merge};
pub use self::matcher::{
    MatcherError, Matchers, NodeMatcher, Number, Pattern, Regex, StringMatcher, StructMatcher, ValueMatcher,
};
pub use self::message::{ClientConfig, ConfigStatus, ErrorState, Item, Request, Response};
pub use self::view::{Nodes, view};

//! Load reports (LRS): a client reports to a server how many calls it made, to which clusters and localities, and how
//! they ended; the server selects the clusters and the interval (lrs.proto, load_report.proto; gRFC A27).
//!
//! # The picture
//!
//! ```text
//!   started ──►┌──────────────┐  poll_transmit            ┌───────────────┐
//!  finished ──►│              │──── node, then reports ──►│ handle_request├──► Node, Report, Close
//!   dropped ──►│   Reporter   │                           │   Collector   │
//!       add ──►│              │◄─── which clusters, ──────│               │◄── set_selection
//!              └──────────────┘     how often             └───────────────┘
//! ```
//!
//! A stream begins with the client's node. The server answers with a selection, after which a report is due once in
//! each interval; without an answer nothing is reported, unless the [configuration](Config::with_kept_selection) keeps
//! the selection of the last stream. There are no versions, nonces, ACKs or NACKs.
//!
//! # The contract
//!
//! The contract is that of the [crate]. In addition, whatever happens to the streams:
//!
//! - Each call to a selected cluster is in exactly one report that the transport took. The driver gives back a message
//!   that the transport did not send ([`Reporter::handle_unsent`]), and its counts are in the next report. A lost
//!   stream loses at most the report that was under way.
//! - The windows of an entry follow each other without gap or overlap, and each has its measured length. A window
//!   covers all counts that are reported with it.
//! - Loads of clusters that are not selected are not kept for later, unless
//!   [configured](Config::with_count_before_asked).
//!
//! A [`Collector`] sends no response that makes clients fail: none without an interval or with one that is zero or
//! negative, none with an empty list of clusters, and none that repeats the selection.
//!
//! # The loop
//!
//! A driver of a reporter opens a stream while [`Reporter::wants_stream`] returns `true`, waits between two streams as
//! [`client::Backoff`](crate::client::Backoff) says (reset when a response has arrived, not when a connection has;
//! R-LRS-22) and ends the stream when `wants_stream` returns `false`. There is one stream for each server, and the
//! loads of a cluster go to one server (R-LRS-26).
//!
//! ```
//! use core::time::Duration;
//! use xds_machine::Instant;
//! use xds_machine::load::{Action, Collector, CollectorConfig, Config, Outcome, Place, Reporter, Selection};
//! use xds_machine::message::{Locality, Node};
//!
//! let mut now = Instant::EPOCH;
//! let mut client = Reporter::new(Config::new(Node::new("n")));
//! let mut server = Collector::new(CollectorConfig::new());
//!
//! client.handle_open();
//! server.handle_request(client.poll_transmit(now).expect("the node"))?;
//! assert!(matches!(server.poll_action(), Some(Action::Node(_))));
//! server.set_selection(Some(Selection::all(Duration::from_secs(10))));
//! client.handle_response(now, server.poll_transmit().expect("a selection"))?;
//!
//! let place = Place::new(Locality { zone: "a".into(), ..Locality::default() });
//! let entry = client.entry(now, "c1", "")?;
//! let call = client.started(&entry, &place)?;
//! client.finished(call, Outcome::Ok, [("named_metrics.queue", 0.5)])?;
//! client.dropped(&entry, "throttle", 1)?;
//!
//! now = client.poll_timeout().expect("a report is due");
//! server.handle_request(client.poll_transmit(now).expect("a report"))?;
//! let Some(Action::Report(report)) = server.poll_action() else { panic!("a report") };
//! assert_eq!((report[0].sum().ok, report[0].dropped), (1, 1));
//! assert_eq!(report[0].window, Some(Duration::from_secs(10)));
//! # Ok::<(), xds_machine::Error>(())
//! ```

mod collector;
mod config;
mod counters;
mod entries;
mod excess;
mod message;
mod place;
mod propagation;
mod reporter;
mod selection;
mod sum;
mod totals;
mod wanted;

pub use self::collector::{Action, Collector, CollectorConfig, ReportLimits};
pub use self::config::{Config, Dialect, Limits, SEND_ALL_CLUSTERS};
pub use self::entries::Entry;
pub use self::excess::Excess;
pub use self::message::{
    ClusterStats, Dropped, EndpointStats, Interval, Load, LocalityStats, Metric, NamedMetric, Request, Response,
};
pub use self::place::{Counts, Outcome, Place};
pub use self::propagation::Propagation;
pub use self::reporter::{Call, Reporter};
pub use self::selection::Selection;
pub use self::sum::Sum;
pub use self::totals::{Totals, merge};

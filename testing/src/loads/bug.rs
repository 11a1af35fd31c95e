//! Defects of load reporting, seeded at the edges of the machines.

use xds_machine::Instant;
use xds_machine::load::{Config, Interval, Reporter, Request, Response};

/// A defect. The check must find each.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Bug {
    // Of clients.
    /// The first cluster of the list is skipped (grpc-js).
    SkipsTheFirst,
    /// A response discards the counts since the last report (envoy#3868).
    ForgetsAtResponse,
    /// Each response starts the timer anew (Envoy).
    EachResponseIsANewTimer,
    /// The counters end with the stream.
    ForgetsAtClose,
    /// The window is the configured one (grpc-java#7209).
    ConfiguredWindow,
    /// A locality with nothing but calls in progress is left out (envoy#37544).
    LeavesOutInProgress,
    /// Issued calls are not counted (grpc-go#7538).
    NothingIsIssued,
    /// Dropped calls are not in the total (grpc-go#4138).
    ForgetsDrops,
    /// Dropped calls count as failed calls.
    DropsAreCalls,
    /// Stats are reported under the name of another cluster (grpc#22371).
    WrongCluster,
    /// The first message of a stream has stats, before the server asks for any (Envoy).
    GoesOnUnasked,
    /// Counts from the time before the server asked for them are reported (gRPC).
    SavesUp,
    /// A report that was not sent is lost.
    LosesUnsent,
    /// A report that was not sent is counted twice.
    GivesBackTwice,
    /// The last counts of a cluster are lost when the cluster is removed (envoy#12823).
    LosesTheLastCounts,
    /// There is no last report (grpc-go#6104).
    NoLastReport,

    // Of servers.
    /// A response has no interval (which crashes C-core).
    NoInterval,
    /// A response has a negative interval (which crashes Envoy).
    NegativeInterval,
    /// A response has an empty list of clusters.
    EmptyList,
}

/// Configures a defect that is a habit of a dialect.
pub(super) fn configure(bug: Option<Bug>, config: Config) -> Config {
    match bug {
        Some(Bug::GoesOnUnasked) => config.with_kept_selection(true),
        Some(Bug::SavesUp) => config.with_count_before_asked(true),
        _ => config,
    }
}

/// Adds the defect to a message of the client.
pub(super) fn sent(bug: Option<Bug>, mut request: Request) -> Request {
    for stats in &mut request.clusters {
        match bug {
            Some(Bug::ConfiguredWindow) => stats.window = Some(super::SECOND),
            Some(Bug::LeavesOutInProgress) => {
                stats.localities.retain(|at| at.load.issued + at.load.ok + at.load.error > 0);
            }
            Some(Bug::NothingIsIssued) => stats.localities.iter_mut().for_each(|at| at.load.issued = 0),
            Some(Bug::ForgetsDrops) => stats.dropped = 0,
            Some(Bug::WrongCluster) => stats.cluster = super::CLUSTERS[0].into(),
            _ => {}
        }
    }
    request
}

/// Adds the defect to a response of the server.
pub(super) fn answered(bug: Option<Bug>, response: Response) -> Response {
    match bug {
        Some(Bug::NoInterval) => Response { interval: None, ..response },
        Some(Bug::NegativeInterval) => Response { interval: Some(Interval { seconds: -1, nanos: 0 }), ..response },
        Some(Bug::EmptyList) => Response { clusters: vec![], send_all_clusters: false, ..response },
        _ => response,
    }
}

/// Returns the responses that the client reads in place of one.
pub(super) fn heard(bug: Option<Bug>, mut response: Response) -> Vec<Response> {
    match bug {
        Some(Bug::SkipsTheFirst) => {
            response.clusters = response.clusters.into_iter().skip(1).collect();
            vec![response]
        }
        Some(Bug::ForgetsAtResponse) => {
            let nothing = Response { clusters: vec![], send_all_clusters: false, ..response.clone() };
            vec![nothing, response]
        }
        Some(Bug::EachResponseIsANewTimer) => {
            let other = Response { interval: Some(Interval { seconds: 9, nanos: 0 }), ..response.clone() };
            vec![other, response]
        }
        _ => vec![response],
    }
}

/// Discards the counts: one response asks for nothing, and the next asks for all clusters again.
pub(super) fn reset(reporter: &mut Reporter, now: Instant) {
    let interval = Some(super::SECOND.into());
    let all = Response { send_all_clusters: true, interval, ..Response::default() };
    for response in [Response { send_all_clusters: false, ..all.clone() }, all] {
        reporter.handle_response(now, response).ok();
    }
}

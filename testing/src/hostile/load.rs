//! Load reports: a server without rules against a reporter, and a client without rules against a collector.

use std::time::Duration;

use xds_machine::load::{
    Action, Call, ClusterStats, Collector, CollectorConfig, Config, Counts, Dialect, Dropped, Entry, Interval, Limits,
    Load, LocalityStats, Outcome, Place, ReportLimits, Reporter, Request, Response, SEND_ALL_CLUSTERS, Selection,
};
use xds_machine::message::{Locality, Node};
use xds_machine::{Error, Instant};

use super::Input;

const LIMITS: Limits =
    Limits { clusters: 4, localities: 3, endpoints: 2, metrics: 2, categories: 2, selected: 5, selected_bytes: 64 };

fn node(input: &mut Input<'_>) -> Node {
    let node = Node::new("n");
    if input.below(2) == 0 { node } else { node.with_feature(SEND_ALL_CLUSTERS) }
}

fn place(input: &mut Input<'_>) -> Place {
    let zone = ["", "a", "b", "c", "d"][input.below(5)];
    let place = Place::new(Locality { zone: zone.into(), ..Locality::default() });
    match input.below(4) {
        0 => place.with_priority(1),
        1 => place.with_endpoint(&b"e"[..]),
        2 => place.with_endpoint(vec![input.byte() % 4]),
        _ => place,
    }
}

fn number(input: &mut Input<'_>) -> u64 {
    match input.byte() {
        few @ 0..200 => u64::from(few % 4),
        _ => u64::MAX / 4,
    }
}

fn issued(request: &Request) -> u128 {
    request.clusters.iter().flat_map(|stats| &stats.localities).map(|at| u128::from(at.load.issued)).sum()
}

fn interval(input: &mut Input<'_>) -> Option<Interval> {
    let seconds = [0, 1, 2, -1, i64::MIN, i64::MAX][input.below(6)];
    let nanos = [0, 1, 999_999_999, -1, i32::MIN, i32::MAX][input.below(6)];
    (input.below(4) > 0).then_some(Interval { seconds, nanos })
}

/// Plays a reporter, and returns it. Checks that refused input changes nothing, that calls in progress are those that
/// were started and have not ended, and that no report has more calls than were counted.
pub fn reporter(data: &[u8]) -> Reporter {
    let mut input = Input(data);
    let dialect = input.pick(&[Dialect::Spec, Dialect::Envoy, Dialect::Grpc]);
    let config = Config::new(node(&mut input)).with_limits(LIMITS).with_dialect(dialect);
    let mut reporter = Reporter::new(config);
    let (mut now, mut entries, mut calls) = (Instant::EPOCH, Vec::<Entry>::new(), Vec::<Call>::new());
    let (mut last, mut counted, mut reported) = (None::<Request>, 0_u128, 0_u128);
    while !input.is_empty() {
        let before = reporter.clone();
        let entry = if entries.is_empty() { None } else { Some(entries[input.below(entries.len())].clone()) };
        let refused = match (input.below(14), entry) {
            (0, _) => {
                now = now + Duration::from_millis(u64::from(input.byte()) * 20);
                false
            }
            (1, _) => match reporter.entry(now, input.name(), input.name()) {
                Ok(entry) => {
                    entries.push(entry);
                    false
                }
                Err(_) => true,
            },
            (2, Some(entry)) => reporter.release(entry).is_err(),
            (3, Some(entry)) => match reporter.started(&entry, &place(&mut input)) {
                Ok(call) => {
                    counted += 1;
                    calls.push(call);
                    false
                }
                Err(_) => true,
            },
            (4, _) if !calls.is_empty() => {
                let call = calls.swap_remove(input.below(calls.len()));
                let outcome = input.pick(&[Outcome::Ok, Outcome::Error]);
                let value = input.pick(&[0.5, f64::NAN, f64::MAX, f64::NEG_INFINITY]);
                let name = input.pick(&["cpu_utilization", "m", "n", "o"]);
                reporter.finished(call, outcome, [(name, value)]).expect("it was started");
                false
            }
            (5, Some(entry)) => {
                let counts = Counts { issued: number(&mut input), ok: number(&mut input), error: number(&mut input) };
                // Only complete calls, so that the counts do not end calls that are in progress.
                let counts = Counts { issued: counts.ok.saturating_add(counts.error).max(counts.issued), ..counts };
                let added = reporter.add(&entry, &place(&mut input), counts);
                counted += if added.is_ok() { u128::from(counts.issued) } else { 0 };
                added.is_err()
            }
            (6, Some(entry)) => reporter.dropped(&entry, input.pick(&["", "x", "y", "z"]), number(&mut input)).is_err(),
            (7, _) => {
                reporter.handle_open();
                false
            }
            (8, _) => {
                reporter.handle_close();
                false
            }
            (9 | 10, _) => {
                let response = Response {
                    clusters: input.some(6, Input::name),
                    send_all_clusters: input.below(2) == 0,
                    interval: interval(&mut input),
                    endpoint_granularity: input.below(2) == 0,
                };
                reporter.handle_response(now, response).is_err()
            }
            (11, _) => match last.take() {
                Some(request) => {
                    let issued = issued(&request);
                    match reporter.handle_unsent(request) {
                        Ok(()) => {
                            reported -= issued.min(reported);
                            false
                        }
                        Err(_) => true,
                    }
                }
                None => false,
            },
            (12, _) if input.below(8) == 0 => {
                reporter.stop();
                false
            }
            _ => {
                if let Some(request) = reporter.poll_transmit(now) {
                    reported += issued(&request);
                    last = Some(request);
                }
                assert_eq!(reporter.poll_transmit(now), None, "one message at a time");
                false
            }
        };
        assert!(!refused || reporter == before, "refused input changes nothing");
        assert!(reported <= counted, "{reported} calls are reported, {counted} were counted");
    }
    reporter
}

/// Plays a collector, and returns it. Checks that refused input changes nothing, and that no response kills clients.
pub fn collector(data: &[u8]) -> Collector {
    let mut input = Input(data);
    let limits = ReportLimits {
        clusters: 4,
        localities: 4,
        endpoints: 2,
        metrics: 2,
        categories: 4,
        name_bytes: 64,
        remembered: 8,
    };
    let mut collector = Collector::new(CollectorConfig::new().with_limits(limits));
    let mut sent = None;
    while !input.is_empty() {
        let before = collector.clone();
        match input.below(4) {
            0 => {
                let names = input.some(3, Input::name);
                let interval = Duration::from_millis(u64::from(input.byte()) * 100);
                let selection = match input.below(3) {
                    0 => None,
                    1 => Some(Selection::all(interval).or_clusters(names)),
                    _ => Some(Selection::clusters(interval, names)),
                };
                collector.set_selection(selection);
            }
            1 | 2 => {
                let cluster = |input: &mut Input<'_>| ClusterStats {
                    window: interval(input).map(Interval::to_duration),
                    localities: input.some(3, |input| LocalityStats {
                        locality: Locality { zone: input.name().to_string(), ..Locality::default() }.into(),
                        priority: u32::from(input.byte() % 2),
                        load: Load { issued: number(input), ok: number(input), ..Load::default() },
                        ..LocalityStats::default()
                    }),
                    dropped: number(input),
                    drops: input.some(3, |input| Dropped { category: input.name().to_string(), count: number(input) }),
                    ..ClusterStats::new(input.name(), input.name())
                };
                let clusters = input.some(5, cluster);
                let node = (input.below(2) == 0).then(|| node(&mut input).into());
                match collector.handle_request(Request { node, clusters }) {
                    Ok(()) | Err(Error::Caller(_)) => {}
                    Err(Error::Peer(_)) => assert_eq!(collector, before, "refused input changes nothing"),
                }
            }
            _ => {
                while let Some(action) = collector.poll_action() {
                    if let Action::Report(report) = action {
                        let windows = report.iter().filter_map(|stats| stats.window);
                        assert!(windows.into_iter().all(|window| !window.is_zero()), "a window of zero is none");
                    }
                }
            }
        }
        if let Some(response) = collector.poll_transmit() {
            let interval = response.interval.expect("an interval");
            assert!(interval.seconds >= 1 && interval.nanos >= 0, "{response:?}");
            assert!(response.send_all_clusters == response.clusters.is_empty(), "{response:?}");
            assert_ne!(sent.as_ref(), Some(&response), "the same again");
            sent = Some(response);
        }
    }
    collector
}

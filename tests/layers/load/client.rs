//! The reporter.

use std::collections::BTreeMap;

use xds_machine::load::{
    Call, ClusterStats, Config, Counts, Dialect, Dropped, EndpointStats, Entry, Excess, Interval, Limits, Load, Metric,
    NamedMetric, Outcome, Place, Reporter, Request, Response, SEND_ALL_CLUSTERS, Sum,
};
use xds_machine::message::Node;
use xds_machine::{Error, Instant, Misuse, PeerMisbehaved};

use super::{at, of, stats, zone};

/// A reporter whose stream is open.
struct World {
    reporter: Reporter,
    entries: BTreeMap<String, Entry>,
}

impl World {
    fn new(config: Config) -> Self {
        let mut world = Self { reporter: Reporter::new(config), entries: BTreeMap::new() };
        world.open(at(0));
        world
    }

    /// Returns a reporter that a server asks for these clusters, each second, from 0 on.
    fn asked(clusters: &[&str]) -> Self {
        let mut world = Self::new(config());
        world.answer(at(0), &response(clusters, 1000));
        world
    }

    fn open(&mut self, now: Instant) -> Request {
        self.reporter.handle_open();
        self.reporter.poll_transmit(now).expect("the node")
    }

    fn answer(&mut self, now: Instant, response: &Response) {
        self.reporter.handle_response(now, response.clone()).expect("a good response");
    }

    fn entry(&mut self, now: Instant, cluster: &str) -> Entry {
        let made = || self.reporter.entry(now, cluster, "").expect("room");
        self.entries.entry(cluster.into()).or_insert_with(made).clone()
    }

    /// Counts calls in zone a that start and succeed at once.
    fn calls(&mut self, now: Instant, cluster: &str, calls: u64) {
        let entry = self.entry(now, cluster);
        self.reporter.add(&entry, &zone("a"), Counts::succeeded(calls)).expect("an entry");
    }

    fn start(&mut self, now: Instant, cluster: &str, place: &Place) -> Call {
        let entry = self.entry(now, cluster);
        self.reporter.started(&entry, place).expect("an entry")
    }

    fn end(&mut self, call: Call, outcome: Outcome) {
        self.reporter.finished(call, outcome, []).expect("it was started");
    }

    /// Returns the stats that the reporter sends at this time.
    fn sent(&mut self, now: u64) -> Option<Vec<ClusterStats>> {
        let request = self.reporter.poll_transmit(at(now))?;
        assert_eq!(request.node, None);
        Some(request.clusters)
    }

    fn due(&self) -> Option<Instant> {
        self.reporter.poll_timeout()
    }
}

fn config() -> Config {
    Config::new(Node::new("n"))
}

fn response(clusters: &[&str], millis: u64) -> Response {
    let clusters = clusters.iter().map(|name| (*name).into()).collect();
    let interval = Some(std::time::Duration::from_millis(millis).into());
    Response { clusters, interval, ..Response::default() }
}

fn all(millis: u64) -> Response {
    Response { send_all_clusters: true, ..response(&[], millis) }
}

fn metric(calls: u64, total: f64) -> Metric {
    Metric { calls, total: Sum::new(total).expect("finite") }
}

fn named(name: &str, calls: u64, total: f64) -> NamedMetric {
    NamedMetric { name: name.into(), metric: metric(calls, total) }
}

/// R-LRS-01: the first message is the node alone, with one more feature.
#[test]
fn a_stream_begins_with_the_node() {
    let node = Node::new("n").with_feature("x");
    let mut reporter = Reporter::new(Config::new(node.clone()));
    assert_eq!(reporter.poll_transmit(at(0)), None, "no stream");
    reporter.handle_open();
    let first = reporter.poll_transmit(at(0)).expect("the node");
    let expected = node.clone().with_feature(SEND_ALL_CLUSTERS);
    assert_eq!(first, Request { node: Some(expected.clone().into()), clusters: vec![] });
    assert_eq!(SEND_ALL_CLUSTERS, "envoy.lrs.supports_send_all_clusters");
    // The feature is not added twice.
    let mut again = Reporter::new(Config::new(expected.clone()));
    again.handle_open();
    assert_eq!(again.poll_transmit(at(0)).expect("the node").node, Some(expected.into()));
}

/// R-LRS-02: until the server answers nothing more is sent.
#[test]
fn no_report_is_sent_before_the_first_response() {
    let mut world = World::new(config());
    world.calls(at(1), "c1", 3);
    assert_eq!((world.due(), world.sent(3_600_000)), (None, None));
}

/// R-LRS-03.
#[test]
fn later_messages_have_the_node_only_if_configured() {
    let mut world = World::asked(&["c1"]);
    assert_eq!(world.reporter.poll_transmit(at(1000)).expect("a report").node, None);
    let mut world = World::new(config().with_node_on_every_request(true));
    world.answer(at(0), &all(1000));
    let report = world.reporter.poll_transmit(at(1000)).expect("a report");
    assert_eq!(report.node.expect("the node").id, "n");
}

/// R-LRS-04: the interval is the least time, from the response and then from report to report.
#[test]
fn a_late_report_delays_the_next_report() {
    let mut world = World::asked(&["c1"]);
    world.calls(at(0), "c1", 1);
    assert_eq!((world.due(), world.sent(999)), (Some(at(1000)), None));
    assert_eq!(world.sent(1700), Some(vec![stats("c1", 1700, vec![of("a", [1, 1, 0, 0])])]));
    assert_eq!((world.due(), world.sent(2699)), (Some(at(2700)), None));
    assert_eq!(world.sent(2700), Some(vec![stats("c1", 1000, vec![])]));
}

/// R-LRS-05, L-14, L-15, L-17: no interval kills, floods or silences the reporter.
#[test]
fn hostile_intervals_become_the_floor_or_the_cap() {
    let interval = |seconds, nanos| Some(Interval { seconds, nanos });
    let floor = [
        None,
        interval(0, 0),
        interval(-1, 0),
        interval(0, -1),
        interval(0, 300_000_000),
        interval(0, i32::MIN),
        interval(i64::MIN, i32::MIN),
        interval(1, 0),
    ];
    let cap = [interval(i64::MAX, 999_999_999), interval(i64::MAX, i32::MAX), interval(1_000_000, 1)];
    let rows = floor.map(|row| (row, 1000)).into_iter().chain(cap.map(|row| (row, 1_000_000_000)));
    for (interval, millis) in rows.chain([(interval(1, 500_000_000), 1500)]) {
        let mut world = World::new(config());
        world.answer(at(0), &Response { interval, ..all(0) });
        assert_eq!(world.due(), Some(at(millis)), "{interval:?}");
    }
    let mut world = World::new(config().with_floor(std::time::Duration::from_millis(100)));
    world.answer(at(0), &all(0));
    assert_eq!(world.due(), Some(at(100)));
    let mut world = World::new(config().with_cap(std::time::Duration::from_secs(5)));
    world.answer(at(0), &all(6000));
    assert_eq!(world.due(), Some(at(5000)));
}

/// R-LRS-06, L-18, L-24: the list names the clusters, including the first; unknown names are skipped; all means all.
#[test]
fn reports_have_the_listed_clusters_or_all() {
    let both = Response { send_all_clusters: true, ..response(&["c2"], 1000) };
    let rows = [
        (response(&["c1"], 1000), vec!["c1"]),
        (response(&["c2", "nosuch", "c1", "c2"], 1000), vec!["c1", "c2"]),
        (response(&["nosuch"], 1000), vec![]),
        (all(1000), vec!["c1", "c2", "c3"]),
        (both, vec!["c1", "c2", "c3"]),
    ];
    for (response, expected) in rows {
        let mut world = World::new(config());
        world.answer(at(0), &response);
        for cluster in ["c3", "c1", "c2"] {
            world.calls(at(0), cluster, 1);
        }
        let report = world.sent(1000).expect("a report");
        let names: Vec<&str> = report.iter().map(|stats| stats.cluster.as_str()).collect();
        assert_eq!(names, expected, "{response:?}");
    }
}

/// R-LRS-07, L-17: an empty list asks for nothing.
#[test]
fn an_empty_list_stops_the_reports() {
    let mut world = World::asked(&["c1"]);
    world.calls(at(0), "c1", 1);
    world.answer(at(500), &response(&[], 1000));
    world.calls(at(600), "c1", 1);
    assert_eq!((world.due(), world.sent(5000)), (None, None));
    // Asked again, the reporter begins anew.
    world.answer(at(6000), &response(&["c1"], 1000));
    assert_eq!(world.sent(7000), Some(vec![stats("c1", 1000, vec![])]));
}

/// R-LRS-08, R-LRS-09, L-16, L-19: an equal response changes nothing, another list leaves the timer, another interval
/// starts it anew; and nothing is lost.
#[test]
fn a_later_response_replaces_the_selection() {
    let mut world = World::asked(&["c1"]);
    world.calls(at(0), "c1", 4);
    for now in [100, 400, 900] {
        world.answer(at(now), &response(&["c1"], 1000));
        assert_eq!(world.due(), Some(at(1000)));
    }
    assert_eq!(world.sent(1228), Some(vec![stats("c1", 1228, vec![of("a", [4, 4, 0, 0])])]));
    world.calls(at(1300), "c1", 1);
    world.answer(at(1728), &response(&["c1", "c2"], 1000));
    world.calls(at(1800), "c2", 2);
    assert_eq!(world.due(), Some(at(2228)));
    let c2 = stats("c2", 428, vec![of("a", [2, 2, 0, 0])]);
    assert_eq!(world.sent(2228), Some(vec![stats("c1", 1000, vec![of("a", [1, 1, 0, 0])]), c2]));
    world.calls(at(2300), "c1", 1);
    world.answer(at(2928), &response(&["c1", "c2"], 1500));
    assert_eq!(world.due(), Some(at(4428)));
    let c2 = stats("c2", 2200, vec![]);
    assert_eq!(world.sent(4428), Some(vec![stats("c1", 2200, vec![of("a", [1, 1, 0, 0])]), c2]));
    // A report that is due is not put off by an equal response.
    world.reporter.handle_timeout(at(5928));
    world.answer(at(5930), &response(&["c1"], 1500));
    assert_eq!(world.sent(5930).map(|report| report.len()), Some(1));
}

/// R-LRS-10, R-LRS-11: counts from before the response that asks for the cluster.
#[test]
fn a_newly_selected_cluster_is_counted_from_its_response_unless_configured() {
    for (count, expected) in [
        (false, stats("c2", 1002, vec![of("a", [1, 1, 0, 1])])),
        (true, stats("c2", 3235, vec![of("a", [17, 16, 0, 1])])),
    ] {
        let mut world = World::new(config().with_count_before_asked(count));
        world.calls(at(100), "c2", 15);
        let _stays = world.start(at(100), "c2", &zone("a"));
        world.answer(at(2333), &response(&["c2"], 1000));
        world.calls(at(2400), "c2", 1);
        assert_eq!(world.sent(3335), Some(vec![expected]), "count before asked: {count}");
    }
}

/// R-LRS-11: counts are not saved up while the server asks for other clusters.
#[test]
fn counts_of_unselected_clusters_are_discarded() {
    for (count, expected) in [(false, stats("c2", 500, vec![])), (true, stats("c2", 1000, vec![of("a", [2, 2, 0, 0])]))]
    {
        let mut world = World::new(config().with_count_before_asked(count));
        world.answer(at(0), &response(&["c1"], 1000));
        world.calls(at(0), "c1", 1);
        world.calls(at(0), "c2", 5);
        let entry = world.entry(at(0), "c2");
        world.reporter.dropped(&entry, "throttle", 1).expect("an entry");
        world.reporter.add_metric(&entry, &zone("a"), "m", 1, 1.0).expect("an entry");
        assert_eq!(world.sent(1000).map(|report| report.len()), Some(1));
        // gRPC forgets at each report, and counts from there.
        world.calls(at(1200), "c2", 2);
        world.answer(at(1500), &response(&["c1", "c2"], 1000));
        assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, vec![]), expected]), "count before asked: {count}");
    }
}

/// Endpoints whose counts are thrown away make room, also beside a call in progress at their locality.
#[test]
fn discarded_endpoints_do_not_count_against_the_limit() {
    let limits = Limits { endpoints: 1, ..Limits::default() };
    let mut world = World::new(config().with_limits(limits));
    world.answer(at(0), &response(&["c1"], 1000));
    let call = world.start(at(0), "c2", &zone("a"));
    let entry = world.entry(at(0), "c2");
    for endpoint in [&b"e1"[..], b"e2"] {
        let place = zone("a").with_endpoint(endpoint);
        assert_eq!(world.reporter.add(&entry, &place, Counts::succeeded(1)), Ok(()));
    }
    world.end(call, Outcome::Ok);
}

/// R-LRS-12: a report resets all but the calls in progress.
#[test]
fn calls_in_progress_are_a_gauge() {
    let mut world = World::asked(&["c1"]);
    let call = world.start(at(0), "c1", &zone("a"));
    let expected = [[1, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]];
    for (n, expected) in expected.into_iter().enumerate() {
        let now = 1000 * (n as u64 + 1);
        assert_eq!(world.sent(now), Some(vec![stats("c1", 1000, vec![of("a", expected)])]));
    }
    world.end(call, Outcome::Ok);
    assert_eq!(world.sent(4000), Some(vec![stats("c1", 1000, vec![of("a", [0, 1, 0, 0])])]));
    assert_eq!(world.sent(5000), Some(vec![stats("c1", 1000, vec![])]));
}

/// R-LRS-12, R-LRS-29: the same for an endpoint, which stays as long as it has a call in progress.
#[test]
fn calls_in_progress_at_an_endpoint_are_a_gauge() {
    let mut world = World::new(config());
    world.answer(at(0), &Response { endpoint_granularity: true, ..response(&["c1"], 1000) });
    let call = world.start(at(0), "c1", &zone("a").with_endpoint(&b"e1"[..]));
    let expected = |counts| {
        let mut locality = of("a", counts);
        locality.endpoints = vec![EndpointStats { address: "e1".into(), load: locality.load.clone() }];
        Some(vec![stats("c1", 1000, vec![locality])])
    };
    assert_eq!(world.sent(1000), expected([1, 0, 0, 1]));
    assert_eq!(world.sent(2000), expected([0, 0, 0, 1]));
    world.end(call, Outcome::Ok);
    assert_eq!(world.sent(3000), expected([0, 1, 0, 0]));
    assert_eq!(world.sent(4000), Some(vec![stats("c1", 1000, vec![])]));
}

/// R-LRS-13, L-20: a locality is reported if any of its values is not zero.
#[test]
fn a_locality_with_one_kind_of_load_is_reported() {
    let mut world = World::asked(&["c1"]);
    let entry = world.entry(at(0), "c1");
    let call = world.start(at(0), "c1", &zone("ends"));
    let _stays = world.start(at(0), "c1", &zone("stays"));
    assert_eq!(world.sent(1000).expect("a report")[0].localities.len(), 2);
    world.end(call, Outcome::Error);
    world.reporter.add_metric(&entry, &zone("metrics"), "named_metrics.m", 2, 0.5).expect("an entry");
    let mut metrics = of("metrics", [0, 0, 0, 0]);
    metrics.load.metrics = vec![named("named_metrics.m", 2, 0.5)];
    let expected = vec![of("ends", [0, 0, 1, 0]), metrics, of("stays", [0, 0, 0, 1])];
    assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, expected)]));
}

/// R-LRS-14, L-22: windows are measured, each by itself.
#[test]
fn windows_are_measured() {
    let mut world = World::new(config());
    world.answer(at(0), &all(1000));
    world.calls(at(0), "c1", 1);
    world.calls(at(700), "c2", 1);
    let one = |cluster, window| stats(cluster, window, vec![of("a", [1, 1, 0, 0])]);
    assert_eq!(world.sent(1234), Some(vec![one("c1", 1234), one("c2", 534)]));
    assert_eq!(world.sent(3000), Some(vec![stats("c1", 1766, vec![]), stats("c2", 1766, vec![])]));
}

/// R-LRS-15.
#[test]
fn idle_localities_are_left_out() {
    for (list, expected) in [(false, vec![]), (true, vec![of("a", [0; 4])])] {
        let mut world = World::new(config().with_idle_localities(list));
        world.answer(at(0), &all(1000));
        world.calls(at(0), "c1", 1);
        world.sent(1000).expect("a report");
        assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, expected)]));
        assert_eq!(world.sent(3000), Some(vec![stats("c1", 1000, vec![])]), "and forgotten");
    }
}

/// R-LRS-16, L-23: a report each interval, or silence after the first report of an idle interval.
#[test]
fn idle_intervals_are_reported_and_only_the_first_if_quiet() {
    let mut world = World::new(config());
    world.answer(at(0), &all(1000));
    assert_eq!(world.sent(1000), Some(vec![]), "no clusters, and still a report");
    world.entry(at(1000), "c1");
    for now in [2000, 3000] {
        assert_eq!(world.sent(now), Some(vec![stats("c1", 1000, vec![])]));
    }
    let mut world = World::new(config().with_quiet(true));
    world.answer(at(0), &all(1000));
    world.calls(at(0), "c1", 1);
    assert!(world.sent(1000).is_some());
    assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, vec![])]), "one of zeros");
    assert_eq!((world.sent(3000), world.sent(4000), world.due()), (None, None, Some(at(5000))));
    world.calls(at(4500), "c1", 1);
    assert_eq!(world.sent(5000), Some(vec![stats("c1", 1000, vec![of("a", [1, 1, 0, 0])])]), "silent windows end too");
    // On a new stream the zeros are sent again.
    assert!(world.sent(6000).is_some());
    world.reporter.handle_close();
    world.open(at(6000));
    world.answer(at(6000), &all(1000));
    assert_eq!(world.sent(7000), Some(vec![stats("c1", 1000, vec![])]));
}

/// R-LRS-17: an entry for each service of a cluster; L-22: never under the name of another one.
#[test]
fn two_services_are_two_entries() {
    let mut world = World::asked(&["c1"]);
    let [e1, e2] = ["e1", "e2"].map(|service| world.reporter.entry(at(0), "c1", service).expect("room"));
    world.reporter.add(&e1, &zone("a"), Counts::succeeded(1)).expect("an entry");
    let call = world.reporter.started(&e1, &zone("a")).expect("an entry");
    world.reporter.add(&e2, &zone("a"), Counts::failed(2)).expect("an entry");
    world.reporter.release(e1).expect("a handle");
    let service = |service: &str, localities| ClusterStats { service: service.into(), ..stats("c1", 1000, localities) };
    let expected = vec![service("e1", vec![of("a", [2, 1, 0, 1])]), service("e2", vec![of("a", [2, 0, 2, 0])])];
    assert_eq!(world.sent(1000), Some(expected));
    // L-26: the old entry drains.
    world.end(call, Outcome::Ok);
    let expected = vec![service("e1", vec![of("a", [0, 1, 0, 0])]), service("e2", vec![])];
    assert_eq!(world.sent(2000), Some(expected));
    assert_eq!(world.sent(3000), Some(vec![service("e2", vec![])]));
}

/// R-LRS-18, R-LRS-19, L-21: drops are in no locality, and those of a circuit breaker in the total alone.
#[test]
fn dropped_calls_are_counted_in_total_and_by_category() {
    let mut world = World::asked(&["c1"]);
    let entry = world.entry(at(0), "c1");
    for (category, calls) in [("throttle", 3), ("", 3), ("lb", 5), ("throttle", 5), ("none", 0)] {
        world.reporter.dropped(&entry, category, calls).expect("an entry");
    }
    world.calls(at(0), "c1", 17);
    let drops = [("lb", 5), ("throttle", 8)].map(|(category, count)| Dropped { category: category.into(), count });
    let expected =
        ClusterStats { dropped: 16, drops: drops.into(), ..stats("c1", 1000, vec![of("a", [17, 17, 0, 0])]) };
    assert_eq!(world.sent(1000), Some(vec![expected]));
    assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, vec![])]));
}

/// R-LRS-20: no end without a start, no wrap-around; sums saturate.
#[test]
fn ends_of_calls_that_were_not_started_are_refused() {
    let mut world = World::asked(&["c1"]);
    let call = world.start(at(0), "c1", &zone("a"));
    world.end(call.clone(), Outcome::Error);
    let before = world.reporter.clone();
    let not_started = Misuse::CallNotStarted { cluster: "c1".into() };
    assert_eq!(not_started.to_string(), "a call to c1 has ended that was not started");
    assert_eq!(world.reporter.finished(call, Outcome::Ok, [("m", 1.0)]), Err(not_started.clone()));
    let entry = world.entry(at(0), "c1");
    for (place, counts) in [
        (zone("a"), Counts { issued: 1, ok: 1, error: 1 }),
        (zone("b"), Counts { ok: 1, ..Counts::default() }),
        (zone("a"), Counts { issued: 1, ok: u64::MAX, error: u64::MAX }),
        (zone("a").with_endpoint(&b"e"[..]), Counts { error: 1, ..Counts::default() }),
    ] {
        assert_eq!(world.reporter.add(&entry, &place, counts), Err(not_started.clone()));
    }
    assert_eq!(world.reporter, before);
    for _ in 0..2 {
        let counts = Counts { issued: u64::MAX, ..Counts::default() };
        world.reporter.add(&entry, &zone("a"), counts).expect("an entry");
        world.reporter.add(&entry, &zone("a"), Counts { ok: 1, ..Counts::default() }).expect("an entry");
    }
    let expected = of("a", [u64::MAX, 2, 1, u64::MAX - 1]);
    assert_eq!(world.sent(1000), Some(vec![stats("c1", 1000, vec![expected])]));
}

/// R-LRS-21: the counters and windows outlive the stream, and the selection does not.
#[test]
fn counts_of_selected_clusters_survive_a_lost_stream() {
    let mut world = World::asked(&["c1"]);
    world.calls(at(0), "c1", 1);
    world.sent(1000).expect("a report");
    world.reporter.handle_close();
    world.calls(at(1500), "c1", 4);
    world.calls(at(1500), "c2", 4);
    assert_eq!((world.due(), world.reporter.poll_transmit(at(2000))), (None, None));
    assert_eq!(world.open(at(5000)).clusters, []);
    world.calls(at(5200), "c1", 3);
    assert_eq!(world.sent(5327), None, "nothing is asked for on this stream");
    world.answer(at(5327), &all(1000));
    let expected = vec![stats("c1", 5327, vec![of("a", [7, 7, 0, 0])]), stats("c2", 1000, vec![])];
    assert_eq!(world.sent(6327), Some(expected));
}

/// R-LRS-21: a cluster that the last stream asked for, and whose entry is new since, loses no counts either; a cluster
/// that the new stream does not ask for does.
#[test]
fn a_cluster_not_selected_on_the_next_stream_loses_its_counts() {
    let mut world = World::asked(&["c1", "c2"]);
    world.reporter.handle_close();
    world.calls(at(500), "c1", 1);
    world.calls(at(600), "c2", 2);
    world.open(at(900));
    world.answer(at(1000), &response(&["c2"], 1000));
    assert_eq!(world.sent(2000), Some(vec![stats("c2", 1400, vec![of("a", [2, 2, 0, 0])])]));
    world.answer(at(2000), &response(&["c1", "c2"], 1000));
    assert_eq!(world.sent(3000), Some(vec![stats("c1", 1000, vec![]), stats("c2", 1000, vec![])]));
}

/// R-LRS-21, as Envoy: the first message of the next stream has stats, and reports go on at the old interval.
#[test]
fn the_envoy_dialect_keeps_the_selection_across_streams() {
    let mut world = World::new(config().with_dialect(Dialect::Envoy));
    world.answer(at(0), &response(&["c1"], 1000));
    world.calls(at(0), "c1", 1);
    world.reporter.handle_close();
    world.reporter.handle_open();
    let first = world.reporter.poll_transmit(at(5399)).expect("the node");
    assert_eq!(first.clusters, [stats("c1", 5399, vec![of("a", [1, 1, 0, 0])])]);
    assert_eq!(first.node.expect("the node").id, "n");
    assert_eq!(world.due(), Some(at(6399)));
    let second = world.reporter.poll_transmit(at(6399)).expect("a report");
    assert!(second.node.is_some() && second.clusters == [stats("c1", 1000, vec![])]);
}

/// R-LRS-23: there is never a second report that waits.
#[test]
fn reports_that_wait_for_room_are_merged_into_one() {
    let mut world = World::asked(&["c1"]);
    for now in [1000, 2000, 3000] {
        world.calls(at(now - 500), "c1", 1);
        world.reporter.handle_timeout(at(now));
        assert_eq!(world.due(), None, "it waits for room");
    }
    let expected = ClusterStats { window: Some(std::time::Duration::from_millis(2600)), ..stats("c1", 0, vec![]) };
    assert_eq!(world.sent(3100), Some(vec![ClusterStats { localities: vec![of("a", [3, 3, 0, 0])], ..expected }]));
    assert_eq!(world.sent(3100), None);
}

/// R-LRS-23: the counts of an unsent report are in the next report, on this stream or the next one.
#[test]
fn the_counts_of_an_unsent_report_are_in_the_next_one() {
    for lost in [false, true] {
        let mut world = World::asked(&["c1"]);
        let entry = world.entry(at(0), "c1");
        world.reporter.dropped(&entry, "throttle", 2).expect("an entry");
        world.reporter.dropped(&entry, "", 1).expect("an entry");
        let place = zone("a").with_endpoint(&b"e"[..]);
        let call = world.start(at(0), "c1", &place);
        world.reporter.finished(call, Outcome::Ok, [("cpu_utilization", 0.5), ("m", 1.0)]).expect("it was started");
        let _stays = world.start(at(0), "c1", &place);
        let report = world.reporter.poll_transmit(at(1000)).expect("a report");
        world.calls(at(1100), "c1", 1);
        if lost {
            world.reporter.handle_close();
        }
        world.reporter.handle_unsent(report.clone()).expect("it was under way");
        assert_eq!(world.reporter.handle_unsent(report.clone()), Err(Misuse::NoReport));
        if lost {
            world.open(at(1200));
            world.answer(at(1200), &response(&["c1"], 1000));
        }
        let again = world.sent(2200).expect("a report");
        let mut expected = report.clusters[0].clone();
        expected.window = Some(std::time::Duration::from_millis(2200));
        (expected.localities[0].load.issued, expected.localities[0].load.ok) = (3, 2);
        assert_eq!(again, [expected]);
        assert_eq!(world.sent(3200), Some(vec![stats("c1", 1000, vec![of("a", [0, 0, 0, 1])])]));
    }
    assert_eq!(Misuse::NoReport.to_string(), "no load report is under way");
}

/// R-LRS-23: the same for the node, and for an entry that was removed with its report.
#[test]
fn the_node_and_the_counts_of_a_removed_entry_are_sent_again_if_unsent() {
    let mut world = World::new(config());
    let greeting = world.open(at(0));
    world.reporter.handle_unsent(greeting.clone()).expect("it was under way");
    assert_eq!(world.reporter.poll_transmit(at(1)), Some(greeting));
    world.answer(at(1), &all(1000));
    world.calls(at(1), "c1", 1);
    let entry = world.entry(at(1), "c1");
    world.reporter.release(entry).expect("a handle");
    let report = world.reporter.poll_transmit(at(1001)).expect("a report");
    assert_eq!(world.reporter.entries().count(), 0);
    world.reporter.handle_unsent(report).expect("it was under way");
    assert_eq!(world.sent(1500), Some(vec![stats("c1", 1499, vec![of("a", [1, 1, 0, 0])])]));
    assert_eq!(world.reporter.entries().count(), 0);
    // Counts that the server does not ask for any more are thrown away.
    world.calls(at(1500), "c2", 1);
    let report = world.reporter.poll_transmit(at(2500)).expect("a report");
    world.answer(at(2500), &response(&["c1"], 1000));
    world.reporter.handle_unsent(report).expect("it was under way");
    assert_eq!(world.sent(4000), Some(vec![]));
}

/// R-LRS-24, L-26: an entry is removed with its last calls, and its last counts are reported.
#[test]
fn the_last_counts_of_an_entry_are_reported() {
    let mut world = World::asked(&["c1"]);
    let entry = world.reporter.entry(at(0), "c1", "").expect("room");
    let second = world.reporter.entry(at(0), "c1", "").expect("room");
    let call = world.reporter.started(&entry, &zone("a")).expect("an entry");
    world.reporter.release(entry.clone()).expect("a handle");
    world.reporter.release(second).expect("a handle");
    let none = Misuse::NoEntry { cluster: "c1".into() };
    assert_eq!(world.reporter.release(entry.clone()), Err(none.clone()), "there were two");
    assert_eq!(world.sent(1000), Some(vec![stats("c1", 1000, vec![of("a", [1, 0, 0, 1])])]));
    // An entry that is made again before the call ends is the same entry.
    let again = world.reporter.entry(at(1200), "c1", "").expect("room");
    world.reporter.add(&again, &zone("a"), Counts::succeeded(1)).expect("an entry");
    world.reporter.release(again).expect("a handle");
    assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, vec![of("a", [1, 1, 0, 1])])]));
    world.end(call, Outcome::Error);
    assert_eq!(world.sent(3000), Some(vec![stats("c1", 1000, vec![of("a", [0, 0, 1, 0])])]));
    assert_eq!(world.sent(4000), Some(vec![]), "gone");
    assert_eq!(world.reporter.started(&entry, &zone("a")), Err(none));
    // An entry without counts is removed at once.
    let entry = world.reporter.entry(at(4000), "c2", "").expect("room");
    world.reporter.release(entry).expect("a handle");
    assert_eq!(world.reporter.entries().count(), 0);
}

/// R-LRS-24: an entry that the server does not ask for is removed with its last call.
#[test]
fn a_released_entry_that_is_not_selected_is_removed_with_its_last_call() {
    let mut world = World::new(config());
    let entry = world.reporter.entry(at(0), "c1", "").expect("room");
    let call = world.reporter.started(&entry, &zone("a")).expect("an entry");
    world.reporter.release(entry).expect("a handle");
    assert_eq!(world.reporter.entries().count(), 1);
    world.end(call, Outcome::Ok);
    assert_eq!(world.reporter.entries().count(), 0);
    // Or with the response that does not ask for the entry.
    world.answer(at(0), &all(1000));
    let entry = world.reporter.entry(at(0), "c1", "").expect("room");
    world.reporter.add(&entry, &zone("a"), Counts::succeeded(1)).expect("an entry");
    world.reporter.release(entry).expect("a handle");
    assert_eq!(world.reporter.entries().count(), 1);
    world.answer(at(0), &response(&["c2"], 1000));
    assert_eq!(world.reporter.entries().count(), 0);
}

/// L-22: a stale handle counts for its own cluster, or for none.
#[test]
fn a_stale_handle_counts_for_no_other_cluster() {
    let mut world = World::asked(&["c1", "c2"]);
    let stale = world.reporter.entry(at(0), "c1", "").expect("room");
    world.reporter.release(stale.clone()).expect("a handle");
    let other = world.reporter.entry(at(0), "c2", "").expect("room");
    let none = Misuse::NoEntry { cluster: "c1".into() };
    assert_eq!(none.to_string(), "no loads are counted for c1");
    assert_eq!(world.reporter.add(&stale, &zone("a"), Counts::succeeded(1)), Err(none.clone()));
    assert_eq!(world.reporter.dropped(&stale, "", 1), Err(none.clone()));
    assert_eq!(world.reporter.add_metric(&stale, &zone("a"), "m", 1, 1.0), Err(none));
    world.reporter.release(other).expect("a handle");
    let _third = world.reporter.entry(at(0), "c3", "").expect("room");
    let back = world.reporter.entry(at(0), "c1", "").expect("room");
    world.reporter.add(&stale, &zone("a"), Counts::succeeded(1)).expect("the same names");
    assert_eq!((back.cluster().as_str(), back.service().as_str()), ("c1", ""));
    assert_eq!(world.sent(1000), Some(vec![stats("c1", 1000, vec![of("a", [1, 1, 0, 0])])]));
}

/// R-LRS-25, L-21, L-25: one last report, if something is asked for; then no stream is needed.
#[test]
fn stop_makes_a_last_report() {
    let mut world = World::asked(&["c1"]);
    world.calls(at(0), "c1", 1);
    assert_eq!((world.reporter.wants_stream(), world.reporter.is_stopping()), (true, false));
    world.reporter.stop();
    world.reporter.stop();
    assert_eq!((world.reporter.wants_stream(), world.reporter.is_stopping()), (true, true));
    world.answer(at(300), &response(&[], 1000));
    assert_eq!(world.sent(300), Some(vec![stats("c1", 300, vec![of("a", [1, 1, 0, 0])])]));
    assert!(!world.reporter.wants_stream());
    world.reporter.stop();
    assert_eq!((world.reporter.wants_stream(), world.due(), world.sent(9000)), (false, None, None));
}

/// R-LRS-25: a last report that is given back is owed again, while there is a stream.
#[test]
fn stop_makes_no_report_without_a_selection_or_a_stream() {
    for answered in [false, true] {
        let mut world = World::new(config());
        if answered {
            world.answer(at(0), &response(&[], 1000));
        }
        world.reporter.stop();
        assert_eq!((world.reporter.wants_stream(), world.sent(5000)), (false, None));
    }
    let mut world = World::asked(&["c1"]);
    world.reporter.stop();
    let last = world.reporter.poll_transmit(at(10)).expect("a report");
    world.reporter.handle_unsent(last.clone()).expect("it was under way");
    assert!(world.reporter.wants_stream());
    assert_eq!(world.reporter.poll_transmit(at(10)), Some(last.clone()));
    world.reporter.handle_close();
    world.reporter.handle_unsent(last).expect("it was under way");
    assert!(!world.reporter.wants_stream());
}

/// R-LRS-28: utilizations have fields, or are named metrics.
#[test]
fn utilizations_are_reported_as_fields_or_as_named_metrics() {
    for by_name in [false, true] {
        let mut world = World::new(config().with_metrics_by_name(by_name));
        world.answer(at(0), &all(1000));
        let call = world.start(at(0), "c1", &zone("a"));
        let also = world.start(at(0), "c1", &zone("a"));
        let (cpu, mem, app) = ("cpu_utilization", "mem_utilization", "application_utilization");
        let metrics = [(mem, 0.25), ("named_metrics.foo", 1.5), (cpu, 0.5), (app, 2.0)];
        world.reporter.finished(call, Outcome::Ok, metrics).expect("it was started");
        let metrics = [("named_metrics.foo", 1.0), (cpu, f64::NAN), (cpu, f64::INFINITY), (mem, 0.5)];
        world.reporter.finished(also, Outcome::Error, metrics).expect("it was started");
        assert_eq!(world.reporter.ignored_metrics(), 2);
        let mut expected = of("a", [2, 1, 1, 0]);
        if by_name {
            expected.load.metrics =
                vec![named(app, 1, 2.0), named(cpu, 1, 0.5), named(mem, 2, 0.75), named("named_metrics.foo", 2, 2.5)];
        } else {
            expected.load.metrics = vec![named("named_metrics.foo", 2, 2.5)];
            (expected.cpu, expected.mem, expected.application) =
                (Some(metric(1, 0.5)), Some(metric(2, 0.75)), Some(metric(1, 2.0)));
        }
        assert_eq!(world.sent(1000), Some(vec![stats("c1", 1000, vec![expected])]));
        assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, vec![])]));
    }
}

/// R-LRS-29: endpoints beside their locality, from the response on that asks for them.
#[test]
fn endpoints_are_reported_with_their_locality_if_requested() {
    let mut world = World::asked(&["c1"]);
    let places = [&b"e2"[..], b"e1"].map(|address| zone("a").with_endpoint(address));
    let entry = world.entry(at(0), "c1");
    let add = |world: &mut World| {
        for (place, calls) in places.iter().zip([1, 2]) {
            world.reporter.add(&entry, place, Counts::succeeded(calls)).expect("an entry");
        }
        world.reporter.add(&entry, &zone("a"), Counts::succeeded(4)).expect("an entry");
    };
    add(&mut world);
    let plain = of("a", [7, 7, 0, 0]);
    assert_eq!(world.sent(1000), Some(vec![stats("c1", 1000, vec![plain.clone()])]));
    world.answer(at(1000), &Response { endpoint_granularity: true, ..response(&["c1"], 1000) });
    assert_eq!(world.due(), Some(at(2000)));
    add(&mut world);
    let load = |calls| Load { issued: calls, ok: calls, ..Load::default() };
    let endpoint = |address: &'static str, calls| EndpointStats { address: address.into(), load: load(calls) };
    let mut detailed = plain.clone();
    detailed.endpoints = vec![endpoint("e1", 2), endpoint("e2", 1)];
    assert_eq!(world.sent(2000), Some(vec![stats("c1", 1000, vec![detailed])]));
    world.reporter.add(&entry, &places[0], Counts::succeeded(1)).expect("an entry");
    let mut one = of("a", [1, 1, 0, 0]);
    one.endpoints = vec![endpoint("e2", 1)];
    assert_eq!(world.sent(3000), Some(vec![stats("c1", 1000, vec![one])]), "only those with something");
    world.answer(at(3000), &response(&["c1"], 1000));
    add(&mut world);
    assert_eq!(world.sent(4000), Some(vec![stats("c1", 1000, vec![plain])]));
}

/// R-LRS-30: the priority is part of the key, and a locality that is not known is the empty one.
#[test]
fn localities_are_counted_by_name_and_priority() {
    let mut world = World::asked(&["c1"]);
    let entry = world.entry(at(0), "c1");
    for place in [zone("b"), zone("a").with_priority(1), zone("a"), Place::default(), zone("a").with_priority(1)] {
        world.reporter.add(&entry, &place, Counts::succeeded(1)).expect("an entry");
    }
    let mut second = of("a", [2, 2, 0, 0]);
    second.priority = 1;
    let expected = vec![of("", [1, 1, 0, 0]), of("a", [1, 1, 0, 0]), second, of("b", [1, 1, 0, 0])];
    assert_eq!(world.sent(1000), Some(vec![stats("c1", 1000, expected)]));
}

/// R-LRS-31: "all" means every cluster that the client has, in the order of names, and a new entry counts at once.
#[test]
fn a_response_for_all_clusters_selects_every_cluster_of_the_client() {
    let mut world = World::new(config());
    world.answer(at(0), &all(1000));
    for (now, cluster) in [(0, "b"), (0, "c"), (900, "a")] {
        world.calls(at(now), cluster, 1);
    }
    let one = |cluster, window| stats(cluster, window, vec![of("a", [1, 1, 0, 0])]);
    assert_eq!(world.sent(1000), Some(vec![one("a", 100), one("b", 1000), one("c", 1000)]));
}

/// The limits of what is counted, and of a selection.
#[test]
fn counts_and_selections_beyond_a_limit_are_refused() {
    let limits =
        Limits { clusters: 2, localities: 1, endpoints: 1, metrics: 1, categories: 1, selected: 2, selected_bytes: 5 };
    let mut world = World::new(config().with_limits(limits));
    world.answer(at(0), &all(1000));
    let entry = world.entry(at(0), "c1");
    world.entry(at(0), "c2");
    let full = |what, limit| Misuse::TooMuchLoad { what, limit };
    assert_eq!(world.reporter.entry(at(0), "c3", ""), Err(full(Excess::Clusters, 2)));
    assert_eq!(full(Excess::Clusters, 2).to_string(), "the loads of more than 2 clusters");
    assert!(world.reporter.entry(at(0), "c2", "").is_ok());
    let place = zone("a").with_endpoint(&b"e1"[..]);
    world.reporter.add(&entry, &place, Counts::succeeded(1)).expect("room");
    world.reporter.add_metric(&entry, &place, "m", 1, 1.0).expect("room");
    world.reporter.dropped(&entry, "x", 1).expect("room");
    let before = world.reporter.clone();
    let add = |world: &mut World, place: &Place| world.reporter.add(&entry, place, Counts::succeeded(1));
    assert_eq!(add(&mut world, &zone("b")), Err(full(Excess::Localities, 1)));
    assert_eq!(add(&mut world, &zone("a").with_endpoint(&b"e2"[..])), Err(full(Excess::Endpoints, 1)));
    assert_eq!(world.reporter.dropped(&entry, "y", 1), Err(full(Excess::Categories, 1)));
    assert_eq!(world.reporter.add_metric(&entry, &zone("b"), "m", 1, 1.0), Err(full(Excess::Localities, 1)));
    let too_much = |what, count, limit| Err(Error::Peer(PeerMisbehaved::TooMuchLoad { what, count, limit }));
    let answer = |world: &mut World, names: &[&str]| world.reporter.handle_response(at(0), response(names, 1));
    assert_eq!(answer(&mut world, &["a", "b", "c"]), too_much(Excess::Clusters, 3, 2));
    assert_eq!(answer(&mut world, &["abc", "def"]), too_much(Excess::NameBytes, 6, 5));
    assert_eq!(world.reporter, before);
    world.reporter.add_metric(&entry, &place, "n", 1, 1.0).expect("it is ignored");
    assert_eq!(world.reporter.ignored_metrics(), 1);
    let mut expected = of("a", [1, 1, 0, 0]);
    expected.load.metrics = vec![named("m", 1, 1.0)];
    let report = world.sent(1000).expect("a report");
    assert_eq!(report[0].localities, [expected]);
}

/// A response without a stream is a mistake of the driver. The gRPC and Envoy dialects are three settings each.
#[test]
fn a_response_without_a_stream_is_an_error_and_dialects_are_presets() {
    let mut reporter = Reporter::new(config());
    assert_eq!(reporter.handle_response(at(0), all(1)), Err(Error::Caller(Misuse::NoStream)));
    let habits = config().with_count_before_asked(true).with_idle_localities(true).with_quiet(true);
    assert_eq!(config().with_dialect(Dialect::Grpc), habits);
    let habits = config().with_node_on_every_request(true).with_kept_selection(true).with_metrics_by_name(true);
    assert_eq!(config().with_dialect(Dialect::Envoy), habits);
    assert_eq!(config().with_dialect(Dialect::Spec), config());
}

/// Reporters are values: those with equal configurations are equal, those with different configurations are not.
#[test]
fn fresh_reporters_are_equal_if_their_configurations_are_equal() {
    let fresh = |config: Config| Reporter::new(config);
    assert_eq!(fresh(config()), fresh(config()));
    assert_ne!(fresh(config()), fresh(config().with_quiet(true)));
    assert_ne!(fresh(config()), fresh(config().with_kept_selection(true)));
}

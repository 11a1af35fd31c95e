//! The collector.

use std::time::Duration;

use xds_machine::load::{
    Action, ClusterStats, Collector, CollectorConfig, Dropped, EndpointStats, Excess, Interval, LocalityStats, Metric,
    NamedMetric, ReportLimits, Request, Response, SEND_ALL_CLUSTERS, Selection, Sum, Totals, merge,
};
use xds_machine::message::{Locality, Node};
use xds_machine::{Code, Error, Misuse, PeerMisbehaved};

use super::{of, stats};
use crate::hash;

fn node() -> Node {
    Node::new("n").with_feature(SEND_ALL_CLUSTERS)
}

/// Returns a collector that has received this node.
fn collector(node: Node) -> Collector {
    let mut collector = Collector::new(CollectorConfig::new());
    receive(&mut collector, Some(node), vec![]);
    collector
}

fn receive(collector: &mut Collector, node: Option<Node>, clusters: Vec<ClusterStats>) -> Vec<Action> {
    collector.handle_request(Request { node: node.map(Into::into), clusters }).expect("a good request");
    std::iter::from_fn(|| collector.poll_action()).collect()
}

fn second() -> Duration {
    Duration::from_secs(1)
}

fn asks(clusters: &[&str]) -> Option<Response> {
    let clusters = clusters.iter().map(|name| (*name).into()).collect();
    Some(Response { clusters, interval: Some(second().into()), ..Response::default() })
}

/// R-LRS-50: the collector asks for nothing before the node arrives, nor without a policy.
#[test]
fn no_response_is_sent_before_the_node_or_without_a_selection() {
    let mut collector = Collector::new(CollectorConfig::new());
    assert_eq!((collector.poll_transmit(), collector.node()), (None, None));
    collector.set_selection(Some(Selection::all(second())));
    assert_eq!(collector.poll_transmit(), None);
    assert_eq!(receive(&mut collector, Some(node()), vec![]), [Action::Node(node().into())]);
    assert_eq!(collector.poll_transmit(), Some(Response { send_all_clusters: true, ..asks(&[]).expect("one") }));
    let mut silent = self::collector(node());
    silent.set_selection(None);
    assert_eq!((silent.poll_transmit(), silent.poll_action()), (None, None));
}

/// R-LRS-51, L-14, L-15: whatever is configured, a response has an interval, which is at least the floor.
#[test]
fn every_response_has_an_interval_of_at_least_the_floor() {
    let huge = Duration::from_secs(1_000_000);
    for (floor, interval, expected) in [
        (second(), Duration::ZERO, second()),
        (second(), Duration::from_millis(300), second()),
        (second(), Duration::from_millis(1500), Duration::from_millis(1500)),
        (second(), Duration::MAX, huge),
        (Duration::ZERO, Duration::ZERO, Duration::from_millis(1)),
    ] {
        let mut collector = Collector::new(CollectorConfig::new().with_floor(floor));
        receive(&mut collector, Some(node()), vec![]);
        collector.set_selection(Some(Selection::all(interval)));
        let response = collector.poll_transmit().expect("a response");
        assert_eq!(response.interval, Some(Interval::from(expected)));
    }
}

/// R-LRS-52, L-16: only a change causes a response.
#[test]
fn an_equal_selection_causes_no_response() {
    let mut collector = collector(node());
    let mut said = |selection: Selection| {
        collector.set_selection(Some(selection));
        (collector.poll_transmit(), collector.poll_transmit())
    };
    assert_eq!(said(Selection::clusters(second(), ["c2", "c1"])), (asks(&["c1", "c2"]), None));
    assert_eq!(said(Selection::clusters(second(), ["c1", "c2", "c1"])), (None, None));
    assert_eq!(said(Selection::clusters(Duration::ZERO, ["c1", "c2"])), (None, None), "the floor");
    assert_eq!(said(Selection::clusters(second(), ["c1"])), (asks(&["c1"]), None));
    let endpoints = asks(&["c1"]).map(|asks| Response { endpoint_granularity: true, ..asks });
    assert_eq!(said(Selection::clusters(second(), ["c1"]).with_endpoints(true)), (endpoints, None));
    let all = asks(&[]).map(|asks| Response { send_all_clusters: true, ..asks });
    assert_eq!(said(Selection::all(second())), (all, None));
    assert_eq!(said(Selection::all(second()).or_clusters(["c1"])), (None, None), "the list is not sent");
    let slower = Some(Interval { seconds: 2, nanos: 0 });
    assert_eq!(said(Selection::all(2 * second())).0.expect("a response").interval, slower);
}

/// R-LRS-53: stats may arrive at any time, and later nodes are ignored.
#[test]
fn stats_are_reported_at_any_time_and_later_nodes_are_ignored() {
    let mut collector = Collector::new(CollectorConfig::new());
    let report = vec![stats("c1", 5399, vec![of("a", [1, 1, 0, 0])]), stats("never asked", 1000, vec![])];
    let expected = [Action::Node(node().into()), Action::Report(report.clone())];
    assert_eq!(receive(&mut collector, Some(node()), report.clone()), expected);
    assert_eq!(receive(&mut collector, Some(Node::new("other")), vec![]), []);
    assert_eq!(collector.node().expect("the first").id, "n");
    assert_eq!(receive(&mut collector, None, report.clone()), [Action::Report(report)]);
    // A first request without a node has the empty node.
    let mut nobody = Collector::new(CollectorConfig::new());
    assert_eq!(receive(&mut nobody, None, vec![]), [Action::Node(Node::default().into())]);
    assert_eq!(receive(&mut nobody, Some(node()), vec![]), []);
}

/// R-LRS-54: the collector asks for all clusters only from clients that have the feature.
#[test]
fn all_clusters_are_requested_only_from_clients_with_the_feature() {
    let mut old = collector(Node::new("n"));
    old.set_selection(Some(Selection::all(second())));
    assert_eq!((old.poll_transmit(), old.poll_action()), (None, None));
    old.set_selection(Some(Selection::all(second()).or_clusters(["c1"])));
    assert_eq!(old.poll_transmit(), asks(&["c1"]));
    let mut new = collector(node());
    new.set_selection(Some(Selection::all(second()).or_clusters(["c1"])));
    assert_eq!(new.poll_transmit(), Some(Response { send_all_clusters: true, ..asks(&[]).expect("one") }));
}

/// R-LRS-55, L-17: the collector never sends an empty selection; asking for nothing ends the stream.
#[test]
fn an_empty_selection_after_a_sent_one_ends_the_stream() {
    for nothing in [None, Some(Selection::clusters(second(), [""; 0])), Some(Selection::all(second()))] {
        let mut collector = collector(Node::new("n"));
        collector.set_selection(nothing.clone());
        assert_eq!((collector.poll_transmit(), collector.poll_action()), (None, None), "nothing was asked");
        collector.set_selection(Some(Selection::clusters(second(), ["c1"])));
        assert_eq!(collector.poll_transmit(), asks(&["c1"]));
        collector.set_selection(nothing.clone());
        assert_eq!((collector.poll_transmit(), collector.poll_action()), (None, Some(Action::Close)), "{nothing:?}");
        collector.set_selection(Some(Selection::clusters(second(), ["c1"])));
        collector.set_selection(nothing);
        assert_eq!((collector.poll_transmit(), collector.poll_action()), (None, None), "it is over");
    }
    // Nothing was sent yet, so the stream need not end.
    let mut collector = collector(node());
    collector.set_selection(Some(Selection::clusters(second(), ["c1"])));
    collector.set_selection(None);
    assert_eq!((collector.poll_transmit(), collector.poll_action()), (None, None));
}

/// R-LRS-57: the collector reports duplicate entries and localities as received; the helper `merge` adds them up.
#[test]
fn duplicate_entries_are_reported_as_received_and_added_up_by_merge() {
    let drops = |count| vec![Dropped { category: "x".into(), count }];
    let mut other = of("a", [9, 9, 0, 0]);
    other.priority = 1;
    let metric = |total| Metric { calls: 1, total: Sum::new(total).expect("finite") };
    let mut with_metrics = of("a", [1, 0, 1, 0]);
    with_metrics.cpu = Some(metric(0.5));
    with_metrics.load.metrics = vec![NamedMetric { name: "m".into(), metric: metric(1.0) }];
    let report = vec![
        ClusterStats { dropped: 3, drops: drops(2), ..stats("c1", 1000, vec![of("b", [1, 1, 0, 1])]) },
        stats("c0", 700, vec![]),
        ClusterStats { service: "s".into(), ..stats("c1", 900, vec![of("b", [5, 0, 0, 0])]) },
        ClusterStats {
            dropped: 1,
            drops: drops(1),
            ..stats("c1", 1200, vec![of("b", [u64::MAX, 0, 2, 1]), other.clone()])
        },
        stats("c1", 0, vec![with_metrics.clone(), with_metrics.clone()]),
    ];
    let mut collector = collector(node());
    assert_eq!(receive(&mut collector, None, report.clone()), [Action::Report(report.clone())]);
    let twice = |metric: Metric| Metric { calls: 2, total: metric.total.plus(metric.total) };
    let mut added = of("a", [2, 0, 2, 0]);
    added.cpu = Some(twice(metric(0.5)));
    added.load.metrics = vec![NamedMetric { name: "m".into(), metric: twice(metric(1.0)) }];
    let localities = vec![added, other, of("b", [u64::MAX, 1, 2, 2])];
    let expected = [
        ClusterStats { dropped: 4, drops: drops(3), ..stats("c1", 1200, localities) },
        stats("c0", 700, vec![]),
        ClusterStats { service: "s".into(), ..stats("c1", 900, vec![of("b", [5, 0, 0, 0])]) },
    ];
    assert_eq!(merge(&report), expected);
    let sum = expected[0].sum();
    assert_eq!((sum.issued, sum.ok, sum.error, sum.in_progress), (u64::MAX, 10, 4, 2));
}

/// R-LRS-58: counts need not agree, and a window of zero is none.
#[test]
fn inconsistent_counts_are_accepted_and_a_zero_window_is_omitted() {
    let report =
        |window| vec![ClusterStats { window, ..stats("c1", 0, vec![of("a", [2, 0, 3, 0]), of("b", [0, 9, 1, 0])]) }];
    let mut collector = collector(node());
    assert_eq!(receive(&mut collector, None, report(Some(Duration::ZERO))), [Action::Report(report(None))]);
    assert_eq!(receive(&mut collector, None, report(None)), [Action::Report(report(None))]);
}

/// R-LRS-59: the sums of a stream; calls in progress are those of the last report that has the entry.
#[test]
fn totals_add_up_the_reports_of_a_stream() {
    let mut collector = collector(node());
    let send = |collector: &mut Collector, report| _ = receive(collector, None, report);
    let total = |collector: &Collector| collector.totals().iter().cloned().collect::<Vec<_>>();
    send(&mut collector, vec![stats("c1", 1000, vec![of("a", [2, 1, 0, 1]), of("b", [1, 0, 0, 1])])]);
    send(&mut collector, vec![stats("c1", 1200, vec![of("a", [0, 0, 0, 1])])]);
    let both = vec![of("a", [2, 1, 0, 1]), of("b", [1, 0, 0, 0])];
    assert_eq!(total(&collector), [stats("c1", 2200, both.clone())]);
    send(&mut collector, vec![stats("c0", 0, vec![])]);
    assert_eq!(total(&collector), [stats("c0", 0, vec![]), stats("c1", 2200, both)]);
    send(&mut collector, vec![stats("c1", 0, vec![])]);
    let quiet = vec![of("a", [2, 1, 0, 0]), of("b", [1, 0, 0, 0])];
    assert_eq!(total(&collector)[1], stats("c1", 2200, quiet));
    let mut none = Collector::new(CollectorConfig::new().with_totals(false));
    send(&mut none, vec![stats("c1", 1000, vec![])]);
    assert_eq!(none.totals(), &Totals::new());
}

/// R-LRS-61: each limit ends the stream with RESOURCE_EXHAUSTED, and changes nothing.
#[test]
fn a_report_beyond_a_limit_is_refused() {
    let limits = ReportLimits {
        clusters: 2,
        localities: 2,
        endpoints: 1,
        metrics: 1,
        categories: 1,
        name_bytes: 10,
        remembered: 3,
    };
    let mut collector = Collector::new(CollectorConfig::new().with_limits(limits));
    receive(&mut collector, Some(node()), vec![]);
    let metric = |name: &str| NamedMetric { name: name.into(), metric: Metric::default() };
    let endpoint = |address: &'static str| EndpointStats { address: address.into(), load: Default::default() };
    let locality = |at: &dyn Fn(&mut LocalityStats)| {
        let mut stats = of("a", [0; 4]);
        at(&mut stats);
        vec![super::stats("c", 0, vec![stats])]
    };
    let somewhere = Locality { region: "rr".into(), zone: "zzz".into(), sub_zone: "sssss".into() };
    let long_category = vec![Dropped { category: "cccccccccc".into(), count: 1 }];
    let drops = ["x", "y"].map(|category| Dropped { category: category.into(), count: 1 }).to_vec();
    let rows = [
        (vec![stats("a", 0, vec![]), stats("b", 0, vec![]), stats("c", 0, vec![])], Excess::Clusters, 3, 2),
        (vec![stats("a", 0, vec![of("a", [0; 4]), of("b", [0; 4]), of("a", [0; 4])])], Excess::Localities, 3, 2),
        (locality(&|at| at.endpoints = vec![endpoint("e"), endpoint("f")]), Excess::Endpoints, 2, 1),
        (locality(&|at| at.load.metrics = vec![metric("m"), metric("n")]), Excess::Metrics, 2, 1),
        (vec![ClusterStats { drops, ..stats("a", 0, vec![]) }], Excess::Categories, 2, 1),
        (vec![ClusterStats { service: "sss".into(), ..stats("cccccccc", 0, vec![]) }], Excess::NameBytes, 11, 10),
        (vec![ClusterStats { drops: long_category, ..stats("a", 0, vec![]) }], Excess::NameBytes, 11, 10),
        (locality(&|at| at.locality = somewhere.clone().into()), Excess::NameBytes, 11, 10),
        (locality(&|at| at.endpoints = vec![endpoint("ffffffffff")]), Excess::NameBytes, 12, 10),
        (locality(&|at| at.load.metrics = vec![metric("mmmmmmmmm")]), Excess::NameBytes, 11, 10),
    ];
    for (clusters, what, count, limit) in rows {
        let before = collector.clone();
        let error = PeerMisbehaved::TooMuchLoad { what, count, limit };
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert_eq!(collector.handle_request(Request { node: None, clusters }), Err(Error::Peer(error)));
        assert_eq!(collector, before);
    }
    let message = PeerMisbehaved::TooMuchLoad { what: Excess::NameBytes, count: 11, limit: 10 }.to_string();
    assert_eq!(message, "11 bytes of names in load reporting, limit 10");
    // The limit of remembered clusters.
    receive(&mut collector, None, vec![stats("a", 0, vec![]), stats("b", 0, vec![])]);
    receive(&mut collector, None, vec![stats("a", 0, vec![]), stats("c", 0, vec![])]);
    let before = collector.clone();
    let error = PeerMisbehaved::TooMuchLoad { what: Excess::Clusters, count: 4, limit: 3 };
    let clusters = vec![stats("a", 9, vec![]), stats("d", 0, vec![])];
    assert_eq!(collector.handle_request(Request { node: None, clusters }), Err(Error::Peer(error)));
    assert_eq!(collector, before);
}

/// Actions wait to be polled.
#[test]
fn a_request_is_refused_while_actions_wait() {
    let mut collector = Collector::new(CollectorConfig::new());
    let request = Request { node: Some(node().into()), clusters: vec![] };
    collector.handle_request(request.clone()).expect("a good request");
    let waiting = Misuse::ActionsWaiting { limit: 2 };
    assert_eq!(collector.handle_request(request), Err(Error::Caller(waiting)));
}

/// Collectors are values: the hash depends on what they received, and not on their configuration.
#[test]
fn the_hash_of_a_collector_depends_on_received_requests_alone() {
    let fresh = || Collector::new(CollectorConfig::new());
    let (mut one, mut other) = (fresh(), fresh());
    assert_eq!((&one, hash(&one)), (&other, hash(&other)));
    receive(&mut one, Some(node()), vec![stats("a", 1000, vec![])]);
    assert_ne!((&one, hash(&one)), (&other, hash(&other)));
    assert_ne!(hash(&one), hash(&other));
    receive(&mut other, Some(node()), vec![stats("a", 1000, vec![])]);
    assert_eq!((&one, hash(&one)), (&other, hash(&other)));
    let limited = Collector::new(CollectorConfig::new().with_totals(false));
    assert_eq!(hash(&fresh()), hash(&limited));
}

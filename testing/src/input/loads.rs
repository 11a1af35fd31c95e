//! Load reports and the answers to them.

use std::time::Duration;

use xds_machine::Error;
use xds_machine::load::{
    Action, ClusterStats, Collector, CollectorConfig, Config, Dropped, EndpointStats, Interval, Limits, Load,
    LocalityStats, Metric, NamedMetric, Place, ReportLimits, Reporter, Request, Response, Sum,
};
use xds_machine::message::Node;

use super::{NOW, Row, refused};

const FLOOR: Duration = Duration::from_secs(1);
const ASKED: Duration = Duration::from_secs(5);
const CAP: Duration = Duration::from_secs(60);

fn stats(cluster: &str) -> ClusterStats {
    ClusterStats { window: Some(FLOOR), ..ClusterStats::new(cluster, "") }
}

/// Returns the stats of a cluster with these localities.
fn at(localities: impl IntoIterator<Item = LocalityStats>) -> ClusterStats {
    ClusterStats { localities: localities.into_iter().collect(), ..stats("a") }
}

fn metrics(count: usize) -> Vec<NamedMetric> {
    let metric = Metric { calls: 1, total: Sum::new(1.0).unwrap_or_default() };
    (0..count).map(|at| NamedMetric { name: at.to_string(), metric }).collect()
}

/// Returns a collector's reaction to a report, after a good one.
fn collected(clusters: Vec<ClusterStats>) -> String {
    let limits = ReportLimits {
        clusters: 2,
        localities: 2,
        endpoints: 2,
        metrics: 2,
        categories: 2,
        name_bytes: 8,
        remembered: 9,
    };
    let mut collector = Collector::new(CollectorConfig::new().with_limits(limits));
    let first = Request { node: Some(Node::new("me").into()), clusters: vec![stats("a")] };
    assert_eq!(collector.handle_request(first), Ok(()));
    while collector.poll_action().is_some() {}
    let before = collector.clone();
    let request = Request { node: Some(Node::new("other").into()), clusters: clusters.clone() };
    if let Err(error) = collector.handle_request(request) {
        assert_eq!(collector, before, "what is refused changes nothing");
        return refused(&error);
    }
    assert_eq!(collector.node().map(|node| node.id.as_str()), Some("me"), "a later node counts");
    match collector.poll_action() {
        Some(Action::Report(taken)) if taken == clusters => "taken".into(),
        Some(Action::Report(taken)) if taken.iter().all(|stats| stats.window.is_none()) => "taken, without it".into(),
        other => format!("{other:?}"),
    }
}

/// Returns the rows of reports.
pub fn reports() -> Vec<Row> {
    let endpoint = |address: &'static [u8]| EndpointStats { address: address.into(), load: Load::default() };
    let endpoints = [&b"1"[..], b"2", b"3"].map(endpoint).into();
    let drops = ["1", "2", "3"].map(|category| Dropped { category: category.into(), count: 1 }).into();
    let load = |metrics| LocalityStats { load: Load { metrics, ..Load::default() }, ..LocalityStats::default() };
    let rows = [
        (("cluster_stats", "too many"), vec![stats("a"), stats("b"), stats("c")]),
        (("cluster_stats", "a cluster twice"), vec![stats("a"), stats("a")]),
        (("cluster_stats", "a cluster that was not asked for"), vec![stats("b")]),
        (("cluster_name", "empty"), vec![stats("")]),
        (("cluster_name", "too many bytes in all names"), vec![stats("too long!")]),
        (("load_report_interval", "zero"), vec![ClusterStats { window: Some(Duration::ZERO), ..stats("a") }]),
        (
            ("upstream_locality_stats", "too many"),
            vec![at([0, 1, 2].map(|priority| LocalityStats { priority, ..LocalityStats::default() }))],
        ),
        (("upstream_locality_stats", "a locality twice"), vec![at([load(vec![]), load(vec![])])]),
        (
            ("upstream_locality_stats", "counts that don't agree"),
            vec![at([LocalityStats {
                load: Load { issued: 1, ok: u64::MAX, error: 7, ..Load::default() },
                ..LocalityStats::default()
            }])],
        ),
        (("upstream_endpoint_stats", "too many"), vec![at([LocalityStats { endpoints, ..load(vec![]) }])]),
        (("load_metric_stats", "too many"), vec![at([load(metrics(3))])]),
        (("dropped_requests", "too many categories"), vec![ClusterStats { drops, ..stats("a") }]),
        (
            ("dropped_requests", "more than the total"),
            vec![ClusterStats { drops: vec![Dropped { category: "1".into(), count: 5 }], dropped: 1, ..stats("a") }],
        ),
    ];
    rows.map(|(key, clusters)| (key, collected(clusters), "collector")).into()
}

/// Makes a reporter with an entry for the cluster `a`, in which a call has ended, and an open stream.
fn reporter() -> Result<Reporter, Error> {
    let limits = Limits { selected: 2, selected_bytes: 8, ..Limits::default() };
    let config = Config::new(Node::new("me")).with_limits(limits).with_floor(FLOOR).with_cap(CAP);
    let mut reporter = Reporter::new(config.with_count_before_asked(true));
    let entry = reporter.entry(NOW, "a", "")?;
    reporter.handle_open();
    assert!(reporter.poll_transmit(NOW).is_some(), "the first message");
    reporter.add(&entry, &Place::default(), xds_machine::load::Counts { issued: 1, ok: 1, error: 0 })?;
    Ok(reporter)
}

/// Returns a reporter's reaction to a response: whether it reports `a`, and when.
fn asked(response: Response) -> String {
    let mut reporter = reporter().expect("a reporter");
    let before = reporter.clone();
    if let Err(error) = reporter.handle_response(NOW, response) {
        assert_eq!(reporter, before, "what is refused changes nothing");
        return refused(&error);
    }
    let Some(due) = reporter.poll_timeout() else { return "nothing is reported".into() };
    reporter.handle_timeout(due);
    let reported = reporter.poll_transmit(due).is_some_and(|report| !report.clusters.is_empty());
    match (reported, due.saturating_since(NOW)) {
        (false, _) => "cluster a is not reported".into(),
        (true, ASKED) => "taken".into(),
        (true, FLOOR) => "taken as the shortest interval".into(),
        (true, CAP) => "taken as the longest interval".into(),
        (true, after) => format!("after {after:?}"),
    }
}

/// Returns the rows of the answers to a reporter.
pub fn answers() -> Vec<Row> {
    let all = |interval| Response { send_all_clusters: true, interval, ..Response::default() };
    let of = |names: &[&str]| Response {
        clusters: names.iter().map(|&name| name.into()).collect(),
        interval: Some(ASKED.into()),
        ..Response::default()
    };
    let interval = |seconds, nanos| Some(Interval { seconds, nanos });
    let rows = [
        (("clusters", "too many"), of(&["a", "b", "c"])),
        (("clusters", "too many bytes in all names"), of(&["too long!"])),
        (("clusters", "none, and not all"), of(&[])),
        (("clusters", "a name twice"), of(&["a", "a"])),
        (("clusters", "a name that the client does not have"), of(&["x"])),
        (("clusters", "others, and send_all_clusters"), Response { send_all_clusters: true, ..of(&["x"]) }),
        (("load_reporting_interval", "none"), all(None)),
        (("load_reporting_interval", "zero"), all(interval(0, 0))),
        (("load_reporting_interval", "negative"), all(interval(-5, 0))),
        (("load_reporting_interval", "nanoseconds out of range"), all(interval(0, i32::MIN))),
        (("load_reporting_interval", "longer than any"), all(interval(i64::MAX, i32::MAX))),
    ];
    rows.map(|(key, response)| (key, asked(response), "reporter")).into()
}

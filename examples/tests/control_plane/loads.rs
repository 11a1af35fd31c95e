//! Load reports: the clusters that clients are asked for, the `load` event, and `xds_client --load-report`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use http::uri::PathAndQuery;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::{Request, Streaming};
use xds_machine::load::{self, ClusterStats, Interval, Load, LocalityStats, SEND_ALL_CLUSTERS};
use xds_machine::message::{Locality, Node};
use xds_machine::proto::load_stats::encode_request;
use xds_machine::service::LOAD_REPORTS;

use crate::codec::{Chunks, LoadCodec};
use crate::messages::clusters;
use crate::support::{ControlPlane, Dir, LONG};

struct Peer {
    requests: mpsc::Sender<Chunks>,
    responses: Streaming<load::Response>,
}

impl Peer {
    /// Opens a stream, and sends the node.
    async fn open(control_plane: &ControlPlane, node: Node) -> Self {
        let (requests, queue) = mpsc::channel(8);
        let mut grpc = Grpc::new(control_plane.channel());
        grpc.ready().await.expect("a connection");
        let request = Request::new(ReceiverStream::new(queue));
        let path = PathAndQuery::from_static(LOAD_REPORTS);
        let opening = grpc.streaming(request, path, LoadCodec);
        let responses = timeout(LONG, opening).await.expect("headers in time").expect("a stream").into_inner();
        let peer = Self { requests, responses };
        peer.send(Some(node), vec![]).await;
        peer
    }

    async fn send(&self, node: Option<Node>, clusters: Vec<ClusterStats>) {
        let message = encode_request(&load::Request { node: node.map(Into::into), clusters });
        self.requests.send(vec![message.into()]).await.expect("the stream is open");
    }

    async fn next(&mut self) -> load::Response {
        let message = timeout(LONG, self.responses.message()).await.expect("a response in time");
        message.expect("no error").expect("not the end")
    }
}

fn locality(zone: &str, priority: u32, [issued, ok, error, in_progress]: [u64; 4]) -> LocalityStats {
    let locality = Locality { region: "r".into(), zone: zone.into(), sub_zone: String::new() };
    let load = Load { issued, ok, error, in_progress, metrics: vec![] };
    LocalityStats { locality: locality.into(), priority, load, ..LocalityStats::default() }
}

fn row(zone: &str, priority: u32, [issued, ok, error, in_progress]: [u64; 4]) -> Value {
    json!({
        "region": "r", "zone": zone, "sub_zone": "", "priority": priority,
        "issued": issued, "ok": ok, "error": error, "in_progress": in_progress,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn load_reports_are_requested_for_all_clusters_or_by_name() {
    let dir = Dir::new("cp-loads-asked");
    dir.put("clusters.json", clusters(&[("c1", 1), ("c2", 1)]));
    let control_plane = ControlPlane::start_with(&dir, &["--load-interval", "1500ms"]);
    let interval = Some(Interval { seconds: 1, nanos: 500_000_000 });
    let mut new = Peer::open(&control_plane, Node::new("new").with_feature(SEND_ALL_CLUSTERS)).await;
    let all = load::Response { send_all_clusters: true, interval, ..load::Response::default() };
    assert_eq!(new.next().await, all);
    let mut old = Peer::open(&control_plane, Node::new("old")).await;
    let asks = |names: &[&str]| load::Response {
        clusters: names.iter().map(|name| (*name).into()).collect(),
        interval,
        ..load::Response::default()
    };
    assert_eq!(old.next().await, asks(&["c1", "c2"]));
    // Other content does not change the selection; another cluster does.
    dir.put("clusters.json", clusters(&[("c1", 2), ("c2", 2)]));
    control_plane.news(2);
    dir.put("more.json", clusters(&[("c3", 1)]));
    assert_eq!(old.next().await, asks(&["c1", "c2", "c3"]));
    // No cluster is left to ask for: the stream ends with OK.
    dir.put("more.json", "{}");
    dir.put("clusters.json", "{}");
    while let Some(response) = timeout(LONG, old.responses.message()).await.expect("in time").expect("no error") {
        assert!(!response.clusters.is_empty(), "{response:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn load_reports_are_logged_with_the_sums_of_each_cluster() {
    let dir = Dir::new("cp-loads-logged");
    let control_plane = ControlPlane::start(&dir);
    // The client was not asked, and reports from the first message on.
    let peer = Peer::open(&control_plane, Node::new("n")).await;
    let window = Some(std::time::Duration::from_micros(1_002_900));
    let one = ClusterStats {
        window,
        localities: vec![locality("a", 0, [3, 1, 1, 1]), locality("a", 1, [1, 1, 0, 0])],
        dropped: 5,
        ..ClusterStats::new("c1", "s1")
    };
    peer.send(None, vec![one.clone(), ClusterStats::new("c2", ""), one]).await;
    peer.send(None, vec![]).await;
    let most = ClusterStats {
        localities: vec![locality("a", 0, [u64::MAX, 0, 0, 0]), locality("b", 0, [u64::MAX, 0, 0, 0])],
        ..ClusterStats::new("c3", "")
    };
    peer.send(None, vec![most]).await;
    let mut events = control_plane.loads("two reports", |loads| (loads.len() >= 2).then(|| loads.to_vec()));
    for event in events.iter_mut().filter_map(Value::as_object_mut) {
        assert!(event.remove("ts").is_some());
        let peer = event.remove("peer").expect("a peer");
        assert!(peer.as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{peer}");
    }
    let c1 = json!({
        "cluster": "c1", "service": "s1", "issued": 8, "ok": 4, "error": 2, "in_progress": 2, "dropped": 10,
        "interval_ms": 1002, "localities": [row("a", 0, [6, 2, 2, 2]), row("a", 1, [2, 2, 0, 0])],
    });
    let c2 = json!({
        "cluster": "c2", "service": "", "issued": 0, "ok": 0, "error": 0, "in_progress": 0, "dropped": 0,
        "interval_ms": null, "localities": [],
    });
    let c3 = json!({
        "cluster": "c3", "service": "", "issued": u64::MAX, "ok": 0, "error": 0, "in_progress": 0, "dropped": 0,
        "interval_ms": null, "localities": [row("a", 0, [u64::MAX, 0, 0, 0]), row("b", 0, [u64::MAX, 0, 0, 0])],
    });
    assert_eq!(events[0], json!({"event": "load", "stream": 1, "node": "n", "clusters": [c1, c2]}));
    assert_eq!(events[1], json!({"event": "load", "stream": 1, "node": "n", "clusters": [c3]}));
}

/// `xds_client --load-report`: lines become calls, and the last report is sent at SIGTERM.
#[test]
fn calls_on_standard_input_are_reported_and_the_last_report_is_sent_at_the_end() {
    let dir = Dir::new("cp-loads-client");
    let control_plane = ControlPlane::start_with(&dir, &["--load-interval", "1s"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xds_client"));
    command.args(["--server", &format!("http://{}", control_plane.address), "--variant", "sotw", "--subscribe", "cds"]);
    command.args(["--node", "me", "--load-report"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut client = command.spawn().expect("started");
    let mut input = client.stdin.take().expect("piped");
    let mut say = |lines: &str| input.write_all(lines.as_bytes()).expect("it reads");
    // The first calls may come before the server asks, and are not reported then.
    let sum = |loads: &[Value], cluster: &str, field: &str| -> u64 {
        let rows = loads.iter().filter_map(|load| load["clusters"].as_array()).flatten();
        rows.filter(|row| row["cluster"] == cluster).filter_map(|row| row[field].as_u64()).sum()
    };
    say("start c0 // first\n");
    control_plane.loads("c0", |loads| (!loads.is_empty() && !loads[0]["clusters"][0].is_null()).then_some(()));
    say("end first ok\ncall c1 r/z/ ok cpu_utilization=0.5\ncall c1 r/z/ error\nnonsense\nstart c1 // 7\ndrop c1 x\n");
    control_plane.loads("the calls", |loads| (sum(loads, "c1", "issued") == 3).then_some(()));
    say("end 7 ok\ncall c1 r/z/ ok\n");
    drop(input); // does not end the client
    let mut complaint = String::new();
    BufReader::new(client.stderr.take().expect("piped")).read_line(&mut complaint).expect("text");
    assert!(complaint.starts_with("xds_client: standard input, line 5: it must be `call "), "{complaint}");
    control_plane.loads("the rest", |loads| (sum(loads, "c1", "ok") == 3).then_some(()));
    let killed = Command::new("kill").arg(client.id().to_string()).status().expect("kill");
    assert!(killed.success() && client.wait().expect("an end").code() == Some(0));
    let sums = ["issued", "ok", "error", "dropped"]
        .map(|field| control_plane.loads("the sums", |loads| Some(sum(loads, "c1", field))));
    assert_eq!(sums, [4, 3, 1, 1]);
    // The last report does not wait for its interval.
    control_plane.loads("the last report", |loads| {
        let interval = loads.last()?["clusters"][0]["interval_ms"].as_u64()?;
        (interval < 1000).then_some(())
    });
}

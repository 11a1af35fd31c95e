//! Load reports over HTTP/2: a reporter, and a control plane that asks for loads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use xds_machine::client::Backoff;
use xds_machine::load;
use xds_machine::load::{
    ClusterStats, CollectorConfig, Config, Counts, Outcome, Place, ReportLimits, SEND_ALL_CLUSTERS, Selection,
};
use xds_machine::message::Node;
use xds_machine::proto::load_stats::{self, encode_request};
use xds_machine::service::LOAD_REPORTS;
use xds_machine_tonic::client::{LoadEvent, LoadReporter};
use xds_machine_tonic::server::{ControlPlane, Group, LoadReports, LoadStream};

use super::support::connect;

const LONG: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

/// The selection of a test, and the channels for the reports and ends of streams.
#[derive(Clone)]
struct Loads {
    selection: Arc<Mutex<Option<Selection>>>,
    reports: mpsc::UnboundedSender<(Instant, Vec<ClusterStats>)>,
    closed: mpsc::UnboundedSender<(String, Code)>,
}

impl LoadReports for Loads {
    fn select(&self, stream: &LoadStream) -> Option<Selection> {
        assert!(stream.node().has_feature(SEND_ALL_CLUSTERS));
        self.selection.lock().expect("no panic").clone()
    }

    fn reported(&self, stream: &LoadStream, report: &[ClusterStats]) {
        assert_eq!(stream.node().id, "n");
        self.reports.send((Instant::now(), report.to_vec())).expect("the test waits");
    }

    fn config(&self) -> CollectorConfig {
        CollectorConfig::new().with_limits(ReportLimits { clusters: 3, ..ReportLimits::default() })
    }

    fn closed(&self, stream: &LoadStream, status: &Status) {
        let _ = self.closed.send((stream.node().id.clone(), status.code()));
    }
}

struct World {
    plane: ControlPlane,
    selection: Arc<Mutex<Option<Selection>>>,
    reports: mpsc::UnboundedReceiver<(Instant, Vec<ClusterStats>)>,
    closed: mpsc::UnboundedReceiver<(String, Code)>,
}

impl World {
    fn new(selection: Option<Selection>) -> Self {
        let selection = Arc::new(Mutex::new(selection));
        let ((reports, heard), (closed, ends)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let loads = Loads { selection: selection.clone(), reports, closed };
        let group = Group::new("all");
        let plane = ControlPlane::builder(move |_, _| Ok(group.clone())).load_reports(loads).build();
        Self { plane, selection, reports: heard, closed: ends }
    }

    async fn channel(&self) -> Channel {
        connect(self.plane.service(), 65_535).await
    }

    fn select(&self, selection: Option<Selection>) {
        *self.selection.lock().expect("no panic") = selection;
        self.plane.select_loads();
    }

    async fn report(&mut self) -> (Instant, Vec<ClusterStats>) {
        timeout(LONG, self.reports.recv()).await.expect("a report").expect("the plane lives")
    }

    async fn end(&mut self) -> (String, Code) {
        timeout(LONG, self.closed.recv()).await.expect("an end").expect("the plane lives")
    }
}

type Events = mpsc::UnboundedReceiver<LoadEvent>;

/// Starts a reporter over these channels, one for each attempt.
fn reporter(channels: Vec<Channel>) -> (LoadReporter, Events) {
    let (sender, events) = mpsc::unbounded_channel();
    let mut channels = channels.into_iter();
    let connect = move || {
        let channel = channels.next().ok_or_else(|| std::io::Error::other("no more channels"));
        async { channel }
    };
    let builder = LoadReporter::builder(Config::new(Node::new("n"))).backoff(Backoff::grpc());
    (builder.observe(move |event| _ = sender.send(event)).start(connect), events)
}

async fn event(events: &mut Events) -> LoadEvent {
    timeout(LONG, events.recv()).await.expect("an event").expect("the task lives")
}

fn rows(report: &[ClusterStats]) -> Vec<(&str, [u64; 4], u64)> {
    let row = |stats: &ClusterStats| [stats.sum().issued, stats.sum().ok, stats.sum().error, stats.sum().in_progress];
    report.iter().map(|stats| (stats.cluster.as_str(), row(stats), stats.dropped)).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_are_reported_for_the_selected_clusters_at_the_requested_interval() {
    let mut world = World::new(Some(Selection::all(2 * SECOND)));
    let (reporter, mut events) = reporter(vec![world.channel().await]);
    assert!(matches!(event(&mut events).await, LoadEvent::Asked));
    let c1 = reporter.entry("c1", "").expect("room");
    let call = reporter.started(&c1, &Place::default()).expect("an entry");
    reporter.add(&c1, &Place::default(), Counts::failed(2)).expect("an entry");
    reporter.dropped(&c1, "throttle", 1).expect("an entry");
    let (first, report) = world.report().await;
    assert_eq!(rows(&report), [("c1", [3, 0, 2, 1], 1)]);
    reporter.finished(call, Outcome::Ok, [("cpu_utilization", 0.5)]).expect("it was started");
    let (second, report) = world.report().await;
    assert_eq!((rows(&report), second - first), (vec![("c1", [0, 1, 0, 0], 0)], 2 * SECOND));
    assert_eq!(report[0].localities[0].cpu.map(|cpu| cpu.total.value()), Some(0.5));

    // Another selection takes effect at once.
    let _c2 = reporter.entry("c2", "").expect("room");
    world.select(Some(Selection::clusters(2 * SECOND, ["c2"])));
    assert!(matches!(event(&mut events).await, LoadEvent::Asked));
    let (third, report) = world.report().await;
    assert_eq!((rows(&report), third - second), (vec![("c2", [0; 4], 0)], 2 * SECOND));

    // An equal selection is not sent again, and the absence of a selection ends the stream.
    world.plane.select_loads();
    world.select(None);
    assert_eq!(world.end().await, ("n".into(), Code::Ok));
    let LoadEvent::Closed { reason: None, again_in: Some(_) } = event(&mut events).await else {
        panic!("the server ended the stream with OK")
    };
}

#[tokio::test(start_paused = true)]
async fn calls_between_two_streams_are_reported_on_the_next() {
    let mut world = World::new(Some(Selection::all(SECOND)));
    let channels = vec![world.channel().await, world.channel().await];
    let begin = Instant::now();
    let (reporter, mut events) = reporter(channels);
    assert!(matches!(event(&mut events).await, LoadEvent::Asked));
    let c1 = reporter.entry("c1", "").expect("room");
    reporter.add(&c1, &Place::default(), Counts::succeeded(1)).expect("an entry");
    assert_eq!(rows(&world.report().await.1), [("c1", [1, 1, 0, 0], 0)]);
    // The server asks for nothing, so the stream ends; calls continue.
    world.select(None);
    assert!(matches!(event(&mut events).await, LoadEvent::Closed { again_in: Some(_), .. }));
    reporter.add(&c1, &Place::default(), Counts::succeeded(4)).expect("an entry");
    sleep(Duration::from_millis(100)).await;
    reporter.add(&c1, &Place::default(), Counts::succeeded(3)).expect("an entry");
    world.select(Some(Selection::all(SECOND)));
    assert!(matches!(event(&mut events).await, LoadEvent::Asked));
    let (now, report) = world.report().await;
    assert_eq!(rows(&report), [("c1", [7, 7, 0, 0], 0)]);
    let windows = SECOND + report[0].window.expect("a window");
    let all = now - begin;
    assert!(all.abs_diff(windows) < Duration::from_millis(50), "{windows:?} of {all:?}");
}

#[tokio::test(start_paused = true)]
async fn stop_sends_the_last_report() {
    let mut world = World::new(Some(Selection::all(60 * SECOND)));
    let (reporter, mut events) = reporter(vec![world.channel().await]);
    assert!(matches!(event(&mut events).await, LoadEvent::Asked));
    let c1 = reporter.entry("c1", "").expect("room");
    reporter.add(&c1, &Place::default(), Counts::succeeded(5)).expect("an entry");
    let begin = Instant::now();
    tokio::join!(reporter.stop(), reporter.stop());
    assert!(begin.elapsed() < SECOND);
    assert_eq!(rows(&world.report().await.1), [("c1", [5, 5, 0, 0], 0)]);
    assert_eq!(world.end().await, ("n".into(), Code::Ok));
    assert!(matches!(event(&mut events).await, LoadEvent::Closed { reason: None, again_in: None }));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_reporter_sends_the_last_report() {
    let mut world = World::new(Some(Selection::all(60 * SECOND)));
    let (reporter, mut events) = reporter(vec![world.channel().await]);
    assert!(matches!(event(&mut events).await, LoadEvent::Asked));
    let c1 = reporter.entry("c1", "").expect("room");
    reporter.add(&c1, &Place::default(), Counts::succeeded(5)).expect("an entry");
    drop(reporter);
    assert_eq!(rows(&world.report().await.1), [("c1", [5, 5, 0, 0], 0)]);
    assert_eq!(world.end().await, ("n".into(), Code::Ok));
}

#[tokio::test(start_paused = true)]
async fn a_reporter_stops_without_a_server() {
    let (reporter, mut events) = reporter(vec![]);
    let LoadEvent::Closed { reason: Some(reason), again_in: Some(again_in) } = event(&mut events).await else {
        panic!("there is no server")
    };
    assert_eq!(reason, "no more channels");
    assert!((800..=1200).contains(&again_in.as_millis()), "{again_in:?}");
    reporter.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_load_reports() {
    let mut world = World::new(None);
    let channel = world.channel().await;
    let (reporter, mut events) = reporter(vec![channel]);
    sleep(SECOND).await;
    assert!(world.plane.drain(LONG).await.is_empty());
    assert_eq!(world.end().await, ("n".into(), Code::Unavailable));
    let LoadEvent::Closed { reason: Some(reason), .. } = event(&mut events).await else { panic!("an error") };
    assert_eq!(reason, "Unavailable: the control plane shuts down");
    drop(reporter);
}

/// Messages as bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = load::Response;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = load::Response;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<load::Response>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        load_stats::decode_response(bytes).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

/// A client that sends exactly the given bytes.
struct Peer {
    requests: mpsc::Sender<Vec<u8>>,
    responses: Streaming<load::Response>,
}

impl Peer {
    async fn open(channel: &Channel) -> Result<Self, Status> {
        let (requests, queue) = mpsc::channel(8);
        let mut grpc = Grpc::new(channel.clone());
        grpc.ready().await.expect("a connection");
        let path = PathAndQuery::from_static(LOAD_REPORTS);
        let responses = grpc.streaming(Request::new(ReceiverStream::new(queue)), path, Raw).await?;
        Ok(Self { requests, responses: responses.into_inner() })
    }

    async fn send(&self, bytes: Vec<u8>) {
        self.requests.send(bytes).await.expect("the stream is open");
    }

    async fn next(&mut self) -> load::Response {
        self.message().await.expect("no error").expect("not the end")
    }

    async fn message(&mut self) -> Result<Option<load::Response>, Status> {
        timeout(LONG, self.responses.message()).await.expect("something comes")
    }
}

#[tokio::test(start_paused = true)]
async fn bad_reports_end_their_streams() {
    let mut world = World::new(Some(Selection::all(SECOND)));
    let channel = world.channel().await;
    let node = Node::new("n").with_feature(SEND_ALL_CLUSTERS);
    let hello = encode_request(&load::Request { node: Some(node.into()), clusters: vec![] });

    let mut peer = Peer::open(&channel).await.expect("a stream");
    peer.send(hello.clone()).await;
    assert!(peer.next().await.send_all_clusters);
    let clusters = (0..4).map(|at| ClusterStats::new(at.to_string(), "")).collect();
    peer.send(encode_request(&load::Request { node: None, clusters })).await;
    let status = peer.message().await.expect_err("too many");
    let expected = (Code::ResourceExhausted, "4 clusters in load reporting, limit 3");
    assert_eq!((status.code(), status.message()), expected);
    assert_eq!(world.end().await, ("n".into(), Code::ResourceExhausted));

    let mut peer = Peer::open(&channel).await.expect("a stream");
    peer.send(vec![0xff]).await;
    let status = peer.message().await.expect_err("no message");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("malformed LoadStatsRequest: "), "{status}");
    assert_eq!(world.end().await, (String::new(), Code::InvalidArgument));

    // A client that closes its half receives OK, and the stream of a client that leaves ends.
    let peer = Peer::open(&channel).await.expect("a stream");
    peer.send(hello.clone()).await;
    let mut rest = peer.responses;
    drop(peer.requests);
    assert!(rest.message().await.expect("no error").is_none_or(|response| response.send_all_clusters));
    assert_eq!(world.end().await, ("n".into(), Code::Ok));
    let mut peer = Peer::open(&channel).await.expect("a stream");
    peer.send(hello.clone()).await;
    peer.next().await;
    drop(channel);
    drop(peer);
    let (_, code) = world.end().await;
    assert!(matches!(code, Code::Ok | Code::Cancelled), "{code:?}");

    // Without `load_reports` there is no such service.
    let plane = ControlPlane::new(Group::new("all"));
    let channel = connect(plane.service(), 65_535).await;
    let Err(status) = Peer::open(&channel).await else { panic!("no service") };
    let message = format!("no such method: {LOAD_REPORTS}");
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, message.as_str()));
}

//! Clients that break the rules of gRPC or of xDS, or that end in the middle: their streams end with the reason.

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;
use xds_machine::message::{Node, delta};
use xds_machine::proto::Wire;
use xds_machine::service::{ClientStatusMethod, Variant};
use xds_machine::{Delta, ResourceName, type_url};
use xds_machine_tonic::server::{ControlPlane, Group, Limits};

use super::support::{Notes, Peer, clusters, connect, path, resource};

/// Serves one cluster to requests of at most 1000 bytes.
async fn serve() -> (ControlPlane, Channel, Notes) {
    let (group, notes) = (Group::new("all"), Notes::default());
    group.replace(&clusters(), [resource("c", "one")]);
    let limits = Limits { request_bytes: 1000, ..Limits::default() };
    let plane = ControlPlane::builder(move |_, _| Ok(group.clone())).limits(limits).observe(notes.clone()).build();
    let channel = connect(plane.service(), 65_535).await;
    (plane, channel, notes)
}

fn prefix(flag: u8, len: u32) -> Vec<u8> {
    [vec![flag], len.to_be_bytes().to_vec()].concat()
}

/// A request for cluster `c`, of a length that the metadata of its node fills up.
fn request(len: usize) -> Vec<u8> {
    let make = |fill: usize| {
        let node = Node { user_agent_name: "x".repeat(fill), ..Node::new("n") };
        let request = delta::Request { node: Some(node.into()), ..delta::Request::new(type_url::CLUSTER) };
        Delta::encode_request(&delta::Request { subscribe: vec!["c".into()], ..request })
    };
    let bytes = (len.saturating_sub(200)..).map(make).find(|bytes| bytes.len() >= len).expect("long enough");
    assert_eq!(bytes.len(), len);
    [prefix(0, len as u32), bytes].concat()
}

/// A call of which a test writes each frame.
struct Call {
    frames: Option<mpsc::Sender<Result<Vec<u8>, tonic::Status>>>,
    response: http::Response<Body>,
}

impl Call {
    async fn open(channel: &Channel, encoding: Option<&str>) -> Self {
        Self::open_at(channel, path(Variant::Delta, None).as_str(), encoding).await
    }

    async fn open_at(channel: &Channel, path: &str, encoding: Option<&str>) -> Self {
        let (frames, queue) = mpsc::channel(64);
        let data = |frame: Vec<u8>| http_body::Frame::data(Bytes::from(frame));
        let body = ReceiverStream::new(queue).map(move |frame: Result<_, tonic::Status>| frame.map(data));
        let mut request = http::Request::post(format!("http://test{path}"));
        request = request.header("content-type", "application/grpc").header("te", "trailers");
        if let Some(encoding) = encoding {
            request = request.header("grpc-encoding", encoding);
        }
        let request = request.body(Body::new(StreamBody::new(body))).expect("a request");
        let response = channel.clone().oneshot(request).await.expect("headers");
        Self { frames: Some(frames), response }
    }

    async fn write(&self, frame: impl Into<Vec<u8>>) {
        self.frames.as_ref().expect("open").send(Ok(frame.into())).await.expect("the stream is open");
    }

    /// Closes the client's half, and returns the responses and the status.
    async fn end(mut self) -> (Vec<delta::Response>, Option<(i32, String)>) {
        self.frames = None;
        self.rest().await
    }

    async fn rest(self) -> (Vec<delta::Response>, Option<(i32, String)>) {
        let collected = self.response.into_body().collect().await.expect("no error");
        let status = collected.trailers().map(|trailers| {
            let text = |name| trailers.get(name).map_or("", |value| value.to_str().expect("text"));
            (text("grpc-status").parse().expect("a number"), text("grpc-message").replace("%20", " "))
        });
        let (mut bytes, mut responses) = (collected.to_bytes(), Vec::new());
        while !bytes.is_empty() {
            let head: Bytes = bytes.split_to(5);
            let len = u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize;
            responses.push(Delta::decode_response(bytes.split_to(len)).expect("a response"));
        }
        (responses, status)
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_request_ends_the_stream_with_the_reason() {
    let (plane, channel, _) = serve().await;
    let garbage = "malformed DeltaDiscoveryRequest: failed to decode Protobuf message: invalid tag value: 0";
    let cases: [(Vec<u8>, Code, &str); 7] = [
        ([prefix(0, 1), vec![0]].concat(), Code::InvalidArgument, garbage),
        (prefix(1, 1), Code::Internal, "a compressed request, though no grpc-encoding was agreed on"),
        (prefix(2, 1), Code::Internal, "a request with compressed flag 2"),
        (prefix(0, 1001), Code::ResourceExhausted, "a request of 1001 bytes, limit 1000"),
        (prefix(0, u32::MAX), Code::ResourceExhausted, "a request of 4294967295 bytes, limit 1000"),
        (vec![0, 0], Code::Internal, "the requests end in the middle of a message"),
        (request(500)[..400].into(), Code::Internal, "the requests end in the middle of a message"),
    ];
    for (bytes, code, message) in cases {
        let call = Call::open(&channel, None).await;
        call.write(bytes).await;
        let (responses, status) = call.end().await;
        assert_eq!((responses.len(), status), (0, Some((code as i32, message.to_owned()))));
    }
    assert_eq!(plane.streams().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_is_refused_before_it_has_arrived() {
    let (_, channel, _) = serve().await;
    let call = Call::open(&channel, None).await;
    call.write(prefix(0, 1001)).await;
    let (_, status) = call.frames.clone().map(|_open| call.rest()).expect("still open").await;
    assert_eq!(status, Some((Code::ResourceExhausted as i32, "a request of 1001 bytes, limit 1000".into())));
}

#[tokio::test(start_paused = true)]
async fn requests_are_read_from_frames_of_any_size() {
    let (_, channel, notes) = serve().await;
    // The largest request that is allowed, byte by byte.
    let call = Call::open(&channel, Some("identity")).await;
    for byte in request(1000) {
        call.write([byte]).await;
    }
    let (responses, status) = call.end().await;
    assert_eq!((responses.len(), status), (1, Some((0, String::new()))));
    assert_eq!(responses[0].resources[0].name, "c");

    // Frames that end within requests, and an empty one.
    let bytes = [request(500), request(501), request(502)].concat();
    let call = Call::open(&channel, None).await;
    for frame in [&bytes[..300], &bytes[300..1200], &[], &bytes[1200..]] {
        call.write(frame).await;
    }
    let (responses, status) = call.end().await;
    assert_eq!((responses.len(), status), (1, Some((0, String::new()))));
    assert_eq!(notes.all().iter().filter(|note| *note == "2 request").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_large_request_is_read_from_several_frames() {
    let group = Group::new("all");
    group.replace(&clusters(), [resource("c", "one")]);
    let plane = ControlPlane::new(group);
    let channel = connect(plane.service(), 65_535).await;
    let call = Call::open(&channel, None).await;
    for frame in request(500_000).chunks(100_000) {
        call.write(frame).await;
    }
    let (responses, status) = call.end().await;
    assert_eq!((responses.len(), status), (1, Some((0, String::new()))));
}

#[tokio::test(start_paused = true)]
async fn a_compressed_call_is_refused_as_tonic_does() {
    let (plane, channel, notes) = serve().await;
    let call = Call::open(&channel, Some("gzip")).await;
    let headers = call.response.headers();
    assert_eq!(headers["grpc-status"], "12");
    assert_eq!(headers["grpc-accept-encoding"], "identity");
    assert_eq!(headers["grpc-message"], "requests%20compressed%20with%20gzip%20are%20not%20supported");
    assert_eq!(plane.streams().len(), 0);
    let noted = format!(
        "refused {}: Unimplemented requests compressed with gzip are not supported",
        path(Variant::Delta, None)
    );
    assert_eq!(notes.all(), [noted]);

    // A call of CSDS too.
    let path = ClientStatusMethod::Fetch.path();
    let call = Call::open_at(&channel, &path, Some("gzip")).await;
    assert_eq!(call.response.headers()["grpc-status"], "12");
    let noted = format!("refused {path}: Unimplemented requests compressed with gzip are not supported");
    assert_eq!(notes.all()[1..], [noted]);
}

#[tokio::test(start_paused = true)]
async fn a_protocol_violation_ends_its_stream_and_no_other() {
    let (_, channel, _) = serve().await;
    let mut good = Peer::<Delta>::ads(&channel).await;
    good.subscribe(Node::new("n"), type_url::CLUSTER, &["c"]).await;
    let (response, _) = good.resources().await;
    let mut bad = Peer::<Delta>::ads(&channel).await;
    bad.send_bytes(Vec::new()).await;
    assert_eq!(bad.status().await, (Code::InvalidArgument, "type_url is required on an aggregated stream".into()));
    good.ack(&response).await;
    good.subscribe(Node::new("n"), type_url::CLUSTER, &["d"]).await;
    assert_eq!(good.next().await.removed, [ResourceName::from("d")]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_half_closes_its_stream_is_answered_before_the_end() {
    let (plane, channel, notes) = serve().await;
    let half = Peer::<Delta>::ads(&channel).await;
    half.subscribe(Node::new("n"), type_url::CLUSTER, &["c"]).await;
    let mut rest = half.end();
    assert_eq!(rest.message().await.expect("no error").expect("a response").resources[0].name, "c");
    assert_eq!(rest.message().await.expect("the status is OK"), None);
    notes.wait("1 closed Ok ", 1).await;
    assert_eq!(plane.streams().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_reset_in_the_middle_of_a_message_is_closed_as_cancelled() {
    let (plane, channel, notes) = serve().await;
    let call = Call::open(&channel, None).await;
    call.write(&request(500)[..300]).await;
    notes.wait("1 opened", 1).await;
    let reset = call.frames.expect("open").send(Err(tonic::Status::cancelled("the test resets the stream"))).await;
    reset.expect("the stream is open");
    notes.wait("1 closed Cancelled the client is gone", 1).await;
    assert_eq!(plane.streams().len(), 0);
}

//! CSDS over HTTP/2: the view of a control plane, and the status of clients.

use std::convert::Infallible;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use xds_machine::client::{Config, ResourceStatus};
use xds_machine::csds::{self, ClientConfig, NodeMatcher, Pattern, StringMatcher};
use xds_machine::message::Node;
use xds_machine::proto::client_status::{decode_response, encode_request};
use xds_machine::service::ClientStatusMethod;
use xds_machine::{Delta, ResourceName, type_url};
use xds_machine_tonic::client::{ClientStatusService, XdsClient, XdsResource};
use xds_machine_tonic::server::{ControlPlane, Group, Limits};

use super::support::{Peer, clusters, connect, resource};

const WINDOW: u32 = 65_535;

struct Csds;

impl Codec for Csds {
    type Encode = csds::Request;
    type Decode = csds::Response;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Csds {
    type Item = csds::Request;
    type Error = Status;

    fn encode(&mut self, request: csds::Request, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(&*encode_request(&request));
        Ok(())
    }
}

impl Decoder for Csds {
    type Item = csds::Response;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<csds::Response>, Status> {
        let bytes: Bytes = from.copy_to_bytes(from.remaining());
        decode_response(bytes).map(Some).map_err(|error| Status::data_loss(error.to_string()))
    }
}

async fn fetch(channel: &Channel, request: csds::Request) -> Result<Vec<ClientConfig>, (Code, String)> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.expect("a connection");
    let path = ClientStatusMethod::Fetch.path().parse().expect("a path");
    let answered = grpc.unary(Request::new(request), path, Csds).await;
    answered.map(|response| response.into_inner().clients).map_err(|status| (status.code(), status.message().into()))
}

async fn stream(channel: &Channel) -> (mpsc::Sender<csds::Request>, Streaming<csds::Response>) {
    let (requests, queue) = mpsc::channel(8);
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.expect("a connection");
    let path = ClientStatusMethod::Stream.path().parse().expect("a path");
    let responses = grpc.streaming(Request::new(ReceiverStream::new(queue)), path, Csds).await.expect("a stream");
    (requests, responses.into_inner())
}

fn all() -> csds::Request {
    csds::Request::default()
}

fn by_id(pattern: Pattern) -> csds::Request {
    let id = Some(StringMatcher { pattern, ignore_case: false });
    csds::Request { matchers: vec![NodeMatcher { id, metadata: Vec::new() }], ..all() }
}

/// Returns the clients in a few words: the id, and each resource with its status.
fn shown(clients: &[ClientConfig]) -> Vec<String> {
    let items = |client: &ClientConfig| {
        let item = |item: &csds::Item| format!("{} {:?}", item.name, item.config_status.expect("a status"));
        client.items.iter().map(item).collect::<Vec<_>>().join(", ")
    };
    clients.iter().map(|client| format!("{}: {}", client.node.as_ref().expect("a node").id, items(client))).collect()
}

fn group() -> Group {
    let group = Group::new("all");
    group.replace(&clusters(), [resource("a", "one"), resource("b", "one")]);
    group
}

/// R-CSDS-31, -32: what each node was sent, and its verdicts; R-CSDS-30: the nodes that are shown.
#[tokio::test(start_paused = true)]
async fn a_control_plane_reports_the_config_status_of_each_node() {
    let plane = ControlPlane::new(group());
    let channel = connect(plane.service(), WINDOW).await;
    assert_eq!(fetch(&channel, all()).await, Ok(Vec::new()), "nobody is connected");

    let mut first = Peer::<Delta>::ads(&channel).await;
    first.subscribe(Node::new("first"), type_url::CLUSTER, &["a"]).await;
    let (response, _) = first.resources().await;
    let clients = fetch(&channel, all()).await.expect("a response");
    assert_eq!(shown(&clients), ["first: a Stale"]);
    assert_eq!(clients[0].items[0].contents.as_deref(), Some(&b"one"[..]));
    assert_eq!(clients[0].items[0].version, Some(response.resources[0].version.clone()));

    let mut second = Peer::<Delta>::ads(&channel).await;
    second.subscribe(Node::new("second"), type_url::CLUSTER, &[]).await;
    let (other, _) = second.resources().await;
    second.nack(&other, "it is bad").await;
    first.ack(&response).await;
    // The next response to each peer is sent after its verdict was handled.
    first.subscribe(Node::new("first"), type_url::CLUSTER, &["none"]).await;
    first.next().await;
    second.subscribe(Node::new("second"), type_url::CLUSTER, &["none"]).await;
    second.next().await;
    let clients = fetch(&channel, all()).await.expect("a response");
    assert_eq!(shown(&clients), ["first: a Synced, none Stale", "second: a Error, b Error, none Stale"]);
    assert_eq!(clients[1].items[0].error.as_ref().expect("an error").details, "it is bad");

    let one = fetch(&channel, by_id(Pattern::Prefix("sec".into()))).await.expect("a response");
    assert_eq!(one, clients[1..]);
    let refused = fetch(&channel, by_id(Pattern::Regex("s.*".into()))).await;
    let words = r#"safe_regex "s.*": regular expressions are not supported"#;
    assert_eq!(refused, Err((Code::InvalidArgument, words.into())));

    plane.disconnect("moved", |stream| stream.node().is_some_and(|node| node.id == "first"));
    first.status().await;
    assert_eq!(fetch(&channel, all()).await.expect("a response").len(), 1, "gone with the last stream");
}

/// R-CSDS-16: a response to each request, and none unasked.
#[tokio::test(start_paused = true)]
async fn a_stream_answers_each_request() {
    let plane = ControlPlane::new(group());
    let channel = connect(plane.service(), WINDOW).await;
    let (requests, mut responses) = stream(&channel).await;
    for _ in 0..2 {
        requests.send(all()).await.expect("the stream is open");
        assert_eq!(responses.message().await.expect("no error"), Some(csds::Response::default()));
    }
    drop(requests);
    assert_eq!(responses.message().await.expect("OK"), None);

    let (requests, mut responses) = stream(&channel).await;
    requests.send(by_id(Pattern::Regex("(".into()))).await.expect("the stream is open");
    assert_eq!(responses.message().await.expect_err("an error ends it").code(), Code::InvalidArgument);

    let (_requests, mut responses) = stream(&channel).await;
    assert!(plane.drain(Duration::from_secs(1)).await.is_empty());
    assert_eq!(responses.message().await.expect_err("the drain ends it").code(), Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn status_calls_and_response_sizes_beyond_the_limits_are_refused() {
    let limits = Limits { status_bytes: 60, status_calls: 1, ..Limits::default() };
    let group = group();
    let plane = ControlPlane::builder(move |_, _| Ok(group.clone())).limits(limits).build();
    let channel = connect(plane.service(), WINDOW).await;
    let (requests, responses) = stream(&channel).await;
    let words = "1 calls for the status of clients are open, which is the limit";
    assert_eq!(fetch(&channel, all()).await, Err((Code::ResourceExhausted, words.into())));
    drop((requests, responses));
    let mut peer = Peer::<Delta>::ads(&channel).await;
    peer.subscribe(Node::new("n"), type_url::CLUSTER, &["a"]).await;
    peer.next().await;
    let (code, words) = fetch(&channel, all()).await.expect_err("60 bytes");
    assert_eq!(code, Code::ResourceExhausted);
    assert!(words.ends_with("bytes, limit 60: ask for it without contents, or for fewer clients"), "{words}");
}

#[derive(Debug, PartialEq)]
struct Cluster(Bytes);

impl XdsResource for Cluster {
    const TYPE_URL: &'static str = type_url::CLUSTER;
    type Error = &'static str;

    fn decode(_: &ResourceName, body: &Bytes) -> Result<Self, Self::Error> {
        if body == "bad" { Err("this is bad") } else { Ok(Self(body.clone())) }
    }
}

/// R-CSDS-01, -14, -15: clients of one process.
#[tokio::test(start_paused = true)]
async fn clients_report_the_status_of_their_resources() {
    let group = group();
    let plane = ControlPlane::new(group.clone());
    let server = move || {
        let plane = plane.clone();
        async move { Ok::<_, Infallible>(connect(plane.service(), WINDOW).await) }
    };
    let builder = XdsClient::builder(Config::new(Node::new("me"))).server(server);
    let client = builder.keep_contents().start().expect("a client");
    let service = ClientStatusService::new().client("one", client.clone()).client("two", client.clone());
    let channel = connect(service, WINDOW).await;

    let mut a = client.watch::<Cluster>("a").await.expect("a name");
    a.next().await.expect("news");
    let clients = fetch(&channel, all()).await.expect("a response");
    let scopes: Vec<_> = clients.iter().map(|client| client.scope.as_str()).collect();
    assert_eq!(scopes, ["one", "two"]);
    let client_config = &clients[0];
    assert_eq!(client_config.node.as_ref().expect("a node").id, "me");
    let [item] = &client_config.items[..] else { panic!("{client_config:?}") };
    assert_eq!((item.name.as_str(), item.client_status), ("a", Some(ResourceStatus::Acked)));
    assert_eq!(item.contents.as_deref(), Some(&b"one"[..]));
    assert!(item.updated.is_some() && item.config_status.is_none());

    group.replace(&clusters(), [resource("a", "bad")]);
    a.next().await.expect("news");
    let clients = fetch(&channel, csds::Request { exclude_contents: true, ..all() }).await.expect("a response");
    let item = &clients[0].items[0];
    assert_eq!((item.client_status, &item.contents), (Some(ResourceStatus::Nacked), &None));
    assert_eq!(item.error.as_ref().expect("an error").details, "this is bad");
    let held = fetch(&channel, all()).await.expect("a response")[0].items[0].contents.clone();
    assert_eq!(held.as_deref(), Some(&b"one"[..]), "what is held, not what was rejected");

    let words = "node_matchers are not supported by a client, which has only its own status";
    let refused = fetch(&channel, by_id(Pattern::Exact("me".into()))).await;
    assert_eq!(refused, Err((Code::InvalidArgument, words.into())));

    drop(a);
    let clients = fetch(&channel, all()).await.expect("a response");
    assert_eq!(clients[0].items, [], "gone at once");
    client.close().await;
    assert_eq!(fetch(&channel, all()).await, Ok(Vec::new()));
}

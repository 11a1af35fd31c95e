//! G1: one change of endpoints, among the many clusters of a gRPC target, until the new configuration is there.

use std::sync::Arc;

use bytes::Bytes;
use xds_machine::watch::News;
use xds_machine_grpc::chain::{Chain, Config, Linked, Target, Want};
use xds_machine_grpc::endpoints::Assignment;
use xds_machine_grpc::links::{ClusterLinks, Links, ListenerLinks, RouteSource, VirtualHost};
use xds_machine_grpc::resources::{Context, View, decode_endpoints};

use crate::measure::Work;

/// The name of the cluster whose endpoints change.
const NAME: &str = "c7";

/// The values of a chain: decoded endpoints; of other resources the chain needs the links alone.
type Value = Option<Arc<View<Assignment>>>;

/// A chain with a configuration of many clusters.
pub struct Endpoint {
    chain: Chain<Value>,
    round: u8,
}

impl Endpoint {
    pub fn new(clusters: usize) -> Self {
        let mut chain = Chain::new("l", "host");
        let clusters = (0..clusters).map(|number| format!("c{number}").as_str().into()).collect();
        let host = VirtualHost { name: "v".into(), domains: vec!["*".into()], clusters };
        while let Some(want) = chain.poll_want() {
            let Want::Watch(target) = want else { panic!("{want:?}") };
            let links = match &target {
                Target::Listener(_) => Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![host.clone()]))),
                Target::Cluster(name) => Links::Cluster(ClusterLinks::Eds(name.clone())),
                _ => Links::Endpoints(None),
            };
            chain.handle_news(&target, News::Changed(Ok(Linked::new(links, None))));
        }
        chain.poll_config().expect("complete").expect("usable");
        Self { chain, round: 1 }
    }
}

impl Work for Endpoint {
    type Input = Arc<View<Assignment>>;
    type Output = Config<Value>;

    fn prepare(&mut self) -> Self::Input {
        self.round = 3 - self.round; // another weight each time
        Arc::new(decode(&body(self.round)))
    }

    fn run(&mut self, endpoints: Self::Input) -> Self::Output {
        let news = News::Changed(Ok(Linked::new(Links::Endpoints(None), Some(endpoints))));
        self.chain.handle_news(&Target::Endpoints(NAME.into()), news);
        assert_eq!(self.chain.poll_want(), None);
        self.chain.poll_config().expect("new").expect("usable")
    }
}

/// Decoding and validating those endpoints: the floor.
pub struct DecodeEndpoints;

impl Work for DecodeEndpoints {
    type Input = Bytes;
    type Output = View<Assignment>;

    fn prepare(&mut self) -> Bytes {
        body(1)
    }

    fn run(&mut self, body: Bytes) -> View<Assignment> {
        decode(&body)
    }
}

fn decode(body: &Bytes) -> View<Assignment> {
    decode_endpoints(&NAME.into(), body, &Context::default()).expect("valid")
}

/// Encodes endpoints: one, with a locality, an address and a weight.
fn body(weight: u8) -> Bytes {
    let endpoint = [&b"\x0a\x0f"[..], b"\x0a\x0d\x0a\x0b\x12\x071.2.3.4\x18\x50"].concat();
    let locality = [&b"\x0a\x03\x0a\x01r\x12\x11"[..], &endpoint, &[0x1a, 2, 8, weight]].concat();
    [&b"\x0a\x02c7\x12"[..], &[locality.len() as u8], &locality].concat().into()
}

//! C1: the status of a client, and of a stream of a server, from the machine to the bytes.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_machine::client::{self, Action, Client};
use xds_machine::csds::{self, ClientConfig, Clock, Contents, Response};
use xds_machine::message::{Node, delta};
use xds_machine::proto::client_status::{encode_client, encode_response};
use xds_machine::server::{Cache, Config, Server, StreamId};
use xds_machine::{Delta, Instant, WILDCARD};

use crate::data::{NOW, cache, clusters};
use crate::floor::Any;
use crate::measure::Work;

/// A client with all resources of a server, and that server.
pub struct Status {
    client: Client<Delta>,
    contents: Contents,
    server: Server<Delta>,
    cache: Cache,
    of: Of,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Of {
    Client,
    Server,
}

impl Status {
    /// Measures the dump of the client.
    pub fn dump(n: usize) -> Self {
        Self::new(n, Of::Client)
    }

    /// Measures the view of the server.
    pub fn view(n: usize) -> Self {
        Self::new(n, Of::Server)
    }

    fn new(n: usize, of: Of) -> Self {
        let cache = cache(&clusters(), n);
        let mut client = Client::<Delta>::new(client::Config::new(Node::new("n")));
        client.resources_mut(&clusters()).subscribe([WILDCARD]).expect("a good name");
        client.handle_open();
        let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
        let first = client.poll_transmit().expect("a request");
        server.handle_request(NOW, first.request).expect("a good request");
        let response = server.poll_transmit(NOW, &cache).expect("all resources");
        client.handle_response(NOW, delta::Response::from(&response)).expect("a good response");
        let Some(Action::Apply(update)) = client.poll_action() else { panic!("no update") };
        let mut contents = Contents::new();
        contents.handle_update(&update);
        client.handle_verdict(NOW, update.accept()).expect("it is out");
        contents.handle_verdict(0, &clusters(), &[], |_, _| true);
        Self { client, contents, server, cache, of }
    }

    fn encoded(&self) -> Bytes {
        match self.of {
            Of::Client => {
                let clock = Clock::new(Instant::EPOCH, Duration::from_secs(1_700_000_000));
                let items = csds::dump(self.client.states(), &clock, Some(&self.contents));
                encode_client(None, "", items, usize::MAX).expect("any length")
            }
            Of::Server => {
                let items = csds::view(&self.server, &self.cache, true);
                let response = Response { clients: vec![ClientConfig::new(None, "", items)] };
                encode_response(&response, usize::MAX).expect("any length").into()
            }
        }
    }

    /// Returns the same message in prost.
    pub fn floor(&self) -> StatusResponse {
        StatusResponse::decode(self.encoded()).expect("what was encoded")
    }
}

impl Work for Status {
    type Input = ();
    type Output = Bytes;

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) -> Bytes {
        self.encoded()
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct StatusResponse {
    #[prost(message, repeated, tag = "1")]
    config: Vec<StatusClient>,
}

#[derive(Clone, PartialEq, Message)]
struct StatusClient {
    #[prost(message, repeated, tag = "3")]
    items: Vec<StatusItem>,
}

#[derive(Clone, PartialEq, Message)]
struct StatusItem {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    version_info: String,
    #[prost(message, optional, tag = "4")]
    xds_config: Option<Any>,
    #[prost(message, optional, tag = "5")]
    last_updated: Option<Time>,
    #[prost(int32, tag = "6")]
    config_status: i32,
    #[prost(int32, tag = "7")]
    client_status: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

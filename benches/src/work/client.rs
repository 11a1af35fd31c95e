//! The client: F9, a response with all resources of which one changed, and F10, names that are subscribed to one by
//! one.

use bytes::Bytes;
use prost::Message;
use xds_machine::client::{self, Action, Client, Transmit};
use xds_machine::message::{Node, sotw};
use xds_machine::proto;
use xds_machine::{ResourceName, Sotw, WILDCARD};

use crate::data::{NOW, cache, clusters, endpoints, name, resource, sotw_response};
use crate::floor;
use crate::measure::Work;

/// F9: a response, until Apply, verdict and ACK.
pub struct FullResponse {
    client: Client<Sotw>,
    n: usize,
    from: From,
    /// Two responses that alternate.
    responses: [Vec<u8>; 2],
    /// Keeps the buffer alive: freeing it is the transport's work, not the machine's.
    buffer: Bytes,
}

/// The input of the measured work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum From {
    /// The encoded bytes.
    Bytes,
    /// The decoded message.
    Message,
}

/// A received response.
pub enum Received {
    Bytes(Bytes),
    Message(sotw::Response),
}

impl FullResponse {
    /// Measures from the received bytes to the ACK.
    pub fn from_bytes(n: usize) -> Self {
        Self::new(n, From::Bytes)
    }

    /// Measures from the decoded message to the ACK.
    pub fn from_message(n: usize) -> Self {
        Self::new(n, From::Message)
    }

    fn new(n: usize, from: From) -> Self {
        let responses =
            [0, 1].map(|round| floor::SotwResponse { nonce: round.to_string(), ..all(n, round) }.encode_to_vec());
        let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")));
        client.resources_mut(&clusters()).subscribe([WILDCARD]).expect("a good name");
        client.handle_open();
        while client.poll_transmit().is_some() {}
        let mut this = Self { client, n, from, responses, buffer: Bytes::new() };
        let first = this.prepare();
        _ = this.run(first);
        this
    }
}

/// Returns a response with all resources, one of which changes with the round.
pub fn all(n: usize, round: u8) -> floor::SotwResponse {
    let types = clusters();
    let mut cache = cache(&types, n);
    cache.insert(&types, resource(n / 2, round));
    sotw_response(&cache, &types)
}

fn decode(bytes: Bytes) -> sotw::Response {
    proto::sotw::decode_response(bytes).expect("a response")
}

impl Work for FullResponse {
    type Input = Received;
    type Output = Transmit<sotw::Request>;

    fn prepare(&mut self) -> Received {
        self.responses.swap(0, 1);
        self.buffer = self.responses[0].clone().into();
        match self.from {
            From::Bytes => Received::Bytes(self.buffer.clone()),
            From::Message => Received::Message(decode(self.buffer.clone())),
        }
    }

    fn run(&mut self, received: Received) -> Transmit<sotw::Request> {
        let response = match received {
            Received::Bytes(bytes) => decode(bytes),
            Received::Message(response) => response,
        };
        self.client.handle_response(NOW, response).expect("a good response");
        let Some(Action::Apply(update)) = self.client.poll_action() else { panic!("an update") };
        assert_eq!(update.resources().len(), self.n);
        self.client.handle_verdict(NOW, update.accept()).expect("the update is out");
        self.client.poll_transmit().expect("the answer")
    }
}

/// F10: subscribes to names one by one, and polls once.
pub struct OneByOne {
    names: Vec<ResourceName>,
}

impl OneByOne {
    pub fn new(names: usize) -> Self {
        Self { names: (0..names).map(|i| name(i).into()).collect() }
    }

    pub fn floor(&self) -> floor::SotwRequest {
        floor::SotwRequest {
            resource_names: self.names.iter().map(ToString::to_string).collect(),
            type_url: endpoints().to_string(),
            ..floor::SotwRequest::default()
        }
    }
}

impl Work for OneByOne {
    type Input = Client<Sotw>;
    type Output = (Client<Sotw>, Transmit<sotw::Request>);

    fn prepare(&mut self) -> Client<Sotw> {
        let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")));
        client.handle_open();
        client
    }

    fn run(&mut self, mut client: Client<Sotw>) -> Self::Output {
        let types = endpoints();
        for name in &self.names {
            client.resources_mut(&types).subscribe([name.clone()]).expect("a good name");
        }
        let transmit = client.poll_transmit().expect("a request");
        assert_eq!(transmit.request.names.len(), self.names.len());
        assert!(client.poll_transmit().is_none());
        (client, transmit)
    }
}

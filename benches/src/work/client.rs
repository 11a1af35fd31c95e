//! The client: F9, a response of everything with one change, and F10, names that are subscribed to one by one.

use bytes::Bytes;
use prost::Message;
use xds_machine::client::{self, Action, Client, Transmit};
use xds_machine::message::{Node, sotw};
use xds_machine::proto;
use xds_machine::server::{Cache, Resource};
use xds_machine::{ResourceName, Sotw, TypeUrl, WILDCARD};

use crate::data::{NOW, cache, clusters, endpoints, name, resource, sotw_response};
use crate::floor;
use crate::measure::Work;

/// F9: until Apply, verdict and ACK.
pub struct FullResponse {
    types: TypeUrl,
    cache: Cache,
    client: Client<Sotw>,
    n: usize,
    from: From,
    round: u8,
    /// The buffers are the transport's: giving them back is not the machine's work.
    kept: Vec<Bytes>,
}

/// Where the work begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum From {
    /// With the bytes.
    Bytes,
    /// With the decoded message.
    Message,
}

/// A response as it comes.
pub enum Received {
    Bytes(Bytes),
    Message(sotw::Response),
}

impl FullResponse {
    /// From the received bytes to the ACK.
    pub fn from_bytes(n: usize) -> Self {
        Self::new(n, From::Bytes)
    }

    /// From the decoded message to the ACK.
    pub fn from_message(n: usize) -> Self {
        Self::new(n, From::Message)
    }

    fn new(n: usize, from: From) -> Self {
        let types = clusters();
        let cache = cache(&types, n);
        let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")));
        client.subscribe(&types, [WILDCARD.into()]).expect("a good name");
        client.handle_open(NOW);
        while client.poll_transmit().is_some() {}
        let mut this = Self { types, cache, client, n, from, round: 0, kept: Vec::new() };
        let first = this.prepare();
        this.run(first);
        this
    }

    pub fn floor(&self) -> floor::SotwResponse {
        sotw_response(&self.cache, &self.types)
    }

    fn bytes(&mut self) -> Bytes {
        self.round = self.round.wrapping_add(1);
        let changed: Resource = resource(self.n / 2, self.round);
        self.cache.insert(&self.types, changed);
        let response = floor::SotwResponse { nonce: self.round.to_string(), ..self.floor() };
        let bytes = Bytes::from(response.encode_to_vec());
        if self.kept.len() > 1 {
            self.kept.remove(0);
        }
        self.kept.push(bytes.clone());
        bytes
    }
}

fn decode(bytes: Bytes) -> sotw::Response {
    proto::sotw::decode_response(bytes).expect("a response")
}

impl Work for FullResponse {
    type Input = Received;
    type Output = Transmit<sotw::Request>;

    fn prepare(&mut self) -> Received {
        let bytes = self.bytes();
        match self.from {
            From::Bytes => Received::Bytes(bytes),
            From::Message => Received::Message(decode(bytes)),
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

/// F10: names are subscribed to one by one, then there is one poll.
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
        client.handle_open(NOW);
        client
    }

    fn run(&mut self, mut client: Client<Sotw>) -> Self::Output {
        let types = endpoints();
        for name in &self.names {
            client.subscribe(&types, [name.clone()]).expect("a good name");
        }
        let transmit = client.poll_transmit().expect("a request");
        assert_eq!(transmit.request.names.len(), self.names.len());
        assert!(client.poll_transmit().is_none());
        (client, transmit)
    }
}

//! The same messages in prost, as any program would define them.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::marker::PhantomData;

use bytes::Bytes;
use prost::Message;

use crate::measure::Work;

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    #[prost(string, tag = "3")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SotwResponse {
    #[prost(string, tag = "1")]
    pub version_info: String,
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Any>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub nonce: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct DeltaResponse {
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub nonce: String,
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SotwRequest {
    #[prost(string, tag = "1")]
    pub version_info: String,
    #[prost(string, repeated, tag = "3")]
    pub resource_names: Vec<String>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub response_nonce: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct DeltaRequest {
    #[prost(string, tag = "2")]
    pub type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub initial_resource_versions: BTreeMap<String, String>,
    #[prost(string, tag = "6")]
    pub response_nonce: String,
}

/// Encodes a message into a buffer that is large enough and warm.
pub struct Encode<M> {
    message: M,
    buffer: Vec<u8>,
}

impl<M: Message> Encode<M> {
    pub fn new(message: M) -> Self {
        Self { buffer: Vec::with_capacity(message.encoded_len()), message }
    }
}

impl<M: Message> Work for Encode<M> {
    type Input = ();
    type Output = usize;

    fn prepare(&mut self) {
        self.buffer.clear();
    }

    fn run(&mut self, (): ()) -> usize {
        self.message.encode(&mut self.buffer).expect("a vector grows");
        black_box(self.buffer.len())
    }
}

/// Encodes a newly created message into a newly allocated buffer.
pub struct EncodeNew<F>(pub F);

impl<M: Message, F: FnMut() -> M> Work for EncodeNew<F> {
    type Input = M;
    type Output = (M, Vec<u8>);

    fn prepare(&mut self) -> M {
        (self.0)()
    }

    fn run(&mut self, message: M) -> (M, Vec<u8>) {
        let bytes = message.encode_to_vec();
        (message, bytes)
    }
}

/// Decodes a newly received message, whose bodies are slices of the buffer.
pub struct Decode<M> {
    bytes: Vec<u8>,
    message: PhantomData<M>,
}

impl<M: Message> Decode<M> {
    pub fn new(message: &M) -> Self {
        Self { bytes: message.encode_to_vec(), message: PhantomData }
    }
}

impl<M: Message + Default> Work for Decode<M> {
    type Input = Bytes;
    type Output = M;

    fn prepare(&mut self) -> Bytes {
        self.bytes.clone().into()
    }

    fn run(&mut self, bytes: Bytes) -> M {
        M::decode(bytes).expect("what was encoded")
    }
}

/// Decodes a newly received message, and does the work that every receiver of it has to do.
pub struct DecodeAnd<M, F> {
    decode: Decode<M>,
    then: F,
}

impl<M: Message, F> DecodeAnd<M, F> {
    pub fn new(message: &M, then: F) -> Self {
        Self { decode: Decode::new(message), then }
    }
}

impl<M: Message + Default, T, F: FnMut(M) -> T> Work for DecodeAnd<M, F> {
    type Input = Bytes;
    type Output = T;

    fn prepare(&mut self) -> Bytes {
        self.decode.prepare()
    }

    fn run(&mut self, bytes: Bytes) -> T {
        (self.then)(self.decode.run(bytes))
    }
}

//! The client's side of a tonic codec: sends any bytes of a test, and decodes responses.

use std::marker::PhantomData;

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use xds_machine::proto::{DecodeError, Wire};

/// An encoded message, in pieces.
pub type Chunks = Vec<Bytes>;

/// The client's side: sends [`Chunks`] and receives responses.
pub struct ClientCodec<V>(PhantomData<V>);

impl<V> Default for ClientCodec<V> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<V: Wire> Codec for ClientCodec<V> {
    type Encode = Chunks;
    type Decode = V::Response;
    type Encoder = Ready;
    type Decoder = With<V::Response>;

    fn encoder(&mut self) -> Ready {
        Ready
    }

    fn decoder(&mut self) -> With<V::Response> {
        With(V::decode_response)
    }
}

/// Writes bytes that are encoded already.
pub struct Ready;

impl Encoder for Ready {
    type Item = Chunks;
    type Error = Status;

    fn encode(&mut self, chunks: Chunks, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        chunks.into_iter().for_each(|chunk| to.put(chunk));
        Ok(())
    }
}

/// Decodes messages with a function.
pub struct With<T>(fn(Bytes) -> Result<T, DecodeError>);

impl<T> Decoder for With<T> {
    type Item = T;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<T>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        self.0(bytes).map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

/// The client's side of load reports.
pub struct LoadCodec;

impl Codec for LoadCodec {
    type Encode = Chunks;
    type Decode = xds_machine::load::Response;
    type Encoder = Ready;
    type Decoder = With<xds_machine::load::Response>;

    fn encoder(&mut self) -> Ready {
        Ready
    }

    fn decoder(&mut self) -> With<xds_machine::load::Response> {
        With(xds_machine::proto::load_stats::decode_response)
    }
}

//! The server's side of a tonic codec: sends any bytes of a test, and decodes requests.

use std::marker::PhantomData;

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use xds_machine::proto::Wire;

/// A message, in pieces.
pub type Chunks = Vec<Bytes>;

pub struct ServerCodec<V>(PhantomData<V>);

impl<V> Default for ServerCodec<V> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<V: Wire> Codec for ServerCodec<V> {
    type Encode = Chunks;
    type Decode = V::Request;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl<V> Encoder for ServerCodec<V> {
    type Item = Chunks;
    type Error = Status;

    fn encode(&mut self, chunks: Chunks, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        chunks.into_iter().for_each(|chunk| to.put(chunk));
        Ok(())
    }
}

impl<V: Wire> Decoder for ServerCodec<V> {
    type Item = V::Request;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<V::Request>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        V::decode_request(bytes).map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

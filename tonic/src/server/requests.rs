//! The requests of a stream, read from the body of a gRPC call.

use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use http_body::Body;
use xds_machine::proto::Wire;
use xds_machine::{Code, Status};

/// The bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// The least room that is made for a message that arrives in several pieces.
const ROOM: usize = 64 << 10;

/// A reader of length-prefixed messages. A message that arrives in one piece is decoded in place; another is collected
/// in a buffer that grows as it arrives, whatever length it claims, and that is let go of once it is decoded.
pub(super) struct Requests<B, V> {
    body: B,
    /// The largest message in bytes.
    limit: usize,
    /// Bytes that have arrived and were not read yet.
    arrived: Bytes,
    state: State,
    variant: PhantomData<fn() -> V>,
}

enum State {
    Prefix { bytes: [u8; PREFIX], len: usize },
    Message { bytes: Vec<u8>, len: usize },
}

impl State {
    const START: Self = Self::Prefix { bytes: [0; PREFIX], len: 0 };
}

impl<B, V> Requests<B, V> {
    pub(super) fn new(body: B, limit: usize) -> Self {
        Self { body, limit, arrived: Bytes::new(), state: State::START, variant: PhantomData }
    }

    /// Returns the next message, if all of it has arrived.
    fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let message = self.read();
        if self.arrived.is_empty() {
            self.arrived = Bytes::new(); // an empty slice would still hold the piece that it is of
        }
        message
    }

    fn read(&mut self) -> Result<Option<Bytes>, Status> {
        if let State::Prefix { bytes, len } = &mut self.state {
            let count = self.arrived.len().min(PREFIX - *len);
            self.arrived.copy_to_slice(&mut bytes[*len..*len + count]);
            *len += count;
            if *len < PREFIX {
                return Ok(None);
            }
            self.state = State::Message { bytes: Vec::new(), len: length(*bytes, self.limit)? };
        }
        let State::Message { bytes, len } = &mut self.state else { return Ok(None) };
        if bytes.is_empty() && self.arrived.len() >= *len {
            let message = self.arrived.split_to(*len);
            self.state = State::START;
            return Ok(Some(message));
        }
        let missing = *len - bytes.len();
        let piece = self.arrived.split_to(self.arrived.len().min(missing));
        if bytes.capacity() - bytes.len() < piece.len() {
            bytes.reserve_exact(missing.min(piece.len().max(bytes.len()).max(ROOM)));
        }
        bytes.extend_from_slice(&piece);
        if bytes.len() < *len {
            return Ok(None);
        }
        let message = mem::take(bytes);
        self.state = State::START;
        Ok(Some(message.into()))
    }
}

/// Reads a prefix.
fn length([compressed, len @ ..]: [u8; PREFIX], limit: usize) -> Result<usize, Status> {
    match compressed {
        0 => {}
        1 => return Err(Status::new(Code::Internal, "a compressed request, though no grpc-encoding was announced")),
        flag => return Err(Status::new(Code::Internal, format!("a request with compressed flag {flag}"))),
    }
    let len = u32::from_be_bytes(len) as usize;
    if len > limit {
        return Err(Status::new(Code::ResourceExhausted, format!("a request of {len} bytes, limit {limit}")));
    }
    Ok(len)
}

/// The status of a stream whose client has left without closing it.
pub(super) fn gone() -> Status {
    Status { code: tonic::Code::Cancelled as i32, message: "the client is gone".into() }
}

impl<B, V> Stream for Requests<B, V>
where
    B: Body + Unpin,
    V: Wire,
{
    type Item = Result<V::Request, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(message) = self.next()? {
                return Poll::Ready(Some(V::decode_request(message).map_err(Status::from)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                // Trailers of a request mean nothing in gRPC.
                Some(Ok(frame)) => {
                    if let Ok(mut data) = frame.into_data() {
                        self.arrived = data.copy_to_bytes(data.remaining());
                    }
                }
                Some(Err(_)) => return Poll::Ready(Some(Err(gone()))),
                None if matches!(self.state, State::Prefix { len: 0, .. }) => return Poll::Ready(None),
                None => {
                    let half = Status::new(Code::Internal, "the requests end in the middle of a message");
                    return Poll::Ready(Some(Err(half)));
                }
            }
        }
    }
}

//! The length-prefixed messages of a gRPC body: read one at a time, and the prefix that is written.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::Body;
use xds_machine::proto::{DecodeError, Wire, load_stats};
use xds_machine::{Code, Status, load};

use crate::block::Block;

/// The messages of a method on the wire.
pub(crate) trait Codec {
    /// What a client sends.
    type Request;
    /// What a server sends.
    type Response;

    fn decode_request(bytes: Bytes) -> Result<Self::Request, DecodeError>;
    fn encode_request(request: &Self::Request) -> Vec<u8>;
    fn decode_response(bytes: Bytes) -> Result<Self::Response, DecodeError>;
}

impl<V: Wire> Codec for V {
    type Request = V::Request;
    type Response = V::Response;

    fn decode_request(bytes: Bytes) -> Result<V::Request, DecodeError> {
        V::decode_request(bytes)
    }

    fn encode_request(request: &V::Request) -> Vec<u8> {
        V::encode_request(request)
    }

    fn decode_response(bytes: Bytes) -> Result<V::Response, DecodeError> {
        V::decode_response(bytes)
    }
}

/// The messages of load reports.
pub(crate) struct Loads;

impl Codec for Loads {
    type Request = load::Request;
    type Response = load::Response;

    fn decode_request(bytes: Bytes) -> Result<load::Request, DecodeError> {
        load_stats::decode_request(bytes)
    }

    fn encode_request(request: &load::Request) -> Vec<u8> {
        load_stats::encode_request(request)
    }

    fn decode_response(bytes: Bytes) -> Result<load::Response, DecodeError> {
        load_stats::decode_response(bytes)
    }
}

/// The length of the compressed flag and the message length, which gRPC puts before each message.
pub(crate) const PREFIX: usize = 5;

/// Returns the prefix of an uncompressed message, or `None` if gRPC can't express the length.
pub(crate) fn prefix(len: usize) -> Option<[u8; PREFIX]> {
    let [a, b, c, d] = u32::try_from(len).ok()?.to_be_bytes();
    Some([0, a, b, c, d])
}

/// Collects messages, each in a block of its own that is freed with the message. A reader that reuses one buffer, such
/// as that of [`tonic::Streaming`], keeps the block of the largest message for the rest of the stream.
#[derive(Debug)]
pub(crate) struct Messages {
    /// The noun for a message in errors.
    what: &'static str,
    limit: usize,
    /// What was received after the last message. `None` between messages: most streams are idle most of the time.
    part: Option<Box<Part>>,
}

/// A part of a message, or several messages.
#[derive(Debug, Default)]
struct Part {
    prefix: [u8; PREFIX],
    /// The number of received bytes of the prefix.
    prefix_len: usize,
    /// The received bytes of the message.
    message: Block,
    /// The received bytes after these.
    rest: Bytes,
}

/// A message, or the end of a body.
#[derive(Debug)]
pub(crate) enum Frame {
    Message(Bytes),
    End {
        trailers: Option<HeaderMap>,
        /// An error if the body ended within a message.
        whole: Result<(), Status>,
    },
}

/// The reason why there are no more messages.
#[derive(Debug)]
pub(crate) enum ReadError<E> {
    /// The body failed.
    Body(E),
    /// A message is compressed or too long, or its compressed flag is invalid.
    Message(Status),
}

impl Messages {
    /// Creates a reader of messages of at most `limit` bytes.
    pub(crate) fn new(what: &'static str, limit: usize) -> Self {
        Self { what, limit, part: None }
    }

    /// Reads the next message.
    pub(crate) fn poll_message<B: Body>(
        &mut self,
        mut body: Pin<&mut B>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Frame, ReadError<B::Error>>> {
        loop {
            let message = self.take().map_err(ReadError::Message)?;
            if let Some(message) = message {
                return Poll::Ready(Ok(Frame::Message(message)));
            }
            let frame = match ready!(body.as_mut().poll_frame(cx)) {
                Some(frame) => frame.map_err(ReadError::Body)?,
                None => return Poll::Ready(Ok(self.end(None))),
            };
            match frame.into_data() {
                Ok(mut data) => {
                    self.part.get_or_insert_default().rest = data.copy_to_bytes(data.remaining());
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        return Poll::Ready(Ok(self.end(Some(trailers))));
                    }
                }
            }
        }
    }

    /// Takes the next message, if all of it was received.
    fn take(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(part) = &mut self.part else { return Ok(None) };
        let message = part.take(self.what, self.limit)?;
        if part.rest.is_empty() {
            part.rest = Bytes::new(); // an empty slice would keep the whole piece alive
            if part.prefix_len == 0 {
                self.part = None;
            }
        }
        Ok(message)
    }

    fn end(&self, trailers: Option<HeaderMap>) -> Frame {
        let half = || Status::new(Code::Internal, format!("the {}s end in the middle of a message", self.what));
        Frame::End { trailers, whole: if self.part.is_some() { Err(half()) } else { Ok(()) } }
    }
}

impl Part {
    /// Moves the received bytes into the message. Returns the message once it is complete.
    fn take(&mut self, what: &str, limit: usize) -> Result<Option<Bytes>, Status> {
        if self.prefix_len < PREFIX {
            let len = self.rest.len().min(PREFIX - self.prefix_len);
            self.rest.copy_to_slice(&mut self.prefix[self.prefix_len..self.prefix_len + len]);
            self.prefix_len += len;
            if self.prefix_len < PREFIX {
                return Ok(None);
            }
        }
        let len = self.len(what, limit)?;
        let more = self.rest.len().min(len - self.message.len());
        self.message.extend(&self.rest.split_to(more), len);
        if self.message.len() < len {
            return Ok(None);
        }
        self.prefix_len = 0;
        Ok(Some(std::mem::take(&mut self.message).into()))
    }

    /// Returns the length of the message from its prefix.
    fn len(&self, what: &str, limit: usize) -> Result<usize, Status> {
        let [compressed, len @ ..] = self.prefix;
        let (code, message) = match (compressed, u32::from_be_bytes(len) as usize) {
            (0, len) if len <= limit => return Ok(len),
            (0, len) => (Code::ResourceExhausted, format!("a {what} of {len} bytes, limit {limit}")),
            (1, _) => (Code::Internal, format!("a compressed {what}, though no grpc-encoding was agreed on")),
            (flag, _) => (Code::Internal, format!("a {what} with compressed flag {flag}")),
        };
        Err(Status::new(code, message))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::Waker;

    use super::*;

    /// A body of these frames.
    struct Frames(VecDeque<http_body::Frame<Bytes>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(Ok))
        }
    }

    /// Reads everything. Returns the messages, and how the body ended.
    fn read(limit: usize, frames: &[&[u8]]) -> (Vec<Bytes>, Result<(), Status>) {
        let frames = frames.iter().map(|frame| http_body::Frame::data(Bytes::copy_from_slice(frame)));
        let (mut body, mut reader, mut messages) = (Frames(frames.collect()), Messages::new("tale", limit), Vec::new());
        loop {
            match reader.poll_message(Pin::new(&mut body), &mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Frame::Message(message))) => messages.push(message),
                Poll::Ready(Ok(Frame::End { whole, .. })) => return (messages, whole),
                Poll::Ready(Err(ReadError::Message(status))) => return (messages, Err(status)),
                Poll::Ready(Err(ReadError::Body(never))) => match never {},
                Poll::Pending => panic!("the frames are there"),
            }
        }
    }

    #[test]
    fn messages_are_put_together_from_any_frames() {
        let wire = b"\0\0\0\0\x03abc\0\0\0\0\0\0\0\0\0\x02de";
        let expected: Vec<Bytes> = [&b"abc"[..], b"", b"de"].map(Bytes::from_static).into();
        for size in 1..wire.len() {
            let frames: Vec<&[u8]> = wire.chunks(size).collect();
            assert_eq!(read(3, &frames), (expected.clone(), Ok(())), "frames of {size} bytes");
        }
    }

    #[test]
    fn a_message_that_is_too_long_truncated_or_compressed_is_an_error() {
        let cases: [(&[u8], Code, &str); 5] = [
            (b"\0\0\0\0\x04abcd", Code::ResourceExhausted, "a tale of 4 bytes, limit 3"),
            (b"\0\0\0\0\x03ab", Code::Internal, "the tales end in the middle of a message"),
            (b"\0\0", Code::Internal, "the tales end in the middle of a message"),
            (b"\x01\0\0\0\0", Code::Internal, "a compressed tale, though no grpc-encoding was agreed on"),
            (b"\x02\0\0\0\0", Code::Internal, "a tale with compressed flag 2"),
        ];
        for (frame, code, message) in cases {
            assert_eq!(read(3, &[frame]), (vec![], Err(Status::new(code, message))));
        }
    }

    #[test]
    fn a_taken_message_leaves_no_bytes_in_the_reader() {
        let mut reader = Messages::new("tale", 1 << 30);
        let long = vec![7; (3 << 16) + 1];
        reader.part.get_or_insert_default().rest = [&b"\0\0\x03\0\x01"[..], &long].concat().into();
        assert_eq!(reader.take().expect("no error").expect("a message"), long);
        assert!(reader.part.is_none());
    }

    #[test]
    fn a_length_that_grpc_cannot_express_has_no_prefix() {
        assert_eq!(prefix(258), Some([0, 0, 0, 1, 2]));
        assert_eq!(prefix(u32::MAX as usize), Some([0, 255, 255, 255, 255]));
        assert_eq!(prefix(1 << 32), None);
    }
}

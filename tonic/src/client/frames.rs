//! The messages of a gRPC body, one at a time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::Body;
use tonic::Status;

/// The compression flag and the length before each message.
pub(super) const PREFIX: usize = 5;

/// How much is reserved for a message before any of it has come: the length is the peer's claim.
const FIRST_BLOCK: usize = 1 << 16;

/// Collects messages, each in a block of its own that goes with the message. A reader that reuses one buffer, such as
/// that of [`tonic::Streaming`], keeps the block of the largest message for the rest of the stream.
#[derive(Debug)]
pub(super) struct Messages {
    limit: usize,
    /// What came after the last message.
    rest: Bytes,
    prefix: [u8; PREFIX],
    /// How much of the prefix has come.
    prefix_len: usize,
    message: Vec<u8>,
}

/// The end of a body, or a message.
#[derive(Debug)]
pub(super) enum Frame {
    Message(Bytes),
    /// The end, with trailers if there are any.
    End(Option<HeaderMap>),
}

impl Messages {
    /// Reads messages of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, rest: Bytes::new(), prefix: [0; PREFIX], prefix_len: 0, message: Vec::new() }
    }

    /// Reads the next message.
    pub(super) fn poll_message<B>(&mut self, mut body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<Result<Frame, Status>>
    where
        B: Body<Data = Bytes, Error = Status>,
    {
        loop {
            if let Some(message) = self.take()? {
                return Poll::Ready(Ok(Frame::Message(message)));
            }
            let frame = match ready!(body.as_mut().poll_frame(cx)) {
                Some(frame) => frame?,
                None => return Poll::Ready(self.end(None)),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        return Poll::Ready(self.end(Some(trailers)));
                    }
                }
            }
        }
    }

    /// Moves what has come into the message. Returns it once it is complete.
    fn take(&mut self) -> Result<Option<Bytes>, Status> {
        if self.prefix_len < PREFIX {
            let len = self.rest.len().min(PREFIX - self.prefix_len);
            self.rest.copy_to_slice(&mut self.prefix[self.prefix_len..self.prefix_len + len]);
            self.prefix_len += len;
            if self.prefix_len < PREFIX {
                return Ok(None);
            }
        }
        let len = self.len()?;
        let more = self.rest.len().min(len - self.message.len());
        if self.message.capacity() - self.message.len() < more {
            // Doubles up to the exact length, so that no more is held than twice what has come.
            let block = len.min((2 * self.message.len()).max(FIRST_BLOCK).max(self.message.len() + more));
            self.message.reserve_exact(block - self.message.len());
        }
        self.message.extend_from_slice(&self.rest.split_to(more));
        if self.message.len() < len {
            return Ok(None);
        }
        self.prefix_len = 0;
        Ok(Some(std::mem::take(&mut self.message).into()))
    }

    /// Returns the length of the message, which the prefix says.
    fn len(&self) -> Result<usize, Status> {
        let [compressed, len @ ..] = self.prefix;
        if compressed != 0 {
            return Err(Status::unimplemented("the message is compressed, and no compression was agreed on"));
        }
        let (len, limit) = (u32::from_be_bytes(len) as usize, self.limit);
        if len > limit {
            return Err(Status::resource_exhausted(format!("a message of {len} bytes, limit {limit}")));
        }
        Ok(len)
    }

    fn end(&self, trailers: Option<HeaderMap>) -> Result<Frame, Status> {
        let status = trailers.as_ref().and_then(Status::from_header_map);
        match status {
            // The status says more than that it comes early.
            Some(status) if status.code() != tonic::Code::Ok => Err(status),
            _ if self.prefix_len > 0 => Err(Status::internal("the stream ended within a message")),
            _ => Ok(Frame::End(trailers)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use super::*;

    /// A body of these frames.
    struct Frames(VecDeque<http_body::Frame<Bytes>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.pop_front().map(Ok))
        }
    }

    /// Reads everything. Returns the messages, and how the body ended.
    fn read(limit: usize, frames: &[&[u8]]) -> (Vec<Bytes>, Result<(), String>) {
        let frames = frames.iter().map(|frame| http_body::Frame::data(Bytes::copy_from_slice(frame)));
        let (mut body, mut reader, mut messages) = (Frames(frames.collect()), Messages::new(limit), Vec::new());
        loop {
            match reader.poll_message(Pin::new(&mut body), &mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Frame::Message(message))) => messages.push(message),
                Poll::Ready(Ok(Frame::End(_))) => return (messages, Ok(())),
                Poll::Ready(Err(status)) => return (messages, Err(status.message().to_string())),
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
    fn what_is_too_long_or_cut_or_compressed_is_an_error() {
        let error = |frame: &[u8]| read(3, &[frame]).1.expect_err("an error");
        assert_eq!(error(b"\0\0\0\0\x04abcd"), "a message of 4 bytes, limit 3");
        assert_eq!(error(b"\0\0\0\0\x03ab"), "the stream ended within a message");
        assert_eq!(error(b"\0\0"), "the stream ended within a message");
        assert_eq!(error(b"\x01\0\0\0\0"), "the message is compressed, and no compression was agreed on");
    }

    #[test]
    fn a_claimed_length_reserves_nothing_and_a_message_takes_its_block_along() {
        let mut reader = Messages::new(1 << 30);
        reader.rest = Bytes::from_static(b"\0\x3f\xff\xff\xffabc");
        assert_eq!(reader.take().expect("no error"), None);
        assert_eq!(reader.message.capacity(), FIRST_BLOCK);

        let mut reader = Messages::new(1 << 30);
        let long = vec![7; 3 * FIRST_BLOCK + 1];
        reader.rest = [&b"\0\0\x03\0\x01"[..], &long].concat().into();
        assert_eq!(reader.take().expect("no error").expect("a message"), long);
        assert_eq!((reader.message.capacity(), reader.rest.len()), (0, 0));
    }
}

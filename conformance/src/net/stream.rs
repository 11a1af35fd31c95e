//! One stream of gRPC: frames of messages, and the status at the end.

use std::future::poll_fn;

use bytes::{Buf, Bytes, BytesMut};
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::HeaderMap;
use tokio::sync::mpsc::UnboundedSender;

use crate::message::{Response, Variant};
use crate::resource;
use crate::run::{Event, StreamId};

/// The largest message that is read.
const LARGEST: usize = 256 << 20;

/// Puts the head of a gRPC frame before a message.
pub(crate) fn frame(message: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(message.len() + 5);
    frame.push(0);
    frame.extend(u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(message);
    frame.into()
}

/// Writes all bytes, as flow control lets them through.
pub(crate) async fn write(to: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        to.reserve_capacity(bytes.len());
        let room = poll_fn(|cx| to.poll_capacity(cx)).await;
        let room = room.unwrap_or_else(|| Err(h2::Reason::CANCEL.into()))?;
        to.send_data(bytes.split_to(room.min(bytes.len())), false)?;
    }
    Ok(())
}

/// Reads the stream to its end, and reports each message and the end.
pub(super) async fn read(id: StreamId, variant: Variant, response: ResponseFuture, to: UnboundedSender<Event>) {
    let why = match read_all(id, variant, response, &to).await {
        Ok(why) => why,
        Err(error) => error.to_string(),
    };
    _ = to.send(Event::Closed(id, why)); // an error means that the receiver is gone
}

async fn read_all(
    id: StreamId,
    variant: Variant,
    response: ResponseFuture,
    to: &UnboundedSender<Event>,
) -> Result<String, h2::Error> {
    let response = response.await?;
    if response.status() != http::StatusCode::OK {
        return Ok(format!("HTTP status {}", response.status()));
    }
    if let Some(status) = status(response.headers()) {
        return Ok(status);
    }
    let mut body: RecvStream = response.into_body();
    let mut buffer = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        buffer.extend_from_slice(&data);
        while let Some(message) = next_message(&mut buffer) {
            let event = match message.and_then(|message| {
                Response::decode(variant, message, resource::revision).map_err(|error| error.to_string())
            }) {
                Ok(response) => Event::Response(id, response),
                Err(why) => Event::Malformed(id, why),
            };
            if to.send(event).is_err() {
                return Ok("nobody listens".into());
            }
        }
    }
    let trailers = body.trailers().await?;
    Ok(trailers.as_ref().and_then(status).unwrap_or_else(|| "without a status".into()))
}

/// Takes a message from the buffer, if there is a whole one.
pub(crate) fn next_message(buffer: &mut BytesMut) -> Option<Result<Bytes, String>> {
    let len = u32::from_be_bytes(buffer.get(1..5)?.try_into().ok()?) as usize;
    if len > LARGEST {
        buffer.clear();
        return Some(Err(format!("a message of {len} bytes")));
    }
    if buffer.len() < 5 + len {
        return None;
    }
    let compressed = buffer[0] != 0;
    buffer.advance(5);
    let message = buffer.split_to(len).freeze();
    Some(if compressed { Err("a compressed message, which was not asked for".into()) } else { Ok(message) })
}

/// Returns the status of gRPC, in words.
pub(crate) fn status(headers: &HeaderMap) -> Option<String> {
    let text = |key| headers.get(key).and_then(|value| value.to_str().ok());
    let code = text("grpc-status")?;
    Some(format!("status {code} {}", unescape(text("grpc-message").unwrap_or_default())).trim_end().to_owned())
}

/// Decodes the percent-encoding of `grpc-message`.
fn unescape(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grpc_status_message_is_percent_decoded() {
        assert_eq!(unescape("no%20type, 100%"), "no type, 100%");
    }

    #[test]
    fn messages_are_reassembled_from_fragments() {
        let all = [frame(b"abc"), frame(b""), frame(b"d")].concat();
        let (mut buffer, mut messages) = (BytesMut::new(), Vec::new());
        for byte in all {
            buffer.extend_from_slice(&[byte]);
            while let Some(message) = next_message(&mut buffer) {
                messages.push(message.expect("a message"));
            }
        }
        assert_eq!(messages, ["abc", "", "d"]);
        let mut huge = BytesMut::from(&[0, 0xff, 0xff, 0xff, 0xff][..]);
        assert_eq!(next_message(&mut huge), Some(Err("a message of 4294967295 bytes".into())));
    }
}

//! A stream of a server, forwarded into a sink.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use xds_machine::Status;
use xds_machine::server::{Response, Variant};

use super::{Handler, Responses};
use crate::Runtime;

/// Serves one stream: takes a response from `responses` whenever `outbound` is ready for one, until the stream ends.
/// Returns the status to close the stream with; `Ok(None)` is the status OK, after the client has closed its half.
///
/// The sink is flushed whenever the stream waits, and at the end. To close the stream with the status is left to the
/// caller.
///
/// # Errors
///
/// Returns the error of the sink: the client is gone.
pub async fn serve_stream<V, I, H, R, O>(
    responses: &mut Responses<V, I, H, R>,
    outbound: O,
) -> Result<Option<Status>, O::Error>
where
    V: Variant,
    I: Stream<Item = Result<V::Request, Status>> + Unpin,
    H: Handler<V>,
    R: Runtime,
    O: Sink<Response<V>>,
{
    let mut outbound = pin!(outbound);
    let end = poll_fn(|cx| {
        loop {
            ready!(outbound.as_mut().poll_ready(cx))?;
            match Pin::new(&mut *responses).poll_next(cx) {
                Poll::Ready(Some(Ok(response))) => outbound.as_mut().start_send(response)?,
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Ok(Some(status))),
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Pending => {
                    ready!(outbound.as_mut().poll_flush(cx))?;
                    return Poll::Pending;
                }
            }
        }
    })
    .await?;
    poll_fn(|cx| outbound.as_mut().poll_flush(cx)).await?;
    Ok(end)
}

//! The end of a stream.

use xds_machine::{Misuse, PeerMisbehaved};

/// The end of a stream: what ended it, and whether the server had answered on it.
///
/// `I` is the error of the inbound half, `O` that of the outbound half.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ended<I, O> {
    /// What ended the stream.
    pub reason: Reason<I, O>,
    /// A response was received on the stream. Only a response proves that the server works (gRFC A57): a stream that
    /// ended without one counts as a failure to connect, and does not reset the backoff.
    pub answered: bool,
}

/// What ended a stream. More reasons may be added.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason<I, O> {
    /// The server ended the stream, without an error.
    #[error("the server ended the stream")]
    Finished,
    /// The inbound half failed, or the connection could not be made.
    #[error("{0}")]
    Inbound(I),
    /// The outbound half failed, and the inbound half did not say why.
    #[error("{0}")]
    Outbound(O),
    /// The machine refused a response that it can't even answer.
    #[error("peer misbehaved: {0}")]
    Refused(PeerMisbehaved),
    /// The client has to tell the server anew what it has:
    /// [`wants_new_stream`](xds_machine::client::Client::wants_new_stream).
    #[error("the server has to be told anew what is here")]
    Renewed,
    /// The application ended the stream.
    #[error("the application ended the stream")]
    Stopped,
    /// The application used the machine in a way that it does not support, for example by a verdict on an update of
    /// another client: a bug.
    #[error("misuse of the machine: {0}")]
    Misused(Misuse),
}

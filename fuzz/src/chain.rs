//! Any bytes as a conversation with the chain of a target. The naive chain of the crate's tests is the oracle.

#[allow(dead_code)]
#[path = "../../grpc/tests/grpc/chain/naive.rs"]
mod naive;
#[path = "../../grpc/tests/model/play.rs"]
mod play;
#[path = "../../grpc/tests/model/subject.rs"]
mod subject;

/// Plays a chain, and the servers' reports of the watched resources.
pub fn chain(data: &[u8]) {
    if data.len() <= MOST_BYTES {
        play::play(data);
    }
}

/// The maximum length of an input, because the naive chain is slow.
const MOST_BYTES: usize = 1500;

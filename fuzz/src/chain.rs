//! Any bytes as a conversation with the chain of a target. The naive chain of the crate's tests is the oracle.

#[allow(dead_code)]
#[path = "../../grpc/tests/grpc/chain/naive.rs"]
mod naive;
#[path = "../../grpc/tests/model/play.rs"]
mod play;
#[path = "../../grpc/tests/model/subject.rs"]
mod subject;

/// A chain, and what servers say of what is watched.
pub fn chain(data: &[u8]) {
    if data.len() <= MOST_BYTES {
        play::play(data);
    }
}

/// The naive chain takes time.
const MOST_BYTES: usize = 1500;

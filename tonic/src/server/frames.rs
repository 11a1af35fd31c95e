//! A response as the frames of a gRPC body: the prefix, the machine's pages as they are, small chunks joined.

use std::collections::VecDeque;

use bytes::Bytes;
use xds_machine::proto::Wire;
use xds_machine::server::{Response, Variant};
use xds_machine::{Code, Status};

use crate::messages::{PREFIX, prefix};

/// Chunks below this length are joined: h2 copies small frames anyway, and each frame has a header of its own.
const SMALL: usize = 1024;

/// Returns the frames of a response.
///
/// # Errors
///
/// If gRPC can't express the length of the message.
pub(super) fn of<V: Wire + Variant>(response: &Response<V>) -> Result<VecDeque<Bytes>, Status> {
    let chunks: Vec<Bytes> = response.chunks().collect();
    let len = chunks.iter().map(Bytes::len).sum();
    let prefix = prefix(len).ok_or_else(|| {
        let message = format!("a response of {len} bytes for {}, limit {}", response.type_url(), u32::MAX);
        Status::new(Code::ResourceExhausted, message)
    })?;
    Ok(join(prefix, chunks))
}

fn join(prefix: [u8; PREFIX], chunks: Vec<Bytes>) -> VecDeque<Bytes> {
    let mut frames = VecDeque::with_capacity(1 + chunks.len());
    let mut chunks = chunks.into_iter().peekable();
    let mut small = Some(prefix);
    while small.is_some() || chunks.peek().is_some() {
        // A run of small chunks, the prefix among them.
        let run: Vec<Bytes> = std::iter::from_fn(|| chunks.next_if(|chunk| chunk.len() < SMALL)).collect();
        let prefix = small.take();
        let len = run.iter().map(Bytes::len).sum::<usize>() + prefix.map_or(0, |prefix| prefix.len());
        if len > 0 {
            let mut joined = Vec::with_capacity(len);
            joined.extend(prefix.into_iter().flatten());
            run.iter().for_each(|chunk| joined.extend_from_slice(chunk));
            frames.push_back(joined.into());
        }
        frames.extend(chunks.next());
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(chunks: &[usize]) -> Vec<usize> {
        let chunks: Vec<Bytes> = chunks.iter().map(|len| vec![7; *len].into()).collect();
        let (all, frames) = (chunks.concat(), join([0; 5], chunks));
        assert_eq!(Vec::from(frames.clone()).concat(), [vec![0; 5], all].concat(), "nothing is lost");
        frames.iter().map(Bytes::len).collect()
    }

    #[test]
    fn small_chunks_are_joined_and_pages_are_not() {
        assert_eq!(lens(&[]), [5]);
        assert_eq!(lens(&[10]), [15]);
        assert_eq!(lens(&[1023, 1]), [1029]);
        assert_eq!(lens(&[1024]), [5, 1024]);
        assert_eq!(lens(&[10, 3000, 4000, 20, 30]), [15, 3000, 4000, 50]);
        let page = Bytes::from(vec![7; 3000]);
        let frames = join([0; 5], vec![page.clone()]);
        assert_eq!(frames[1].as_ptr(), page.as_ptr(), "the page itself");
    }
}

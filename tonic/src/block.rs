//! The memory of a message that is put together from pieces.

use bytes::Bytes;
use memmap2::MmapMut;

/// How much of the heap a message takes at first: the length in its prefix is only the peer's claim.
const FIRST: usize = 1 << 16;

/// The length from which a message is in large pages, if the system has them: it provides a large page in the time of
/// several small ones, and the unused rest of the last page is small in comparison with the message.
#[cfg(target_os = "linux")]
const LARGE: usize = 16 << 20;

/// The bytes of a message that have arrived.
///
/// A longer message is in pages of its own, which the system gets back when the message is dropped. Allocators keep
/// freed blocks: after a thousand clients reconnected at once with requests of half a megabyte, the program would hold
/// all that memory for ever.
#[derive(Debug)]
pub(crate) enum Block {
    Heap(Vec<u8>),
    /// Pages for the whole message, which the system provides as they are written to, and the number of bytes written.
    Pages(MmapMut, usize),
}

impl Default for Block {
    fn default() -> Self {
        Self::Heap(Vec::new())
    }
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Heap(bytes) => bytes.len(),
            Self::Pages(_, len) => *len,
        }
    }

    /// Adds a piece of a message that will have `whole` bytes. The piece does not go beyond these.
    pub(crate) fn extend(&mut self, piece: &[u8], whole: usize) {
        let len = self.len() + piece.len();
        if let Self::Heap(bytes) = self {
            if len > FIRST {
                // Without pages, of which a process may have a limited number, the message stays on the heap.
                if let Ok(mut pages) = MmapMut::map_anon(whole) {
                    #[cfg(target_os = "linux")]
                    if whole >= LARGE {
                        _ = pages.advise(memmap2::Advice::HugePage); // a system without them needs more time
                    }
                    pages[..bytes.len()].copy_from_slice(bytes);
                    *self = Self::Pages(pages, bytes.len());
                }
            }
        }
        match self {
            Self::Heap(bytes) => {
                if bytes.capacity() < len {
                    // Doubles from `FIRST` up to the exact length, so that a larger block takes at most twice what has
                    // arrived.
                    let capacity = whole.min((2 * bytes.len()).max(FIRST).max(len));
                    bytes.reserve_exact(capacity - bytes.len());
                }
                bytes.extend_from_slice(piece);
            }
            Self::Pages(pages, before) => {
                pages[*before..len].copy_from_slice(piece);
                *before = len;
            }
        }
    }
}

impl From<Block> for Bytes {
    fn from(block: Block) -> Self {
        match block {
            Block::Heap(bytes) => bytes.into(),
            Block::Pages(pages, len) => Self::from_owner(pages).slice(..len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_claimed_length_reserves_only_64_kib_at_first() {
        let mut block = Block::default();
        block.extend(b"abc", 1 << 30);
        let Block::Heap(bytes) = block else { panic!("little has come") };
        assert_eq!((&bytes[..], bytes.capacity()), (&b"abc"[..], FIRST));
    }

    #[test]
    fn a_long_message_is_in_pages_of_its_own() {
        let message: Vec<u8> = (0..3 * FIRST + 1).map(|at| at as u8).collect();
        for size in [1000, FIRST, 2 * FIRST, message.len()] {
            let mut block = Block::default();
            for (at, piece) in message.chunks(size).enumerate() {
                assert_eq!(block.len(), at * size);
                block.extend(piece, message.len());
                let in_pages = matches!(&block, Block::Pages(pages, _) if pages.len() == message.len());
                assert_eq!(in_pages, block.len() > FIRST, "pieces of {size}");
            }
            assert_eq!(Bytes::from(block), message, "pieces of {size}");
        }
    }

    #[test]
    fn a_short_message_is_on_the_heap() {
        let mut block = Block::default();
        block.extend(&[7; FIRST], FIRST);
        assert!(matches!(&block, Block::Heap(bytes) if bytes.capacity() == FIRST));
        assert_eq!(Bytes::from(block), vec![7; FIRST]);
    }
}

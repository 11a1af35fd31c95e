//! The listing of all keys of a prefix, page by page, as of one revision.

use bytes::{BufMut, Bytes, BytesMut};

use super::generated::{KeyValue, RangeRequest, RangeResponse, ResponseHeader};

/// The number of keys of the first page.
const PAGE: i64 = 1000;

/// The size of further pages, in bytes: large, because etcd looks at all keys of the range for each page.
const BYTES: i64 = 16 << 20;

/// The factor by which a page is at most larger, or smaller, than the page before.
const STEP: i64 = 8;

/// A listing that is being read: send each [`request`](Self::request), and give its answer to [`take`](Self::take),
/// until the listing is complete.
#[derive(Debug)]
pub struct Listing {
    first: Bytes,
    end: Bytes,
    limit: i64,
    /// The header of the first page, whose revision all further pages have.
    header: Option<ResponseHeader>,
    keys: Vec<KeyValue>,
}

/// All keys as of a revision, which is that of the header.
#[derive(Debug)]
pub struct Listed {
    pub header: ResponseHeader,
    pub keys: Vec<KeyValue>,
}

impl Listing {
    /// Begins a listing of the keys from `first` up to, but not including, `end`.
    pub fn new((first, end): (Bytes, Bytes)) -> Self {
        Self { first, end, limit: PAGE, header: None, keys: Vec::new() }
    }

    /// Returns the request of the next page.
    pub fn request(&self) -> RangeRequest {
        let key = match self.keys.last() {
            Some(last) => {
                let mut next = BytesMut::from(&last.key[..]);
                next.put_u8(0); // the first key after it
                next.freeze()
            }
            None => self.first.clone(),
        };
        let revision = self.header.map_or(0, |header| header.revision);
        RangeRequest { key, range_end: self.end.clone(), limit: self.limit, revision, keys_only: false }
    }

    /// Takes a page. Returns whether the listing is complete.
    ///
    /// # Errors
    ///
    /// If the page is not a valid answer to the request.
    pub fn take(&mut self, page: RangeResponse) -> Result<bool, String> {
        let header = page.header.ok_or("a listing without a header")?;
        if page.more && page.kvs.is_empty() {
            return Err("an empty page that is not the last".into());
        }
        let mut last = self.keys.last();
        for next in &page.kvs {
            if last.is_some_and(|last| last.key >= next.key) {
                return Err("a listing out of order".into());
            }
            last = Some(next);
        }
        self.header.get_or_insert(header);
        if page.more {
            let bytes: usize = page.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
            let fit = self.limit.saturating_mul(BYTES) / (bytes as i64).max(1);
            self.limit = fit.clamp((self.limit / STEP).max(1), self.limit.saturating_mul(STEP));
        }
        self.keys.extend(page.kvs);
        Ok(!page.more)
    }

    /// Begins again: the revision of the first page is compacted.
    pub fn begin_again(&mut self) {
        self.header = None;
        self.keys.clear();
    }

    /// Asks for smaller pages from now on, because one is too large. Returns whether a page can be smaller.
    pub fn shrink(&mut self) -> bool {
        self.limit /= 2;
        self.limit > 0
    }

    /// Returns the complete listing; `None` before the first page.
    pub fn finish(self) -> Option<Listed> {
        Some(Listed { header: self.header?, keys: self.keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(revision: i64, keys: &[&'static str], more: bool) -> RangeResponse {
        let header = Some(ResponseHeader { revision, ..ResponseHeader::default() });
        let kvs = keys.iter().map(|key| KeyValue { key: (*key).into(), ..KeyValue::default() }).collect();
        RangeResponse { header, kvs, more }
    }

    fn listing() -> Listing {
        Listing::new(("a/".into(), "a0".into()))
    }

    #[test]
    fn further_pages_are_requested_at_the_revision_of_the_first() {
        let mut listing = listing();
        assert_eq!((&listing.request().key[..], listing.request().revision), (&b"a/"[..], 0));
        assert_eq!(listing.take(page(7, &["a/1", "a/2"], true)), Ok(false));
        let next = listing.request();
        assert_eq!((&next.key[..], &next.range_end[..], next.revision), (&b"a/2\0"[..], &b"a0"[..], 7));
        assert_eq!(listing.take(page(9, &["a/3"], false)), Ok(true), "a page's header is that of now");
        let listed = listing.finish().expect("whole");
        assert_eq!((listed.header.revision, listed.keys.len()), (7, 3));
    }

    #[test]
    fn pages_grow_and_shrink_towards_a_size() {
        let mut listing = listing();
        assert_eq!(listing.take(page(7, &["a/1", "a/2"], true)), Ok(false));
        assert_eq!(listing.request().limit, 8000);
        let large = KeyValue { key: "a/3".into(), value: vec![0; 64 << 20].into(), ..KeyValue::default() };
        assert_eq!(listing.take(RangeResponse { kvs: vec![large], ..page(7, &[], true) }), Ok(false));
        assert_eq!(listing.request().limit, 1999, "a quarter of it, and the bytes of the key");
    }

    #[test]
    fn a_compacted_listing_begins_again() {
        let mut listing = listing();
        assert_eq!(listing.take(page(7, &["a/1", "a/2"], true)), Ok(false));
        listing.begin_again();
        assert_eq!((&listing.request().key[..], listing.request().revision), (&b"a/"[..], 0));
        assert_eq!(listing.take(page(9, &["a/2"], false)), Ok(true));
        let listed = listing.finish().expect("whole");
        assert_eq!((listed.header.revision, listed.keys.len()), (9, 1));
    }

    #[test]
    fn malformed_pages_are_errors_and_pages_shrink_to_one_key() {
        assert_eq!(listing().take(RangeResponse::default()), Err("a listing without a header".into()));
        assert_eq!(listing().take(page(1, &[], true)), Err("an empty page that is not the last".into()));
        let mut listing = listing();
        assert_eq!(listing.take(page(1, &["a/2"], true)), Ok(false));
        assert_eq!(listing.take(page(1, &["a/2"], true)), Err("a listing out of order".into()));
        assert!((0..12).all(|_| listing.shrink()), "from pages of 8,000 keys to those of one");
        assert!(!listing.shrink());
    }
}

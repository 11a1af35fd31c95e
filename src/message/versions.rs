//! The versions of resources that a client claims to hold, as the bytes of the request.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::{iter, str};

use bytes::Bytes;

use super::distinct::are_distinct;
use crate::name::{ResourceName, Version};
use crate::xdstp;

/// The key of `DeltaDiscoveryRequest.initial_resource_versions`.
const ENTRY: u8 = 5 << 3 | 2;
/// The keys of the fields of an entry.
const NAME: u8 = 1 << 3 | 2;
const VERSION: u8 = 2 << 3 | 2;

/// Names of resources, each with a version: the claims of the first delta request for a type
/// (`initial_resource_versions`).
///
/// The claims of a reconnecting client are the largest part of all requests, and a server reads them once. So they stay
/// encoded, a slice of the received request: no name and no version is allocated. Each name occurs once, and is in
/// its [normal form](crate::xdstp).
///
/// Two `Versions` are equal if they have the same names and versions, whatever the order in the request was.
///
/// ```
/// use xds_machine::message::{delta, delta::Versions};
/// use xds_machine::{proto, type_url};
///
/// let claims = Versions::from([("b", "2"), ("a", "1")]);
/// let request = delta::Request { initial_versions: claims.clone(), ..delta::Request::new(type_url::CLUSTER) };
///
/// let received = proto::delta::decode_request(proto::delta::encode_request(&request).into())?;
/// assert_eq!(received.initial_versions, claims);
/// assert_eq!(received.initial_versions.get("a"), Some("1"));
/// assert_eq!(received.initial_versions.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
/// # Ok::<(), proto::DecodeError>(())
/// ```
#[derive(Clone, Default)]
pub struct Versions {
    /// The entries, each with its key and length, encoded as protobuf's canonical form has it.
    entries: Bytes,
    sizes: Sizes,
}

/// The number and the lengths of names and versions: known once these are read, so that limits are checked without
/// reading them again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Sizes {
    count: usize,
    /// The bytes of all names and versions.
    pub(crate) text: usize,
    /// The length of the shortest name; zero if there is none.
    pub(crate) shortest_name: usize,
    pub(crate) longest_name: usize,
    pub(crate) longest_version: usize,
}

impl Sizes {
    /// Returns whether the lengths of all entries take one byte each.
    fn are_short(self) -> bool {
        short_len(self.longest_name) + short_len(self.longest_version) < 0x80
    }

    #[inline]
    fn add(&mut self, name: usize, version: usize) {
        self.shortest_name = if self.count == 0 { name } else { self.shortest_name.min(name) };
        self.longest_name = self.longest_name.max(name);
        self.longest_version = self.longest_version.max(version);
        self.text += name + version;
        self.count += 1;
    }
}

impl Versions {
    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.sizes.count
    }

    /// Returns whether nothing is claimed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the version of a name. Reads the names one by one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == name).map(|(_, version)| version)
    }

    /// Returns the names and versions: in the order of the request if they were received, otherwise in that of the
    /// names.
    pub fn iter(&self) -> Iter<'_> {
        let text = self.sizes.are_short().then(|| str::from_utf8(&self.entries).ok()).flatten();
        Iter { text, entries: &self.entries, rest: &self.entries, left: self.len() }
    }

    /// Returns the lengths of names and versions.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Reads the entries at the beginning of `bytes`, and returns their length. `None` if protobuf's rules for unusual
    /// encodings apply: names that occur twice, unknown fields, fields in another order; also if a name is not in its
    /// normal form.
    pub(crate) fn read(bytes: &[u8]) -> Option<(usize, Self)> {
        let (mut rest, mut sizes) = (bytes, Sizes::default());
        let (mut ascending, mut last): (bool, &[u8]) = (true, &[]);
        while rest.first() == Some(&ENTRY) {
            let (name, version) = entry(&mut rest)?;
            if !is_normal(name)? {
                return None;
            }
            ascending &= sizes.count == 0 || last < name;
            sizes.add(name.len(), version.len());
            last = name;
        }
        let entries = &bytes[..bytes.len() - rest.len()];
        let is_text = match sizes.are_short() {
            // All bytes between names and versions are ASCII, so that one check covers each of them.
            true => str::from_utf8(entries).is_ok(),
            false => {
                raw(entries).all(|(name, version)| [name, version].iter().all(|part| str::from_utf8(part).is_ok()))
            }
        };
        let good = is_text && (ascending || are_distinct(raw(entries).map(|(name, _)| name), sizes.count));
        good.then_some((entries.len(), Self { entries: Bytes::new(), sizes }))
    }

    /// Adds the entries: the bytes that [`read`](Self::read) has read.
    pub(crate) fn with_entries(self, entries: Bytes) -> Self {
        Self { entries, ..self }
    }

    /// Returns the encoded entries, in the order of the names.
    pub(crate) fn encoded(&self) -> Bytes {
        if self.iter().is_sorted() {
            return self.entries.clone();
        }
        let mut sorted: Vec<_> = self.iter().collect();
        sorted.sort_unstable();
        encode(sorted.into_iter()).entries
    }

    /// Returns the versions of all other names.
    pub(crate) fn without(&self, name: &str) -> Self {
        encode(self.iter().filter(|(other, _)| *other != name))
    }
}

/// Returns whether a name is in its normal form; `None` if it is structured and not UTF-8.
#[inline]
fn is_normal(name: &[u8]) -> Option<bool> {
    if !xdstp::is_structured(name) {
        return Some(true);
    }
    let name = str::from_utf8(name).ok()?;
    Some(xdstp::normal(name) == name)
}

/// Returns the names and versions of encoded entries.
fn raw(mut entries: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    iter::from_fn(move || entry(&mut entries))
}

/// Reads an entry.
#[inline]
fn entry<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut entry = field(ENTRY, rest)?;
    let name = part(NAME, &mut entry)?;
    let version = part(VERSION, &mut entry)?;
    entry.is_empty().then_some((name, version))
}

/// Returns the length of a field of an entry including its key and length, if the length takes one byte.
#[inline]
fn short_len(len: usize) -> usize {
    if len == 0 { 0 } else { 2 + len }
}

/// Reads a field of an entry, which is left out if and only if it is empty.
#[inline]
fn part<'a>(key: u8, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    match rest.first() {
        Some(first) if *first == key => field(key, rest).filter(|part| !part.is_empty()),
        _ => Some(&[]),
    }
}

/// Reads a field with a length.
#[inline]
fn field<'a>(key: u8, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&first, mut after) = rest.split_first()?;
    let (&byte, tail) = after.split_first().filter(|_| first == key)?;
    let len = match byte {
        0..0x80 => {
            after = tail;
            usize::from(byte)
        }
        _ => long_len(&mut after)?,
    };
    let (field, tail) = after.split_at_checked(len)?;
    *rest = tail;
    Some(field)
}

/// Reads a length of several bytes; `None` if fewer bytes would do.
fn long_len(rest: &mut &[u8]) -> Option<usize> {
    let mut len = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        len |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(len).filter(|_| byte != 0);
        }
    }
    None
}

/// Encodes distinct names and their versions.
fn encode<'a>(versions: impl Iterator<Item = (&'a str, &'a str)>) -> Versions {
    let (mut entries, mut sizes) = (Vec::new(), Sizes::default());
    for (name, version) in versions {
        let len_of = |part: &str| if part.is_empty() { 0 } else { 1 + len_of_len(part.len()) + part.len() };
        entries.push(ENTRY);
        put_len(&mut entries, len_of(name) + len_of(version));
        for (key, part) in [(NAME, name), (VERSION, version)] {
            if !part.is_empty() {
                entries.push(key);
                put_len(&mut entries, part.len());
                entries.extend_from_slice(part.as_bytes());
            }
        }
        sizes.add(name.len(), version.len());
    }
    Versions { entries: entries.into(), sizes }
}

fn len_of_len(len: usize) -> usize {
    1 + len.checked_ilog2().unwrap_or_default() as usize / 7
}

fn put_len(to: &mut Vec<u8>, mut len: usize) {
    while len > 0x7f {
        to.push(len as u8 | 0x80);
        len >>= 7;
    }
    to.push(len as u8);
}

/// The names and versions of [`Versions`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    /// All entries as text, if their names and versions are short: slices of this text need no check of their own.
    text: Option<&'a str>,
    entries: &'a [u8],
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (name, version) = entry(&mut self.rest)?;
        // The entry was checked when it was read, so the fallbacks are never used.
        let Some(text) = self.text else {
            let checked = |bytes| str::from_utf8(bytes).unwrap_or_default();
            return Some((checked(name), checked(version)));
        };
        let end = self.entries.len() - self.rest.len();
        let before = end - short_len(version.len());
        let part = |end: usize, len| text.get(end - len..end).unwrap_or_default();
        Some((part(before, name.len()), part(end, version.len())))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Versions {
    type Item = (&'a str, &'a str);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl From<BTreeMap<ResourceName, Version>> for Versions {
    fn from(versions: BTreeMap<ResourceName, Version>) -> Self {
        encode(versions.iter().map(|(name, version)| (name.as_str(), version.as_str())))
    }
}

impl From<&Versions> for BTreeMap<ResourceName, Version> {
    fn from(versions: &Versions) -> Self {
        versions.iter().map(|(name, version)| (name.into(), version.into())).collect()
    }
}

impl<N: Into<ResourceName>, V: Into<Version>> FromIterator<(N, V)> for Versions {
    /// Of a name that occurs more than once, the last version counts.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(versions: I) -> Self {
        let versions = versions.into_iter().map(|(name, version)| (name.into(), version.into()));
        versions.collect::<BTreeMap<ResourceName, Version>>().into()
    }
}

impl<N: Into<ResourceName>, V: Into<Version>, const COUNT: usize> From<[(N, V); COUNT]> for Versions {
    fn from(versions: [(N, V); COUNT]) -> Self {
        versions.into_iter().collect()
    }
}

impl PartialEq for Versions {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries || (self.sizes == other.sizes && self.encoded() == other.encoded())
    }
}

impl Eq for Versions {}

impl Hash for Versions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encoded().hash(state);
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<_> = self.iter().collect();
        sorted.sort_unstable();
        f.debug_map().entries(sorted).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn read(bytes: &[u8]) -> Option<Versions> {
        let (len, versions) = Versions::read(bytes)?;
        Some(versions.with_entries(Bytes::copy_from_slice(&bytes[..len])))
    }

    #[test]
    fn encoded_versions_read_back() {
        let long = "x".repeat(300);
        let made = Versions::from([("b", ""), (long.as_str(), "2"), ("a", &long), ("", "3"), ("b", "1")]);
        let all = [("", "3"), ("a", long.as_str()), ("b", "1"), (&long, "2")];
        assert_eq!(made.iter().collect::<Vec<_>>(), all);
        let sizes = Sizes { count: 4, text: 605, shortest_name: 0, longest_name: 300, longest_version: 300 };
        assert_eq!((made.len(), made.sizes()), (4, sizes));
        assert_eq!((made.get("b"), made.get("c")), (Some("1"), None));
        assert_eq!(read(&made.entries), Some(made.clone()));
        assert_eq!(made.without(&long), [("a", long.as_str()), ("b", "1"), ("", "3")].into());
    }

    #[test]
    fn versions_are_equal_in_any_order() {
        let (a, b) = (Versions::from([("a", "1")]), Versions::from([("b", "2")]));
        let both = read(&[&b.entries[..], &a.entries[..]].concat()).expect("distinct names");
        assert_eq!(both.iter().collect::<Vec<_>>(), [("b", "2"), ("a", "1")]);
        assert_eq!(both, [("a", "1"), ("b", "2")].into());
        assert_ne!(both, [("a", "2"), ("b", "2")].into());
        assert_eq!(format!("{both:?}"), r#"{"a": "1", "b": "2"}"#);
        assert_eq!(both.encoded(), [&a.entries[..], &b.entries[..]].concat());
    }

    #[test]
    fn multi_byte_names_and_versions_are_split_at_their_boundary() {
        let long = "\u{20ac}".repeat(40);
        for version in ["", "\u{e9}", "1", long.as_str()] {
            let made = Versions::from([("\u{e9}", version), ("\u{20ac}", "\u{e9}"), ("n", version)]);
            let all = [("n", version), ("\u{e9}", version), ("\u{20ac}", "\u{e9}")];
            assert_eq!(made.iter().collect::<Vec<_>>(), all);
            assert_eq!(read(&made.entries), Some(made));
        }
        let is_short =
            |name: usize, version: usize| Versions::from([("x".repeat(name), "y".repeat(version))]).sizes().are_short();
        assert_eq!(
            [is_short(100, 23), is_short(100, 24), is_short(125, 0), is_short(126, 0)],
            [true, false, true, false]
        );
    }

    #[test]
    fn unusual_encodings_are_not_read_in_place() {
        let a = Versions::from([("a", "1")]).entries;
        let unusual: [&[u8]; 13] = [
            &[a.clone(), Versions::from([("b", "1")]).entries, a.clone()].concat(), // twice
            &[&a[..], &a[..]].concat(),                                             // twice, one after the other
            &[0x2a, 6, 0x12, 1, b'1', 0x0a, 1, b'a'],                               // the version first
            &[0x2a, 5, 0x0a, 1, b'a', 0x12, 0],                                     // an empty version
            &[0x2a, 5, 0x0a, 1, b'a', 0x18, 0],                                     // an unknown field
            &[0x2a, 6, 0x0a, 1, b'a', 0x0a, 1, b'b'],                               // two names
            &[0x2a, 0x83, 0, 0x0a, 1, b'a'],                                        // a length that is too long
            &[0x2a, 3, 0x0a, 1, 0xff],                                              // not UTF-8
            &[0x2a, 6, 0x0a, 1, 0xc3, 0x12, 1, 0xa9],                               // only both together are UTF-8
            &[&[0x2a, 0x81, 1, 0x0a, 0x7f], &[0xff; 127][..]].concat(),             // long, and not UTF-8
            &[0x2a, 4, 0x0a, 1, b'a'],                                              // too short
            &[0x2a],                                                                // no length
            &[&[0x2a, 23, 0x0a, 21], &b"xdstp://a/T/x?b=2&a=1"[..]].concat(),       // not normal
        ];
        for bytes in unusual {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
        assert_eq!(read(&[&a[..], &[0x32, 0]].concat()), Some([("a", "1")].into()), "another field ends it");
    }

    #[test]
    fn names_and_versions_with_one_and_two_byte_lengths_read_back() {
        for len in 100..150 {
            let long = "x".repeat(len);
            for entry in [(long.as_str(), "1"), ("a", long.as_str())] {
                let made = Versions::from([entry]);
                assert_eq!(read(&made.entries), Some(made.clone()), "{len}");
            }
        }
    }

    #[test]
    fn the_iterator_knows_the_number_of_remaining_entries() {
        assert_eq!(Versions::default().iter().size_hint(), (0, Some(0)));
        let nameless = Versions::from([("", "")]);
        assert_eq!((read(&nameless.entries), nameless.iter().len()), (Some(nameless.clone()), 1));
        let three = Versions::from([("a", "1"), ("b", "2"), ("c", "")]);
        assert_eq!((three.iter().size_hint(), three.iter().skip(1).len()), ((3, Some(3)), 2));
    }
}

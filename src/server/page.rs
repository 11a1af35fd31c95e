//! Pages: resources that are encoded together, once for all streams.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use super::encoding::Encoding;
use super::resource::Resource;
use crate::name::TypeUrl;
use crate::wire::Writer;

/// Some hundred resources that are encoded together, once for all streams of a variant. Cheap to clone.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Page(Arc<Inner>);

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Inner {
    resources: Vec<Resource>,
    /// Encodings by the number of the variant.
    encoded: [Option<Bytes>; 2],
}

impl Page {
    /// Creates a page that is encoded each time it is sent.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self(Arc::new(Inner { resources, encoded: [None, None] }))
    }

    /// Encodes the page now for a [`Variant`](super::Variant), once and for all. (A page with a TTL resource stays
    /// unencoded, because its encoding depends on the client.)
    #[must_use]
    pub fn encoded<V: Encoding>(self, type_url: &TypeUrl) -> Self {
        if self.0.encoded[V::NUMBER].is_some() {
            return self;
        }
        let mut room = Budget::default();
        self.resources().iter().for_each(|resource| room.add(resource));
        let bytes = encode::<V>(self.resources(), room, type_url);
        let mut inner = Arc::unwrap_or_clone(self.0);
        inner.encoded[V::NUMBER] = bytes;
        Self(Arc::new(inner))
    }

    /// Creates a page of these resources, at most `count`, encoded for a variant.
    pub(super) fn of<'a, V: Encoding>(
        resources: impl Iterator<Item = &'a Resource>,
        count: usize,
        type_url: &TypeUrl,
    ) -> Self {
        let (mut list, mut room) = (Vec::with_capacity(count), Budget::default());
        for resource in resources {
            room.add(resource);
            list.push(resource.clone());
        }
        let mut encoded = [None, None];
        encoded[V::NUMBER] = encode::<V>(&list, room, type_url);
        Self(Arc::new(Inner { resources: list, encoded }))
    }

    /// Returns the resources of the page, in their order.
    pub fn resources(&self) -> &[Resource] {
        &self.0.resources
    }

    /// Returns the bytes of all encodings of the page.
    pub fn encoded_bytes(&self) -> usize {
        self.0.encoded.iter().flatten().map(Bytes::len).sum()
    }

    /// Returns an upper bound for the bytes of the page in a delta response.
    pub(super) fn delta_len(&self, type_url: &TypeUrl) -> usize {
        match &self.0.encoded[1] {
            Some(bytes) => bytes.len(),
            None => self.resources().iter().map(|resource| resource.element(type_url).delta_len()).sum(),
        }
    }

    pub(super) fn bytes<V: Encoding>(&self) -> Option<&Bytes> {
        self.0.encoded[V::NUMBER].as_ref()
    }
}

/// Bytes of resources apart from their type URL, keys and lengths.
#[derive(Clone, Copy, Default)]
struct Budget {
    bytes: usize,
    ttl: bool,
}

impl Budget {
    #[inline]
    fn add(&mut self, resource: &Resource) {
        self.bytes += resource.name().as_str().len() + resource.version().as_bytes().len() + resource.body().len();
        self.ttl |= resource.ttl().is_some();
    }
}

/// Encodes resources; `None` if one of them has a TTL.
fn encode<V: Encoding>(resources: &[Resource], room: Budget, type_url: &TypeUrl) -> Option<Bytes> {
    const HEADS: usize = 20; // few elements have longer ones
    if room.ttl {
        return None;
    }
    let mut bytes = Vec::with_capacity(room.bytes + resources.len() * (type_url.as_str().len() + HEADS));
    let to = &mut Writer::append(&mut bytes);
    resources.iter().for_each(|resource| V::put_page_element(&resource.element(type_url), to));
    bytes.shrink_to_fit();
    Some(bytes.into())
}

//! The encoding of a response in a variant of the protocol.

use super::resource::Resource;
use crate::wire::{Element, Writer};

/// The part of [`Variant`](super::Variant) that encodes responses, for internal use.
#[allow(unnameable_types)] // as `Protocol` is
pub trait Encoding {
    /// Index of the variant: 0 or 1.
    const NUMBER: usize;

    /// Field number of `control_plane` in the response.
    const CONTROL_PLANE: u8;

    /// Field number of `resource_errors`.
    const ERRORS: u8;

    /// Writes a resource that has no TTL.
    fn put_page_element(element: &Element<'_>, to: &mut Writer<'_>);

    fn element_len(ttl: bool, piece: Piece<'_>, element: &Element<'_>) -> usize;

    fn put_element(ttl: bool, piece: Piece<'_>, element: &Element<'_>, to: &mut Writer<'_>);
}

/// A resource of a response, with its content or as a heartbeat.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    pub(super) resource: &'a Resource,
    pub(super) heartbeat: bool,
}

impl Piece<'_> {
    /// Returns whether a SotW response has to wrap the resource.
    pub(super) fn is_wrapped(self, ttl: bool) -> bool {
        ttl && (self.heartbeat || self.resource.ttl().is_some())
    }
}

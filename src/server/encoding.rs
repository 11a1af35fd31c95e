//! How a variant of the protocol encodes a response.

use super::resource::Resource;
use crate::wire::{Element, Writer};

/// The part of [`Variant`](super::Variant) that says how a response is encoded, which nobody outside needs.
#[allow(unnameable_types)] // as `Protocol` is
pub trait Encoding {
    /// Tells the variants apart: 0 or 1.
    const NUMBER: usize;

    /// The field of `control_plane` in the response.
    const CONTROL_PLANE: u8;

    /// The field of `resource_errors`.
    const ERRORS: u8;

    /// Writes a resource that has no TTL.
    fn put_page_element(element: &Element<'_>, to: &mut Writer<'_>);

    fn element_len(ttl: bool, piece: Piece<'_>, element: &Element<'_>) -> usize;

    fn put_element(ttl: bool, piece: Piece<'_>, element: &Element<'_>, to: &mut Writer<'_>);
}

/// A resource of a response, and whether the response has its content or is a heartbeat.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    pub(super) resource: &'a Resource,
    pub(super) heartbeat: bool,
}

impl Piece<'_> {
    /// Whether a SotW response has to wrap it.
    pub(super) fn is_wrapped(self, ttl: bool) -> bool {
        ttl && (self.heartbeat || self.resource.ttl().is_some())
    }
}

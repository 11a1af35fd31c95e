//! A response as a view of shared resources, which iterates as resources and encodes as chunks.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter;
use core::marker::PhantomData;

use bytes::{BufMut, Bytes};

use super::encoding::{Encoding, Piece};
use super::parts::{Part, Parts};
use super::resource::Resource;
use crate::message::Any;
use crate::message::{self, ResourceError};
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};
use crate::revision::Revision;
use crate::variant::{Delta, Sotw};
use crate::wire::{Element, Envelope, Writer};

/// A response to send: a view of resources that all streams share. The view iterates as resources and encodes as
/// chunks, and never builds a list of all of them. `V` is a [`Variant`](super::Variant).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Response<V> {
    pub(super) type_url: TypeUrl,
    pub(super) version: Version,
    pub(super) revision: Revision,
    pub(super) nonce: Nonce,
    pub(super) parts: Parts,
    pub(super) removed: Vec<ResourceName>,
    pub(super) errors: Vec<ResourceError>,
    pub(super) control_plane: Option<Arc<str>>,
    /// Whether the client supports TTLs.
    pub(super) ttl: bool,
    pub(super) variant: PhantomData<V>,
}

impl<V: Encoding> Response<V> {
    /// Returns the type of the resources.
    pub fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Returns the version of the type as a whole (in delta `system_version_info`, for debugging).
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Returns the revision of the source up to which the client is served: every subscribed change of this type up to
    /// it is in this response or was sent before. [`Action::Ack`](super::Action::Ack) and
    /// [`Action::Nack`](super::Action::Nack) have the revision of their response.
    ///
    /// Deferred removals, and the rest of an answer that is sent in [portions](super::ResponseLimit), follow later. A
    /// client that is not concerned by a change is sent no response; [`Server::delivery`](super::Server::delivery)
    /// returns what it has accepted of one resource.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the nonce, which identifies the response on its stream.
    pub fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// Returns the resources that the response contains.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.parts.iter().flat_map(Part::resources)
    }

    /// Returns the number of [`resources`](Self::resources). The cost grows with the number of pages, not of resources.
    pub fn resource_count(&self) -> usize {
        self.parts.iter().map(|part| part.resources().len()).sum()
    }

    /// Returns the names that are announced as not existing by an alias without content, as VHDS requires (delta
    /// only; see [`ResourceType::with_heartbeats`](crate::resource_type::ResourceType::with_heartbeats)).
    pub fn not_found(&self) -> impl Iterator<Item = &ResourceName> {
        self.parts.iter().filter_map(Part::not_found)
    }

    /// Returns the names of removed resources (delta only).
    pub fn removed(&self) -> &[ResourceName] {
        &self.removed
    }

    /// Returns the errors of resources that the server cannot deliver (cncf/xds TP3).
    pub fn errors(&self) -> &[ResourceError] {
        &self.errors
    }

    /// Returns the length of the encoded message in bytes.
    pub fn encoded_len(&self) -> usize {
        let envelope = self.envelope();
        let parts: usize = self.parts.iter().map(|part| self.part_len(part)).sum();
        envelope.head_len() + parts + envelope.tail_len()
    }

    /// Returns the encoded message in pieces, to be sent one after the other. Pages that are already encoded are not
    /// copied: the cost grows with the number of pages, not of resources.
    pub fn chunks(&self) -> impl Iterator<Item = Bytes> {
        let (mut parts, mut head, mut tail) = (&*self.parts, true, true);
        iter::from_fn(move || {
            let run = parts.iter().take_while(|part| part.bytes::<V>().is_none()).count();
            let (own, rest) = parts.split_at(run);
            if let (false, [], Some((page, rest))) = (head, own, rest.split_first()) {
                parts = rest;
                return page.bytes::<V>().cloned();
            }
            let ends = rest.is_empty() && tail;
            if own.is_empty() && !head && !ends {
                return None;
            }
            let envelope = self.envelope();
            let mut len = own.iter().map(|part| self.part_len(part)).sum::<usize>();
            len += if head { envelope.head_len() } else { 0 };
            len += if ends { envelope.tail_len() } else { 0 };
            let chunk = Writer::fill(len, |to| {
                if head {
                    envelope.put_head(to);
                }
                for part in own {
                    for (piece, element) in self.pieces(part) {
                        V::put_element(self.ttl, piece, &element, to);
                    }
                }
                if ends {
                    envelope.put_tail(to);
                }
            });
            (parts, head, tail) = (rest, false, tail && !ends);
            Some(chunk.into())
        })
    }

    /// Appends the encoded message to a buffer.
    pub fn encode(&self, to: &mut impl BufMut) {
        self.chunks().for_each(|chunk| to.put(chunk));
    }

    fn part_len(&self, part: &Part) -> usize {
        match part.bytes::<V>() {
            Some(page) => page.len(),
            None => self.pieces(part).map(|(piece, element)| V::element_len(self.ttl, piece, &element)).sum(),
        }
    }

    fn pieces<'a>(&'a self, part: &'a Part) -> impl Iterator<Item = (Piece<'a>, Element<'a>)> {
        let (heartbeat, not_found) = (matches!(part, Part::Heartbeat(_)), matches!(part, Part::NotFound(_)));
        part.elements().map(move |resource| {
            let mut element = resource.element(&self.type_url);
            if heartbeat {
                element.aliases = &[]; // with aliases it would announce that they stand for nothing
            }
            if heartbeat || not_found {
                element.body = None;
            }
            if !self.ttl {
                element.ttl = None;
            }
            (Piece { resource, heartbeat }, element)
        })
    }

    fn envelope(&self) -> Envelope<'_> {
        Envelope {
            version: &self.version,
            type_url: &self.type_url,
            nonce: &self.nonce,
            removed: &self.removed,
            control_plane: self.control_plane.as_deref().unwrap_or_default(),
            control_plane_field: V::CONTROL_PLANE,
            errors: &self.errors,
            errors_field: V::ERRORS,
        }
    }

    fn message_resources(&self) -> impl Iterator<Item = (Piece<'_>, crate::message::Resource)> {
        self.parts.iter().flat_map(|part| self.pieces(part)).map(|(piece, element)| {
            let body = element
                .body
                .map(|(type_url, _)| Any { type_url: type_url.clone(), value: piece.resource.body().clone() });
            let resource = crate::message::Resource {
                name: element.name.clone(),
                version: element.version.clone(),
                aliases: element.aliases.to_vec(),
                body,
                ttl: element.ttl,
            };
            (piece, resource)
        })
    }

    fn control_plane(&self) -> alloc::string::String {
        self.control_plane.as_deref().unwrap_or_default().into()
    }
}

impl From<&Response<Sotw>> for message::sotw::Response {
    /// Converts the response to a message, for a client in the same process.
    fn from(response: &Response<Sotw>) -> Self {
        let items = response.message_resources().filter_map(|(piece, resource)| {
            if piece.is_wrapped(response.ttl) {
                Some(message::sotw::Item::Wrapped(resource.into()))
            } else {
                resource.body.map(message::sotw::Item::Bare)
            }
        });
        Self {
            version: response.version.clone(),
            resources: items.collect(),
            type_url: response.type_url.clone(),
            nonce: response.nonce.clone(),
            control_plane: response.control_plane(),
            errors: response.errors.clone(),
        }
    }
}

impl From<&Response<Delta>> for message::delta::Response {
    /// Converts the response to a message, for a client in the same process.
    fn from(response: &Response<Delta>) -> Self {
        Self {
            system_version: response.version.clone(),
            resources: response.message_resources().map(|(_, resource)| resource).collect(),
            removed: response.removed.clone(),
            type_url: response.type_url.clone(),
            nonce: response.nonce.clone(),
            control_plane: response.control_plane(),
            errors: response.errors.clone(),
        }
    }
}

impl<V: Encoding> Relabel for Response<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.nonce.relabel(by);
        self.revision.relabel(by);
    }
}

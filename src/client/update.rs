//! Updates for the application to judge, and verdicts, which only an update can create.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt::Display;

use twox_hash::XxHash3_128;

use super::guard::Guard;
use super::resources::{Resource, Resources};
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

/// New state of one type, for the application to validate and apply. Both variants have the same shape.
///
/// Only consuming the update creates a [`Verdict`], so that no response is answered twice or with the verdict on
/// another. The type's later responses wait for the verdict, [merged](crate::manual::slow).
///
/// ```
/// # use xds_machine::client::{Update, Verdict};
/// fn apply(update: Update) -> Verdict {
///     update.check(|resource| if resource.body().is_empty() { Err("no content") } else { Ok(()) })
/// }
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "every update needs a verdict, or the type hears nothing more"]
pub struct Update {
    pub(super) token: Token,
    pub(super) offer: Arc<Offer>,
}

/// The identity of the response that a verdict answers.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Token {
    pub(super) client: u64,
    pub(super) type_url: TypeUrl,
    pub(super) epoch: u64,
    /// The number of the response, which keeps updates apart if a server repeats a nonce.
    pub(super) serial: u64,
    pub(super) nonce: Nonce,
    pub(super) guard: Guard,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Offer {
    pub(super) resources: Resources,
    pub(super) removed: Vec<ResourceName>,
    pub(super) drops_rejected: bool,
    pub(super) all_fails: bool,
    pub(super) all_answered: bool,
}

impl Update {
    /// Returns the ID of the client that emitted the update: [`Config::with_id`](super::Config::with_id).
    pub fn client_id(&self) -> u64 {
        self.token.client
    }

    /// Returns the type of the resources.
    pub fn type_url(&self) -> &TypeUrl {
        &self.token.type_url
    }

    /// Returns the version of the response (in delta `system_version_info`, for debugging).
    pub fn version(&self) -> &Version {
        self.offer.resources.version()
    }

    /// Returns the nonce of the response.
    pub fn nonce(&self) -> &Nonce {
        &self.token.nonce
    }

    /// Returns the new or changed resources (in SotW some may be unchanged) that the subscriptions cover, in the order
    /// of their names, each once.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = Resource<'_>> {
        self.offer.resources.iter()
    }

    /// Returns the resource with this name.
    pub fn resource(&self, name: impl Into<ResourceName>) -> Option<Resource<'_>> {
        self.offer.resources.find(name.into().as_str()).map(|at| self.offer.resources.at(at))
    }

    /// Returns the names of removed resources, which the application was given before, in order.
    pub fn removed(&self) -> &[ResourceName] {
        &self.offer.removed
    }

    /// Returns whether the application has to drop the held content of a resource that it rejects, instead of keeping
    /// it in use ([`DataErrors::Drop`](super::DataErrors::Drop)). The machine then counts the resource as not held.
    pub fn drops_rejected(&self) -> bool {
        self.offer.drops_rejected
    }

    /// Returns whether the server still reports an error of the collection as a whole ([`WILDCARD`](crate::WILDCARD)),
    /// which a response may have beside content. Otherwise, the update ends any earlier error of this kind.
    pub fn has_collection_error(&self) -> bool {
        self.offer.all_fails
    }

    /// Returns whether the server has answered the wildcard, by this response or an earlier one: with this update, the
    /// application has been given all resources that the server has. False if the wildcard is not subscribed to. A
    /// server that splits its answer into several responses does not say which is the last: the first counts.
    pub fn answers_wildcard(&self) -> bool {
        self.offer.all_answered
    }

    /// Returns a hash of the names, contents and TTLs of the resources: updates of one type with equal hashes have
    /// equal content, whatever their versions.
    pub(crate) fn fingerprint(&self) -> u128 {
        let mut hash = 0;
        for resource in self.resources() {
            let ttl = resource.ttl().map_or(0, |ttl| ttl.as_nanos() as u64);
            let name = XxHash3_128::oneshot_with_seed(ttl, resource.name().as_str().as_bytes());
            let both = [name.to_le_bytes(), XxHash3_128::oneshot(resource.body()).to_le_bytes()];
            hash = XxHash3_128::oneshot(both.as_flattened()).wrapping_add(hash);
        }
        hash
    }

    /// Keeps a value of the driver alive as long as this update, its clones and their verdicts are: a driver whose value
    /// is dropped learns that no verdict will come. The value is no part of the update: updates with different values
    /// are equal.
    pub fn guarded_by(mut self, value: Arc<dyn Any + Send + Sync>) -> Self {
        self.token.guard = Guard::new(value);
        self
    }

    /// Accepts the complete update; the response is answered with an ACK.
    pub fn accept(self) -> Verdict {
        Verdict { token: self.token, rejections: Vec::new() }
    }

    /// Rejects these resources and accepts the others (gRFC A46); the response is answered with a NACK, or with an ACK
    /// if there are no rejections.
    pub fn reject(self, rejections: impl IntoIterator<Item = Rejection>) -> Verdict {
        Verdict { token: self.token, rejections: rejections.into_iter().collect() }
    }

    /// Rejects the complete update for one reason; the response is answered with a NACK.
    pub fn reject_all(self, reason: impl Into<String>) -> Verdict {
        let reason = reason.into();
        let all = self.offer.resources.names().chain(&self.offer.removed);
        let rejections = all.map(|name| Rejection::new(name.clone(), reason.clone())).collect();
        Verdict { token: self.token, rejections }
    }

    /// Rejects the resources for which `check` fails, and accepts the others.
    pub fn check<E: Display>(self, mut check: impl FnMut(Resource<'_>) -> Result<(), E>) -> Verdict {
        let failed = |resource: Resource<'_>| {
            check(resource).err().map(|error| Rejection::new(resource.name().clone(), error.to_string()))
        };
        let rejections = self.offer.resources.iter().filter_map(failed).collect();
        Verdict { token: self.token, rejections }
    }
}

/// The application's decision on an update, for [`Client::handle_verdict`](super::Client::handle_verdict).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "a verdict does nothing until the machine has it"]
pub struct Verdict {
    pub(super) token: Token,
    pub(super) rejections: Vec<Rejection>,
}

impl Verdict {
    /// Returns the ID of the client that the verdict is for: [`Config::with_id`](super::Config::with_id).
    pub fn client_id(&self) -> u64 {
        self.token.client
    }

    /// Returns the type of the update.
    pub fn type_url(&self) -> &TypeUrl {
        &self.token.type_url
    }

    /// Returns the rejections, which are empty if the update was accepted.
    pub fn rejections(&self) -> &[Rejection] {
        &self.rejections
    }
}

/// A resource that is not applied, with the reason, which is sent to the server in `error_detail`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Rejection {
    /// The name of the resource, or `None` if the name is unknown.
    pub name: Option<ResourceName>,
    /// The reason, worded for the operator of the server. Becomes part of `error_detail.message`.
    pub reason: String,
}

impl Rejection {
    /// Rejects a resource by its name. A name in the update's [`removed`](Update::removed) is then not removed, unless
    /// the resource was subscribed to by an alias that now stands for another resource.
    pub fn new(name: impl Into<ResourceName>, reason: impl Into<String>) -> Self {
        Self { name: Some(name.into()), reason: reason.into() }
    }

    /// Creates a rejection that belongs to no resource.
    pub(crate) fn nameless(reason: impl Into<String>) -> Self {
        Self { name: None, reason: reason.into() }
    }
}

impl Relabel for Update {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.token.relabel(by);
    }
}

impl Relabel for Verdict {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.token.relabel(by);
    }
}

impl Relabel for Token {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        by(Label::Client(self.client));
        by(Label::Epoch(&mut self.epoch));
        by(Label::Response(&self.type_url, &mut self.serial));
        self.nonce.relabel(by);
    }
}

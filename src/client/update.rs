//! An update, which the application judges, and the verdict, which only an update can make.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;

use super::resources::{Resource, Resources};
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version};

/// New state of one type, for the application to validate and apply. The same shape for both variants.
///
/// The only way to a [`Verdict`] is to consume the update, so that no response is answered twice or with the
/// answer of another. Until the verdict the type's next response waits.
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

/// Which response of which stream a verdict answers.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Token {
    pub(super) client: u64,
    pub(super) type_url: TypeUrl,
    pub(super) epoch: u64,
    /// Counts the type's responses, so that a server that repeats a nonce does not make two updates one.
    pub(super) serial: u64,
    pub(super) nonce: Nonce,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Offer {
    pub(super) resources: Resources,
    pub(super) removed: Vec<ResourceName>,
    pub(super) drops_rejected: bool,
    pub(super) all_fails: bool,
}

impl Update {
    /// Which client it is of: [`Config::with_id`](super::Config::with_id).
    pub fn client_id(&self) -> u64 {
        self.token.client
    }

    /// The type of the resources.
    pub fn type_url(&self) -> &TypeUrl {
        &self.token.type_url
    }

    /// The version of the response (in delta `system_version_info`, for debugging).
    pub fn version(&self) -> &Version {
        self.offer.resources.version()
    }

    /// The nonce of the response.
    pub fn nonce(&self) -> &Nonce {
        &self.token.nonce
    }

    /// What is new or changed, or in SotW may be: in the order of the names, each once, and only what is wanted.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = Resource<'_>> {
        self.offer.resources.iter()
    }

    /// The resource of this name.
    pub fn resource(&self, name: impl Into<ResourceName>) -> Option<Resource<'_>> {
        self.offer.resources.find(name.into().as_str()).map(|at| self.offer.resources.at(at))
    }

    /// What is gone: names that the application was given before, in order.
    pub fn removed(&self) -> &[ResourceName] {
        &self.offer.removed
    }

    /// Whether the application is to drop what it has of a resource that it rejects, and not to go on with it
    /// ([`DataErrors::Drop`](super::DataErrors::Drop)). The machine counts it as not held then.
    pub fn drops_rejected(&self) -> bool {
        self.offer.drops_rejected
    }

    /// Whether the server still reports an error of everything ([`WILDCARD`](crate::WILDCARD)): a response may have one
    /// beside content. Otherwise that there is an update says that it is over.
    pub fn has_collection_error(&self) -> bool {
        self.offer.all_fails
    }

    /// All of it is applied: the answer is an ACK.
    pub fn accept(self) -> Verdict {
        Verdict { token: self.token, rejections: Vec::new() }
    }

    /// These resources are not applied, the others are (gRFC A46): the answer is a NACK. With no rejections it is
    /// an ACK.
    pub fn reject(self, rejections: impl IntoIterator<Item = Rejection>) -> Verdict {
        Verdict { token: self.token, rejections: rejections.into_iter().collect() }
    }

    /// None of it is applied, for one reason: the answer is a NACK.
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

/// What became of an update. Goes back with [`Client::handle_verdict`](super::Client::handle_verdict).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "a verdict does nothing until the machine has it"]
pub struct Verdict {
    pub(super) token: Token,
    pub(super) rejections: Vec<Rejection>,
}

impl Verdict {
    /// Which client it is for: [`Config::with_id`](super::Config::with_id).
    pub fn client_id(&self) -> u64 {
        self.token.client
    }

    /// The type of the update.
    pub fn type_url(&self) -> &TypeUrl {
        &self.token.type_url
    }

    /// What was rejected; nothing if the update was accepted.
    pub fn rejections(&self) -> &[Rejection] {
        &self.rejections
    }
}

/// One resource that is not applied, and why. The reason goes to the server in `error_detail`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Rejection {
    /// The resource; `None` if it can't be told which one.
    pub name: Option<ResourceName>,
    /// The reason, in words for the operator of the server. It goes into `error_detail.message`.
    pub reason: String,
}

impl Rejection {
    /// Rejects a resource by its name. A name that is in the update's [`removed`](Update::removed) is not removed, unless it
    /// was wanted by an alias that stands for something else now.
    pub fn new(name: impl Into<ResourceName>, reason: impl Into<String>) -> Self {
        Self { name: Some(name.into()), reason: reason.into() }
    }

    /// Something is wrong that belongs to no resource.
    pub(super) fn nameless(reason: impl Into<String>) -> Self {
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

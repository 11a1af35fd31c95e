//! The interface of one type for a layer above the client: resources from elsewhere, lost resources, and blocked
//! updates.

use alloc::vec::Vec;
use core::time::Duration;

use super::variant::{Of, Variant};
use super::{Client, find};
use crate::name::{ResourceName, TypeUrl, Version};
use crate::time::Instant;

impl<V: Variant> Client<V> {
    /// Returns a view of one type for a layer above the client.
    pub fn layer(&self, type_url: &TypeUrl) -> Layer<'_, V> {
        Layer { of: self.of_type(type_url) }
    }

    /// Returns a handle to one type for a layer above the client, such as [`Servers`](crate::servers::Servers), which
    /// combines several clients of one application. An application with one client needs the handle only if it can lose
    /// held resources ([`forget`](LayerMut::forget)).
    pub fn layer_mut<'a>(&'a mut self, type_url: &'a TypeUrl) -> LayerMut<'a, V> {
        LayerMut { client: self, type_url }
    }
}

/// A view of one type for layers, returned by [`Client::layer`].
#[derive(Clone, Debug)]
pub struct Layer<'a, V: Variant> {
    /// `None` if the type was never subscribed to.
    of: Option<&'a Of<V>>,
}

impl<'a, V: Variant> Layer<'a, V> {
    /// Returns the resources of this type that the application has, as far as this client knows, in the order of their
    /// names, each with its expiry if it has a TTL.
    pub fn held(&self) -> impl Iterator<Item = (&'a ResourceName, Option<Instant>)> + use<'a, V> {
        self.of.into_iter().flat_map(|of| of.holdings.held().keys().map(|name| (name, of.holdings.expiry(name))))
    }

    /// Returns the aliases by which a held resource is subscribed to.
    pub fn aliases(&self, name: &ResourceName) -> impl Iterator<Item = &'a ResourceName> + use<'a, V> {
        self.of.map(|of| of.holdings.bindings().aliases(name.as_str())).into_iter().flatten()
    }

    /// Returns whether a subscribed name is still unknown: it is not held, its content was not rejected, it is not
    /// known not to exist, and no waiting response mentions it. The wildcard is awaited until a resource of the type is
    /// held, or until the server has certainly answered that there are none or that earlier ones are removed.
    pub fn is_awaited(&self, name: impl Into<ResourceName>) -> bool {
        self.of.is_some_and(|of| of.awaits(name.into().as_str()))
    }

    /// Returns the version of the last response of this type that was accepted completely; empty if there was none.
    /// `None` if the type was never subscribed to.
    pub fn version(&self) -> Option<&'a Version> {
        self.of.map(|of| of.holdings.version())
    }

    /// Returns whether a part of a response later than that of [`version`](Self::version) was accepted.
    pub(crate) fn is_partly_newer(&self) -> bool {
        self.of.is_some_and(|of| of.holdings.is_partly_newer())
    }

    /// Returns whether a name is subscribed to and the application knows that it does not exist.
    pub fn does_not_exist(&self, name: impl Into<ResourceName>) -> bool {
        self.of.is_some_and(|of| of.holdings.does_not_exist(name.into().as_str()))
    }
}

/// A handle to one type for layers, returned by [`Client::layer_mut`].
#[derive(Debug)]
pub struct LayerMut<'a, V: Variant> {
    client: &'a mut Client<V>,
    type_url: &'a TypeUrl,
}

impl<V: Variant> LayerMut<'_, V> {
    /// Reports that the application lost these resources: they are requested again, on this stream and on the next, and
    /// no further version that claims them is sent. Resources that are not held are ignored, and the verdict decides on
    /// resources of a pending update.
    ///
    /// On this stream, delta sends a subscription that the server must answer, and SotW a request without the name and
    /// then one with it. For a resource without a subscription of its own name, the complete wildcard is requested
    /// again, if it is subscribed to.
    pub fn forget(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        if let Some(of) = self.look_at() {
            names.into_iter().for_each(|name| of.forget::<V>(name.into().as_str()));
        }
    }

    /// Reports that the application now has these resources from elsewhere, be they newer or older than those of this
    /// client's server, until the given time if there is one. Resources from this server replace them, and removals by
    /// this server, by name or by absence, remove them; but no version that claims them is sent, and if one was sent,
    /// they are requested again. Names that no subscription covers are ignored.
    pub fn adopt(&mut self, names: impl IntoIterator<Item = (impl Into<ResourceName>, Option<Instant>)>) {
        self.adopt_with_aliases(names.into_iter().map(|(name, expires)| (name, &[][..], expires)));
    }

    /// Does the same as [`adopt`](Self::adopt) for resources with aliases, by which they may be subscribed to (delta;
    /// VHDS).
    pub fn adopt_with_aliases<'n>(
        &mut self,
        resources: impl IntoIterator<Item = (impl Into<ResourceName>, &'n [ResourceName], Option<Instant>)>,
    ) {
        if let Some(of) = self.look_at() {
            let resources = resources.into_iter();
            resources.for_each(|(name, aliases, expires)| of.adopt::<V>(name.into(), aliases, expires));
        }
    }

    /// Reports that the application knows from elsewhere that these resources do not exist (any more), so that no
    /// action reports it. A resource that this server sends exists again. Names that are held or not subscribed to are
    /// ignored.
    pub fn mark_does_not_exist(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        if let Some(of) = self.look_at() {
            names.into_iter().for_each(|name| of.mark_does_not_exist(name.into().as_str()));
        }
    }

    /// Blocks updates of this type until [`unblock_updates`](Self::unblock_updates); calls do not add up.
    /// Responses wait meanwhile and stop existence time-outs, like responses behind an update that waits for its
    /// verdict; their ACKs and NACKs wait too. A type that was never subscribed to is ignored.
    pub fn block_updates(&mut self) {
        if let Some(of) = self.look_at() {
            of.in_flight.hold(true);
        }
    }

    /// Ends a [`block_updates`](Self::block_updates).
    pub fn unblock_updates(&mut self, now: Instant) {
        if let Some(of) = self.look_at() {
            of.in_flight.hold(false);
            self.client.advance(now, self.type_url);
            self.client.let_time_stand(now);
        }
    }

    /// Marks all requested names that are neither held nor in the pending update as nonexistent, because the response
    /// on this stream would have had them; `faulty` are names in the response that were rejected. Returns the names of
    /// which this is news to the application.
    pub(crate) fn settle_absent(&mut self, faulty: &[ResourceName]) -> Vec<ResourceName> {
        let Some(of) = self.look_at() else { return Vec::new() };
        let absent = |name: &&ResourceName| {
            let there = of.holdings.has(name.as_str()) || of.holdings.has_member(name);
            let said = of.in_flight.mentions(name.as_str()) || faulty.contains(name);
            let has_error = of.failures.get(*name).is_some_and(|failure| failure.standing);
            !of.announced.is_new(name.as_str()) && !there && !said && !has_error
        };
        let mut names: Vec<ResourceName> = of.holdings.names().filter(absent).cloned().collect();
        names.retain(|name| {
            of.failures.remove(name);
            of.holdings.set_does_not_exist(name, None)
        });
        names
    }

    /// Ends the wait for all awaited names, as the existence time-out does.
    pub(crate) fn time_out(&mut self, now: Instant) {
        let Some(of) = self.look_at() else { return };
        let awaited: Vec<ResourceName> = of.holdings.names().filter(|name| of.is_awaited(name)).cloned().collect();
        of.timers.stand(now, false);
        awaited.iter().for_each(|name| of.timers.start(name, now, Duration::ZERO));
        self.client.time_out(now);
    }

    fn look_at(&mut self) -> Option<&mut Of<V>> {
        self.client.merge_added_names();
        find(&mut self.client.types, self.type_url)
    }
}

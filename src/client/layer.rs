//! What a layer above one client says to it and asks of it, for one type: what the application has from elsewhere, what it
//! lost, and what it is not to hear now.

use super::variant::{Of, Variant};
use super::{Client, find};
use crate::name::{ResourceName, TypeUrl};
use crate::time::Instant;

impl<V: Variant> Client<V> {
    /// One type, as a layer above the client asks about it.
    pub fn layer(&self, type_url: &TypeUrl) -> Layer<'_, V> {
        Layer { of: self.of_type(type_url) }
    }

    /// One type, as a layer above the client changes it. [`Servers`](crate::servers::Servers), several clients of one
    /// application, is such a layer. An application with one client needs nothing of it, unless it can lose what it holds
    /// ([`forget`](LayerMut::forget)).
    pub fn layer_mut<'a>(&'a mut self, type_url: &'a TypeUrl) -> LayerMut<'a, V> {
        LayerMut { client: self, type_url }
    }
}

/// One type, as a layer asks about it: see [`Client::layer`].
#[derive(Clone, Debug)]
pub struct Layer<'a, V: Variant> {
    /// `None`: nothing of the type was ever wanted.
    of: Option<&'a Of<V>>,
}

impl<'a, V: Variant> Layer<'a, V> {
    /// What the application has of this type as far as this client knows, in the order of the names, each with the time
    /// when it expires if it has a TTL.
    pub fn held(&self) -> impl Iterator<Item = (&'a ResourceName, Option<Instant>)> + use<'a, V> {
        self.of.into_iter().flat_map(|of| of.holdings.held().keys().map(|name| (name, of.holdings.expiry(name))))
    }

    /// The aliases by which a resource that is held is wanted.
    pub fn aliases(&self, name: &ResourceName) -> impl Iterator<Item = &'a ResourceName> + use<'a, V> {
        self.of.map(|of| of.holdings.bindings().aliases(name.as_str())).into_iter().flatten()
    }

    /// Whether this is wanted and nothing is known of it: it is not held, its content was not rejected, it is not known
    /// not to exist, and no response that waits says anything of it. The wildcard is awaited until something of the type
    /// is held, or the server is sure to have answered: that nothing is there, or that what was there is gone.
    pub fn is_awaited(&self, name: impl Into<ResourceName>) -> bool {
        self.of.is_some_and(|of| of.awaits(name.into().as_str()))
    }

    /// Whether this is wanted, and the application knows that it does not exist.
    pub fn does_not_exist(&self, name: impl Into<ResourceName>) -> bool {
        self.of.is_some_and(|of| of.holdings.does_not_exist(name.into().as_str()))
    }
}

/// One type, as a layer changes it: see [`Client::layer_mut`].
#[derive(Debug)]
pub struct LayerMut<'a, V: Variant> {
    client: &'a mut Client<V>,
    type_url: &'a TypeUrl,
}

impl<V: Variant> LayerMut<'_, V> {
    /// The application lost what it held of these: they are asked for again, on this stream and on the next, and no
    /// version is sent any more that claims them. What is not held is ignored, and what is in an update that waits for
    /// its verdict is decided by that.
    ///
    /// On this stream a delta server is asked by a subscription that it must answer, and a SotW server by requests
    /// without and then with the name. What only the wildcard covers takes all of the wildcard to be asked for again.
    pub fn forget(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        if let Some(of) = self.look_at() {
            names.into_iter().for_each(|name| of.forget::<V>(name.into().as_str()));
        }
    }

    /// The application has these from somewhere else now, be it newer or older than what this client's server has,
    /// until the time given if there is one. What this server sends replaces them, and what it says is gone, by name or
    /// by absence, is gone; but no version is sent that claims them, and if one was, they are asked for again. Names that
    /// are not wanted are ignored.
    pub fn adopt(&mut self, names: impl IntoIterator<Item = (impl Into<ResourceName>, Option<Instant>)>) {
        self.adopt_with_aliases(names.into_iter().map(|(name, expires)| (name, &[][..], expires)));
    }

    /// The same of resources that have aliases, by which they may be wanted (delta; VHDS).
    pub fn adopt_with_aliases<'n>(
        &mut self,
        resources: impl IntoIterator<Item = (impl Into<ResourceName>, &'n [ResourceName], Option<Instant>)>,
    ) {
        if let Some(of) = self.look_at() {
            let resources = resources.into_iter();
            resources.for_each(|(name, aliases, expires)| of.adopt::<V>(name.into(), aliases, expires));
        }
    }

    /// The application knows from somewhere else that these do not exist, or no more: it is not told so again. What this
    /// server sends makes them exist. What is held, or not wanted, is ignored.
    pub fn mark_does_not_exist(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        if let Some(of) = self.look_at() {
            names.into_iter().for_each(|name| of.mark_does_not_exist(name.into().as_str()));
        }
    }

    /// The application is given no updates of this type until [`unblock_updates`](Self::unblock_updates), which is to be
    /// called as often. Responses wait meanwhile, and stop existence time-outs, as they do behind an update that waits for
    /// its verdict; the answers to them wait too. A type of which nothing was ever wanted is ignored.
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
        }
    }

    fn look_at(&mut self) -> Option<&mut Of<V>> {
        self.client.merge_added_names();
        find(&mut self.client.types, self.type_url)
    }
}

//! Handles to the resources of one type: subscriptions, and the state of each resource.

use alloc::vec::Vec;

use super::names::check_wish;
use super::state::ResourceState;
use super::variant::{Of, Variant};
use super::{Client, find};
use crate::error::Misuse;
use crate::interest::Interest;
use crate::name::{ResourceName, TypeUrl};

impl<V: Variant> Client<V> {
    /// Returns a view of the resources of one type, to query their state.
    pub fn resources(&self, type_url: &TypeUrl) -> Resources<'_, V> {
        Resources { of: self.of_type(type_url), paused: self.paused.contains_key(type_url) }
    }

    /// Returns a handle to the resources of one type, to subscribe and to unsubscribe.
    ///
    /// ```
    /// use xds_machine::client::{Client, Config, ResourceStatus};
    /// use xds_machine::message::Node;
    /// use xds_machine::{Delta, ResourceName, TypeUrl, type_url};
    ///
    /// let clusters = TypeUrl::from(type_url::CLUSTER);
    /// let mut client = Client::<Delta>::new(Config::new(Node::new("me")));
    /// client.resources_mut(&clusters).subscribe(["a", "b"])?;
    /// client.resources_mut(&clusters).unsubscribe([ResourceName::from("b")]);
    ///
    /// let known = client.resources(&clusters);
    /// assert_eq!(known.interest().names().collect::<Vec<_>>(), ["a"]);
    /// assert_eq!(known.state("a").expect("it is wanted").status, ResourceStatus::Requested);
    /// assert_eq!(known.state("b"), None);
    /// # Ok::<(), xds_machine::Misuse>(())
    /// ```
    pub fn resources_mut<'a>(&'a mut self, type_url: &'a TypeUrl) -> ResourcesMut<'a, V> {
        ResourcesMut { client: self, type_url }
    }
}

/// A view of the resources of one type, returned by [`Client::resources`].
#[derive(Clone, Debug)]
pub struct Resources<'a, V: Variant> {
    /// `None` if the type was never subscribed to.
    of: Option<&'a Of<V>>,
    paused: bool,
}

impl<'a, V: Variant> Resources<'a, V> {
    /// Returns a copy of the subscribed names, at a cost linear in their number.
    pub fn interest(&self) -> Interest {
        let mut interest = Interest::default();
        for name in self.of.into_iter().flat_map(|of| of.holdings.names().chain(of.names_added())) {
            if name.is_wildcard() {
                interest.wildcard = true;
            } else {
                interest.insert(name.clone());
            }
        }
        interest
    }

    /// Returns the state of a resource, or `None` if the resource is neither subscribed to by name nor known. The
    /// wildcard and a collection are `Acked` once one of their resources is held, and carry the errors of the
    /// collection as a whole.
    pub fn state(&self, name: impl Into<ResourceName>) -> Option<ResourceState<'a>> {
        self.of?.state::<V>(name.into().as_str())
    }

    /// Returns the state of every resource, in the order of their names: held resources, subscribed names, and other
    /// resources for which the server reported errors.
    pub fn states(&self) -> impl Iterator<Item = (&'a ResourceName, ResourceState<'a>)> + use<'a, V> {
        self.of.into_iter().flat_map(|of| of.states::<V>())
    }

    /// Returns whether the type is [paused](ResourcesMut::pause).
    pub fn is_paused(&self) -> bool {
        self.paused
    }
}

/// A handle to the resources of one type, returned by [`Client::resources_mut`].
#[derive(Debug)]
pub struct ResourcesMut<'a, V: Variant> {
    client: &'a mut Client<V>,
    type_url: &'a TypeUrl,
}

impl<V: Variant> ResourcesMut<'_, V> {
    /// Subscribes to these resources. [`WILDCARD`](crate::WILDCARD) stands for all resources that the server has for
    /// this client, and a name `xdstp://../*` for all resources of one directory. A name that is already subscribed to
    /// costs nothing and changes nothing.
    ///
    /// Any number of calls before the next poll result in one request.
    ///
    /// # Errors
    ///
    /// [`Misuse::EmptyName`], and for structured names [`Misuse::MalformedName`], [`Misuse::Locator`] and
    /// [`Misuse::NameOfOtherType`]; then none of the names is subscribed to.
    pub fn subscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) -> Result<(), Misuse> {
        let Self { client, type_url } = self;
        let mut names = names.into_iter().map(Into::into);
        let (Some(first), second) = (names.next(), names.next()) else { return Ok(()) };
        if let Some(second) = second {
            let all: Vec<ResourceName> = [first, second].into_iter().chain(names).collect();
            all.iter().try_for_each(|name| check_wish(name, type_url))?;
            let subscription = client.subscription_mut(type_url);
            all.into_iter().for_each(|name| subscription.subscribe(name));
        } else {
            check_wish(&first, type_url)?;
            client.subscription_mut(type_url).subscribe(first);
        }
        Ok(())
    }

    /// Unsubscribes from these resources. The application drops them with this call; the machine reports nothing more
    /// about them. A name that is not subscribed to is ignored.
    pub fn unsubscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        self.client.merge_added_names();
        let settings = self.client.config.settings();
        if let Some(subscription) = find(&mut self.client.types, self.type_url) {
            names.into_iter().for_each(|name| subscription.unsubscribe::<V>(name.into().as_str(), settings));
        }
    }

    /// Requests subscribed resources again, whether held or not. In delta, the client subscribes to them again, which a
    /// server must answer; in SotW, the client repeats the request (as Envoy does to warm a cluster), which some
    /// servers treat as a request for everything. Names that are not subscribed to are ignored.
    pub fn refetch(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        self.client.merge_added_names();
        let Some(subscription) = find(&mut self.client.types, self.type_url) else { return };
        let mut again = Vec::new();
        for name in names {
            again.extend(subscription.holdings.find_name(name.into().as_str()).cloned());
        }
        again.iter().for_each(|name| subscription.holdings.unset_does_not_exist(name.as_str()));
        if !again.is_empty() {
            V::refetch(subscription, again, self.client.config.settings());
        }
    }

    /// Holds back the requests of the type, ACKs and NACKs included, until [`resume`](Self::resume) was called as
    /// often. Many changes then become one request, for example while clusters are applied that each need endpoints.
    /// The type need not be known yet, and other types are not affected.
    ///
    /// The first request of the type on a stream is not held back, nor are received responses: the stream is read as
    /// before, and at most [`Limits::waiting_responses`](super::Limits::waiting_responses) ACKs and NACKs of the type
    /// wait ([a slow application](crate::manual::slow)).
    pub fn pause(&mut self) {
        let times = self.client.paused.entry(self.type_url.clone()).or_default();
        *times = times.saturating_add(1);
    }

    /// Ends one [`pause`](Self::pause).
    ///
    /// # Errors
    ///
    /// [`Misuse::NotPaused`] if the type is not paused.
    pub fn resume(&mut self) -> Result<(), Misuse> {
        let paused = &mut self.client.paused;
        match paused.get_mut(self.type_url) {
            Some(1) => _ = paused.remove(self.type_url),
            Some(times) => *times -= 1,
            None => return Err(Misuse::NotPaused { type_url: self.type_url.clone() }),
        }
        Ok(())
    }
}

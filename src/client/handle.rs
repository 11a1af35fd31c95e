//! The resources of one type: what the application asks for, and what is known of it.

use alloc::vec::Vec;

use super::names::check_wish;
use super::state::ResourceState;
use super::variant::{Of, Variant};
use super::{Client, find};
use crate::error::Misuse;
use crate::interest::Interest;
use crate::name::{ResourceName, TypeUrl};

impl<V: Variant> Client<V> {
    /// The resources of one type, to ask what is known of them.
    pub fn resources(&self, type_url: &TypeUrl) -> Resources<'_, V> {
        Resources { of: self.of_type(type_url), paused: self.paused.contains_key(type_url) }
    }

    /// The resources of one type, to subscribe to them and to unsubscribe.
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

/// What is known of the resources of one type: see [`Client::resources`].
#[derive(Clone, Debug)]
pub struct Resources<'a, V: Variant> {
    /// `None`: nothing of the type was ever wanted.
    of: Option<&'a Of<V>>,
    paused: bool,
}

impl<'a, V: Variant> Resources<'a, V> {
    /// What the application is subscribed to. A copy: costs the number of names.
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

    /// What is known of a resource; `None` if it is not wanted. Of the wildcard, and of a collection: `Acked` once
    /// something of it is held, and errors of the whole.
    pub fn state(&self, name: impl Into<ResourceName>) -> Option<ResourceState<'a>> {
        self.of?.state::<V>(name.into().as_str())
    }

    /// What is known of every resource: of those that are held, in the order of their names, then of those that are wanted
    /// and not held, then of others of which the server reported errors.
    pub fn states(&self) -> impl Iterator<Item = (&'a ResourceName, ResourceState<'a>)> + use<'a, V> {
        self.of.into_iter().flat_map(|of| of.states::<V>())
    }

    /// Whether the type is [paused](ResourcesMut::pause).
    pub fn is_paused(&self) -> bool {
        self.paused
    }
}

/// The resources of one type, to be subscribed to: see [`Client::resources_mut`].
#[derive(Debug)]
pub struct ResourcesMut<'a, V: Variant> {
    client: &'a mut Client<V>,
    type_url: &'a TypeUrl,
}

impl<V: Variant> ResourcesMut<'_, V> {
    /// Wants these resources from now on. [`WILDCARD`](crate::WILDCARD) is all that the server has for this
    /// client, and a name `xdstp://../*` all of one directory. A name that is wanted already costs nothing and changes
    /// nothing.
    ///
    /// Any number of calls before the next poll make one request.
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

    /// Wants these resources no longer. The application forgets them when it calls this; the machine says no more
    /// of them. A name that is not wanted is ignored.
    pub fn unsubscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        self.client.merge_added_names();
        let settings = self.client.config.settings();
        if let Some(subscription) = find(&mut self.client.types, self.type_url) {
            names.into_iter().for_each(|name| subscription.unsubscribe::<V>(name.into().as_str(), settings));
        }
    }

    /// Asks again for resources that are wanted, whether held or not: in delta by subscribing to them again, which
    /// a server must answer; in SotW by repeating the request, which some servers take as a wish for everything
    /// (Envoy does it to warm a cluster). Names that are not wanted are ignored.
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

    /// Holds back what there is to say of the type, answers and all, until [`resume`](Self::resume) was called as often:
    /// while clusters are applied that each need endpoints, say, so that many changes become one request. The type need
    /// not be known yet, and other types go on.
    ///
    /// The first request of the type on a stream is not held back, nor is anything of what is received. But answers that
    /// wait count as responses that wait: a type that is paused for long stops the whole stream in the end
    /// ([`Client::wants_response`]).
    pub fn pause(&mut self) {
        let times = self.client.paused.entry(self.type_url.clone()).or_default();
        *times = times.saturating_add(1);
    }

    /// Ends one [`pause`](Self::pause).
    ///
    /// # Errors
    ///
    /// [`Misuse::NotPaused`].
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

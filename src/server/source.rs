//! What a server machine asks of a store of resources.

use core::iter;

use super::page::Page;
use super::resource::Resource;
use crate::error::Status;
use crate::name::{ResourceName, TypeUrl, Version};
use crate::revision::Revision;
use crate::type_url;
use crate::wire;
use crate::xdstp::Parts;

/// What a server has to say: the caller's store, or a [`Cache`](super::Cache). One source for each group of clients
/// that sees the same resources.
///
/// A stream asks what changed since the revision up to which it was served, never what there is; that is why a
/// change costs each stream what changed and not what exists.
///
/// A source is not a trait object: its methods return iterators of types of their own, so that to look at a change allocates nothing.
/// Where sources of several kinds are served, an enum of them is a source. The iterators borrow the type URL besides the source,
/// which Rust 1.85 can't be told otherwise for the methods of a trait.
///
/// # Contract
///
/// - Revisions only grow while [`epoch`](Self::epoch) stays. A source that starts anew has another epoch, and every
///   stream served from the old one is closed, not left silently stale.
/// - Whatever becomes present, absent or unknown, or gets another content, does so at a revision of its own, which
///   is at most [`revision`](Self::revision) when it can be seen.
/// - Nothing changes during a call of [`Server::poll_transmit`](super::Server::poll_transmit).
/// - A name is [`Absent`](State::Absent) only if it is known not to exist. A store that is still being loaded says
///   [`Unknown`](State::Unknown), or that the type is not known ([`is_known`](Self::is_known)): otherwise a control plane
///   that restarts tells all clients that everything is gone ([design rule 9](crate::manual::rules#rule-9)).
/// - [`changes`](Self::changes) and [`removals`](Self::removals) never leave out what `get` would tell, and nor does
///   [`members`](Self::members).
///
/// # Groups of nodes
///
/// Clients that are to see different resources are served from different sources: one for each group, each with
/// an [`epoch`](Self::epoch) of its own. The node tells the group of a client ([`Action::Node`](super::Action::Node),
/// [`Server::node`](super::Server::node)). A stream is bound to the source of the first poll after its first request, and
/// is closed if it is then polled with a source of another epoch. So the driver polls once the group is known, and from
/// then on with the source of that group. The manual has a [chapter on groups](crate::manual::_04_groups); in short:
///
/// ```
/// use std::collections::BTreeMap;
/// use xds_machine::message::{Node, delta};
/// use xds_machine::server::{Cache, Config, Resource, Server, StreamId};
/// use xds_machine::{Delta, Instant, TypeUrl, type_url};
///
/// // Epochs are handed out in one place: no two caches of the process have the same.
/// let mut epoch = 0;
/// let mut group = |body: &'static [u8]| {
///     epoch += 1;
///     let mut cache = Cache::new(epoch);
///     cache.insert(&TypeUrl::from(type_url::CLUSTER), Resource::new("c", body));
///     cache
/// };
/// let groups = BTreeMap::from([("edge", group(b"of the edge")), ("inner", group(b"of the inside"))]);
///
/// let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
/// let node = Node { cluster: "inner".into(), ..Node::new("n1") };
/// let request = delta::Request { node: Some(node.into()), ..delta::Request::new(type_url::CLUSTER) };
/// server.handle_request(Instant::EPOCH, request)?;
/// let of = server.node().and_then(|node| groups.get(node.cluster.as_str())).expect("a group, or close the stream");
/// let response = server.poll_transmit(Instant::EPOCH, of).expect("all clusters of the group");
/// assert_eq!(response.resources().next().expect("c").body(), &b"of the inside"[..]);
/// # Ok::<(), xds_machine::Error>(())
/// ```
///
#[doc = include_str!("own_source.md")]
pub trait Source {
    /// Which life of the source this is.
    fn epoch(&self) -> u64;

    /// The revision of the latest change of all.
    fn revision(&self) -> Revision;

    /// The revision of the latest change of this type; zero if there was none.
    fn type_revision(&self, type_url: &TypeUrl) -> Revision;

    /// The version of the type as a whole, for SotW's `version_info`. Not empty. What is delivered never depends
    /// on it.
    fn version(&self, type_url: &TypeUrl) -> Version;

    /// What is to be said of one name, which may be an alias: then the resource has another name. (An alias that stands
    /// for something, or for nothing, from now on has a revision of its own, as a name has that becomes present, or
    /// absent.)
    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_>;

    /// The resources that became present or changed after `since` and are present, the latest first.
    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>>;

    /// The names that became absent after `since` and are absent, the latest first. `None` if the source does not
    /// remember that far.
    fn removals(&self, type_url: &TypeUrl, since: Revision)
    -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>>;

    /// All resources of the type, in pages that streams share, some hundred resources each.
    ///
    /// A page keeps its number, though it be empty: where an answer goes in [portions](super::ResponseLimit), it goes on with
    /// the page of the number that the last portion came to. So a resource stays in its page as long as it is present.
    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page>;

    /// The resources of the type that have a TTL, whose clients are sent heartbeats. The default has none.
    fn expiring(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        let _ = type_url;
        iter::empty()
    }

    /// Why a resource can't be given, where that is to be told (`resource_errors`; cncf/xds TP3): of a name that is
    /// [`Unknown`](State::Unknown) what is wrong, so that clients go on with what they have; of one that is
    /// [`Absent`](State::Absent) why, with NOT_FOUND. Not of one that is present. The error of the wildcard is that of the
    /// collection as a whole.
    ///
    /// The default has none.
    fn error(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Status> {
        let _ = (type_url, name);
        None
    }

    /// The names whose [`error`](Self::error) came or changed after `since`, and is there, the latest first. An error that
    /// comes or changes does so at a revision of its own, that of the name's entry. The default has none.
    fn errors(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        let _ = (type_url, since);
        iter::empty()
    }

    /// What a name that is absent was at an earlier revision, and until it became absent; if that is remembered. Where
    /// removals stay back in SotW ([`Config::with_sotw_removal_delay`](super::Config::with_sotw_removal_delay)), it is sent
    /// once more to who was sent it; and in delta, that its aliases stood for it is known by it. The default remembers nothing,
    /// as suits a source whose [`Entry::before`] is always empty.
    fn previous(&self, type_url: &TypeUrl, name: &ResourceName, at: Revision) -> Option<&Resource> {
        let _ = (type_url, name, at);
        None
    }

    /// The names of resources that an alias stood for lately and does not any more, and since when that is so. `None` for
    /// a name that is no alias and was none. The default has no aliases.
    fn former_targets(&self, type_url: &TypeUrl, alias: &ResourceName) -> Option<(Revision, &[ResourceName])> {
        let _ = (type_url, alias);
        None
    }

    /// The resources of the type in a collection, by its name `xdstp://../*`; those of which nothing is known as well,
    /// and no others. To be known by name what is in it, a source keeps them by [`ResourceName::glob`]; the default
    /// looks at all that there are.
    fn members(&self, type_url: &TypeUrl, glob: &ResourceName) -> impl Iterator<Item = Entry<'_>> {
        let has = |entry: &Entry<'_>| {
            let name = entry.resource().map_or("", |resource| resource.name().as_str());
            Parts::of(glob.as_str()).is_some_and(|glob| glob.has(name))
        };
        self.changes(type_url, Revision::default()).filter(has)
    }

    /// Whether the type is known at all: until it is, its subscribers hear nothing, not even that nothing exists.
    ///
    /// There is no default: a control plane that starts anew with an empty store and says `true` tells every client that all it
    /// has is gone. A store says so once it is loaded.
    fn is_known(&self, type_url: &TypeUrl) -> bool;

    /// The type of which a client needs a resource again once it has one of this type, though it did not change: the
    /// endpoints of a cluster, without which an Envoy leaves the cluster warming (xds_protocol.rst, "Resource
    /// warming"). On ADS such resources are sent again to whom is subscribed to them.
    ///
    /// The default is EDS for CDS.
    fn dependent_type(&self, type_url: &TypeUrl) -> Option<&str> {
        default_dependent_type(type_url)
    }

    /// The name of the resource of [`dependent_type`](Self::dependent_type) that goes with this one.
    ///
    /// The default is right for clusters: `eds_cluster_config.service_name`, else the cluster's own name.
    fn dependent(&self, type_url: &TypeUrl, resource: &Resource) -> Option<ResourceName> {
        let _ = type_url;
        default_dependent(resource)
    }
}

pub(super) fn default_dependent_type(type_url: &TypeUrl) -> Option<&'static str> {
    (type_url == type_url::CLUSTER).then_some(type_url::ENDPOINT)
}

pub(super) fn default_dependent(resource: &Resource) -> Option<ResourceName> {
    Some(wire::endpoints_of(resource.body()).map_or_else(|| resource.name().clone(), ResourceName::from))
}

/// What is to be said of a name, and since when. Fields may be added, with a default that the constructors give.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// What the source says of the name.
    pub state: State<'a>,
    /// The revision at which that became so. If the source has forgotten it, the latest that it can have been.
    pub since: Revision,
    /// An earlier time at which it was exactly so: who was served then, and not after, has heard it. From the
    /// first revision to before the second. Empty where nothing is known.
    pub before: (Revision, Revision),
}

/// The three things that can be said of a name ([design rule 9](crate::manual::rules#rule-9)). A server handles each of
/// them, so there will be no fourth.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State<'a> {
    /// The resource exists, and this is its content.
    Present(&'a Resource),
    /// It does not exist; only this may be announced as removed.
    Absent,
    /// Whether it exists is not known yet: nothing is said.
    Unknown,
}

impl<'a> Entry<'a> {
    /// There is this resource, in this form since then.
    pub fn present(resource: &'a Resource, since: Revision) -> Self {
        Self::new(State::Present(resource), since)
    }

    /// The resource does not exist since then; for one that was never there, since [`Revision::default`].
    pub fn absent(since: Revision) -> Self {
        Self::new(State::Absent, since)
    }

    /// Since then it is not known whether the resource exists.
    pub fn unknown(since: Revision) -> Self {
        Self::new(State::Unknown, since)
    }

    fn new(state: State<'a>, since: Revision) -> Self {
        Self { state, since, before: (Revision::default(), Revision::default()) }
    }

    /// The same, where it was exactly so at an earlier time too: from `from` to before `to`. So a change that was taken back
    /// costs nothing for who has not heard of it.
    #[must_use]
    pub fn with_before(self, from: Revision, to: Revision) -> Self {
        Self { before: (from, to), ..self }
    }

    /// The resource, if there is one.
    pub fn resource(&self) -> Option<&'a Resource> {
        match self.state {
            State::Present(resource) => Some(resource),
            State::Absent | State::Unknown => None,
        }
    }

    /// Whether this is news to who heard all that became so up to `heard`, and the opposite up to `other`.
    pub(super) fn is_news(&self, heard: Revision, other: Revision) -> bool {
        self.since > heard && !(self.before.0 <= heard && other < self.before.1)
    }

    /// The same, for who knows names only as what they are.
    pub(super) fn named(self, name: &str) -> Self {
        match self.state {
            State::Present(resource) if resource.name() != name => Entry { state: State::Absent, ..self },
            _ => self,
        }
    }
}

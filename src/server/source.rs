//! The interface through which a server machine reads a store of resources.

use core::iter;

use super::page::Page;
use super::resource::Resource;
use crate::error::Status;
use crate::name::{ResourceName, TypeUrl, Version};
use crate::revision::Revision;
use crate::type_url;
use crate::wire;
use crate::xdstp::Parts;

/// The resources that a server serves: the caller's store, or a [`Cache`](super::Cache). Each group of clients that
/// sees the same resources has one source.
///
/// A stream queries the changes since the revision up to which it was served, never all resources, so a change costs
/// each stream the size of the change and not of the store.
///
/// The trait is not dyn compatible: its methods return iterators of unnamed types, so that reading a change allocates
/// nothing. To serve sources of several kinds, implement `Source` for an enum of them. The iterators borrow the type
/// URL besides the source, because Rust 1.85 cannot express otherwise for trait methods.
///
/// # Contract
///
/// - Revisions only grow while [`epoch`](Self::epoch) stays. A source that restarts has another epoch, and every
///   stream served from the old one is closed, not left silently stale.
/// - Every change of a name to present, absent or unknown, or to another content, has a revision of its own, which is
///   at most [`revision`](Self::revision) when the change becomes visible.
/// - Nothing changes during a call of [`Server::poll_transmit`](super::Server::poll_transmit).
/// - A name is [`Absent`](State::Absent) only if it is known not to exist. A store that is still loading reports
///   [`Unknown`](State::Unknown), or that the type is not known ([`is_known`](Self::is_known)): otherwise a restarted
///   control plane removes every resource of every client ([design rule 9](crate::manual::rules#rule-9)).
/// - [`changes`](Self::changes), [`removals`](Self::removals) and [`members`](Self::members) never omit an entry that
///   `get` would return.
///
/// # Groups of nodes
///
/// Clients that must see different resources are served from different sources: one for each group, each with an
/// [`epoch`](Self::epoch) of its own. The node determines the group of a client
/// ([`Action::Node`](super::Action::Node), [`Server::node`](super::Server::node)). A stream is bound to the source of
/// the first poll after its first request, and is closed if it is then polled with a source of another epoch. So the
/// driver polls once the group is known, and from then on with the source of that group. The manual has a
/// [chapter on groups](crate::manual::_04_groups); in short:
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
    /// Returns the epoch, which identifies one life of the source.
    fn epoch(&self) -> u64;

    /// Returns the revision of the latest change of any type.
    fn revision(&self) -> Revision;

    /// Returns the revision of the latest change of this type; zero if there was none.
    fn type_revision(&self, type_url: &TypeUrl) -> Revision;

    /// Returns the version of the type as a whole, for SotW's `version_info`. Never empty. Delivery never depends on
    /// this version.
    fn version(&self, type_url: &TypeUrl) -> Version;

    /// Returns the entry of a name, which may be an alias: then the resource has another name. (An alias that starts
    /// or stops standing for a resource does so at a revision of its own, as a name does that becomes present or
    /// absent. A resource has only aliases that stand for it: to a client, an alias stands for the last resource that
    /// it received with it.)
    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_>;

    /// Returns the entry of a name that is in its [normal form](crate::xdstp), as [`get`](Self::get) does. Called for
    /// each name that a reconnecting client claims to have. The default makes a [`ResourceName`]; a store that finds
    /// its entries by `&str` saves that allocation.
    fn get_str(&self, type_url: &TypeUrl, name: &str) -> Entry<'_> {
        self.get(type_url, &ResourceName::from(name))
    }

    /// Returns the entries of several names, each as [`get_str`](Self::get_str) does: the claims of a reconnecting
    /// client are looked up in blocks. The default does one look-up after the other; a store that does them side by
    /// side waits for its memory once for a block, and not once for each name.
    fn get_block<const N: usize>(&self, type_url: &TypeUrl, names: [&str; N]) -> [Entry<'_>; N] {
        names.map(|name| self.get_str(type_url, name))
    }

    /// Returns the resources that became present or changed after `since` and are present, the latest first.
    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>>;

    /// Returns the names that became absent after `since` and are absent, the latest first. `None` if the source does
    /// not remember that far back. The aliases of a resource may be forgotten with its removal: resources that a client
    /// claims and that no subscribed name covers are then removed from a client that may have them by an alias.
    fn removals(&self, type_url: &TypeUrl, since: Revision)
    -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>>;

    /// Returns all resources of the type, in pages of some hundred resources each that streams share.
    ///
    /// A page keeps its number even if it becomes empty: an answer that goes in [portions](super::ResponseLimit)
    /// resumes at the page number that the last portion reached. So a resource stays in its page as long as it is
    /// present.
    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page>;

    /// Returns the resources of the type that have a TTL and so need heartbeats. The default has none.
    fn expiring(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        let _ = type_url;
        iter::empty()
    }

    /// Returns the error to report for a resource that cannot be served (`resource_errors`; cncf/xds TP3): for an
    /// [`Unknown`](State::Unknown) name the fault, so that clients keep the resource that they have; for an
    /// [`Absent`](State::Absent) name the reason, with NOT_FOUND. A present resource has no error. The error of the
    /// wildcard is that of the collection as a whole.
    ///
    /// The default has none.
    fn error(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Status> {
        let _ = (type_url, name);
        None
    }

    /// Returns the names whose current [`error`](Self::error) appeared or changed after `since`, the latest first. An
    /// error appears or changes at a revision of its own, that of the name's entry. The default has none.
    fn errors(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        let _ = (type_url, since);
        iter::empty()
    }

    /// Returns the resource that a name had at an earlier revision and until its present state began, if that is
    /// remembered. Where SotW removals are deferred
    /// ([`Config::with_sotw_removal_delay`](super::Config::with_sotw_removal_delay)), a removed resource is sent once
    /// more to clients that were sent it; and a resource that loses its TTL is sent in time. The default remembers
    /// nothing.
    fn previous(&self, type_url: &TypeUrl, name: &ResourceName, at: Revision) -> Option<&Resource> {
        let _ = (type_url, name, at);
        None
    }

    /// Returns the revision since which a resource is present, in whatever form. It distinguishes a client that was
    /// sent an earlier form from a client that was sent nothing ([`Delivery::earlier`](super::Delivery::earlier)). The
    /// default does not know.
    fn present_since(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<Revision> {
        let _ = (type_url, name);
        None
    }

    /// Returns the names of resources that an alias recently stood for and no longer does, and the revision since
    /// which that is so. `None` for a name that is no alias and was none. The default has no aliases.
    fn former_targets(&self, type_url: &TypeUrl, alias: &ResourceName) -> Option<(Revision, &[ResourceName])> {
        let _ = (type_url, alias);
        None
    }

    /// Returns the entries of the members of a collection, by its name `xdstp://../*`: members that are present or
    /// unknown, and no others. A store that indexes names by [`ResourceName::glob`] finds them directly. The default
    /// scans the present resources, so a source with unknown members has to implement it.
    fn members(&self, type_url: &TypeUrl, glob: &ResourceName) -> impl Iterator<Item = Entry<'_>> {
        let has = |entry: &Entry<'_>| {
            let name = entry.resource().map_or("", |resource| resource.name().as_str());
            Parts::of(glob.as_str()).is_some_and(|glob| glob.has(name))
        };
        self.changes(type_url, Revision::default()).filter(has)
    }

    /// Returns whether the type is known at all: until it is, its subscribers are sent nothing, not even that nothing
    /// exists.
    ///
    /// A type that is known stays known in this epoch. A store that loses its backend serves what it has: heartbeats and
    /// deferred removals of the type become due, and a machine that may send nothing would ask to be polled for ever.
    ///
    /// There is no default: a control plane that restarts with an empty store and returns `true` removes every
    /// resource of every client. Return `true` once the store is loaded.
    fn is_known(&self, type_url: &TypeUrl) -> bool;

    /// Returns the type of the resources that a client needs again, though unchanged, once it has received one of this
    /// type: the endpoints of a cluster, without which Envoy leaves the cluster warming (xds_protocol.rst, "Resource
    /// warming"). On ADS such resources are resent to the clients that subscribe to them.
    ///
    /// The default is EDS for CDS.
    fn dependent_type(&self, type_url: &TypeUrl) -> Option<&str> {
        default_dependent_type(type_url)
    }

    /// Returns the name of the resource of [`dependent_type`](Self::dependent_type) that belongs to this one.
    ///
    /// The default suits clusters: `eds_cluster_config.service_name`, else the cluster's own name.
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

/// The state of a name, and the revision since which it holds. Fields may be added, with a default that the
/// constructors set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// The state of the name.
    pub state: State<'a>,
    /// The revision at which the state began. If the source has forgotten it, the latest possible one.
    pub since: Revision,
}

/// The three possible states of a name ([design rule 9](crate::manual::rules#rule-9)). A server handles each of them,
/// so there will be no fourth.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State<'a> {
    /// The resource exists with this content.
    Present(&'a Resource),
    /// The resource does not exist; only this state may be announced as removed.
    Absent,
    /// The existence of the resource is not known: nothing is sent of it (full-state SotW responses lack it).
    Unknown,
}

impl<'a> Entry<'a> {
    /// Returns the entry of a resource that is present, in this form, since a revision.
    pub fn present(resource: &'a Resource, since: Revision) -> Self {
        Self::new(State::Present(resource), since)
    }

    /// Returns the entry of a resource that does not exist since a revision; [`Revision::default`] if it never
    /// existed.
    pub fn absent(since: Revision) -> Self {
        Self::new(State::Absent, since)
    }

    /// Returns the entry of a resource whose existence is unknown since a revision.
    pub fn unknown(since: Revision) -> Self {
        Self::new(State::Unknown, since)
    }

    fn new(state: State<'a>, since: Revision) -> Self {
        Self { state, since }
    }

    /// Returns the resource, if it is present.
    pub fn resource(&self) -> Option<&'a Resource> {
        match self.state {
            State::Present(resource) => Some(resource),
            State::Absent | State::Unknown => None,
        }
    }

    /// Returns the entry for a client without aliases: a resource of another name is absent.
    pub(super) fn named(self, name: &str) -> Self {
        match self.state {
            State::Present(resource) if resource.name() != name => Entry { state: State::Absent, ..self },
            _ => self,
        }
    }
}

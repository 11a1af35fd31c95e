//! The state of an open stream.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use xds_machine::csds::{self, Item};
use xds_machine::message::Node;
use xds_machine::server::{Action, Response, Revision, Server, Source, StreamId, Variant};
use xds_machine::service::Method;
use xds_machine::{Delta, Interest, Sotw, Status, TypeUrl, Version};

use super::verdicts::{Rejected, ResourceDelivery, Verdicts};

/// A stream that a [`ControlPlane`](super::ControlPlane) serves: a handle that shows its current state. Cheap to
/// clone. A handle of a stream that has closed shows its last state.
#[derive(Clone)]
pub struct StreamInfo(Arc<Entry>);

struct Entry {
    id: StreamId,
    method: Method,
    peer: Option<SocketAddr>,
    machine: Arc<dyn Machine>,
    node: OnceLock<Arc<Node>>,
    group: OnceLock<Arc<str>>,
    types: Mutex<Vec<Verdicts>>,
    /// The revision of the source up to which the client has answered everything.
    settled: AtomicU64,
    /// The status of a stream that has to end although its client does nothing wrong.
    ending: OnceLock<Box<Status>>,
    is_closed: AtomicBool,
}

/// The state of one type of a stream, for a debug page.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TypeInfo {
    /// The type.
    pub type_url: TypeUrl,
    /// Whether the client subscribes to the wildcard.
    pub wildcard: bool,
    /// The number of names that the client subscribes to.
    pub names: usize,
    /// The version of the last response.
    pub sent: Option<Version>,
    /// The version of the last response that the client accepted.
    pub accepted: Option<Version>,
    /// The last rejection, until the client has accepted a later response and none of its rejections
    /// [stands](Rejected::standing).
    pub rejected: Option<Rejected>,
}

/// The queries of a machine that do not depend on its variant.
pub(super) trait Machine: Send + Sync {
    fn interest(&self, type_url: &TypeUrl) -> Option<Interest>;

    /// Returns the types, whether each has the wildcard, and how many names.
    fn types(&self) -> Vec<(TypeUrl, bool, usize)>;

    /// Returns the machine of the stream's variant, behind its lock.
    fn as_any(&self) -> &dyn Any;
}

impl<V: Variant> Machine for Mutex<Server<V>>
where
    Server<V>: Send + 'static,
{
    fn interest(&self, type_url: &TypeUrl) -> Option<Interest> {
        lock(self).interest(type_url).cloned()
    }

    fn types(&self) -> Vec<(TypeUrl, bool, usize)> {
        let server = lock(self);
        let interests = server.types().filter_map(|type_url| Some((type_url, server.interest(type_url)?)));
        interests.map(|(type_url, of)| (type_url.clone(), of.wildcard(), of.names().len())).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The machine of a stream, as the variant that it has.
type Variants<'a> = (Option<&'a Mutex<Server<Sotw>>>, Option<&'a Mutex<Server<Delta>>>);

pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn deliveries<V: Variant, S: Source>(server: &Server<V>, type_url: &TypeUrl, source: &S) -> Vec<ResourceDelivery> {
    server.deliveries(type_url, source).iter().map(ResourceDelivery::new).collect()
}

impl StreamInfo {
    pub(super) fn new(id: StreamId, method: Method, peer: Option<SocketAddr>, machine: Arc<dyn Machine>) -> Self {
        Self(Arc::new(Entry {
            id,
            method,
            peer,
            machine,
            node: OnceLock::new(),
            group: OnceLock::new(),
            types: Mutex::default(),
            settled: AtomicU64::new(0),
            ending: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// Returns the id, which the control plane counts from 1.
    pub fn id(&self) -> StreamId {
        self.0.id
    }

    /// Returns the method that was called: the variant of the protocol, and the type of a single-type stream.
    pub fn method(&self) -> Method {
        self.0.method
    }

    /// Returns the address of the client, if the transport provides it.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.0.peer
    }

    /// Returns the node of the first request; `None` before that request, or if it has no node.
    pub fn node(&self) -> Option<&Node> {
        self.0.node.get().map(|node| &**node)
    }

    /// Returns the name of the group that the stream is assigned to; `None` before the assignment.
    pub fn group(&self) -> Option<&str> {
        self.0.group.get().map(|group| &**group)
    }

    /// Returns a copy of the client's interest in a type, if the type was requested. The cost is that of its names.
    pub fn interest(&self, type_url: &TypeUrl) -> Option<Interest> {
        self.0.machine.interest(type_url)
    }

    /// Returns the state of each requested type, in push order.
    pub fn types(&self) -> Vec<TypeInfo> {
        let (types, verdicts) = (self.0.machine.types(), lock(&self.0.types));
        let info = |(type_url, wildcard, names)| {
            let of = verdicts.iter().find(|of| of.type_url == type_url);
            TypeInfo {
                type_url,
                wildcard,
                names,
                sent: of.map(|of| of.sent.clone()),
                accepted: of.and_then(|of| of.accepted.clone()),
                rejected: of.and_then(|of| of.rejected.as_deref().cloned()),
            }
        };
        types.into_iter().map(info).collect()
    }

    pub(super) fn shared_node(&self) -> Option<Arc<Node>> {
        self.0.node.get().cloned()
    }

    /// Returns what was sent on the stream, with its status (CSDS). The source is locked before the machine, because a
    /// change of the source may look at the machines.
    pub(super) fn view<S: Source>(&self, source: &S, contents: bool) -> Vec<Item> {
        match self.machine() {
            (Some(server), _) => csds::view(&lock(server), source, contents),
            (None, Some(server)) => csds::view(&lock(server), source, contents),
            (None, None) => Vec::new(),
        }
    }

    /// Returns the machine, in its variant.
    fn machine(&self) -> Variants<'_> {
        let machine = self.0.machine.as_any();
        (machine.downcast_ref(), machine.downcast_ref())
    }

    pub(super) fn set_node(&self, node: &Arc<Node>) {
        let _ = self.0.node.set(node.clone()); // once for each stream
    }

    pub(super) fn set_group(&self, group: &Arc<str>) {
        let _ = self.0.group.set(group.clone()); // once for each stream
    }

    pub(super) fn note_sent<V: Variant>(&self, response: &Response<V>) {
        let mut types = lock(&self.0.types);
        match types.iter_mut().find(|of| of.type_url == *response.type_url()) {
            Some(of) => of.note_sent(response),
            None => {
                types.reserve_exact(1); // few types, many streams
                types.push(Verdicts::new(response));
            }
        }
    }

    /// Notes an ACK or a NACK. Returns its type if rejections may stand, which have to be [renewed](Self::renew).
    pub(super) fn note_verdict<'a>(&self, action: &'a Action) -> Option<&'a TypeUrl> {
        let (Action::Ack { type_url, .. } | Action::Nack { type_url, .. }) = action else { return None };
        let mut types = lock(&self.0.types);
        let of = types.iter_mut().find(|of| of.type_url == *type_url)?;
        match action {
            Action::Ack { version, .. } => of.note_ack(version).then_some(type_url),
            Action::Nack { version, revision, error, .. } => {
                of.note_nack(version, *revision, error);
                Some(type_url)
            }
            _ => None,
        }
    }

    /// Drops the rejections of a type that do not stand any more. The source is locked before the machine, as in
    /// [`view`](Self::view).
    pub(super) fn renew<S: Source>(&self, type_url: &TypeUrl, source: &S) {
        let renew = |of: &mut Verdicts| match self.machine() {
            (Some(server), _) => of.renew(&lock(server), source),
            (None, Some(server)) => of.renew(&lock(server), source),
            (None, None) => {}
        };
        lock(&self.0.types).iter_mut().filter(|of| of.type_url == *type_url).for_each(renew);
    }

    /// Returns what was sent of a type, resource by resource.
    pub(super) fn deliveries<S: Source>(&self, type_url: &TypeUrl, source: &S) -> Vec<ResourceDelivery> {
        match self.machine() {
            (Some(server), _) => deliveries(&lock(server), type_url, source),
            (None, Some(server)) => deliveries(&lock(server), type_url, source),
            (None, None) => Vec::new(),
        }
    }

    /// Returns the rejections of what the client was sent up to a revision, one for each type.
    pub(super) fn rejections(&self, upto: Revision) -> Vec<(TypeUrl, Rejected)> {
        let types = lock(&self.0.types);
        types.iter().filter_map(|of| Some((of.type_url.clone(), of.rejection(upto)?.clone()))).collect()
    }

    pub(super) fn settle(&self, revision: Revision) {
        self.0.settled.store(revision.0, Ordering::Release);
    }

    pub(super) fn is_settled(&self, revision: Revision) -> bool {
        self.0.settled.load(Ordering::Acquire) >= revision.0
    }

    pub(super) fn end(&self, status: Status) {
        let _ = self.0.ending.set(Box::new(status)); // the first reason counts
    }

    pub(super) fn ending(&self) -> Option<&Status> {
        self.0.ending.get().map(|status| &**status)
    }

    pub(super) fn set_closed(&self) {
        self.0.is_closed.store(true, Ordering::Release);
    }

    /// Returns whether the stream has closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Acquire)
    }
}

impl fmt::Debug for StreamInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut info = f.debug_struct("StreamInfo");
        info.field("id", &self.id().0).field("peer", &self.peer()).field("node", &self.node().map(|node| &node.id));
        info.field("group", &self.group()).finish_non_exhaustive()
    }
}

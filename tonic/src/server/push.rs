//! A change on its way to the clients, which can be awaited.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;
use xds_machine::TypeUrl;
use xds_machine::server::Revision;
use xds_machine::service::Method;
use xds_machine_driver::server::{Shared, Store, Waiter};

use super::{Group, Rejected, StreamInfo};

/// A change of a group's resources. The change is sent whether or not the push is awaited.
#[derive(Debug)]
pub struct Push<S: Store = Shared> {
    group: Group<S>,
    revision: Revision,
}

/// The verdicts of the clients on a push.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The revision of the source that the push ends with.
    pub revision: Revision,
    /// The streams whose clients have accepted everything that concerns them, or were not concerned.
    pub accepted: Vec<StreamInfo>,
    /// The rejections: one for each stream and type. An earlier rejection counts as long as it
    /// [stands](Rejected::standing): the client does not have all that the push ends with.
    pub rejected: Vec<Rejection>,
    /// The streams that have closed before their clients answered, and that were not followed by another one of the
    /// same node: the client left, or died of the push. It receives the change when it reconnects.
    pub closed: Vec<StreamInfo>,
    /// The streams that had not answered when the limit had passed: their clients are slow, or stalled.
    pub behind: Vec<StreamInfo>,
}

/// A client that rejected a push, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rejection {
    /// The stream of the client.
    pub stream: StreamInfo,
    /// The type of the rejected resources.
    pub type_url: TypeUrl,
    /// The rejected response, and the client's reason.
    pub rejected: Rejected,
}

impl Outcome {
    /// Returns whether every client has accepted the push. A client that left without an answer has not.
    pub fn is_accepted(&self) -> bool {
        self.rejected.is_empty() && self.closed.is_empty() && self.behind.is_empty()
    }
}

impl<S: Store> Push<S> {
    pub(super) fn new(group: Group<S>, revision: Revision) -> Self {
        Self { group, revision }
    }

    /// Returns the revision of the source that the push ends with. An
    /// [`Action::Ack`](xds_machine::server::Action::Ack) of this revision or a later one accepts what it had of the push.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Waits until all clients have answered, but no longer than `limit`. The clients are those whose streams are open
    /// in the group at the call; a client that the push does not concern has accepted it when its stream has seen the
    /// push.
    ///
    /// If a stream closes before its client has answered, the push waits for the next stream of the same node (by its
    /// id) to the same service, and takes what that one answers. A node that does not come back within `limit` is among
    /// the [closed](Outcome::closed); so is at once a client without a node id.
    ///
    /// A client may still receive the rest of a large answer that is sent in portions, or removals that wait for their
    /// successors.
    ///
    /// Cancel safety: dropping the future ends the wait and nothing else.
    pub fn acked(self, limit: Duration) -> impl Future<Output = Outcome> + Send + 'static {
        let Self { group, revision } = self;
        let mut waiting = Waiting::new(revision);
        waiting.look(&group);
        async move {
            let mut waiter = Waiter::new();
            let all = poll_fn(|cx| {
                waiter.wait(group.verdicts(), cx.waker());
                if waiting.take_answered(&group) { Poll::Ready(()) } else { Poll::Pending }
            });
            let _ = timeout(limit, all).await; // streams that are behind stay in the list
            waiting.end(&group)
        }
    }
}

/// A push whose clients have not all answered.
struct Waiting {
    outcome: Outcome,
    /// Streams that closed without an answer, and whose nodes may come back.
    left: Vec<StreamInfo>,
    /// Streams that joined after the push, and that continue none that closed: by node and method.
    new: HashMap<(String, Method), Vec<StreamInfo>>,
    /// The number of streams that had joined the group when it was looked at last.
    joined: u64,
}

impl Waiting {
    fn new(revision: Revision) -> Self {
        let (accepted, rejected, closed, behind) = Default::default();
        let outcome = Outcome { revision, accepted, rejected, closed, behind };
        Self { outcome, left: Vec::new(), new: HashMap::new(), joined: 0 }
    }

    /// Notes the streams of the group.
    fn look<S: Store>(&mut self, group: &Group<S>) {
        self.outcome.behind = group.streams_since(&mut self.joined);
        self.outcome.behind.reverse();
    }

    /// Sorts the streams that have answered, up to the first that has not, so that a wake-up costs no more than the
    /// streams that it sorts. Returns whether all have answered, and no node may come back.
    fn take_answered<S: Store>(&mut self, group: &Group<S>) -> bool {
        loop {
            while let Some(stream) = self.outcome.behind.pop() {
                if let Err(stream) = self.take(stream) {
                    self.outcome.behind.push(stream);
                    return false;
                }
            }
            if !self.follow(group) {
                return self.left.is_empty();
            }
        }
    }

    /// Sorts all streams, at the end.
    fn end<S: Store>(mut self, group: &Group<S>) -> Outcome {
        let mut behind = Vec::new();
        loop {
            while let Some(stream) = self.outcome.behind.pop() {
                behind.extend(self.take(stream).err());
            }
            if !self.follow(group) {
                break;
            }
        }
        self.outcome.closed.append(&mut self.left);
        Outcome { behind, ..self.outcome }
    }

    /// Puts the next streams of nodes that left in the place of those that closed. Returns whether there are any.
    fn follow<S: Store>(&mut self, group: &Group<S>) -> bool {
        if self.left.is_empty() {
            return false;
        }
        for stream in group.streams_since(&mut self.joined) {
            if let Some(key) = key(&stream) {
                self.new.entry(key).or_default().push(stream);
            }
        }
        let (new, behind) = (&mut self.new, &mut self.outcome.behind);
        let before = behind.len();
        self.left.retain(|stream| {
            let next = key(stream).and_then(|key| new.get_mut(&key)?.pop());
            let is_away = next.is_none();
            behind.extend(next);
            is_away
        });
        behind.len() > before
    }

    /// Sorts a stream, or returns it if its client has not answered yet.
    fn take(&mut self, stream: StreamInfo) -> Result<(), StreamInfo> {
        let revision = self.outcome.revision;
        let outcome = &mut self.outcome;
        if !stream.is_settled(revision) && !stream.is_closed() {
            return Err(stream);
        }
        let rejections = stream.rejections(revision);
        if !rejections.is_empty() {
            let rejections = rejections.into_iter();
            outcome.rejected.extend(rejections.map(|(type_url, rejected)| Rejection {
                stream: stream.clone(),
                type_url,
                rejected,
            }));
        } else if stream.is_settled(revision) {
            outcome.accepted.push(stream);
        } else if key(&stream).is_some() {
            self.left.push(stream);
        } else {
            outcome.closed.push(stream);
        }
        Ok(())
    }
}

/// Returns what the next stream of the same node has in common with this one; `None` without a node id.
fn key(stream: &StreamInfo) -> Option<(String, Method)> {
    let id = &stream.node()?.id;
    (!id.is_empty()).then(|| (id.clone(), stream.method()))
}

//! A change on its way to the clients, which can be awaited.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;
use xds_machine::TypeUrl;
use xds_machine::server::Revision;
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
    /// The rejections: one for each stream and type.
    pub rejected: Vec<Rejection>,
    /// The streams that have closed meanwhile. Their clients receive the change when they reconnect.
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
    /// Returns whether every client has answered, and none has rejected the push.
    pub fn is_accepted(&self) -> bool {
        self.rejected.is_empty() && self.behind.is_empty()
    }
}

impl<S: Store> Push<S> {
    pub(super) fn new(group: Group<S>, revision: Revision) -> Self {
        Self { group, revision }
    }

    /// Returns the revision of the source that the push ends with. An
    /// [`Action::Ack`](xds_machine::server::Action::Ack) of this revision or a later one accepts the push.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Waits until all clients have answered, but no longer than `limit`. The clients are those whose streams are open
    /// in the group now; a client that the push does not concern has accepted it when its stream has seen the push.
    ///
    /// A client may still receive the rest of a large answer that is sent in portions, or removals that wait for their
    /// successors.
    pub async fn acked(self, limit: Duration) -> Outcome {
        let Self { group, revision } = self;
        let (accepted, rejected) = (Vec::new(), Vec::new());
        let mut outcome = Outcome { revision, accepted, rejected, closed: Vec::new(), behind: group.streams() };
        outcome.behind.reverse();
        let mut waiter = Waiter::new();
        let all = poll_fn(|cx| {
            waiter.wait(group.verdicts(), cx.waker());
            if outcome.take_answered() { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = timeout(limit, all).await; // streams that are behind stay in the list
        outcome.take_all_answered();
        outcome
    }
}

impl Outcome {
    /// Sorts the streams that have answered, up to the first that has not, so that a wake-up costs no more than the
    /// streams that it sorts. Returns whether all have answered.
    fn take_answered(&mut self) -> bool {
        while let Some(stream) = self.behind.pop() {
            if let Err(stream) = self.take(stream) {
                self.behind.push(stream);
                return false;
            }
        }
        true
    }

    /// Sorts all streams that have answered.
    fn take_all_answered(&mut self) {
        let streams = std::mem::take(&mut self.behind);
        self.behind = streams.into_iter().rev().filter_map(|stream| self.take(stream).err()).collect();
    }

    fn take(&mut self, stream: StreamInfo) -> Result<(), StreamInfo> {
        if !stream.is_settled(self.revision) && !stream.is_closed() {
            return Err(stream);
        }
        let rejections = stream.rejections(self.revision);
        if !rejections.is_empty() {
            let rejections = rejections.into_iter();
            self.rejected.extend(rejections.map(|(type_url, rejected)| Rejection {
                stream: stream.clone(),
                type_url,
                rejected,
            }));
        } else if stream.is_settled(self.revision) {
            self.accepted.push(stream);
        } else {
            self.closed.push(stream);
        }
        Ok(())
    }
}

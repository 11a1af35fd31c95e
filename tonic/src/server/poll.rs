//! Polls (REST): answered from the same groups as streams, and held until there is something new.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tonic::{Code, Request, Status};
use xds_machine::message::sotw;
use xds_machine::poll::{Held, Offers, Question, Reply};
use xds_machine::server::Config;
use xds_machine::service::{self, Method};
use xds_machine_driver::Runtime;
use xds_machine_driver::server::{Store, Waiter};

use super::ControlPlane;
use super::control_plane::{DRAINING, Plane};
use super::stream::lock;

/// The number of polls of which it is remembered what they were answered with.
const OFFERS: usize = 65_536;

/// What the polls of a control plane share.
pub(super) struct Polls {
    offers: Mutex<Offers>,
    held: AtomicUsize,
}

impl Polls {
    pub(super) fn new() -> Self {
        Self { offers: Mutex::new(Offers::new(OFFERS)), held: AtomicUsize::new(0) }
    }
}

/// The place of a poll among those that are held.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S: Store> ControlPlane<S> {
    /// Answers a poll over REST: at once if there is something new, and otherwise when there is, or when it was held for
    /// as long as `hold` ([`xds_machine::poll::hold`]). The type of the request is that of the path. JSON and HTTP are
    /// the caller's. Dropping the future is all that a client that hangs up needs.
    ///
    /// Polls and streams see the same groups: the function of [`builder`](Self::builder) is called for each poll, with
    /// the metadata and extensions of `call`.
    ///
    /// # Errors
    ///
    /// The status with which the node was refused, or UNAVAILABLE if the control plane shuts down, for which a held poll
    /// does not wait. Both are no answer to the client: 403 and 503, for example.
    pub async fn poll(&self, call: Request<()>, request: sotw::Request, hold: Duration) -> Result<Reply, Status> {
        let plane = self.plane();
        let node = request.node.clone().unwrap_or_default();
        let group = (plane.assign)(&node, &call)?;
        let mut question = match Question::new(&plane.config_of(&request), request) {
            Ok(question) => question,
            Err(refused) => return Ok(Reply::Refused(refused)),
        };
        lock(&plane.polls.offers).recall(&mut question);
        let place = Place(&plane.polls.held);
        let is_room = plane.polls.held.fetch_add(1, Ordering::AcqRel) < plane.limits.held_polls;
        let hold = if is_room { hold } else { Duration::ZERO };
        let mut held = Held::new(question, plane.runtime.now(), hold);
        let mut sleep = pin!(plane.runtime.sleep_until(held.poll_timeout()));
        let (mut changed, mut ending) = (Waiter::new(), Waiter::new());
        let reply = poll_fn(|cx| {
            changed.wait(group.wakers(), cx.waker());
            ending.wait(&plane.ending, cx.waker());
            if plane.is_draining.load(Ordering::Acquire) {
                return Poll::Ready(Err(Status::new(Code::Unavailable, DRAINING)));
            }
            // The timer first, so that the look after it sees that the time has come.
            let is_over = sleep.as_mut().poll(cx).is_ready();
            let now = plane.runtime.now();
            let now = if is_over { now.max(held.poll_timeout()) } else { now };
            group.with(|source| held.poll(now, source)).map_or(Poll::Pending, |reply| Poll::Ready(Ok(reply)))
        })
        .await?;
        drop(place);
        if let Reply::Response(response) = &reply {
            lock(&plane.polls.offers).note(&node.id, held.question(), response);
        }
        Ok(reply)
    }
}

impl<S: Store> Plane<S> {
    fn config_of(&self, request: &sotw::Request) -> Config {
        let known = service::types().find(|known| request.type_url == **known);
        match known {
            Some(known) => self.config(Method { variant: service::Variant::Sotw, type_url: Some(known) }),
            None => self.config(Method { variant: service::Variant::Sotw, type_url: None }),
        }
    }
}

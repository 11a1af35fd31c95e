//! Polls (REST): answered from the same groups as streams, and held until there is something new for the client.

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

/// The number of polls whose last response is remembered.
const OFFERS: usize = 65_536;

/// The state that the polls of a control plane share.
pub(super) struct Polls {
    offers: Mutex<Offers>,
    held: AtomicUsize,
}

impl Polls {
    pub(super) fn new() -> Self {
        Self { offers: Mutex::new(Offers::new(OFFERS)), held: AtomicUsize::new(0) }
    }
}

/// The place of a poll among the held polls.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S: Store> ControlPlane<S> {
    /// Answers a poll over REST: at once if there is something new for the client, otherwise as soon as there is, or
    /// after `hold` ([`xds_machine::poll::hold`]). The caller handles JSON and HTTP, and sets the type of the request
    /// to that of the path. If the client hangs up, it is enough to drop the future.
    ///
    /// Polls and streams see the same groups: the function of [`builder`](Self::builder) is called for each poll, with
    /// the metadata and extensions of `call`.
    ///
    /// # Errors
    ///
    /// Returns the status with which the node was refused, or UNAVAILABLE if the control plane shuts down, which ends
    /// held polls at once. Neither is a reply of the protocol: answer the client with HTTP status 403 and 503, for
    /// example.
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
            // The timer is polled first, so that `held` is polled with the time at which it ends.
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

//! The control plane's side of one stream: assignment, registration, observation, the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tonic::Request;
use xds_machine::message::Node;
use xds_machine::server::{Action, Response, Revision, Variant};
use xds_machine::{Code, Status};
use xds_machine_driver::server::{Handler, Store, Waiter};

use super::control_plane::Plane;
use super::requests::gone;
use super::{Group, Observer, StreamInfo};
use crate::status::to_tonic;

pub(super) struct Session<S: Store> {
    plane: Arc<Plane<S>>,
    stream: StreamInfo,
    /// The call, until the stream is assigned.
    call: Option<Box<Request<()>>>,
    /// The group, and the place of the stream in it.
    group: Option<(Group<S>, u64)>,
    ending: Waiter,
    /// The status of a node that was refused, with its details.
    refusal: Option<Box<tonic::Status>>,
    is_open: bool,
}

impl<S: Store> Session<S> {
    /// Opens a stream, which the control plane has registered.
    pub(super) fn open(plane: Arc<Plane<S>>, stream: StreamInfo, call: Request<()>) -> Self {
        if let Some(observer) = &plane.observer {
            observer.opened(&stream);
        }
        let call = Some(Box::new(call));
        Self { plane, stream, call, group: None, ending: Waiter::new(), refusal: None, is_open: true }
    }

    /// Ends the stream, and returns the status to send. `None` is the status OK.
    pub(super) fn end(&mut self, status: Option<Status>) -> tonic::Status {
        let status = match (self.refusal.take(), status) {
            (Some(refusal), _) => *refusal,
            (None, Some(status)) => to_tonic(status),
            (None, None) => tonic::Status::new(tonic::Code::Ok, ""),
        };
        if std::mem::take(&mut self.is_open) {
            self.ending = Waiter::new();
            self.stream.set_closed();
            self.plane.remove(self.stream.id());
            if let Some((group, place)) = self.group.take() {
                group.leave(place);
            }
            if let Some(observer) = self.observer() {
                observer.closed(&self.stream, &status);
            }
        }
        status
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.plane.observer.as_deref()
    }
}

impl<S: Store> Drop for Session<S> {
    fn drop(&mut self) {
        self.end(Some(gone()));
    }
}

impl<V: Variant, S: Store> Handler<V> for Session<S> {
    type Store = Group<S>;

    fn assign(&mut self, node: &Node) -> Result<Group<S>, Status> {
        let call = self.call.take().unwrap_or_else(|| Box::new(Request::new(())));
        match (self.plane.assign)(node, &call) {
            Ok(group) => {
                self.group = Some((group.clone(), group.join(&self.stream)));
                self.plane.assigned_to(self.stream.id(), &group);
                Ok(group)
            }
            Err(status) => {
                let (code, message) = (status.code() as i32, status.message().into());
                self.refusal = Some(Box::new(status));
                Err(Status { code, message })
            }
        }
    }

    fn handle_request(&mut self, _: &V::Request) {
        if let Some(observer) = self.observer() {
            observer.request(&self.stream);
        }
    }

    fn handle_action(&mut self, action: &Action) {
        match action {
            Action::Node(node) => self.stream.set_node(node),
            _ => {
                if let (Some(type_url), Some((group, _))) = (self.stream.note_verdict(action), &self.group) {
                    group.store().with(|source| self.stream.renew(type_url, source));
                }
            }
        }
        if let Some(observer) = self.observer() {
            observer.action(&self.stream, action);
        }
    }

    fn handle_response(&mut self, response: &Response<V>) {
        self.stream.note_sent(response);
        if let Some(observer) = self.observer() {
            observer.sent(&self.stream, response);
        }
    }

    fn handle_settled(&mut self, revision: Revision) {
        if let Some((group, _)) = &self.group {
            group.settle(&self.stream, revision);
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        self.ending.wait(&self.plane.ending, cx.waker());
        if let Some(status) = self.stream.ending() {
            return Poll::Ready(status.clone());
        }
        if self.plane.is_draining.load(Ordering::Acquire) {
            return Poll::Ready(Status::new(Code::Unavailable, super::control_plane::DRAINING));
        }
        Poll::Pending
    }
}

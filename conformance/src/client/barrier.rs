//! How the kit knows that a client has nothing more to send: the client answers a later response, and is quiet.

use super::item::kit_item;
use super::reference::Reference;
use super::session::{Barrier, Entry, Session};
use crate::message::Response;
use crate::referee::{Complaint, Merit, Rule};
use crate::resource;
use crate::run::Trouble;

impl Session<'_> {
    /// Lets the client subscribe to a resource for barriers, for as long as the session lasts, and measures how long
    /// its answers take.
    ///
    /// Returns whether the client asks for the resource. A client that asks and does not answer has no barrier.
    ///
    /// # Errors
    ///
    /// If the client refuses.
    pub fn calibrate(&mut self, type_url: &str, name: &str) -> Result<bool, Trouble> {
        let wildcard = name == "*";
        self.tell(type_url, &[name.to_owned()], false)?;
        let name = if wildcard { "kit-barrier".to_owned() } else { name.to_owned() };
        self.barrier = Some(Barrier { type_url: type_url.to_owned(), name, revision: 0 });
        if !self.wait_asked(type_url) {
            self.barrier = None;
            return Ok(false);
        }
        for _ in 0..4 {
            if !self.answers_barrier() {
                self.barrier = None;
                break;
            }
        }
        Ok(true)
    }

    /// Waits for a client that cannot be told what to ask for, and measures how long its answers take. Returns whether
    /// it asks.
    pub fn calibrate_reference(&mut self, separate: bool) -> bool {
        self.reference = Some(Reference::new(separate));
        let type_url = resource::type_url("lds");
        self.barrier = Some(Barrier { type_url: type_url.into(), name: String::new(), revision: 0 });
        let asks = self.wait_asked(type_url);
        for _ in 0..4 {
            if !asks || !self.answers_barrier() {
                self.barrier = None;
                break;
            }
        }
        asks
    }

    /// Makes sure that the client has read everything, as far as that can be known: the client answers another
    /// response, and then sends nothing for a while.
    pub(super) fn rest(&mut self) {
        if !self.settle() {
            return;
        }
        self.drain(self.timing.quiet);
        let wanted = self.wanted.clone();
        let complaints = |session: &Self| -> Vec<Complaint> {
            session.streams.values().flat_map(|stream| stream.referee.clone().rest(&wanted)).collect()
        };
        let is_known = |session: &Self, complaint: &Complaint| {
            session
                .complaints
                .iter()
                .any(|known| (known.rule, &known.type_url) == (complaint.rule, &complaint.type_url))
        };
        // A client may be slow to request the names that it wants. The kit does not wait again for a complaint that it
        // already has.
        if complaints(self).iter().any(|complaint| !is_known(self, complaint)) {
            self.wait_until(self.timing.answer, |session| complaints(session).is_empty());
        }
        let referees = self.streams.values_mut().map(|stream| &mut stream.referee);
        let complaints: Vec<Complaint> = referees.flat_map(|referee| referee.rest(&wanted)).collect();
        for complaint in complaints {
            // An Envoy does not answer a response of clusters before it has their endpoints.
            let may_wait = self.reference.is_some() && Reference::serves(&complaint.type_url);
            if !(may_wait && complaint.rule == Rule::NotAnswered) {
                self.complain(complaint);
            }
        }
    }

    /// Lets the client answer the barrier. Returns whether the client is still there.
    pub(super) fn settle(&mut self) -> bool {
        let Some(barrier) = self.barrier.as_ref().map(|barrier| barrier.type_url.clone()) else {
            self.drain(self.timing.quiet);
            return self.gone.is_none();
        };
        if self.wait_asked(&barrier) {
            self.answers_barrier();
        } else if self.gone.is_none() {
            self.gone = Some(format!("the client does not come back within {} s", self.timing.again.as_secs()));
        }
        self.gone.is_none()
    }

    /// Sends the barrier's resource, and waits for the answer. Returns whether it came.
    fn answers_barrier(&mut self) -> bool {
        let Some(barrier) = &mut self.barrier else { return false };
        barrier.revision += 1;
        let (type_url, name, revision) = (barrier.type_url.clone(), barrier.name.clone(), barrier.revision);
        let mut response = match &self.reference {
            Some(reference) => reference.listeners(),
            None => {
                let resources = vec![kit_item(&type_url, &name, revision)];
                Response { resources, type_url: type_url.clone(), ..Response::default() }
            }
        };
        response.version = self.next_version();
        let begun = self.peer.now();
        let mark = self.log.len();
        if !self.send(&mut response, None, Merit::Good) {
            return false;
        }
        let nonce = response.nonce;
        let is_answer = |entry: &Entry| match entry {
            Entry::Request { request, .. } => request.type_url == type_url && request.nonce == nonce,
            _ => false,
        };
        let came = self.wait_until(self.timing.answer, |session| session.log[mark..].iter().any(is_answer));
        if came {
            self.slowest = self.slowest.max(self.peer.now() - begun);
        }
        came
    }
}

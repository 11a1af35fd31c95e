//! Responses that arrive one at a time and without a stream: the common part of a poll and a file.
//!
//! Each exchange is a stream of [`Client<Sotw>`](Client) with one request and at most one response. So versions,
//! differences, verdicts, TTLs and states are those of streams. The ACK or NACK is composed and not sent: the next
//! request, if there is one, takes its place.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::client::{Action, Client, Config, DataErrors, Rejection, Verdict};
use crate::error::{Code, Error, Misuse, Status};
use crate::interest::Interest;
use crate::message::sotw::{Request, Response};
use crate::model::{Label, Relabel};
use crate::name::{Nonce, ResourceName, TypeUrl, Version, WILDCARD};
use crate::time::Instant;
use crate::variant::Sotw;

/// The subscription of one type whose responses arrive one at a time.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Fetch {
    client: Client<Sotw>,
    type_url: TypeUrl,
    /// The number of requests made so far.
    asked: u64,
    /// The reason why the last response was rejected; `None` once a response is accepted.
    error: Option<Status>,
    /// The fingerprint of the last update, if all of it was accepted and nothing of it was lost since.
    applied: Option<u128>,
    /// The fingerprint of the update that waits for its verdict; `Some(None)` if a name was unsubscribed meanwhile.
    out: Option<Option<u128>>,
    /// Whether the application lacks resources of the accepted version: by a TTL, or by a rejection.
    lost: bool,
    /// Names that were unsubscribed since the accepted version was requested, each with the number of requests that
    /// were made until then.
    left: BTreeMap<ResourceName, u64>,
}

/// The outcome of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// The application judges it.
    Judging,
    Accepted,
    Rejected,
}

impl Fetch {
    pub(crate) fn new(config: Config, type_url: TypeUrl) -> Self {
        let client = Client::new(config.with_complete_responses(&type_url));
        let (error, applied, out) = (None, None, None);
        let (asked, lost, left) = (0, false, BTreeMap::new());
        Self { client, type_url, asked, error, applied, out, lost, left }
    }

    pub(crate) fn client(&self) -> &Client<Sotw> {
        &self.client
    }

    pub(crate) fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    pub(crate) fn error(&self) -> Option<&Status> {
        self.error.as_ref()
    }

    /// Returns the version of the last response that was accepted completely.
    fn version(&self) -> Version {
        self.client.layer(&self.type_url).version().cloned().unwrap_or_default()
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.client.wants_stream()
    }

    pub(crate) fn is_judged(&self) -> bool {
        self.out.is_some()
    }

    fn interest(&self) -> Interest {
        self.client.resources(&self.type_url).interest()
    }

    /// Subscribes to these names. Returns whether any of them is new.
    pub(crate) fn subscribe(
        &mut self,
        names: impl IntoIterator<Item = impl Into<ResourceName>>,
    ) -> Result<bool, Misuse> {
        let before = self.interest();
        self.client.resources_mut(&self.type_url).subscribe(names)?;
        Ok(self.interest() != before)
    }

    pub(crate) fn unsubscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        let names: Vec<ResourceName> = names.into_iter().map(Into::into).collect();
        let interest = self.interest();
        for name in &names {
            if interest.wildcard && name.is_wildcard() || interest.has_name(name) {
                self.left.insert(name.clone(), self.asked);
                self.applied = None;
                self.out = self.out.map(|_| None);
            }
        }
        self.client.resources_mut(&self.type_url).unsubscribe(names);
    }

    /// Begins the exchange of one response, and returns the request for it. Returns `None` if nothing is subscribed to.
    pub(crate) fn ask(&mut self) -> Option<Request> {
        self.client.handle_open();
        let Some(transmit) = self.client.poll_transmit() else {
            self.client.handle_close();
            return None;
        };
        self.asked += 1;
        let mut request = transmit.request;
        request.version = if self.claims() { self.version() } else { Version::default() };
        Some(request)
    }

    /// Returns whether a request may have the version: a server that reads the version does not send again what the
    /// application lost or gave up since. A new name does not count, because the server has another version for other
    /// names (R-REST-18, R-REST-32).
    fn claims(&self) -> bool {
        if self.lost {
            return false;
        }
        if self.left.is_empty() {
            return true;
        }
        let interest = self.interest();
        !self.left.contains_key(WILDCARD) && !self.left.keys().any(|name| interest.has_name(name))
    }

    /// Ends an exchange without a response.
    pub(crate) fn give_up(&mut self) {
        if !self.is_judged() {
            self.client.handle_close();
        }
    }

    /// Takes a response, or the reason why the content is not one.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        content: Result<Response, String>,
        act: &mut dyn FnMut(Action),
    ) -> Result<Outcome, Misuse> {
        let content = content.and_then(|mut response| {
            if response.type_url.as_str().is_empty() {
                response.type_url = self.type_url.clone();
            }
            response.nonce = Nonce::default(); // nothing will repeat it
            let same = response.type_url == self.type_url;
            if same { Ok(response) } else { Err(format!("the response has the type {}", response.type_url)) }
        });
        let response = match content {
            Ok(response) => response,
            Err(reason) => return Ok(self.refuse(reason, act)),
        };
        match self.client.handle_response(now, response) {
            Ok(()) => {}
            Err(Error::Caller(misuse)) => return Err(misuse),
            Err(Error::Peer(misbehaved)) => {
                return Ok(self.refuse(misbehaved.to_string(), act));
            }
        }
        // R-REST-25: a requested resource that a response lacks does not exist, unless a fault may be of that resource.
        if let Some(faulty) = self.pass_on(now, act) {
            let names = self.client.layer_mut(&self.type_url).settle_absent(&faulty);
            if !names.is_empty() {
                act(Action::DoesNotExist { type_url: self.type_url.clone(), names });
            }
        }
        Ok(self.settle())
    }

    /// Takes the verdict on the update.
    pub(crate) fn verdict(
        &mut self,
        now: Instant,
        verdict: Verdict,
        act: &mut dyn FnMut(Action),
    ) -> Result<Outcome, Misuse> {
        let content = self.out.flatten();
        self.client.handle_verdict(now, verdict)?;
        self.out = None;
        self.pass_on(now, act);
        Ok(self.settle_as(content))
    }

    /// Handles TTLs that ran out.
    pub(crate) fn timeout(&mut self, now: Instant, act: &mut dyn FnMut(Action)) {
        self.client.handle_timeout(now);
        self.pass_on(now, act);
    }

    /// Gives up waiting for names of which nothing is known.
    pub(crate) fn stop_waiting(&mut self, now: Instant, act: &mut dyn FnMut(Action)) {
        self.client.layer_mut(&self.type_url).time_out(now);
        self.pass_on(now, act);
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    /// Returns the subscribed names of which nothing is known, the wildcard first.
    pub(crate) fn awaited(&self) -> Vec<ResourceName> {
        let (interest, layer) = (self.interest(), self.client.layer(&self.type_url));
        let all = interest.wildcard().then(|| ResourceName::from(WILDCARD));
        all.into_iter().chain(interest.names().cloned()).filter(|name| layer.is_awaited(name.clone())).collect()
    }

    /// Returns whether a part of a response later than that of the version was accepted.
    pub(crate) fn is_partly_newer(&self) -> bool {
        self.client.layer(&self.type_url).is_partly_newer()
    }

    /// Notes that the version does not describe what the application has.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    fn refuse(&mut self, reason: String, act: &mut dyn FnMut(Action)) -> Outcome {
        let mut status = Status::new(Code::InvalidArgument, reason.clone());
        status.truncate(self.client.config().limits().error_bytes);
        self.error = Some(status);
        self.client.handle_close();
        let faults = Vec::from([Rejection::nameless(reason)]);
        act(Action::Rejected { type_url: self.type_url.clone(), nonce: Nonce::default(), faults });
        Outcome::Rejected
    }

    /// Passes actions on, and accepts an update that the application already has. Returns the names with a fault;
    /// `None` if a fault has no name.
    fn pass_on(&mut self, now: Instant, act: &mut dyn FnMut(Action)) -> Option<Vec<ResourceName>> {
        let mut faulty = Some(Vec::new());
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::Apply(update) => {
                    let content = update.fingerprint();
                    self.out = Some(Some(content));
                    if self.applied == Some(content) && update.removed().is_empty() {
                        // R-REST-15, R-FS-04: equal content is no news, whatever its version.
                        if self.client.handle_verdict(now, update.accept()).is_ok() {
                            self.out = None;
                        }
                        continue;
                    }
                    act(Action::Apply(update));
                    continue;
                }
                Action::Expired { .. } => {
                    self.lost = true;
                    self.applied = None;
                }
                Action::Rejected { ref faults, .. } => {
                    faulty = faults.iter().map(|fault| fault.name.clone()).collect();
                }
                _ => {}
            }
            act(action);
        }
        faulty
    }

    fn settle(&mut self) -> Outcome {
        if self.is_judged() { Outcome::Judging } else { self.settle_as(self.applied) }
    }

    /// Ends an exchange that waits for no verdict; `content` is the fingerprint of the last update.
    fn settle_as(&mut self, content: Option<u128>) -> Outcome {
        let answer = self.client.poll_transmit();
        self.client.handle_close();
        match answer.map(|answer| answer.request.error) {
            Some(Some(error)) => {
                self.error = Some(error);
                self.applied = None;
                self.lost |= self.client.config().data_errors() == DataErrors::Drop;
                Outcome::Rejected
            }
            Some(None) => {
                self.error = None;
                self.applied = content;
                self.lost = false;
                let asked = self.asked;
                self.left.retain(|_, at| *at >= asked);
                Outcome::Accepted
            }
            None => Outcome::Accepted, // no name was subscribed any more at the verdict
        }
    }
}

impl Relabel for Fetch {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.client.relabel(by);
        by(Label::Attempt(&mut self.asked));
        self.left.values_mut().for_each(|at| by(Label::Attempt(at)));
    }
}

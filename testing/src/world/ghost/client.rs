//! The requests that a client may send, and the actions that it may give its application.

use std::collections::BTreeSet;

use xds_machine::client::{Dialect, Intent, Rejection, Update};
use xds_machine::server::Source;
use xds_machine::{Instant, Nonce, ResourceName};

use super::super::{Application, Both, Made, Store, is_resource};
use super::needless::check_all_claimed;
use super::{Beats, Ghost, Memory, Unanswered, version_of};

impl Ghost {
    pub fn client_says<V: Both>(
        &mut self,
        setup: &Made,
        store: &Store,
        apps: &[Application],
        intent: Intent,
        request: &V::Request,
    ) {
        assert!(self.up, "a request with no stream");
        let request = V::request(request);
        let t = setup.type_number(request.type_url);
        let (memory, app) = (&mut self.types[t], &apps[t]);
        self.requests = 1;

        assert_eq!(intent == Intent::Initial, !memory.asked, "the first request of a type is its first");
        assert_eq!(request.error.is_some(), intent == Intent::Nack, "NACK is the presence of an error");
        assert!(app.paused == 0 || intent == Intent::Initial, "something is said of a type that is held back");
        match intent {
            Intent::Ack | Intent::Nack => {
                // With the small limits as many answers wait as a client keeps at least: the oldest ACK is left out, for
                // that of a later response stands for it.
                let is_left_out = |first: &Unanswered| {
                    let accepted = first.verdict.as_ref().is_some_and(|(accepted, _)| *accepted);
                    setup.limit.is_some() && first.nonce != *request.nonce && accepted
                };
                while memory.unanswered.front().is_some_and(is_left_out) {
                    memory.unanswered.pop_front();
                }
                let first = memory.unanswered.pop_front().expect("an answer to a response that was read");
                assert_eq!(*request.nonce, first.nonce, "responses are answered in order");
                let (accepted, by_then) = first.verdict.expect("a response that was processed");
                assert_eq!(accepted, intent == Intent::Ack, "the answer is the verdict");
                if let Some(claimed) = request.version {
                    assert_eq!(*claimed, by_then, "a version is claimed, and another one was accepted last");
                }
            }
            Intent::Initial => {
                assert!(request.nonce.is_empty(), "nonces do not outlive streams");
                // A client that claims the server's version receives nothing.
                let version = store.cache.version(&setup.types[t]);
                if request.version.is_some_and(|claimed| *claimed == version) {
                    check_claim(setup, store, t, app);
                }
                if let Some(claimed) = request.version.filter(|_| setup.full_state) {
                    memory.check_claimed(claimed, app);
                }
                if !V::LISTS {
                    check_all_claimed(&request, app);
                }
                for (name, version) in &request.initial {
                    let out = app.judging.as_ref().is_some_and(|update| update.resource(name.as_str()).is_some());
                    let held = app.applied.get(name).map(|&content| version_of(setup, name, content));
                    assert!(held.as_ref() == Some(version) || version.is_empty(), "{name} is not held at {version}");
                    assert!(held.is_some() || out, "{name} is claimed, and not there");
                }
            }
            Intent::Subscribe => {
                if V::LISTS {
                    assert_eq!(
                        Some(request.nonce),
                        memory.read.as_ref().or(Some(&Nonce::default())),
                        "the newest nonce"
                    );
                    assert!(memory.unanswered.is_empty(), "nothing else is said while a response is unanswered");
                } else {
                    assert!(request.nonce.is_empty(), "a request that answers nothing has no nonce");
                }
            }
        }
        // With an istiod, a NACK repeats the names of the last request.
        let bare = intent == Intent::Nack && setup.dialect == Dialect::Istio;
        if V::LISTS && request.names.is_empty() && !memory.named && !bare {
            assert!(app.wanted.iter().any(|name| name.is_wildcard()), "an empty list, and nobody wants everything");
        }
        assert!(
            V::LISTS || intent != Intent::Initial || !request.names.is_empty() || !app.wanted.is_empty(),
            "a first request that wants nothing"
        );
        memory.check_request::<V>(intent, &request);
        memory.asked = true;
        memory.named |= !request.names.is_empty();
    }

    pub fn client_reads<V: Both>(&mut self, setup: &Made, response: &V::Response) {
        let response = V::response(response);
        let t = setup.type_number(&response.type_url);
        let memory = &mut self.types[t];
        let names = response.resources.iter().map(|(name, _)| name.clone()).collect();
        let (nonce, version) = (response.nonce.clone(), response.version);
        memory.unanswered.push_back(Unanswered { nonce, version, names, verdict: None });
        let has = |name: &ResourceName| response.resources.iter().any(|(other, _)| other == name);
        memory.silent.retain(|name, sent| !*sent || (!has(name) && !response.beats.contains_key(name)));
        if !response.beats.is_empty() {
            memory.beats.push_back(Beats { nonce: response.nonce.clone(), resources: response.beats });
        }
        memory.read = Some(response.nonce);
    }

    /// Checks the faults that the client found in a response of this crate's server: only heartbeats of resources that
    /// are not held (any more).
    pub fn finds_faults<V: Both>(
        &mut self,
        setup: &Made,
        t: usize,
        app: &Application,
        nonce: &Nonce,
        faults: &[Rejection],
    ) {
        let memory = &mut self.types[t];
        for fault in faults {
            let name = fault.name.as_ref().expect("a name");
            // In SotW the heartbeat may be that of an earlier response, which was merged into this one.
            let to = memory.place(nonce);
            let places = memory.beats.iter().map(|beats| memory.place(&beats.nonce));
            let at = places.enumerate().filter(|(_, place)| if V::LISTS { *place <= to } else { *place == to });
            let at: Vec<usize> = at.map(|(at, _)| at).collect();
            let at = at.into_iter().rev().find(|at| memory.beats[*at].resources.contains_key(name));
            let beats = &mut memory.beats[at.expect("there is no fault")];
            let (version, _) = beats.resources.remove(name).expect("a heartbeat of it");
            let held = app.applied.get(name).map(|&content| version_of(setup, name, content));
            let lives = if V::LISTS { memory.accepted == version } else { held.as_ref() == Some(&version) };
            assert!(held.is_none() || !lives, "{name} lives on, and that is rejected");
        }
        faults.iter().filter_map(|fault| fault.name.as_ref()).for_each(|name| memory.mention(name));
        memory.faulty.insert(nonce.clone());
    }

    /// Records that the client processed the responses up to the one that the application judges: their heartbeats
    /// count.
    pub fn beat<V: Both>(&mut self, setup: &Made, now: Instant, t: usize, app: &mut Application) {
        let Memory { beats, unanswered, accepted, .. } = &mut self.types[t];
        let place = |nonce: &Nonce| unanswered.iter().position(|other| other.nonce == *nonce);
        while let Some(first) = beats.front() {
            let waits = app.judging.as_ref().is_some_and(|update| place(&first.nonce) > place(update.nonce()));
            if waits {
                return;
            }
            let Some(Beats { resources, .. }) = beats.pop_front().filter(|_| setup.tells_ttls()) else { return };
            // After an unsubscription and a new subscription of a name, the client ignores the name's updates until it
            // has sent the subscription, including heartbeats.
            for (name, (version, ttl)) in resources {
                let held = app.applied.get(&name).map(|&content| version_of(setup, &name, content));
                if held.is_some_and(|held| if V::LISTS { *accepted == version } else { held == version }) {
                    // C-TTL-05: a heartbeat may change the TTL.
                    app.until.remove(&name);
                    app.until.extend(ttl.map(|ttl| (name, now + ttl)));
                }
            }
        }
    }

    /// Records the heartbeats of the response that was read last, which waits for an earlier verdict: those of held
    /// resources count at once, and those of content that waits keep the held content alive.
    pub fn beat_at_once<V: Both>(&mut self, setup: &Made, now: Instant, t: usize, app: &mut Application) {
        let Memory { beats, unanswered, accepted, read, .. } = &mut self.types[t];
        let last = beats.back_mut().filter(|beats| Some(&beats.nonce) == read.as_ref() && setup.tells_ttls());
        let Some(Beats { resources, .. }) = last else { return };
        resources.retain(|name, (version, ttl)| {
            let Some(&content) = app.applied.get(name) else { return true };
            let until = ttl.map(|ttl| now + ttl);
            let holds = if V::LISTS { *accepted == *version } else { version_of(setup, name, content) == *version };
            if holds {
                app.renew(name, until);
                return false;
            }
            let waits = |other: &Unanswered| other.verdict.is_none() && other.version == *version;
            let judged = app.judging.as_ref().and_then(|update| update.resource(name.clone()));
            let unjudged = if V::LISTS {
                unanswered.iter().any(waits)
            } else {
                app.waiting.contains(name) || judged.is_some_and(|resource| resource.version() == version)
            };
            if unjudged {
                app.extend(name, until);
            }
            true
        });
    }

    pub fn applies(&mut self, t: usize, app: &Application, update: &Update) {
        let memory = &mut self.types[t];
        let to = memory.place(update.nonce());
        let merged = || memory.unanswered.iter().take(to.unwrap_or_default()).filter(|one| one.verdict.is_none());
        let beats = memory.beats.iter().find(|beats| beats.nonce == *update.nonce());
        for resource in update.resources() {
            // The content of a response that waited may be that of an earlier one, which was merged into it.
            let is_earlier = || merged().any(|earlier| earlier.names.contains(resource.name()));
            let beaten = beats.is_some_and(|beats| beats.resources.contains_key(resource.name())) && !is_earlier();
            assert!(!beaten, "{} lives on, and that is no content", resource.name());
            let content = resource.body().last().copied();
            assert!(app.wants(resource.name(), content), "{} is not wanted", resource.name());
        }
        for name in update.removed() {
            assert!(app.applied.contains_key(name), "{name} was never there, and is removed");
        }
        assert!(update.resources().len() > 0 || !update.removed().is_empty(), "there is something to apply");
    }

    /// Records that the client did what it can without its application. If no update is judged, every response was
    /// processed, and those without an update were accepted unseen.
    pub fn rests<V: Both>(&mut self, t: usize, app: &Application) {
        let memory = &mut self.types[t];
        let last = memory.unanswered.back().filter(|last| app.judging.is_none() && last.verdict.is_none());
        if let Some(nonce) = last.map(|last| last.nonce.clone()) {
            memory.settle::<V>(&nonce, &BTreeSet::new());
        }
    }

    pub fn judged<V: Both>(&mut self, t: usize, update: &Update, rejected: &BTreeSet<ResourceName>) {
        let memory = &mut self.types[t];
        let (is_live, is_faulty) = (memory.place(update.nonce()).is_some(), memory.faulty.contains(update.nonce()));
        let accepted = rejected.is_empty() && !is_faulty;
        if is_live {
            memory.settle::<V>(update.nonce(), rejected);
        } else if accepted {
            memory.accepted = update.version().clone();
        }
        memory.note_accepted(Some(update.version()).filter(|_| is_live && accepted));
    }
}

impl Memory {
    /// Returns the place of a response among those that are not answered.
    fn place(&self, nonce: &Nonce) -> Option<usize> {
        self.unanswered.iter().position(|other| other.nonce == *nonce)
    }

    /// Records the verdict on a response, and on those before it that were merged into it: in SotW they share its answer;
    /// in delta a name is rejected with the last response that had it.
    fn settle<V: Both>(&mut self, nonce: &Nonce, rejected: &BTreeSet<ResourceName>) {
        let mut at = self.place(nonce).expect("a response that was read");
        while V::LISTS && at > 0 && self.unanswered[at - 1].verdict.is_none() {
            self.unanswered.remove(at - 1);
            at -= 1;
        }
        let mut rejected = rejected.clone();
        let mut verdicts = Vec::new();
        for one in self.unanswered.iter().take(at + 1).rev() {
            let own = rejected.iter().any(|name| V::LISTS || one.names.contains(name));
            rejected.retain(|name| !one.names.contains(name));
            verdicts.push(!own && !self.faulty.contains(&one.nonce));
        }
        self.faulty.remove(nonce);
        for (one, accepted) in self.unanswered.iter_mut().zip(verdicts.into_iter().rev()) {
            if one.verdict.is_none() || one.nonce == *nonce {
                if accepted {
                    self.accepted = one.version.clone();
                }
                one.verdict = Some((accepted, self.accepted.clone()));
            }
        }
    }
}

/// Checks a claim: a server that skips claimed resources leaves the client with those.
fn check_claim(setup: &Made, store: &Store, t: usize, app: &Application) {
    for name in setup.names.iter().filter(|name| is_resource(name)) {
        let there = store.content(setup, t, name);
        if there.is_some() && app.wants(name, there) {
            let has = [app.applied.get(name), app.rejected.get(name)];
            assert!(has.contains(&there.as_ref()), "{name} is lacking, and all is claimed");
        }
    }
}

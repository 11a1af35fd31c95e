//! The requests that a client may send, and the actions that it may give its application.

use std::collections::BTreeSet;

use xds_machine::client::{Dialect, Intent, Rejection, Update};
use xds_machine::server::Source;
use xds_machine::{Instant, Nonce, ResourceName, Version};

use super::super::{Application, Both, Made, Store, is_resource};
use super::needless::check_all_claimed;
use super::{Beats, Ghost, Memory, version_of};

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
                // In SotW an answer stands for the responses before it that were merged while they waited for a verdict.
                while V::LISTS
                    && memory.unanswered.front().is_some_and(|(nonce, _, verdict)| {
                        nonce != request.nonce && verdict.is_none() && memory.waited.contains(nonce)
                    })
                {
                    memory.unanswered.pop_front().into_iter().for_each(|(nonce, ..)| _ = memory.waited.remove(&nonce));
                }
                // With the small limits one answer waits: the older ACK is left out, for that of a later response stands
                // for it.
                while setup.limit.is_some()
                    && memory.unanswered.front().is_some_and(|(nonce, _, verdict)| {
                        let accepted = verdict.as_ref().is_none_or(|(accepted, _)| *accepted);
                        nonce != request.nonce && accepted
                    })
                {
                    memory.unanswered.pop_front().into_iter().for_each(|(nonce, ..)| _ = memory.waited.remove(&nonce));
                }
                let (nonce, version, verdict) =
                    memory.unanswered.pop_front().expect("an answer to a response that was read");
                assert_eq!(*request.nonce, nonce, "responses are answered in order");
                // In delta the rejected content may have come with an earlier response that was merged.
                let merged = memory.waited.remove(&nonce) && !V::LISTS;
                // A response that was ACKed unseen had no subscribed resource.
                let accepted = intent == Intent::Ack;
                let by_then = match verdict {
                    Some((verdict, by_then)) => {
                        assert!(verdict == accepted || merged, "the answer is the verdict");
                        by_then
                    }
                    None => {
                        assert!(accepted || merged, "nobody rejected this");
                        if memory.unanswered.iter().all(|(.., verdict)| verdict.is_none()) {
                            memory.accepted = BTreeSet::from([version.clone()]);
                        }
                        BTreeSet::from([version])
                    }
                };
                if let Some(claimed) = request.version {
                    assert!(by_then.contains(claimed), "{claimed} is claimed, {by_then:?} was accepted");
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

    pub fn client_reads<V: Both>(&mut self, setup: &Made, response: &V::Response, apps: &[Application]) {
        let response = V::response(response);
        let t = setup.type_number(&response.type_url);
        let (memory, judging) = (&mut self.types[t], apps[t].judging.is_some());
        if judging {
            memory.waited.insert(response.nonce.clone());
        }
        memory.unanswered.push_back((response.nonce.clone(), response.version, None));
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
        let beats = memory.beats.iter_mut().find(|beats| beats.nonce == *nonce).expect("there is no fault");
        for fault in faults {
            let name = fault.name.as_ref().expect("a name");
            let (version, _) = beats.resources.get(name).expect("a heartbeat of it");
            let held = app.applied.get(name).map(|&content| version_of(setup, name, content));
            let lives = if V::LISTS { memory.accepted.contains(version) } else { held.as_ref() == Some(version) };
            assert!(held.is_none() || !lives, "{name} lives on, and that is rejected");
            beats.resources.remove(name);
        }
        faults.iter().filter_map(|fault| fault.name.as_ref()).for_each(|name| memory.mention(name));
        memory.faulty.insert(nonce.clone());
        self.verdict(t, nonce, None, true);
    }

    /// Records that the client processed the responses up to the one that the application judges: their heartbeats
    /// count.
    pub fn beat<V: Both>(&mut self, setup: &Made, now: Instant, t: usize, app: &mut Application) {
        let Memory { beats, unanswered, .. } = &mut self.types[t];
        let place = |nonce: &Nonce| unanswered.iter().position(|(other, ..)| other == nonce);
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
                if held.is_some_and(|held| V::LISTS || held == version) {
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
            let holds =
                if V::LISTS { accepted.contains(version) } else { version_of(setup, name, content) == *version };
            if holds {
                app.renew(name, until);
                return false;
            }
            let waits = |(_, of, verdict): &(_, Version, Option<_>)| verdict.is_none() && *of == *version;
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

    pub fn applies(&self, app: &Application, update: &Update) {
        let t = self.types.iter().position(|memory| memory.beats.iter().any(|beats| beats.nonce == *update.nonce()));
        let beats = t.and_then(|t| self.types[t].beats.iter().find(|beats| beats.nonce == *update.nonce()));
        for resource in update.resources() {
            // The content of a response that waited may be that of an earlier one, which was merged into it.
            let merged = t.is_some_and(|t| self.types[t].waited.contains(update.nonce()));
            let beaten = !merged && beats.is_some_and(|beats| beats.resources.contains_key(resource.name()));
            assert!(!beaten, "{} lives on, and that is no content", resource.name());
            let content = resource.body().last().copied();
            assert!(app.wants(resource.name(), content), "{} is not wanted", resource.name());
        }
        for name in update.removed() {
            assert!(app.applied.contains_key(name), "{name} was never there, and is removed");
        }
        assert!(update.resources().len() > 0 || !update.removed().is_empty(), "there is something to apply");
    }

    pub fn judged(&mut self, t: usize, update: &Update, rejected: bool) {
        let rejected = rejected || self.types[t].faulty.contains(update.nonce());
        self.verdict(t, update.nonce(), Some(update.version()), rejected);
    }

    fn verdict(&mut self, t: usize, judged: &Nonce, version: Option<&Version>, rejected: bool) {
        let memory = &mut self.types[t];
        // Earlier responses that were ACKed unseen are accepted by now.
        let mut accepted = memory.accepted.clone();
        let live = memory.unanswered.iter().any(|(nonce, ..)| nonce == judged);
        for (nonce, version, verdict) in memory.unanswered.iter().filter(|_| live) {
            match verdict {
                _ if nonce == judged => break,
                Some((_, by_then)) => accepted = by_then.clone(),
                // Merged with the one that is judged now (SotW): it shares that verdict.
                None if memory.waited.contains(nonce) => {}
                None => accepted = BTreeSet::from([version.clone()]),
            }
        }
        if let Some(version) = version.filter(|_| !rejected) {
            accepted = BTreeSet::from([version.clone()]);
        }
        memory.note_accepted(version.filter(|_| live && !rejected));
        memory.accepted = accepted.clone();
        if let Some((.., verdict)) = memory.unanswered.iter_mut().find(|(nonce, ..)| nonce == judged) {
            *verdict = Some((!rejected, accepted));
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

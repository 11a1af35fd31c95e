//! A server without rules against a poll and against a file, and polls without rules against a source.

use std::time::Duration;

use xds_machine::client::{self, Rejection, Update};
use xds_machine::file::{self, Files};
use xds_machine::message::{Node, sotw};
use xds_machine::poll::{Action, Answer, Asked, Config, Held, Offers, Poll, Question, Reply};
use xds_machine::server::{self, Cache, Resource};
use xds_machine::{Instant, Nonce, Sotw, Status, type_url};

use super::{Hostile, Input, client::LIMITS};

/// A poll, a file and a source, with their environment.
struct Play {
    poll: Poll,
    files: Files,
    cache: Cache,
    offers: Offers,
    held: Vec<Held>,
    now: Instant,
    asked: Vec<Asked>,
    updates: Vec<Update>,
}

/// Plays the bytes. Returns the machines in their final states.
pub fn play(data: &[u8]) -> (Poll, Files, Offers) {
    let mut input = Input(data);
    let of = input.pick(&[type_url::CLUSTER, type_url::ENDPOINT, type_url::SCOPED_ROUTE]);
    let node = |id| client::Config::new(Node::new("n")).with_limits(LIMITS).with_id(id);
    let config = Config::new(node(0), Duration::from_millis(1 + u64::from(input.byte()))).expect("a delay");
    let config = config.with_report_rejection(input.below(2) == 0).with_poll_on_change(input.below(2) == 0);
    let mut play = Play {
        poll: Poll::new(config, of).expect("a path"),
        files: Files::new(node(1), of),
        cache: Cache::new(1),
        offers: Offers::new(3),
        held: Vec::new(),
        now: Instant::EPOCH,
        asked: Vec::new(),
        updates: Vec::new(),
    };
    while !input.is_empty() {
        play.step(&mut input);
        assert_eq!(play.poll.check_invariants(), Ok(()));
        assert_eq!(play.files.check_invariants(), Ok(()));
    }
    (play.poll, play.files, play.offers)
}

impl Play {
    fn step(&mut self, input: &mut Input<'_>) {
        let now = self.now;
        match input.below(20) {
            0 | 1 => {
                let names = input.some(3, Input::name);
                let before = (self.poll.clone(), self.files.clone());
                let bad = self.poll.subscribe(names.iter().cloned()).is_err();
                assert_eq!(self.files.subscribe(names.iter().cloned()).is_err(), bad);
                assert!(!bad || (&before.0, &before.1) == (&self.poll, &self.files), "a refusal changes nothing");
            }
            2 => {
                let names = input.some(3, Input::name);
                self.poll.unsubscribe(names.iter().cloned());
                self.files.unsubscribe(names);
            }
            3..6 => {
                let wants = self.poll.wants_transmit();
                let post = self.poll.poll_transmit(now);
                assert_eq!(post.is_some(), wants, "wants_transmit says what poll_transmit does");
                if let Some(post) = post {
                    assert_eq!(self.poll.asked(), Some(post.asked));
                    self.asked.truncate(2);
                    self.asked.insert(0, post.asked);
                    self.ask(post.request, input);
                }
            }
            6..10 if !self.asked.is_empty() => {
                let asked = input.pick(&self.asked);
                let answer = match input.below(6) {
                    0 => Answer::NotModified,
                    1 => Answer::Failed("reset".into()),
                    2 => Answer::Malformed("no JSON".repeat(input.below(9))),
                    _ => Answer::Response(response(input, self.poll.type_url().as_str())),
                };
                let before = self.poll.clone();
                let current = self.poll.asked() == Some(asked);
                let taken = self.poll.handle_answer(now, asked, answer, u64::from(input.byte()) << 32);
                assert!((taken.is_ok() && current) || self.poll == before, "late or refused, and it changes something");
            }
            10 | 11 => self.take(),
            12 | 13 if !self.updates.is_empty() => {
                let at = input.below(self.updates.len());
                let update = if input.below(4) == 0 { self.updates[at].clone() } else { self.updates.remove(at) };
                let rejections = input.some(1, |input| Rejection::new(input.name(), "no"));
                let verdict = update.reject(rejections);
                if verdict.client_id() == 0 {
                    let before = self.poll.clone();
                    assert!(self.poll.handle_verdict(now, verdict).is_ok() || self.poll == before);
                } else {
                    let before = self.files.clone();
                    assert!(self.files.handle_verdict(now, verdict).is_ok() || self.files == before);
                }
            }
            14 => self.files.handle_moved(),
            15 => {
                let of = self.files.type_url().clone();
                let content = match input.below(3) {
                    0 => Err("no such file".into()),
                    _ => Ok(response(input, of.as_str())),
                };
                let _ = self.files.handle_content(now, content); // too many actions wait
            }
            16 => {
                let (of, name) = (self.poll.type_url().clone(), input.name());
                if !name.as_str().is_empty() {
                    _ = match input.below(4) {
                        0 => self.cache.remove(&of, name),
                        1 => self.cache.set_unknown(&of, name),
                        _ => self.cache.insert(&of, Resource::new(name, vec![input.byte()])),
                    };
                }
            }
            17 => {
                let request = Sotw::any_request(input, |_, _| Nonce::default());
                self.ask(request, input);
            }
            18 => {
                let cache = &self.cache;
                self.held.retain_mut(|held| held.poll(now, cache).is_none() || held.poll_timeout() > now);
                assert!(self.held.iter().all(|held| held.poll_timeout() > now), "a hold is over, and not answered");
            }
            _ => {
                let far = input.byte();
                let dues = [self.poll.poll_timeout(), self.files.poll_timeout()];
                let due = dues.into_iter().flatten().min().filter(|_| far < 200);
                self.now = now.max(due.unwrap_or(now + Duration::from_secs(u64::from(far))));
                self.poll.handle_timeout(self.now, u64::from(far));
                self.files.handle_timeout(self.now);
            }
        }
    }

    /// Asks the source, and holds a poll that has nothing new.
    fn ask(&mut self, mut request: sotw::Request, input: &mut Input<'_>) {
        if input.below(4) == 0 {
            request.error = Some(Status { code: 3, message: "no".into() });
        }
        let Ok(mut question) = Question::new(&server::Config::ads(), request) else { return };
        self.offers.recall(&mut question);
        match question.answer(&self.cache) {
            Reply::Response(response) => {
                assert!(response.resources().all(|resource| !resource.name().as_str().is_empty()));
                self.offers.note("n", &question, &response);
            }
            _ => {
                self.held.truncate(3);
                self.held.push(Held::new(question, self.now, Duration::from_secs(u64::from(input.byte()))));
            }
        }
    }

    fn take(&mut self) {
        let mut actions = Vec::new();
        while let Some(action) = self.poll.poll_action() {
            if let Action::Client(action) = action {
                actions.push(action);
            }
        }
        while let Some(action) = self.files.poll_action() {
            if let file::Action::Client(action) = action {
                actions.push(action);
            }
        }
        for action in actions {
            if let client::Action::Apply(update) = action {
                self.updates.truncate(3);
                self.updates.push(update);
            }
        }
    }
}

/// Returns a response, mostly of this type.
fn response(input: &mut Input<'_>, of: &str) -> sotw::Response {
    let mut response = Sotw::any_response(input);
    if input.below(4) != 0 {
        let old = std::mem::replace(&mut response.type_url, of.into());
        for item in &mut response.resources {
            if let sotw::Item::Bare(any) = item {
                if any.type_url == old {
                    any.type_url = of.into();
                }
            }
        }
    }
    response
}

//! A server without rules, and an application and a driver that act at random.

use std::time::Duration;

use xds_machine::client::{Action, Client, Config, Limits, Rejection, Sent, Update};
use xds_machine::message::Node;
use xds_machine::{Error, Instant};

use super::{Hostile, Input};

/// Small limits, so that they are reached.
pub const LIMITS: Limits = Limits {
    waiting_responses: 2,
    waiting_bytes: 10_000,
    responses_per_stream: usize::MAX,
    resources_per_response: 8,
    resources_per_type: 12,
    nonce_bytes: 40,
    version_bytes: 40,
    error_bytes: 16,
    departed_names: 4,
    waiting_actions: 8,
};

/// A client and its environment.
struct Play<V: Hostile> {
    client: Client<V>,
    now: Instant,
    /// Requests that the transport has not taken yet.
    sending: Vec<Sent>,
    /// Updates that may or may not be judged: the application may judge twice.
    updates: Vec<Update>,
    sent: u64,
}

/// Plays the bytes. Returns the client in its final state.
pub fn play<V: Hostile>(data: &[u8]) -> Client<V> {
    let mut input = Input(data);
    let config = match input.below(4) {
        0 => Config::new(Node::new("n")).with_existence_timeout(None),
        1 => Config::new(Node::new("n")).without_ttl(),
        _ => Config::new(Node::new("n")),
    };
    let client = Client::<V>::new(config.with_limits(LIMITS));
    let mut play = Play { client, now: Instant::EPOCH, sending: Vec::new(), updates: Vec::new(), sent: 0 };
    while !input.is_empty() {
        play.step(&mut input);
        play.check();
    }
    play.client
}

impl<V: Hostile> Play<V> {
    fn step(&mut self, input: &mut Input<'_>) {
        let (client, now) = (&mut self.client, self.now);
        match input.below(20) {
            0 => client.handle_open(),
            1 => client.handle_close(),
            2..8 => {
                let response = V::any_response(input);
                let before = client.clone();
                let room = client.wants_response();
                match client.handle_response(now, response) {
                    Ok(()) => {}
                    Err(error) => {
                        assert_eq!(*client, before, "{error}: a refused response changes nothing");
                        let excused =
                            matches!(error, Error::Peer(_)) || !room || self.waiting() >= LIMITS.waiting_actions;
                        assert!(excused, "{error}, though there was room");
                    }
                }
            }
            8 => {
                let (type_url, names) = (input.type_url(), input.some(3, Input::name));
                let before = client.clone();
                if client.resources_mut(&type_url).subscribe(names.iter().cloned()).is_err() {
                    assert!(names.iter().any(|name| name.as_str().is_empty()));
                    assert_eq!(*client, before, "a refused subscription changes nothing");
                }
            }
            9 => client.resources_mut(&input.type_url()).subscribe([["a", "*"][input.below(2)]]).expect("a good name"),
            10 => {
                let (type_url, names) = (input.type_url(), input.some(3, Input::name));
                client.resources_mut(&type_url).unsubscribe(names.iter().map(|name| name.as_str()));
            }
            11 => {
                let (type_url, names) = (input.type_url(), input.some(3, Input::name));
                client.resources_mut(&type_url).refetch(names.iter().map(|name| name.as_str()));
            }
            12 | 13 => {
                let wants = client.wants_transmit();
                let transmit = client.poll_transmit();
                assert_eq!(transmit.is_some(), wants, "wants_transmit says what poll_transmit does");
                if let Some(transmit) = transmit {
                    self.sent += 1;
                    self.sending.push(transmit.sent);
                }
            }
            14 if !self.sending.is_empty() => {
                let sent = self.sending.remove(input.below(self.sending.len()));
                client.handle_sent(now, sent);
            }
            15 | 16 => self.take(),
            17 | 18 if !self.updates.is_empty() => {
                let at = input.below(self.updates.len());
                let update = if input.below(4) == 0 { self.updates[at].clone() } else { self.updates.remove(at) };
                let rejections = match input.below(3) {
                    0 => input.some(3, |input| Rejection::new(input.name(), "no")),
                    _ => Vec::new(),
                };
                let before = client.clone();
                if let Err(error) = client.handle_verdict(now, update.reject(rejections)) {
                    assert_eq!(*client, before, "{error}: a refused verdict changes nothing");
                }
            }
            _ => {
                let far = input.byte();
                let due = client.poll_timeout().filter(|_| far < 200);
                self.now = self.now.max(due.unwrap_or(now + Duration::from_secs(u64::from(far))));
                client.handle_timeout(self.now);
            }
        }
    }

    /// Returns the number of waiting actions, counted on a copy of the machine.
    fn waiting(&self) -> usize {
        let mut client = self.client.clone();
        std::iter::from_fn(|| client.poll_action()).count()
    }

    fn take(&mut self) {
        while let Some(action) = self.client.poll_action() {
            if let Action::Apply(update) = action {
                let names: Vec<_> = update.resources().map(|resource| resource.name()).collect();
                assert!(names.is_sorted_by(|a, b| a < b), "{names:?}: in order, each once");
                assert!(!names.is_empty() || !update.removed().is_empty(), "there is something to apply");
                if self.updates.len() == 4 {
                    drop(self.updates.remove(0)); // an application that forgets to answer
                }
                self.updates.push(update);
            }
        }
    }

    fn check(&self) {
        if let Err(what) = self.client.check_invariants() {
            panic!("invariant: {what}");
        }
        assert!(self.client.wants_stream() || self.client.poll_timeout().is_none(), "time for what nobody wants");
    }
}

//! The client's side of a poll.

use alloc::string::{String, ToString};

use super::action::{Action, Answer, Asked, Counters, Transmit};
use super::config::Config;
use crate::client::{self, Client, Verdict};
use crate::ensure::ensure;
use crate::error::Misuse;
use crate::fetch::{Fetch, Outcome};
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl};
use crate::queue::Queue;
use crate::service;
use crate::time::Instant;
use crate::variant::Sotw;

/// A subscription of one type that is polled over REST: its names, the resources that are held, and the request if one
/// is under way.
///
/// Polls of one type are independent of each other: an Envoy has one for each cluster of EDS (R-REST-04). A verdict
/// belongs to the poll that emitted the update; if an application has several polls, the configuration gives each an
/// [id](client::Config::with_id).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Poll {
    config: Config,
    path: &'static str,
    fetch: Fetch,
    phase: Phase,
    initial: Initial,
    actions: Queue<Action>,
    /// Requests and answers so far; `attempts` numbers the requests.
    counters: Counters,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Phase {
    /// Nothing is subscribed to.
    Idle,
    /// A request is to be sent.
    Due,
    /// The request is under way, and given up at this time.
    Asked { until: Instant },
    /// The application judges the response; the next poll is not due before this time.
    Judging { due: Instant },
    /// The next poll is due at this time.
    Waiting { due: Instant },
}

/// The wait for the first response.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Initial {
    /// Begins with the next request.
    Ahead,
    Until(Instant),
    Over,
}

impl Poll {
    /// Creates a poll without subscriptions.
    ///
    /// # Errors
    ///
    /// [`Misuse::NoRestPath`] if the type has no path (R-REST-01).
    pub fn new(config: Config, type_url: impl Into<TypeUrl>) -> Result<Self, Misuse> {
        let type_url = type_url.into();
        let Some(path) = service::rest_path(&type_url) else { return Err(Misuse::NoRestPath { type_url }) };
        let fetch = Fetch::new(config.client.clone(), type_url);
        let (phase, initial, actions, counters) = (Phase::Idle, Initial::Ahead, Queue::new(), Counters::default());
        Ok(Self { config, path, fetch, phase, initial, actions, counters })
    }

    // Subscriptions.

    /// Subscribes to these resources; [`WILDCARD`](crate::WILDCARD) stands for all. The first poll is due at once
    /// (R-REST-05). The next poll requests names that are added later; it is not brought forward unless
    /// [configured](Config::with_poll_on_change) (R-REST-18).
    ///
    /// # Errors
    ///
    /// Those of [`ResourcesMut::subscribe`](client::ResourcesMut::subscribe).
    pub fn subscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) -> Result<(), Misuse> {
        if !self.fetch.subscribe(names)? {
            return Ok(());
        }
        if self.initial == Initial::Over {
            self.initial = Initial::Ahead;
        }
        match self.phase {
            Phase::Idle => self.phase = Phase::Due,
            Phase::Waiting { .. } if self.config.poll_on_change => self.phase = Phase::Due,
            _ => {}
        }
        Ok(())
    }

    /// Unsubscribes from these resources. If none is left, the poll ends: no request is made, and the answer to the one
    /// under way is ignored, because a list that unsubscribing emptied would ask for everything (R-REST-19).
    pub fn unsubscribe(&mut self, names: impl IntoIterator<Item = impl Into<ResourceName>>) {
        self.fetch.unsubscribe(names);
        if !self.fetch.is_wanted() && !matches!(self.phase, Phase::Judging { .. }) {
            self.fetch.give_up();
            self.phase = Phase::Idle;
            self.initial = Initial::Ahead;
        }
    }

    // Events.

    /// Takes the answer to a request. `random` picks the random part of the delay until the next poll. An answer to
    /// another request than [`asked`](Self::asked) is ignored, because it arrived too late.
    ///
    /// # Errors
    ///
    /// [`Misuse::ActionsWaiting`] if too many actions wait to be polled; the machine is unchanged.
    pub fn handle_answer(&mut self, now: Instant, asked: Asked, answer: Answer, random: u64) -> Result<(), Misuse> {
        if self.asked() != Some(asked) {
            return Ok(());
        }
        let limit = self.config.client.limits().waiting_actions;
        if self.actions.len() >= limit {
            return Err(Misuse::ActionsWaiting { limit });
        }
        let due = now + self.config.delay(random); // R-REST-06: after every outcome, from the outcome on
        match answer {
            Answer::Response(response) => self.take(now, Ok(response), due)?,
            Answer::Malformed(reason) => self.take(now, Err(reason), due)?,
            Answer::NotModified => {
                // The server, unaware of the rejection, confirms the version; the client has parts of a later one.
                if !self.config.report_rejection && self.fetch.is_partly_newer() {
                    self.fetch.lose();
                }
                self.pause(due);
            }
            Answer::Failed(reason) => self.fail(reason, due),
        }
        Ok(())
    }

    /// Takes the application's verdict on an update.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownUpdate`] if the update had a verdict already, or belongs to another machine.
    pub fn handle_verdict(&mut self, now: Instant, verdict: Verdict) -> Result<(), Misuse> {
        let Self { fetch, actions, .. } = self;
        let outcome = fetch.verdict(now, verdict, &mut |action| actions.push(Action::Client(action)))?;
        if let Phase::Judging { due } = self.phase {
            self.conclude(outcome, due);
        }
        Ok(())
    }

    /// Handles the time-outs that are due: a request that is given up, the next poll, the wait for the first response,
    /// TTLs. Does nothing before the time that [`poll_timeout`](Self::poll_timeout) returned.
    pub fn handle_timeout(&mut self, now: Instant, random: u64) {
        match self.phase {
            Phase::Asked { until } if until <= now => {
                let reason = "no answer within the request time-out".to_string();
                self.fail(reason, now + self.config.delay(random));
            }
            Phase::Waiting { due } if due <= now => self.phase = Phase::Due,
            _ => {}
        }
        let Self { fetch, actions, .. } = self;
        let act = &mut |action| actions.push(Action::Client(action));
        fetch.timeout(now, act);
        if matches!(self.initial, Initial::Until(until) if until <= now) {
            self.initial = Initial::Over;
            let names = self.fetch.awaited();
            let Self { fetch, actions, .. } = self;
            fetch.stop_waiting(now, &mut |action| actions.push(Action::Client(action)));
            self.actions.push(Action::TimedOut { names });
        }
    }

    // Work to do.

    /// Returns the next action for the application.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    /// Returns the request that is due, composed from the current state. There is none while another is under way
    /// (R-REST-03), and none while the application judges the last response.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.phase != Phase::Due {
            return None;
        }
        let Some(mut request) = self.fetch.ask() else {
            self.phase = Phase::Idle;
            return None;
        };
        self.counters.attempts += 1;
        request.error = self.fetch.error().filter(|_| self.config.report_rejection).cloned(); // R-REST-16
        self.phase = Phase::Asked { until: now + self.config.request_timeout };
        if self.initial == Initial::Ahead {
            let timeout = self.config.initial_fetch_timeout.filter(|_| !self.fetch.awaited().is_empty());
            self.initial = timeout.map_or(Initial::Over, |timeout| Initial::Until(now + timeout));
        }
        Some(Transmit { path: self.path, request, asked: Asked(self.counters.attempts) })
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) is to be called; `None` if no time-out is
    /// running.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Asked { until } => Some(until),
            Phase::Waiting { due } => Some(due),
            Phase::Idle | Phase::Due | Phase::Judging { .. } => None,
        };
        let initial = match self.initial {
            Initial::Until(until) => Some(until),
            _ => None,
        };
        phase.into_iter().chain(initial).chain(self.fetch.next_timeout()).min()
    }

    // Queries.

    /// Returns the token of the request that is under way. The transport drops every other request of this poll.
    pub fn asked(&self) -> Option<Asked> {
        matches!(self.phase, Phase::Asked { .. }).then_some(Asked(self.counters.attempts))
    }

    /// Returns whether [`poll_transmit`](Self::poll_transmit) would return a request.
    pub fn wants_transmit(&self) -> bool {
        self.phase == Phase::Due && self.fetch.is_wanted()
    }

    /// Returns the client behind the poll, to query the names and the state of each resource.
    pub fn client(&self) -> &Client<Sotw> {
        self.fetch.client()
    }

    /// Returns the type of the resources.
    pub fn type_url(&self) -> &TypeUrl {
        self.fetch.type_url()
    }

    /// Returns the numbers of polls so far, by outcome.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Checks the invariants of the machine, for tests, fuzz targets and custom models.
    ///
    /// # Errors
    ///
    /// The violated invariant, which is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.client().check_invariants()?;
        let judging = matches!(self.phase, Phase::Judging { .. });
        ensure!(judging == self.fetch.is_judged(), "an update is out, or not, in phase {:?}", self.phase);
        let wanted = self.fetch.is_wanted();
        ensure!(wanted || judging || self.phase == Phase::Idle, "nothing is wanted in phase {:?}", self.phase);
        ensure!(!wanted || self.phase != Phase::Idle, "something is wanted and never asked for");
        let waits = matches!(self.initial, Initial::Until(_));
        ensure!(!waits || self.phase != Phase::Idle, "the first response is awaited, and not asked for");
        Ok(())
    }

    // Private.

    fn take(
        &mut self,
        now: Instant,
        content: Result<crate::message::sotw::Response, String>,
        due: Instant,
    ) -> Result<(), Misuse> {
        let Self { fetch, actions, .. } = self;
        let outcome = fetch.take(now, content, &mut |action: client::Action| actions.push(Action::Client(action)))?;
        self.initial = Initial::Over; // R-REST-11: by a response, good or bad
        self.conclude(outcome, due);
        Ok(())
    }

    fn conclude(&mut self, outcome: Outcome, due: Instant) {
        match outcome {
            Outcome::Judging => self.phase = Phase::Judging { due },
            Outcome::Accepted => {
                self.counters.successes += 1;
                self.pause(due);
            }
            Outcome::Rejected => {
                self.counters.rejected += 1;
                self.pause(due);
            }
        }
    }

    fn fail(&mut self, reason: String, due: Instant) {
        self.counters.failures += 1;
        self.actions.push(Action::Failed { reason });
        self.pause(due);
    }

    /// Ends the exchange, and waits for the next poll.
    fn pause(&mut self, due: Instant) {
        self.fetch.give_up();
        self.phase = if self.fetch.is_wanted() { Phase::Waiting { due } } else { Phase::Idle };
    }
}

impl Relabel for Poll {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.fetch.relabel(by);
        match &mut self.phase {
            Phase::Asked { until: at } | Phase::Judging { due: at } | Phase::Waiting { due: at } => at.relabel(by),
            Phase::Idle | Phase::Due => {}
        }
        if let Initial::Until(until) = &mut self.initial {
            until.relabel(by);
        }
        self.actions.iter_mut().for_each(|action| action.relabel(by));
        let Counters { attempts, successes, rejected, failures } = &mut self.counters;
        by(Label::Attempt(attempts));
        [successes, rejected, failures].into_iter().for_each(|count| by(Label::Count(count)));
    }
}

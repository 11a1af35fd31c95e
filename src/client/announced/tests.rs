//! Explores every order of events with a minimal server. The server answers a name that was not in the last list it
//! read; in SotW it drops requests that answer an older response than its last.

use alloc::collections::{BTreeSet, VecDeque};

use super::*;

const NAME: &str = "a";

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct World {
    delta: bool,
    // The client.
    announced: Announced,
    wanted: bool,
    /// Whether a resource was received since the name was subscribed to.
    heard: bool,
    last_under: Option<u64>,
    serial: u64,
    /// How many of the last responses are unanswered (SotW).
    unanswered: u64,
    /// Whether the last request had the name (SotW).
    told: bool,
    /// Requests: the response they are under, and whether they have the name (in delta, whether they subscribe to it).
    up: VecDeque<(u64, bool)>,
    // The server: its view, and whether it has to answer.
    listed: bool,
    owes: bool,
    sent: u64,
    /// Responses: whether they have the name.
    down: VecDeque<bool>,
    // The events that may still happen.
    changes: u8,
    pushes: u8,
    losses: u8,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Want,
    Unwant,
    Lose,
    ClientSends,
    ServerReads,
    Answers,
    Pushes,
    ClientReads,
    TimesOut,
}

const EVENTS: [Event; 9] = [
    Event::Want,
    Event::Unwant,
    Event::Lose,
    Event::ClientSends,
    Event::ServerReads,
    Event::Answers,
    Event::Pushes,
    Event::ClientReads,
    Event::TimesOut,
];

impl World {
    fn new(delta: bool) -> Self {
        Self {
            delta,
            announced: Announced::default(),
            wanted: false,
            heard: false,
            last_under: None,
            serial: 0,
            unanswered: 0,
            told: false,
            up: VecDeque::new(),
            listed: false,
            owes: false,
            sent: 0,
            down: VecDeque::new(),
            changes: 4,
            pushes: 2,
            losses: 1,
        }
    }

    /// Returns the world after an event, if the event can happen.
    fn after(&self, event: Event) -> Option<Self> {
        let (mut next, name) = (self.clone(), ResourceName::from(NAME));
        match event {
            Event::Want if !self.wanted && self.changes > 0 => {
                next.changes -= 1;
                (next.wanted, next.heard) = (true, false);
                match self.delta {
                    true => next.announced.want(&name),
                    false => next.announced.subscribe_listed(&name, self.last_under, self.serial),
                }
            }
            Event::Unwant if self.wanted && self.changes > 0 => {
                next.changes -= 1;
                next.wanted = false;
                next.announced.unsubscribe(&name, 9);
            }
            Event::Lose if self.wanted && self.heard && self.losses > 0 => {
                next.losses -= 1;
                next.heard = false;
                match self.delta {
                    true => next.announced.ask_again(&name, false),
                    false => next.announced.relist(&name, true),
                }
            }
            Event::ClientSends if self.has_news() => next.client_sends(),
            Event::ServerReads => {
                let (under, lists) = next.up.pop_front()?;
                if self.delta || under == self.sent {
                    next.owes |= lists && (self.delta || !self.listed);
                    next.owes &= lists;
                    next.listed = lists;
                }
            }
            Event::Answers if self.owes => {
                next.owes = false;
                next.sent += 1;
                next.down.push_back(true);
            }
            Event::Pushes if self.pushes > 0 && self.announced.asked() => {
                next.pushes -= 1;
                next.sent += 1;
                next.down.push_back(false);
            }
            Event::ClientReads if self.unanswered < 2 => {
                let has = next.down.pop_front()? && self.wanted;
                next.serial += 1;
                let takes = has && (!self.delta || self.announced.is_listed(NAME));
                next.heard |= takes;
                next.announced.settle(|_| has);
                if has {
                    next.announced.confirm(&name);
                }
                next.unanswered += u64::from(!self.delta);
            }
            Event::TimesOut if self.is_quiet() && self.wanted && !self.heard && self.announced.is_relisting(NAME) => {
                next.announced.time_out(&name);
            }
            _ => return None,
        }
        let wanted = next.wanted;
        next.announced.check(|_| wanted).unwrap_or_else(|what| panic!("{event:?}: {what}: {self:?}"));
        if !next.delta {
            let wanted = wanted.then_some(&name);
            let last = next.announced.asked().then(|| next.announced.last_listed(wanted.into_iter()));
            assert_eq!(last.is_some_and(|names| !names.is_empty()), next.told, "{event:?}: {self:?}");
        }
        Some(next)
    }

    fn has_news(&self) -> bool {
        if self.announced.asked() { self.unanswered > 0 || self.announced.has_news(self.serial) } else { self.wanted }
    }

    fn client_sends(&mut self) {
        let name = ResourceName::from(NAME);
        if !self.delta {
            let wanted: Vec<&ResourceName> = self.wanted.then_some(&name).into_iter().collect();
            let under = self.serial - self.unanswered.saturating_sub(1);
            let list = self.announced.list(wanted.into_iter(), under, self.serial, 9);
            let tells = !list.names.is_empty();
            assert!(self.unanswered > 0 || tells != self.told, "the request says nothing new: {self:?}");
            self.told = tells;
            self.up.push_back((under, tells));
            self.last_under = Some(under);
            self.unanswered = self.unanswered.saturating_sub(1);
        } else if !self.announced.asked() {
            self.up.push_back((0, true));
        } else {
            let (subscribe, unsubscribe) = self.announced.take_changes();
            self.up.extend(unsubscribe.iter().map(|_| (0, false)).chain(subscribe.iter().map(|_| (0, true))));
        }
        self.announced.note_asked();
    }

    fn is_quiet(&self) -> bool {
        !self.has_news() && self.up.is_empty() && self.down.is_empty() && !self.owes
    }

    /// Checks the invariants when nothing is left to do.
    fn check_quiet(&self) {
        assert_eq!(self.listed, self.wanted, "the server believes otherwise: {self:?}");
        assert!(!self.wanted || self.heard, "it is wanted, and nothing will come: {self:?}");
    }
}

fn explore(delta: bool) -> usize {
    let (mut seen, mut ahead) = (BTreeSet::new(), Vec::from([World::new(delta)]));
    while let Some(world) = ahead.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        let next: Vec<World> = EVENTS.iter().filter_map(|&event| world.after(event)).collect();
        let may_repair = world.announced.is_relisting(NAME) && !world.heard;
        if world.is_quiet() && !may_repair {
            world.check_quiet();
        }
        ahead.extend(next);
    }
    seen.len()
}

#[test]
fn sotw_in_every_order_the_server_knows_and_answers() {
    assert!(explore(false) > 1_000);
}

#[test]
fn delta_in_every_order_the_server_knows_and_answers() {
    assert!(explore(true) > 1_000);
}

/// Returns the state after the first request, which has the name under response 1, and the name that is being relisted
/// since.
fn relisting() -> (Announced, ResourceName) {
    let (mut announced, name) = (Announced::default(), ResourceName::from(NAME));
    announced.note_asked();
    announced.relist(&name, false);
    assert!(list(&mut announced, 1).is_empty());
    (announced, name)
}

/// Returns the names of a request under the newest response.
fn list(announced: &mut Announced, serial: u64) -> Vec<ResourceName> {
    announced.list([&ResourceName::from(NAME)].into_iter(), serial, serial, 9).names
}

#[test]
fn a_timer_restarts_if_it_had_run_out_or_was_that_of_the_subscription_before() {
    let (mut announced, name) = relisting();
    assert!(announced.settle(|_| true).is_empty(), "the timer still runs");
    assert_eq!(list(&mut announced, 2), [NAME]);
    announced.unsubscribe(&name, 9);
    announced.subscribe_listed(&name, Some(2), 2);
    assert_eq!(announced.settle(|_| true), [NAME], "the last request had the name by the subscription before");

    let (mut announced, name) = relisting();
    assert!(announced.time_out(&name));
    assert!(list(&mut announced, 2).is_empty());
    assert!(announced.settle(|_| false).is_empty(), "no response settles the name");
    assert_eq!(announced.settle(|_| true), [NAME], "the timer ran out");
}

#[test]
fn a_mention_confirms_a_name_that_crossed_a_response() {
    let (mut announced, name) = relisting();
    assert_eq!(list(&mut announced, 1), [NAME]);
    announced.settle(|_| true);
    assert!(announced.has_unconfirmed() && !announced.is_confirmed(NAME));
    announced.confirm(&name);
    assert!(!announced.has_unconfirmed() && announced.is_confirmed(NAME));
}

#[test]
fn the_last_time_out_settles_a_name_that_no_newer_response_relists() {
    let (mut announced, name) = relisting();
    assert!(announced.time_out(&name), "the first time-out relists the name");
    let last = u64::from(REOPENINGS) + 2;
    for serial in 2..=last {
        assert!(list(&mut announced, serial).is_empty(), "left out under response {serial}");
        assert!(!announced.time_out(&name), "the name is requested twice at most");
        assert!(announced.is_relisting(NAME) == (serial < last), "after response {serial}");
    }
    assert_eq!(list(&mut announced, last), [NAME], "the name is listed all the same");
}

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
    /// Whether the last response is unanswered (SotW).
    unanswered: bool,
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
            unanswered: false,
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
            Event::ClientReads if !self.unanswered => {
                let has = next.down.pop_front()? && self.wanted;
                next.serial += 1;
                let takes = has && (!self.delta || self.announced.is_listed(NAME));
                next.heard |= takes;
                next.announced.settle(|_| has);
                if has {
                    next.announced.confirm(&name);
                }
                next.unanswered = !self.delta;
            }
            Event::TimesOut if self.is_quiet() && self.wanted && !self.heard && self.announced.is_relisting(NAME) => {
                next.announced.time_out(&name);
            }
            _ => return None,
        }
        let wanted = next.wanted;
        next.announced.check(|_| wanted).unwrap_or_else(|what| panic!("{event:?}: {what}: {self:?}"));
        Some(next)
    }

    fn has_news(&self) -> bool {
        if self.announced.asked() { self.unanswered || self.announced.has_news(self.serial) } else { self.wanted }
    }

    fn client_sends(&mut self) {
        let name = ResourceName::from(NAME);
        if !self.delta {
            let wanted: Vec<&ResourceName> = self.wanted.then_some(&name).into_iter().collect();
            let list = self.announced.list(wanted.into_iter(), self.serial, self.serial, 9);
            self.up.push_back((self.serial, !list.names.is_empty()));
            self.last_under = Some(self.serial);
            self.unanswered = false;
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

//! Explores every order of events with a minimal server. The server answers the names that its last list did not cover,
//! and all names of a new wildcard. In SotW it drops requests that answer an older response than its last.

use alloc::collections::{BTreeSet, VecDeque};

use super::*;

const NAME: &str = "a";
/// The wildcard is the second name, where there are two.
const NAMES: [&str; 2] = [NAME, WILDCARD];

/// Which of the names, in their order.
type Which = [bool; 2];

const NONE: Which = [false; 2];

fn any(which: Which) -> bool {
    which != NONE
}

/// Returns which names are among these.
fn among(names: &[ResourceName]) -> Which {
    NAMES.map(|name| names.iter().any(|other| other == name))
}

fn has(which: Which, name: &ResourceName) -> bool {
    NAMES.iter().zip(which).any(|(other, has)| has && name == other)
}

/// Returns which names are covered by these.
fn covered(by: Which) -> Which {
    [by[0] || by[1], by[1]]
}

fn both(one: Which, other: Which) -> Which {
    [one[0] && other[0], one[1] && other[1]]
}

/// A request.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Up {
    /// A SotW request: the response that it is under, and its names.
    List(u64, Which),
    /// A delta request: the names that it subscribes to, and those that it unsubscribes from.
    Delta(Which, Which),
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct World {
    delta: bool,
    // The client.
    announced: Announced,
    wanted: Which,
    /// The names whose resource was received since they were subscribed to.
    heard: Which,
    last_under: Option<u64>,
    serial: u64,
    /// How many of the last responses are unanswered (SotW).
    unanswered: u64,
    /// The names in the last request (SotW).
    told: Which,
    /// Whether a name was lost, or its time ran out.
    anew: bool,
    up: VecDeque<Up>,
    // The server: its view, and what it has to answer.
    listed: Which,
    owes: Which,
    sent: u64,
    /// The responses, each with the names that it answers.
    down: VecDeque<Which>,
    // The events that may still happen.
    changes: u8,
    pushes: u8,
    losses: u8,
    time_outs: u8,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Want(usize),
    Unwant(usize),
    Lose(usize),
    ClientSends,
    ServerReads,
    Answers,
    Pushes,
    ClientReads,
    TimesOut(usize),
}

impl Event {
    fn of(names: usize) -> Vec<Self> {
        let all = [Self::ClientSends, Self::ServerReads, Self::Answers, Self::Pushes, Self::ClientReads];
        let each = (0..names).flat_map(|at| [Self::Want(at), Self::Unwant(at), Self::Lose(at), Self::TimesOut(at)]);
        all.into_iter().chain(each).collect()
    }
}

impl World {
    fn new(delta: bool, changes: u8) -> Self {
        Self {
            delta,
            announced: Announced::default(),
            wanted: NONE,
            heard: NONE,
            last_under: None,
            serial: 0,
            unanswered: 0,
            told: NONE,
            anew: false,
            up: VecDeque::new(),
            listed: NONE,
            owes: NONE,
            sent: 0,
            down: VecDeque::new(),
            changes,
            pushes: 2,
            losses: 1,
            time_outs: 0,
        }
    }

    /// Returns the world after an event, if the event can happen.
    fn after(&self, event: Event) -> Option<Self> {
        let (mut next, name) = (self.clone(), |at: usize| ResourceName::from(NAMES[at]));
        match event {
            Event::Want(at) if !self.wanted[at] && self.changes > 0 => {
                next.changes -= 1;
                next.wanted[at] = true;
                next.heard[at] = at == 0 && both(self.wanted, self.heard)[1];
                match self.delta {
                    true => next.announced.want(&name(at)),
                    false => next.announced.subscribe_listed(&name(at), self.last_under, self.serial),
                }
            }
            Event::Unwant(at) if self.wanted[at] && self.changes > 0 => {
                next.changes -= 1;
                next.wanted[at] = false;
                let was_known = !self.announced.is_new(NAMES[at]);
                next.announced.unsubscribe(&name(at), 9);
                if !self.delta && at == 1 && was_known && self.wanted[0] && !self.heard[0] {
                    next.announced.relist(&name(0), false); // the server may have answered the name by the wildcard
                }
            }
            Event::Lose(at) if both(self.wanted, self.heard)[at] && self.losses > 0 => {
                next.losses -= 1;
                next.anew = true;
                next.heard[at] = false;
                match self.delta {
                    true => next.announced.ask_again(&name(at), false),
                    // The wildcard would still cover the name.
                    false => {
                        (at..2).filter(|&at| self.wanted[at]).for_each(|at| next.announced.relist(&name(at), true))
                    }
                }
            }
            Event::ClientSends if self.has_news() => next.client_sends(),
            Event::ServerReads => match next.up.pop_front()? {
                Up::List(under, names) if under == self.sent => next.server_reads(names, NONE),
                Up::List(..) => {}
                Up::Delta(subscribe, unsubscribe) => {
                    let names = [0, 1].map(|at| subscribe[at] || (self.listed[at] && !unsubscribe[at]));
                    next.server_reads(names, subscribe);
                }
            },
            Event::Answers if any(self.owes) => {
                next.sent += 1;
                next.down.push_back(core::mem::take(&mut next.owes));
            }
            Event::Pushes if self.pushes > 0 && self.announced.asked() => {
                next.pushes -= 1;
                next.sent += 1;
                next.down.push_back(NONE);
            }
            Event::ClientReads if self.unanswered < 2 => {
                let answered = both(next.down.pop_front()?, self.wanted);
                next.serial += 1;
                for at in (0..2).filter(|&at| answered[at]) {
                    next.heard[at] |=
                        !self.delta || [NAMES[at], WILDCARD].iter().any(|by| self.announced.is_listed(by));
                    next.announced.confirm(&name(at));
                }
                next.announced.settle(|name| has(answered, name));
                next.unanswered += u64::from(!self.delta);
            }
            Event::TimesOut(at) if self.time_outs > 0 && self.announced.is_relisting(NAMES[at]) && !self.heard[at] => {
                next.time_outs -= 1;
                next.anew = true;
                next.announced.time_out(&name(at));
            }
            _ => return None,
        }
        let wanted = next.wanted;
        next.announced.check(|name| has(wanted, name)).unwrap_or_else(|what| panic!("{event:?}: {what}: {self:?}"));
        if !next.delta {
            let names = next.wanted_names();
            let last = if next.announced.asked() { next.announced.last_listed(names.iter()) } else { Vec::new() };
            assert_eq!(among(&last), next.told, "{event:?}: {self:?}");
        }
        Some(next)
    }

    fn wanted_names(&self) -> Vec<ResourceName> {
        // In order: the wildcard sorts first.
        [1, 0].into_iter().filter(|&at| self.wanted[at]).map(|at| NAMES[at].into()).collect()
    }

    fn has_news(&self) -> bool {
        if self.announced.asked() {
            self.unanswered > 0 || self.announced.has_news(self.serial)
        } else {
            any(self.wanted)
        }
    }

    fn client_sends(&mut self) {
        if !self.delta {
            let under = self.serial - self.unanswered.saturating_sub(1);
            let (wanted, left_out) = (self.wanted_names(), self.announced.left_out(under, self.serial));
            let list = self.announced.list(wanted.iter(), under, self.serial, 9);
            assert_eq!(list.names.len() + left_out, wanted.len(), "what is left out is known before: {self:?}");
            let tells = among(&list.names);
            // A name may be left out of two lists in a row beside the wildcard, or if it is requested anew in between.
            let repeats = tells == self.told && !tells[1] && !self.anew;
            assert!(self.unanswered > 0 || !repeats, "the request says nothing new: {self:?}");
            self.told = tells;
            self.up.push_back(Up::List(under, tells));
            self.last_under = Some(under);
            self.unanswered = self.unanswered.saturating_sub(1);
        } else if !self.announced.asked() {
            self.up.push_back(Up::Delta(self.wanted, NONE));
        } else {
            let (subscribe, unsubscribe) = self.announced.take_changes();
            let (subscribe, unsubscribe) = (among(&subscribe), among(&unsubscribe));
            assert!(any(subscribe) || any(unsubscribe), "the request says nothing: {self:?}");
            self.up.push_back(Up::Delta(subscribe, unsubscribe));
        }
        self.announced.note_asked();
    }

    fn server_reads(&mut self, names: Which, subscribes: Which) {
        let (before, after) = (covered(self.listed), covered(names));
        // A wildcard that is new is answered with all resources.
        let news = [0, 1].map(|at| self.owes[at] || subscribes[at] || !before[at] || (names[1] && !self.listed[1]));
        self.owes = both(news, after);
        self.listed = names;
    }

    fn is_quiet(&self) -> bool {
        !self.has_news() && self.up.is_empty() && self.down.is_empty() && !any(self.owes)
    }

    /// Checks the invariants when nothing is left to do.
    fn check_quiet(&self) {
        assert_eq!(self.listed, self.wanted, "the server believes otherwise: {self:?}");
        assert_eq!(both(self.wanted, self.heard), self.wanted, "it is wanted, and nothing will come: {self:?}");
    }
}

/// Explores all worlds of this number of names with this number of subscriptions and unsubscriptions.
fn explore(delta: bool, names: usize, changes: u8) -> usize {
    let (pushes, time_outs) = if names == 1 { (2, 1) } else { (1, 0) };
    let begin =
        [NONE, [true, names == 2]].map(|wanted| World { wanted, pushes, time_outs, ..World::new(delta, changes) });
    let (mut seen, mut ahead) = (BTreeSet::new(), Vec::from(begin));
    let events = Event::of(names);
    while let Some(world) = ahead.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        let next: Vec<World> = events.iter().filter_map(|&event| world.after(event)).collect();
        if world.is_quiet() {
            world.check_quiet();
        }
        ahead.extend(next);
    }
    seen.len()
}

#[test]
fn sotw_the_server_learns_and_answers_each_subscription_in_every_order() {
    assert!(explore(false, 1, 4) > 1_000);
}

#[test]
fn delta_the_server_learns_and_answers_each_subscription_in_every_order() {
    assert!(explore(true, 1, 4) > 1_000);
}

#[test]
fn sotw_a_name_and_the_wildcard_are_answered_in_every_order() {
    assert!(explore(false, 2, 3) > 10_000);
}

#[test]
fn delta_a_name_and_the_wildcard_are_answered_in_every_order() {
    assert!(explore(true, 2, 4) > 10_000);
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
fn a_timer_restarts_if_it_ran_out_or_belonged_to_an_earlier_subscription() {
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
fn a_mention_confirms_a_name_that_is_listed_for_the_first_time() {
    let (mut announced, name) = (Announced::default(), ResourceName::from(NAME));
    announced.note_asked();
    announced.subscribe_listed(&name, Some(0), 0);
    assert_eq!(list(&mut announced, 0), [NAME]);
    assert!(announced.awaits_mention() && !announced.is_confirmed(NAME));
    announced.confirm(&name);
    assert!(!announced.has_unconfirmed() && announced.is_confirmed(NAME));
}

#[test]
fn a_mention_does_not_confirm_a_name_that_was_listed_earlier() {
    let (mut announced, name) = relisting();
    assert_eq!(list(&mut announced, 1), [NAME]);
    announced.settle(|_| true);
    assert!(announced.has_unconfirmed() && !announced.awaits_mention());
    announced.confirm(&name);
    assert!(announced.has_unconfirmed() && !announced.is_confirmed(NAME));
}

#[test]
fn a_mention_does_not_confirm_a_name_that_was_settled_while_it_was_left_out() {
    let (mut announced, name) = relisting();
    announced.settle(|_| true);
    assert_eq!(list(&mut announced, 1), [NAME], "a settled name must be listed all the same");
    assert!(announced.has_unconfirmed() && !announced.awaits_mention());
    announced.confirm(&name); // a response that the server made before it read either request
    assert!(announced.has_unconfirmed() && !announced.is_confirmed(NAME));
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

#[test]
fn the_last_time_out_of_a_listed_name_leaves_it_unconfirmed() {
    let (mut announced, name) = relisting();
    assert!(announced.time_out(&name), "the first time-out relists the name");
    for serial in 2..=u64::from(REOPENINGS) + 2 {
        assert!(list(&mut announced, serial).is_empty(), "left out under response {serial}");
        assert_eq!(list(&mut announced, serial), [NAME], "listed under response {serial}");
    }
    assert!(!announced.time_out(&name) && !announced.is_relisting(NAME), "the last time-out");
    announced.confirm(&name); // a response that the server made before it read the last request
    assert!(announced.has_unconfirmed() && !announced.is_confirmed(NAME));
}

/// A server may ignore a request that answers an older response than its last.
#[test]
fn a_request_under_an_older_response_leaves_a_name_out_as_well() {
    let (mut announced, _) = relisting();
    let last = u64::from(REOPENINGS) + 1;
    for serial in 2..=last {
        assert_eq!(list(&mut announced, serial - 1), [NAME]);
        assert!(list(&mut announced, serial).is_empty(), "left out under response {serial}");
    }
    let under_older = announced.list([&ResourceName::from(NAME)].into_iter(), last, last + 1, 9);
    assert!(under_older.names.is_empty(), "the server may not have read the request that left the name out");
    assert_eq!(list(&mut announced, last + 1), [NAME]);
}

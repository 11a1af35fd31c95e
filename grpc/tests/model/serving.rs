//! The chain of a server in every order of events, within bounds: compared with a naive one, in which each seeded bug is
//! found.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use stateright::{Checker, Property};
use xds_machine::watch::News;
use xds_machine::{Code, Status};
use xds_machine_grpc::chain::{Linked, Target, Want};
use xds_machine_grpc::links::{Links, ListenerLinks, RouteSource};
use xds_machine_grpc::serving::{ServerChain, Serving};
use xds_machine_testing::search::{self, Model};

/// A defect that the model has to find.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Bug {
    /// R-SRV-03: serves by a Listener whose routes are not known yet.
    ServesTooEarly,
    /// R-SRV-03: does not serve while the routes of the next Listener are awaited.
    StopsWhileWaiting,
    /// R-SRV-04: waits for routes that are in error.
    ErrorsWait,
    /// R-SRV-05: serves by the Listener of another address.
    AnyAddress,
    /// R-SRV-05: keeps serving when the Listener is gone.
    GoesOn,
    /// R-SRV-07: an ambient error ends the service.
    NotesAreErrors,
    /// R-SRV-08: drops the routes in use when the next Listener arrives.
    BreaksBeforeMake,
}

const BUGS: [Bug; 7] = [
    Bug::ServesTooEarly,
    Bug::StopsWhileWaiting,
    Bug::ErrorsWait,
    Bug::AnyAddress,
    Bug::GoesOn,
    Bug::NotesAreErrors,
    Bug::BreaksBeforeMake,
];

/// A reported state: a Listener and its routes, or why there is none.
type Told = Result<(String, BTreeMap<String, String>), String>;

/// All Listeners that there may be: the value, the address, and the names of the routes.
const LISTENERS: [(&str, Kind, &[&str]); 6] = [
    ("l1", Kind::Here, &["r1"]),
    ("l12", Kind::Here, &["r1", "r2"]),
    ("l2", Kind::Here, &["r2"]),
    ("l0", Kind::Here, &[]),
    ("elsewhere", Kind::Elsewhere, &["r1"]),
    ("api", Kind::Api, &[]),
];

#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    Here,
    Elsewhere,
    Api,
}

fn here() -> SocketAddr {
    ([1, 2, 3, 4], 50051).into()
}

fn listener(value: usize) -> Linked<String> {
    let (text, kind, routes) = LISTENERS[value];
    let sources = routes.iter().map(|&name| RouteSource::Rds(name.into())).collect();
    let links = match kind {
        Kind::Here => ListenerLinks::Socket { address: Some(here()), routes: sources },
        Kind::Elsewhere => ListenerLinks::Socket { address: None, routes: sources },
        Kind::Api => ListenerLinks::Api(RouteSource::Inline(vec![])),
    };
    Linked::new(Links::Listener(links), text.into())
}

/// The naive chain: the rules again, over all news so far.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Naive {
    bug: Option<Bug>,
    /// The Listener by its number, `None` if it is gone.
    listener: Option<Option<usize>>,
    routes: BTreeMap<&'static str, Result<String, ()>>,
    /// The Listener in use, and the one whose routes are kept.
    serves: Option<usize>,
    kept: &'static [&'static str],
    watched: BTreeSet<&'static str>,
    told: Option<Told>,
}

impl Naive {
    fn named(value: Option<Option<usize>>) -> &'static [&'static str] {
        value.flatten().map_or(&[], |value| LISTENERS[value].2)
    }

    fn waits(&self) -> bool {
        let is_known = |name: &&str| match self.routes.get(name) {
            Some(Err(())) => self.bug != Some(Bug::ErrorsWait),
            route => route.is_some() || self.bug == Some(Bug::ServesTooEarly),
        };
        !Self::named(self.listener).iter().all(is_known)
    }

    /// Does what a driver does; returns the reported states.
    fn settle(&mut self) -> Vec<Told> {
        let mut all = Vec::new();
        loop {
            let kept = if self.bug == Some(Bug::BreaksBeforeMake) { &[] } else { self.kept };
            self.watched = Self::named(self.listener).iter().chain(kept).copied().collect();
            self.routes.retain(|name, _| self.watched.contains(name));
            let failure = match self.listener {
                None => return all,
                Some(None) if self.bug == Some(Bug::GoesOn) => return all,
                Some(None) => Some("LDS resource l: gone"),
                Some(Some(value)) => match LISTENERS[value].1 {
                    Kind::Here => None,
                    Kind::Elsewhere if self.bug == Some(Bug::AnyAddress) => None,
                    Kind::Elsewhere => {
                        Some("LDS resource l: it has no IP address, and the server listens on 1.2.3.4:50051")
                    }
                    Kind::Api => Some("LDS resource l: not a server's listener"),
                },
            };
            let told = if let Some(why) = failure {
                self.serves = None;
                Err(why.to_owned())
            } else {
                match (self.waits(), self.bug) {
                    (true, Some(Bug::StopsWhileWaiting)) => self.serves = None,
                    (true, _) => {}
                    (false, _) => {
                        self.serves = self.listener.flatten();
                        self.kept = Self::named(self.listener);
                    }
                }
                let Some(value) = self.serves else { return all };
                let route = |name: &&'static str| match self.routes.get(name) {
                    Some(Ok(value)) => value.clone(),
                    Some(Err(())) => format!("!RDS resource {name}: gone"),
                    None => format!("!RDS resource {name}: not known"),
                };
                let routes = LISTENERS[value].2.iter().map(|name| ((*name).to_owned(), route(name)));
                Ok((LISTENERS[value].0.to_owned(), routes.collect()))
            };
            if self.told.as_ref() == Some(&told) {
                return all;
            }
            self.told = Some(told.clone());
            all.push(told);
        }
    }
}

/// The subject of the exploration: the chain, or the naive one with a bug.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Subject {
    Chain(ServerChain<String>),
    Naive(Naive),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// The driver polls.
    Settle,
    /// The Listener has another value, by its number, or is gone.
    Listener(u8),
    /// The routes, by their number, have a value or are gone.
    Routes(u8, Option<u8>),
    /// News of routes that are not watched.
    Late(u8),
    /// The Listener is rejected while the last one is kept.
    Note,
}

const ROUTES: [&str; 2] = ["r1", "r2"];

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct World {
    subject: Subject,
    truth: Naive,
    /// How many events there may be: changes of the Listener, changes of routes, and events without an effect.
    budget: [u8; 3],
    told: Option<Told>,
    is_dirty: bool,
}

impl World {
    fn new(bug: Option<Bug>, budget: [u8; 3]) -> Self {
        let subject = match bug {
            None => Subject::Chain(ServerChain::new("l", here())),
            bug => Subject::Naive(Naive { bug, ..Naive::default() }),
        };
        let mut world = Self { subject, truth: Naive::default(), budget, told: None, is_dirty: true };
        world.take(Step::Settle);
        world
    }

    fn tell(&mut self, target: &Target, content: Result<Linked<String>, &str>) {
        if let Subject::Chain(chain) = &mut self.subject {
            let content = content.map_err(|why| Status::new(Code::NotFound, why));
            chain.handle_news(target, News::Changed(content));
        }
    }

    fn naives(&mut self) -> impl Iterator<Item = &mut Naive> {
        let of_subject = match &mut self.subject {
            Subject::Naive(naive) => Some(naive),
            Subject::Chain(_) => None,
        };
        of_subject.into_iter().chain([&mut self.truth])
    }

    fn settle(&mut self) {
        let serving = matches!(self.told, Some(Ok(_)));
        let expected = self.truth.settle();
        let (told, watched) = match &mut self.subject {
            Subject::Chain(chain) => drive(chain),
            Subject::Naive(naive) => (naive.settle(), naive.watched.iter().map(ToString::to_string).collect()),
        };
        for told in told.iter().filter_map(|told| told.as_ref().ok()) {
            for (name, value) in &told.1 {
                assert!(!value.ends_with("not known"), "R-SRV-03: {} serves before {name} is known", told.0);
            }
        }
        assert_eq!(told, expected, "what is told, and what is true");
        let is_failed = self.truth.told.as_ref().is_some_and(Result::is_err);
        self.told = told.last().cloned().or(self.told.take());
        assert!(!serving || is_failed || matches!(self.told, Some(Ok(_))), "the server stops for no reason");
        // R-SRV-01, R-SRV-02, R-SRV-08
        let of_truth: BTreeSet<String> = self.truth.watched.iter().map(ToString::to_string).collect();
        assert_eq!(watched, of_truth, "the routes that are watched, and those that are needed");
    }
}

/// Polls as a driver does. Returns the reported states, and the watched routes.
fn drive(chain: &mut ServerChain<String>) -> (Vec<Told>, BTreeSet<String>) {
    let (mut all, mut ended) = (Vec::new(), BTreeSet::new());
    loop {
        while let Some(want) = chain.poll_want() {
            match want {
                Want::Watch(target) => assert!(!ended.contains(&target), "{target} is dropped and made again"),
                Want::Unwatch(target) => _ = ended.insert(target),
            }
        }
        let Some(serving) = chain.poll_serving() else { break };
        all.push(match serving {
            Serving::NotServing(failure) => Err(failure.to_string()),
            Serving::Serves { listener, routes } => {
                let text = |value: Result<String, _>| value.unwrap_or_else(|failure| format!("!{failure}"));
                Ok((listener, routes.into_iter().map(|(name, value)| (name.to_string(), text(value))).collect()))
            }
        });
        assert!(all.windows(2).all(|two| two[0] != two[1]), "an equal state is told twice");
    }
    let watched = chain.wanted().into_iter().filter_map(|target| match target {
        Target::Routes(name) => Some(name.to_string()),
        _ => None,
    });
    (all, watched.collect())
}

impl Model for World {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        if self.is_dirty {
            steps.push(Step::Settle);
        }
        let [listeners, routes, others] = self.budget;
        if listeners > 0 {
            let now = self.truth.listener.map(|value| value.unwrap_or(LISTENERS.len()));
            let all = 0..=LISTENERS.len();
            steps.extend(all.filter(|value| now != Some(*value)).map(|value| Step::Listener(value as u8)));
        }
        for (at, name) in ROUTES.iter().enumerate() {
            let at = at as u8;
            match self.truth.watched.contains(name) {
                true if routes > 0 => steps.extend([None, Some(0), Some(1)].map(|value| Step::Routes(at, value))),
                false if others > 0 && !self.is_dirty => steps.push(Step::Late(at)),
                _ => {}
            }
        }
        if others > 0 && matches!(self.truth.listener, Some(Some(_))) {
            steps.push(Step::Note);
        }
    }

    fn is_own(step: Step) -> bool {
        step == Step::Settle
    }

    fn take(&mut self, step: Step) {
        self.is_dirty = true;
        match step {
            Step::Settle => {
                self.settle();
                self.is_dirty = false;
            }
            Step::Listener(value) => {
                self.budget[0] -= 1;
                let value = Some(usize::from(value)).filter(|value| *value < LISTENERS.len());
                self.naives().for_each(|naive| naive.listener = Some(value));
                self.tell(&Target::Listener("l".into()), value.map(listener).ok_or("gone"));
            }
            Step::Routes(at, value) => {
                self.budget[1] -= 1;
                let name = ROUTES[usize::from(at)];
                let value = value.map(|value| format!("{name}.{value}")).ok_or("gone");
                let known = value.clone().map_err(|_| ());
                self.naives().for_each(|naive| _ = naive.routes.insert(name, known.clone()));
                let linked = value.map(|value| Linked::new(Links::Routes(vec![]), value));
                self.tell(&Target::Routes(name.into()), linked);
            }
            Step::Late(at) => {
                self.budget[2] -= 1;
                let linked = Linked::new(Links::Routes(vec![]), "late".to_owned());
                self.tell(&Target::Routes(ROUTES[usize::from(at)].into()), Ok(linked));
            }
            Step::Note => {
                self.budget[2] -= 1;
                let note = News::Ambient(Some(Status::new(Code::InvalidArgument, "rejected")));
                match &mut self.subject {
                    Subject::Chain(chain) => chain.handle_news(&Target::Listener("l".into()), note),
                    Subject::Naive(naive) if naive.bug == Some(Bug::NotesAreErrors) => naive.listener = Some(None),
                    Subject::Naive(_) => {}
                }
            }
        }
    }

    fn check_settled(&self) {}

    fn canonicalize(&mut self) {}
}

struct Stateright;

impl stateright::Model for Stateright {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(None, BUDGET)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        world.steps(steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        next.take(step); // which checks what must hold
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("checked by each step", |_, _| true)]
    }
}

const BUDGET: [u8; 3] = [3, 3, 1];

#[test]
fn no_order_of_events_leads_a_server_to_a_fault() {
    let report = search::explore(World::new(None, BUDGET), 4_000_000);
    println!("{} states, {} settled", report.states, report.settled);
    if let Some(fault) = report.fault {
        panic!("{}\n{:?}", fault.what, fault.trace);
    }
    assert!(report.complete, "cut off");
    let theirs = stateright::Model::checker(Stateright).threads(2).spawn_bfs().join();
    theirs.assert_properties();
    assert_eq!(theirs.unique_state_count(), report.states, "two checkers count the same states");
}

#[test]
fn each_bug_of_a_server_is_found_by_a_shortest_trace() {
    let mut text = String::new();
    for bug in BUGS {
        let report = search::explore(World::new(Some(bug), BUDGET), 4_000_000);
        let fault = report.fault.unwrap_or_else(|| panic!("{bug:?} is not found in {} states", report.states));
        let what = fault.what.lines().next().unwrap_or_default().split(" (").next().unwrap_or_default();
        text += &format!("{bug:?}: {what}\n  {} steps: {:?}\n", fault.trace.len(), fault.trace);
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/serving.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("room on the disk");
    }
    assert_eq!(text, std::fs::read_to_string(path).expect("a file"));
}

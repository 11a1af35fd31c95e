//! The world around a chain: the news that servers may send of watched targets, and the properties that must hold then.

use std::collections::BTreeMap;

use xds_machine::watch::News;
use xds_machine::{Code, Status};
use xds_machine_grpc::chain::{ClusterRef, Linked, Target};
use xds_machine_grpc::links::{ClusterLinks, HostPort, Links, ListenerLinks, RouteSource, VirtualHost};
use xds_machine_testing::search::Model;

use super::naive::{Bug, Naive, Shown};
use super::subject::{Event, Subject, Told};

/// How many events of each kind may happen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Budget {
    pub(super) listeners: u8,
    pub(super) routes: u8,
    pub(super) clusters: u8,
    /// Endpoints, and addresses of names.
    pub(super) endpoints: u8,
    pub(super) references: u8,
    /// News of routes whose watch has ended.
    pub(super) late: u8,
    /// Ambient errors, and their ends.
    pub(super) notes: u8,
}

impl Budget {
    fn of(&mut self, target: &Target) -> &mut u8 {
        match target {
            Target::Listener(_) => &mut self.listeners,
            Target::Routes(_) => &mut self.routes,
            Target::Cluster(_) => &mut self.clusters,
            Target::Endpoints(_) | Target::Dns(_) => &mut self.endpoints,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// The driver polls.
    Settle,
    /// A watched target, by its position, has this value now.
    Give(u8, u8),
    /// The routes `r1` or `r2`, which are not watched any more, have this value.
    Late(bool, u8),
    /// An ambient error of a watched target begins or ends.
    Note(u8, bool),
    Subscribe,
    Release,
}

/// The situations that an exploration should reach.
pub(super) const GOALS: [&str; 10] = [
    "a configuration",
    "an error in place of one",
    "an aggregate with two leaves",
    "an aggregate without leaves",
    "a cluster in error beside a good one",
    "new routes are awaited while a configuration is in use",
    "a cluster that only a dynamic reference reaches",
    "late news",
    "a name that was resolved",
    "a note",
];

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct World {
    subject: Subject,
    truth: Subject,
    given: BTreeMap<Target, u8>,
    budget: Budget,
    reference: Option<Option<ClusterRef>>,
    is_dirty: bool,
    is_late: bool,
    /// Whether there was news other than notes since the driver polled.
    is_changed: bool,
}

fn hosts(clusters: &[&str]) -> Vec<VirtualHost> {
    let host = |domain: &str, clusters: &[&str]| {
        let clusters = clusters.iter().map(|&name| name.into()).collect();
        VirtualHost { name: domain.into(), domains: vec![domain.into()], clusters }
    };
    vec![host("other", &["z"]), host("host", clusters)]
}

/// Returns all contents that a target may have: values, or an error (`None`).
fn values(target: &Target) -> Vec<Option<(Links, String)>> {
    let listener =
        |source: RouteSource, text: &str| Some((Links::Listener(ListenerLinks::Api(source)), text.to_string()));
    let routes = |text: &str, hosts| Some((Links::Routes(hosts), text.to_string()));
    let aggregate = |children: &[&str]| ClusterLinks::Aggregate(children.iter().map(|&name| name.into()).collect());
    let dns = HostPort { host: "x".into(), port: 1 };
    let cluster = |links: ClusterLinks, name: &str| Some((Links::Cluster(links), name.to_string()));
    match target {
        Target::Listener(_) => vec![
            listener(RouteSource::Rds("r1".into()), "l-r1"),
            listener(RouteSource::Rds("r2".into()), "l-r2"),
            listener(RouteSource::Inline(hosts(&["a"])), "l-inline"),
            Some((Links::Listener(ListenerLinks::Socket { address: None, routes: vec![] }), "socket".into())),
            None,
        ],
        Target::Routes(name) if name == "r1" => vec![
            routes("r1.0", hosts(&["a"])),
            routes("r1.1", hosts(&["a", "g"])),
            routes("r1.2", hosts(&["g"])),
            routes("r1.3", vec![]),
            None,
        ],
        Target::Routes(_) => vec![routes("r2.0", hosts(&["a"])), routes("r2.1", hosts(&["g"])), None],
        Target::Cluster(name) if name == "a" => vec![
            cluster(ClusterLinks::Eds("e1".into()), "a"),
            cluster(ClusterLinks::Eds("e2".into()), "a"),
            cluster(ClusterLinks::Dns(dns), "a"),
            cluster(aggregate(&["b"]), "a"),
            None,
        ],
        Target::Cluster(name) if name == "g" => vec![
            cluster(aggregate(&["a", "b"]), "g"),
            cluster(aggregate(&["g"]), "g"),
            cluster(ClusterLinks::Eds("e1".into()), "g"),
            None,
        ],
        Target::Cluster(name) => vec![cluster(ClusterLinks::Eds("e1".into()), name.as_str()), None],
        Target::Endpoints(name) => vec![Some((Links::Endpoints(None), name.to_string())), None],
        Target::Dns(_) => vec![Some((Links::Endpoints(None), "ok".into())), None],
    }
}

/// Returns a configuration without its notes.
fn bare(shown: &Shown) -> Shown {
    let cut = |text: &String| text.split('(').next().unwrap_or_default().to_owned();
    let clusters = shown.clusters.iter().map(|(name, text)| (name.clone(), cut(text)));
    Shown { values: shown.values.clone(), clusters: clusters.collect() }
}

fn news(value: Option<(Links, String)>) -> News<Linked<String>> {
    let gone = Status::new(Code::NotFound, "gone");
    News::Changed(value.map(|(links, value)| Linked::new(links, value)).ok_or(gone))
}

impl World {
    pub(super) fn new(bug: Option<Bug>, budget: Budget) -> Self {
        let subject = bug.map_or_else(Subject::chain, |bug| Subject::naive(Some(bug)));
        let (truth, given) = (Subject::naive(None), BTreeMap::new());
        let mut world =
            Self { subject, truth, given, budget, reference: None, is_dirty: true, is_late: false, is_changed: true };
        world.take(Step::Settle);
        world
    }

    fn give(&mut self, target: &Target, value: u8) {
        let content = values(target).swap_remove(usize::from(value));
        *self.budget.of(target) -= 1;
        self.given.insert(target.clone(), value);
        for subject in [&mut self.subject, &mut self.truth] {
            match target {
                Target::Dns(host) => {
                    let address = content.as_ref().map(|_| vec![([1, 1, 1, 1], 1).into()]);
                    subject.resolved(host, address.ok_or_else(|| "gone".to_string()));
                }
                target => subject.news(target, news(content.clone())),
            }
        }
    }

    fn truth(&self) -> &Naive {
        match &self.truth {
            Subject::Naive { naive, .. } => naive,
            Subject::Chain(_) => unreachable!("the truth is naive"),
        }
    }

    /// Checks the driver's last events and the state after them.
    fn check(&self, before: Option<Told>, events: &[Event]) {
        let truth = self.truth();
        // 9: Ambient news changes notes only.
        if !self.is_changed {
            let watches = events.iter().any(|event| !matches!(event, Event::Told(_)));
            assert!(!watches, "a note changes what is watched");
            let bare = |told: &Option<Told>| told.as_ref().map(|told| told.as_ref().map(bare).map_err(Clone::clone));
            assert_eq!(bare(&before), bare(&self.subject.told()), "a note changes data");
        }
        // 3: An equal configuration is not reported again.
        let mut last = before;
        for event in events {
            if let Event::Told(told) = event {
                assert_ne!(last.as_ref(), Some(told), "an equal configuration is told twice");
                last = Some(told.clone());
            }
        }
        // 6: A watch that stays wanted continues.
        for (at, event) in events.iter().enumerate() {
            if let Event::Watch(target) = event {
                assert!(!events[..at].contains(&Event::Unwatch(target.clone())), "{target} is dropped and made again");
            }
        }
        let told = self.subject.told();
        if let Some(Ok(shown)) = &told {
            // 2: No tear.
            let (listener, routes) = shown.values.split_once(' ').expect("two values");
            let routes = routes.split_once('.').map_or(routes, |(name, _)| name);
            assert_eq!(
                listener.strip_prefix("l-"),
                Some(routes),
                "a Listener is told with routes that it does not name"
            );
        }
        // 7: Liveness.
        let config = truth.config();
        assert!(config.is_none() || told.is_some(), "nothing is awaited, and nothing is told");
        // 10: Dynamic references delay nothing.
        let without = truth.clone().without_references().config();
        assert_eq!(config.is_some(), without.is_some(), "a dynamic reference delays a configuration");
        if let (Some(Ok(_)), Some(Ok(shown))) = (&config, &told) {
            // 1: A configuration refers to nothing outside itself.
            let clusters = &shown.clusters;
            for root in truth.roots() {
                assert!(clusters.contains_key(&root), "{root} is named by the routes, and not in the configuration");
            }
            for (name, text) in clusters.iter() {
                let Some(leaves) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else { continue };
                if text.contains(':') {
                    continue; // addresses
                }
                for leaf in leaves.split(", ") {
                    let of_leaf = clusters.get(leaf).map(String::as_str);
                    assert!(
                        of_leaf.is_some_and(|text| !text.starts_with('!')),
                        "{leaf} is a leaf of {name}, and is {of_leaf:?}"
                    );
                }
            }
            // 8: The leaves of a root depend on no other root.
            for (name, text) in clusters {
                for leaf in truth.leaves_of(name) {
                    assert!(text.contains(leaf.as_str()), "{leaf} is below {name}, which is {text}");
                }
            }
        }
        // 4, 5: The watched targets are those that are reached.
        let (watched, wanted) = (self.subject.watched(), truth.wanted());
        for target in &watched {
            assert!(wanted.contains(target), "{target} is watched, and nothing leads there");
        }
        for target in &wanted {
            assert!(watched.contains(target), "{target} is not watched, and something leads there");
        }
        // 3, 11: The reported configuration is the one that follows from scratch.
        if config.is_some() {
            assert_eq!(told, config, "what is told, and what is true");
        }
    }
}

impl Model for World {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        if self.is_dirty {
            steps.push(Step::Settle);
        }
        let mut budget = self.budget;
        for (at, target) in self.subject.watched().iter().enumerate() {
            if *budget.of(target) > 0 {
                let all = (0..values(target).len() as u8).filter(|value| self.given.get(target) != Some(value));
                steps.extend(all.map(|value| Step::Give(at as u8, value)));
            }
        }
        for (at, target) in self.subject.watched().iter().enumerate() {
            if budget.notes > 0 && self.given.contains_key(target) && !matches!(target, Target::Dns(_)) {
                steps.extend([true, false].map(|begins| Step::Note(at as u8, begins)));
            }
        }
        if budget.references > 0 && self.reference.is_none() {
            steps.push(Step::Subscribe);
        }
        if self.reference.is_some() {
            steps.push(Step::Release);
        }
        if budget.late > 0 && !self.is_dirty {
            for second in [false, true] {
                let target = routes(second);
                if self.given.contains_key(&target) && !self.subject.watched().contains(&target) {
                    steps.extend([0, 1].map(|value| Step::Late(second, value)));
                }
            }
        }
    }

    fn is_own(step: Step) -> bool {
        step == Step::Settle
    }

    fn take(&mut self, step: Step) {
        self.is_dirty = true;
        self.is_changed |= !matches!(step, Step::Settle | Step::Note(..));
        match step {
            Step::Settle => {
                let before = self.subject.told();
                let events = self.subject.settle();
                self.truth.settle();
                self.is_dirty = false;
                self.check(before, &events);
                self.is_changed = false;
            }
            Step::Give(at, value) => {
                let target = self.subject.watched().into_iter().nth(usize::from(at)).expect("watched");
                self.give(&target, value);
            }
            Step::Late(second, value) => {
                self.budget.late -= 1;
                self.is_late = true;
                let target = routes(second);
                let content = values(&target).swap_remove(usize::from(value));
                self.subject.news(&target, news(content));
            }
            Step::Note(at, begins) => {
                self.budget.notes -= 1;
                let target = self.subject.watched().into_iter().nth(usize::from(at)).expect("watched");
                let note = News::Ambient(begins.then(|| Status::new(Code::Unavailable, "away")));
                self.truth.news(&target, note.clone());
                self.subject.news(&target, note);
            }
            Step::Subscribe => {
                self.budget.references -= 1;
                self.reference = Some(self.subject.subscribe("g"));
                self.truth.subscribe("g");
            }
            Step::Release => {
                let reference = self.reference.take().expect("subscribed");
                self.subject.release("g", reference.as_ref());
                self.truth.release("g", None);
            }
        }
    }

    fn check_settled(&self) {}

    fn canonicalize(&mut self) {}

    fn goals(&self) -> u128 {
        let told = self.subject.told();
        let shown = told.as_ref().and_then(|told| told.as_ref().ok());
        let any = |is: &dyn Fn(&str) -> bool| shown.is_some_and(|shown| shown.clusters.values().any(|text| is(text)));
        let roots = self.truth().roots();
        let reached = [
            shown.is_some(),
            told.as_ref().is_some_and(Result::is_err),
            any(&|text| text == "[a, b]"),
            any(&|text| text.contains("no leaf clusters")),
            any(&|text| text.starts_with('!')) && any(&|text| text == "e1"),
            shown.is_some() && !self.is_dirty && self.truth().config().is_none(),
            shown.is_some_and(|shown| shown.clusters.contains_key("g"))
                && !roots.contains(&"g".to_string())
                && self.reference.is_some(),
            self.is_late,
            any(&|text| text == "[1.1.1.1:1]"),
            any(&|text| text.contains("away")),
        ];
        reached.iter().enumerate().map(|(bit, reached)| u128::from(*reached) << bit).sum()
    }
}

fn routes(second: bool) -> Target {
    Target::Routes(if second { "r2" } else { "r1" }.into())
}

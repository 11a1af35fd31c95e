//! The server's view (R-CSDS-32..36): stories, and a check in every order of events against a record by name, which the
//! server itself does not keep. The check finds the bugs of other implementations.

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::csds::{self, ConfigStatus, Item};
use xds_machine::message::{Node, delta, sotw};
use xds_machine::server::{Cache, Config, Resource, Response, ResponseLimit, Server, StreamId, Variant};
use xds_machine::{Code, Delta, Instant, ResourceName, Sotw, Status, TypeUrl, Version, type_url};
use xds_machine_testing::random::Random;

const NOW: Instant = Instant::EPOCH;

/// The requests of a minimal client.
trait Peer: Variant {
    fn request(of: &TypeUrl, names: &[&str], answers: Option<(&Response<Self>, bool)>) -> Self::Request
    where
        Self: Sized;
}

fn verdict(is_nack: bool) -> Option<Status> {
    is_nack.then(|| Status::new(Code::InvalidArgument, "it is bad"))
}

impl Peer for Sotw {
    fn request(of: &TypeUrl, names: &[&str], answers: Option<(&Response<Self>, bool)>) -> sotw::Request {
        let mut request = sotw::Request::new(of.clone());
        request.node = Some(Node::new("n").into());
        request.names = names.iter().map(|&name| name.into()).collect();
        if let Some((response, is_nack)) = answers {
            request.nonce = response.nonce().clone();
            request.version = if is_nack { Version::default() } else { response.version().clone() };
            request.error = verdict(is_nack);
        }
        request
    }
}

impl Peer for Delta {
    fn request(of: &TypeUrl, names: &[&str], answers: Option<(&Response<Self>, bool)>) -> delta::Request {
        let mut request = delta::Request::new(of.clone());
        request.node = Some(Node::new("n").into());
        match answers {
            None => request.subscribe = names.iter().map(|&name| name.into()).collect(),
            Some((response, is_nack)) => {
                request.nonce = response.nonce().clone();
                request.error = verdict(is_nack);
            }
        }
        request
    }
}

/// A stream, its store, and the sent resources by name.
#[derive(Clone)]
struct World<V: Peer> {
    of: TypeUrl,
    names: Vec<&'static str>,
    /// Whether responses are portions: a resource that appears and changes between two of them may count as sent.
    portions: bool,
    server: Server<V>,
    cache: Cache,
    /// The number of contents that were made: no content is used twice.
    made: u64,
    /// The response that waits for its verdict.
    out: Option<Response<V>>,
    /// The last form of each resource that was sent, and the verdict on it.
    sent: BTreeMap<ResourceName, (Version, ConfigStatus)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Change(&'static str),
    Remove(&'static str),
    Transmit,
    Ack,
    Nack,
}

const STEPS: [Step; 6] =
    [Step::Change("a"), Step::Change("b"), Step::Remove("a"), Step::Transmit, Step::Ack, Step::Nack];

impl<V: Peer> World<V> {
    fn new(of: &str, names: &[&'static str], config: Config) -> Self {
        Self::with(of, names, config, false)
    }

    fn with(of: &str, names: &[&'static str], config: Config, portions: bool) -> Self {
        let of = TypeUrl::from(of);
        let mut server = Server::new(config, StreamId(1));
        server.handle_request(NOW, V::request(&of, names, None)).expect("a request");
        let cache = Cache::new(1).with_page(1);
        let (made, out, sent) = (0, None, BTreeMap::new());
        Self { of, names: names.to_vec(), portions, server, cache, made, out, sent }
    }

    /// Takes a step; `None` if there is nothing to do.
    fn step(&mut self, step: Step) -> Option<()> {
        while self.server.poll_action().is_some() {}
        match step {
            Step::Change(name) => {
                self.made += 1;
                let resource = Resource::new(name, self.made.to_string()).with_version(self.made.to_string());
                self.cache.insert(&self.of, resource);
            }
            Step::Remove(name) => {
                if !self.cache.remove(&self.of, name) {
                    return None;
                }
                // A later resource of this name is sent for the first time.
                self.sent.remove(name);
            }
            Step::Transmit => {
                let response = self.server.poll_transmit(NOW, &self.cache)?;
                for resource in response.resources() {
                    let form = (resource.version().clone(), ConfigStatus::Stale);
                    self.sent.insert(resource.name().clone(), form);
                }
                self.out = Some(response);
            }
            Step::Ack | Step::Nack => {
                let (response, is_nack) = (self.out.take()?, step == Step::Nack);
                let request = V::request(&self.of, &self.names, Some((&response, is_nack)));
                self.server.handle_request(NOW, request).expect("a request");
                let had: BTreeSet<&ResourceName> = response.resources().map(Resource::name).collect();
                for (_, (_, status)) in self.sent.iter_mut().filter(|(name, _)| had.contains(name)) {
                    *status = if is_nack { ConfigStatus::Error } else { ConfigStatus::Synced };
                }
            }
        }
        Some(())
    }

    /// Returns the status that a record by name yields, of each resource that is present and wanted (R-CSDS-32, -35).
    fn expected(&self) -> Vec<(String, ConfigStatus)> {
        let wanted = |resource: &&Resource| {
            self.names.is_empty() || self.names.iter().any(|name| *name == "*" || resource.name() == name)
        };
        let status = |resource: &Resource| match self.sent.get(resource.name()) {
            None => ConfigStatus::NotSent,
            Some((form, _)) if form != resource.version() => ConfigStatus::Stale,
            Some((_, status)) => *status,
        };
        let mut all: Vec<_> = self.cache.resources(&self.of).filter(wanted).collect();
        all.sort_by_key(|resource| resource.name());
        all.into_iter().map(|resource| (resource.name().to_string(), status(resource))).collect()
    }

    fn view(&self) -> Vec<Item> {
        csds::view(&self.server, &self.cache, true)
    }

    fn check(&self, change: fn(&Self, &mut Vec<Item>)) -> Result<(), String> {
        let mut view = self.view();
        change(self, &mut view);
        for item in view.iter().filter(|item| item.version.is_none()) {
            if item.config_status == Some(ConfigStatus::Synced) {
                return Err(format!("{} is nowhere, and in sync", item.name));
            }
        }
        view.retain(|item| item.version.is_some());
        let shown: Vec<_> =
            view.iter().map(|item| (item.name.to_string(), item.config_status.expect("a status"))).collect();
        let expected = self.expected();
        let is_alike = |((name, shown), (other, expected)): (&(String, ConfigStatus), &(String, ConfigStatus))| {
            let between = self.portions && (*shown, *expected) == (ConfigStatus::Stale, ConfigStatus::NotSent);
            name == other && (shown == expected || between)
        };
        if shown.len() != expected.len() || !shown.iter().zip(&expected).all(is_alike) {
            return Err(format!("{shown:?}, and not {expected:?}"));
        }
        for item in &view {
            let is_error = item.config_status == Some(ConfigStatus::Error);
            let words = item.error.as_ref().map(|error| error.details.as_str());
            if words != is_error.then_some("it is bad") {
                return Err(format!("{}: the words of an error are {words:?}", item.name));
            }
            let own = self.cache.resources(&self.of).find(|resource| *resource.name() == item.name);
            if item.contents.as_ref() != own.map(Resource::body) {
                return Err(format!("{}: not what is served", item.name));
            }
        }
        self.server.check_invariants()
    }

    /// Tries every order of `depth` steps. Returns the number of steps tried, or the shortest way to a failure.
    fn search(&self, depth: usize, change: fn(&Self, &mut Vec<Item>)) -> Result<usize, (Vec<Step>, String)> {
        let (mut layer, mut count) = (vec![(self.clone(), Vec::new())], 0);
        for _ in 0..depth {
            let mut next = Vec::new();
            for (world, steps) in &layer {
                for step in STEPS {
                    let mut world = world.clone();
                    if world.step(step).is_none() {
                        continue;
                    }
                    count += 1;
                    let steps: Vec<Step> = steps.iter().copied().chain([step]).collect();
                    if let Err(error) = world.check(change) {
                        return Err((steps, error));
                    }
                    next.push((world, steps));
                }
            }
            layer = next;
        }
        Ok(count)
    }

    /// Takes long random walks.
    fn walk(&self, walks: u64, len: usize) {
        for seed in 0..walks {
            let (mut random, mut world, mut steps) = (Random(seed), self.clone(), Vec::new());
            for _ in 0..len {
                let step = random.pick(&STEPS);
                if world.step(step).is_some() {
                    steps.push(step);
                    assert_eq!(world.check(as_it_is), Ok(()), "seed {seed}: {steps:?}");
                }
            }
        }
    }
}

fn as_it_is<V: Peer>(_: &World<V>, _: &mut Vec<Item>) {}

fn portions() -> Config {
    Config::ads().with_response_limit(ResponseLimit { resources: 1, ..ResponseLimit::default() })
}

fn check_all<V: Peer>() {
    for (of, names) in [
        (type_url::LISTENER, &["a", "b"][..]),
        (type_url::LISTENER, &["*"]),
        (type_url::ENDPOINT, &["a", "b"]),
        (type_url::ENDPOINT, &["*"]),
    ] {
        for portions in [false, true] {
            let config = if portions { self::portions() } else { Config::ads() };
            let world = World::<V>::with(of, names, config, portions);
            if let Err((steps, error)) = world.search(5, as_it_is) {
                panic!("{of} {names:?} portions {portions}: {steps:?}: {error}");
            }
            world.walk(300, 60);
        }
    }
}

#[test]
fn sotw_the_view_matches_a_record_kept_by_name() {
    check_all::<Sotw>();
}

#[test]
fn delta_the_view_matches_a_record_kept_by_name() {
    check_all::<Delta>();
}

/// Bugs of other implementations, each with the length of the shortest way to it.
#[test]
fn seeded_bugs_are_found() {
    type Bug = fn(&World<Delta>, &mut Vec<Item>);
    fn replace(view: &mut [Item], from: ConfigStatus, to: ConfigStatus) {
        view.iter_mut().filter(|item| item.config_status == Some(from)).for_each(|item| item.config_status = Some(to));
    }
    let bugs: [(&str, usize, Bug); 6] = [
        // R-CSDS-34, L-30: Istio's `debugSyncStatus` compares nonces only.
        ("a NACK is STALE", 3, |_, view| replace(view, ConfigStatus::Error, ConfigStatus::Stale)),
        // R-CSDS-35
        ("a change that waits is NOT_SENT", 3, |world, view| {
            for item in view.iter_mut() {
                let delivery = world.server.delivery(&world.of, &item.name, &world.cache);
                if delivery.is_some_and(|delivery| delivery.earlier) {
                    item.config_status = Some(ConfigStatus::NotSent);
                }
            }
        }),
        // L-28: one status for a type.
        ("the worst status is that of all", 2, |_, view| {
            let worst = view.iter().filter_map(|item| item.config_status).max();
            view.iter_mut().for_each(|item| item.config_status = worst);
        }),
        // R-CSDS-33
        ("an ACK ends all errors", 5, |world, view| {
            if world.out.is_none() && world.sent.values().any(|(_, status)| *status == ConfigStatus::Synced) {
                replace(view, ConfigStatus::Error, ConfigStatus::Synced);
            }
        }),
        ("what is sent is in sync", 1, |_, view| replace(view, ConfigStatus::Stale, ConfigStatus::Synced)),
        ("what is not sent is not shown", 1, |_, view| {
            view.retain(|item| item.config_status != Some(ConfigStatus::NotSent));
        }),
    ];
    for (name, len, bug) in bugs {
        let world = World::<Delta>::new(type_url::ENDPOINT, &["a", "b"], Config::ads());
        let (steps, _) = world.search(6, bug).expect_err(name);
        assert_eq!(steps.len(), len, "{name}: {steps:?}");
    }
}

fn shown(view: &[Item]) -> Vec<String> {
    let show = |item: &Item| {
        let status = item.config_status.expect("a status");
        let version = item.version.as_ref().map_or("-", Version::as_str);
        format!("{} {status:?} {version}", item.name)
    };
    view.iter().map(show).collect()
}

/// R-CSDS-32: one stream through all four statuses; R-CSDS-33: the verdict on another response changes nothing.
#[test]
fn delta_items_go_through_all_four_statuses() {
    let mut world = World::<Delta>::new(type_url::ENDPOINT, &["a", "b"], Config::ads());
    let mut go = |step| {
        world.step(step).expect("something to do");
        shown(&world.view())
    };
    assert_eq!(go(Step::Change("a")), ["a NotSent 1", "b NotSent -"]);
    assert_eq!(go(Step::Transmit), ["a Stale 1", "b Stale -"]);
    assert_eq!(go(Step::Ack), ["a Synced 1", "b NotSent -"]);
    assert_eq!(go(Step::Change("b")), ["a Synced 1", "b NotSent 2"]);
    assert_eq!(go(Step::Transmit), ["a Synced 1", "b Stale 2"]);
    assert_eq!(go(Step::Nack), ["a Synced 1", "b Error 2"]);
    assert_eq!(go(Step::Change("a")), ["a Stale 3", "b Error 2"], "R-CSDS-35");
    assert_eq!(go(Step::Transmit), ["a Stale 3", "b Error 2"]);
    assert_eq!(go(Step::Ack), ["a Synced 3", "b Error 2"]);
    // A newer form is not the one that was rejected.
    assert_eq!(go(Step::Change("b")), ["a Synced 3", "b Stale 4"]);
    assert_eq!(go(Step::Transmit), ["a Synced 3", "b Stale 4"]);
    assert_eq!(go(Step::Ack), ["a Synced 3", "b Synced 4"]);
    assert_eq!(go(Step::Remove("a")), ["a Stale -", "b Synced 4"], "the client still has it");
    assert_eq!(go(Step::Transmit), ["a Stale -", "b Synced 4"]);
    assert_eq!(go(Step::Ack), ["a NotSent -", "b Synced 4"]);
}

/// R-CSDS-32 in SotW; R-CSDS-36: the version is that of the response, which is the type's.
#[test]
fn sotw_items_go_through_all_four_statuses() {
    let mut world = World::<Sotw>::new(type_url::LISTENER, &["a", "b"], Config::ads());
    world.step(Step::Change("a")).expect("a change");
    world.step(Step::Change("b")).expect("a change");
    let status = |world: &World<Sotw>| -> Vec<ConfigStatus> {
        world.view().iter().map(|item| item.config_status.expect("a status")).collect()
    };
    use ConfigStatus::{Error, NotSent, Stale, Synced};
    assert_eq!(status(&world), [NotSent, NotSent]);
    world.step(Step::Transmit).expect("a response");
    assert_eq!(status(&world), [Stale, Stale]);
    let version = world.out.as_ref().expect("a response").version().clone();
    assert!(world.view().iter().all(|item| item.version.as_ref() == Some(&version)));
    world.step(Step::Nack).expect("a verdict");
    assert_eq!(status(&world), [Error, Error], "all are in the response");
    world.step(Step::Change("a")).expect("a change");
    world.step(Step::Transmit).expect("a response");
    assert_eq!(status(&world), [Stale, Stale]);
    world.step(Step::Ack).expect("a verdict");
    assert_eq!(status(&world), [Synced, Synced]);
}

/// R-CSDS-32 in SotW: a response names no resource that does not exist, so that neither a response in flight nor its
/// rejection is of such a resource.
#[test]
fn sotw_items_of_resources_that_do_not_exist_are_not_sent() {
    for of in [type_url::LISTENER, type_url::ENDPOINT] {
        let mut world = World::<Sotw>::new(of, &["a", "b"], Config::ads());
        world.step(Step::Change("b")).expect("a change");
        let shown = |world: &World<Sotw>, name: &str| {
            let item = world.view().into_iter().find(|item| item.name == name).expect("it is subscribed to");
            (item.config_status.expect("a status"), item.error.is_some())
        };
        use ConfigStatus::{Error, NotSent, Stale, Synced};
        for step in [Step::Transmit, Step::Nack, Step::Change("b"), Step::Transmit, Step::Ack] {
            world.step(step).expect("something to do");
            assert_eq!(shown(&world, "a"), (NotSent, false), "{of} {step:?}");
            let of_b = match step {
                Step::Nack => (Error, true),
                Step::Ack => (Synced, false),
                _ => (Stale, false),
            };
            assert_eq!(shown(&world, "b"), of_b, "{of} {step:?}");
        }
    }
}

/// R-CSDS-32: a type that the client never asked for has no items. R-CSDS-36: contents are shown only if they are asked
/// for, and those of secrets never.
#[test]
fn items_are_of_requested_types_and_secrets_have_no_contents() {
    let mut world = World::<Delta>::new(type_url::SECRET, &["a"], Config::ads());
    world.step(Step::Change("a")).expect("a change");
    world.cache.insert(&TypeUrl::from(type_url::CLUSTER), Resource::new("c", &b"x"[..]));
    assert_eq!(shown(&world.view()), ["a NotSent 1"]);
    assert_eq!(world.view()[0].contents, None, "keys are shown to nobody");
    let item = &world.view()[0];
    assert_eq!((item.client_status, item.updated), (None, None));

    let mut world = World::<Delta>::new(type_url::ENDPOINT, &["a"], Config::ads());
    world.step(Step::Change("a")).expect("a change");
    assert_eq!(world.view()[0].contents.as_deref(), Some(&b"1"[..]));
    assert_eq!(csds::view(&world.server, &world.cache, false)[0].contents, None);
}

/// The cost of the view is linear, also while an answer is sent in portions.
#[test]
fn after_the_first_portion_of_a_large_store_the_other_items_are_not_sent() {
    let limit = ResponseLimit { resources: 20_000, ..ResponseLimit::default() };
    let config = Config::ads().with_response_limit(limit);
    let mut world = World::<Delta>::new(type_url::CLUSTER, &["*"], config);
    world.cache = Cache::new(1);
    for number in 0..60_000 {
        world.cache.insert(&world.of, Resource::new(format!("c{number}"), "x").with_version("1"));
    }
    world.step(Step::Transmit).expect("a portion");
    let count = |status| world.view().iter().filter(|item| item.config_status == Some(status)).count();
    assert_eq!((count(ConfigStatus::Stale), count(ConfigStatus::NotSent)), (20_000, 40_000));
}

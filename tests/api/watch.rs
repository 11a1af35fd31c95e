//! The watcher layer over real machines: a store, a server, a client, and watchers.

mod aliases;
mod collections;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use xds_machine::client::{Client, Config, DataErrors};
use xds_machine::message::Node;
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::watch::{Event, News, WatchId, Watches};
use xds_machine::{Code, Delta, Instant, Sotw, Status, TypeUrl, client};
use xds_machine_testing::variant::Both;

const TYPE: &str = "type";

/// Both ends of a stream, and the store behind it.
struct World<V: Both> {
    now: Instant,
    cache: Cache,
    client: Client<V>,
    server: Option<Server<V>>,
    config: server::Config,
    streams: u64,
    watches: Watches<u8>,
}

fn type_url() -> TypeUrl {
    TypeUrl::from(TYPE)
}

/// Decodes a resource; rejects content 9.
fn decode(resource: client::Resource<'_>) -> Result<u8, String> {
    match resource.body().last() {
        Some(9) | None => Err("nine".into()),
        Some(&content) => Ok(content),
    }
}

impl<V: Both> World<V> {
    fn new(full_state: bool, data_errors: DataErrors) -> Self {
        let kind = if full_state { ResourceType::full_state(TYPE) } else { ResourceType::partial(TYPE) };
        let types = TypeRegistry::new([kind]);
        let config = Config::new(Node::new("n")).with_types(types.clone()).with_data_errors(data_errors);
        Self {
            now: Instant::EPOCH,
            cache: Cache::new(1),
            client: Client::new(config),
            server: None,
            config: server::Config::ads().with_types(types),
            streams: 0,
            watches: Watches::new(TYPE),
        }
    }

    fn put(&mut self, name: &str, content: u8) {
        let mut body = vec![0x0a, name.len() as u8];
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&[0x78, content]);
        self.cache.insert(&type_url(), Resource::new(name, body));
    }

    fn delete(&mut self, name: &str) {
        self.cache.remove(&type_url(), name);
    }

    fn fail(&mut self, name: &str, code: Code) {
        self.cache.set_error(&type_url(), name, Status::new(code, "no"));
    }

    fn watch(&mut self, name: &str) -> WatchId {
        self.watches.watch(&mut self.client, name).expect("a name")
    }

    fn unwatch(&mut self, watch: WatchId) {
        self.watches.unwatch(&mut self.client, watch);
    }

    fn open(&mut self) {
        self.streams += 1;
        self.server = Some(Server::new(self.config.clone(), StreamId(self.streams)));
        self.client.handle_open();
    }

    fn cut(&mut self) {
        self.server = None;
        self.client.handle_close();
    }

    /// Runs a driver until nothing is left to do.
    fn run(&mut self) {
        loop {
            while let Some(action) = self.client.poll_action() {
                assert_eq!(self.watches.handle_action(action, decode), None);
            }
            while let Some(verdict) = self.watches.poll_verdict() {
                self.client.handle_verdict(self.now, verdict).expect("the update is out");
            }
            assert_eq!(self.client.check_invariants(), Ok(()));
            let Some(server) = &mut self.server else { return };
            if let Some(transmit) = self.client.poll_transmit() {
                server.handle_request(self.now, transmit.request).expect("a good request");
                self.client.handle_sent(self.now, transmit.sent);
            } else if let Some(response) = server.poll_transmit(self.now, &self.cache) {
                self.client.handle_response(self.now, V::message(&response)).expect("a good response");
            } else if self.client.poll_action().is_none() {
                return;
            }
            while server.poll_action().is_some() {}
        }
    }

    /// Runs, and fires the due time-outs.
    fn settle(&mut self) {
        self.run();
        while let Some(due) = self.client.poll_timeout() {
            self.now = due;
            self.client.handle_timeout(due);
            self.run();
        }
    }

    /// Returns the events of the watchers, one per line.
    fn told(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.watches.poll_event()).map(|event| show(&event)).collect()
    }
}

fn show(event: &Event<u8>) -> String {
    let watch = format!("{:?}", event.watch).replace("WatchId(", "#").replace(')', "");
    let news = match &event.news {
        News::Changed(Ok(content)) => format!("is {content}"),
        News::Changed(Err(status)) => format!("fails: {status}"),
        News::Ambient(Some(status)) => format!("has beside it {status}"),
        News::Ambient(None) => "is fine".into(),
        News::Synced => "is synced".into(),
        other => panic!("{other:?}"),
    };
    format!("{watch} {} {news}", event.name)
}

#[test]
fn the_removal_of_a_resource_is_reported_despite_an_earlier_rejection() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    world.put("a", 1);
    world.watch("a");
    world.open();
    world.run();
    world.put("a", 9);
    world.run();
    world.told();
    assert_eq!(world.watches.error("a").map(|error| error.code), Some(Code::InvalidArgument.number()));
    world.delete("a");
    world.run();
    assert_eq!(world.told(), ["#1 a fails: 5: the server removed the resource"]);
}

#[test]
fn several_watchers_share_one_subscription_and_a_late_one_gets_the_held_resource() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    world.put("a", 1);
    let (one, two) = (world.watch("a"), world.watch("a"));
    world.open();
    world.run();
    assert_eq!(world.told(), ["#1 a is 1", "#2 a is 1"]);
    assert_eq!(world.watches.get("a"), Some(&1));
    let three = world.watch("a");
    assert_eq!(world.told(), ["#3 a is 1"], "at once");
    assert!(!world.client.wants_transmit(), "nothing is asked for");
    world.unwatch(one);
    world.unwatch(two);
    assert!(!world.client.wants_transmit());
    world.unwatch(three);
    world.unwatch(three);
    world.run();
    let interest = world.server.as_ref().and_then(|server| server.interest(&type_url()));
    assert!(interest.is_some_and(|interest| interest.is_empty()), "the last one unsubscribes");
    assert_eq!(world.watches, { Watches::new(TYPE).tap(|fresh| _ = forget_ids(fresh, 3)) }, "nothing is left");
}

/// Adds and removes this many watchers, so that the count of watchers agrees.
fn forget_ids(watches: &mut Watches<u8>, count: usize) -> usize {
    let mut client = Client::<Delta>::new(Config::new(Node::new("n")));
    for _ in 0..count {
        let watch = watches.watch(&mut client, "a").expect("a name");
        watches.unwatch(&mut client, watch);
    }
    count
}

trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl<T> Tap for T {}

#[test]
fn equal_content_is_not_reported_again() {
    let mut world = World::<Sotw>::new(true, DataErrors::Delete);
    world.put("a", 1);
    world.put("b", 1);
    world.watch("a");
    world.watch("b");
    world.open();
    world.run();
    assert_eq!(world.told(), ["#1 a is 1", "#2 b is 1"]);
    // A response of a full-state type has all resources again.
    world.put("b", 2);
    world.run();
    assert_eq!(world.told(), ["#2 b is 2"]);
    // A slow watcher receives the latest content, and no event if that is the content it has.
    world.put("b", 3);
    world.run();
    world.put("b", 2);
    world.put("a", 2);
    world.run();
    assert_eq!(world.told(), ["#1 a is 2"]);
}

#[test]
fn errors_are_reported_after_the_content_and_end_with_the_next_content() {
    let mut world = World::<Sotw>::new(false, DataErrors::Delete);
    world.put("a", 1);
    world.fail("b", Code::Unavailable);
    world.watch("a");
    world.watch("b");
    world.open();
    world.run();
    assert_eq!(world.told(), ["#2 b fails: 14: no", "#1 a is 1"]);
    world.fail("a", Code::Unavailable);
    world.run();
    assert_eq!(world.told(), ["#1 a has beside it 14: no"]);
    world.watch("a");
    assert_eq!(world.told(), ["#3 a is 1", "#3 a has beside it 14: no"], "in this order");
    // The same content ends the error, and is no other event.
    world.put("a", 1);
    world.run();
    assert_eq!(world.told(), ["#1 a is fine", "#3 a is fine"]);
    // A rejected resource leaves the content as it was.
    world.put("a", 9);
    world.run();
    assert_eq!(world.told(), ["#1 a has beside it 3: nine", "#3 a has beside it 3: nine"]);
    world.put("a", 4);
    world.run();
    assert_eq!(world.told(), ["#1 a is 4", "#3 a is 4"]);
    world.put("b", 9);
    world.run();
    assert_eq!(world.told(), ["#2 b fails: 3: nine"]);
    // An error that comes and goes between two polls is no event.
    world.fail("a", Code::Unavailable);
    world.run();
    world.put("a", 4);
    world.run();
    assert_eq!(world.told(), [""; 0]);
}

/// An error that ends and returns between two polls is the error reported before.
#[test]
fn an_error_that_ends_and_returns_between_polls_is_not_reported_again() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    world.put("a", 1);
    world.watch("a");
    world.watch("b");
    world.open();
    world.settle();
    world.fail("a", Code::Unavailable);
    world.fail("b", Code::Unavailable);
    world.run();
    world.told();
    world.put("a", 1);
    world.put("b", 1);
    world.run();
    world.fail("a", Code::Unavailable);
    world.delete("b");
    world.run();
    world.fail("b", Code::Unavailable);
    world.run();
    assert_eq!(world.told(), [""; 0]);
    let away = || Status::new(Code::Unavailable, "away");
    world.put("a", 1);
    world.run();
    world.watch("c");
    world.watches.handle_unreachable(away());
    assert_eq!(world.told(), ["#1 a has beside it 14: away", "#3 c fails: 14: away"]);
    world.watches.handle_reachable();
    world.watches.handle_unreachable(away());
    assert_eq!(world.told(), [""; 0]);
}

#[test]
fn a_wildcard_watcher_added_late_does_not_receive_earlier_removals() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    world.put("a", 1);
    world.put("b", 1);
    world.watch("*");
    world.watch("a");
    world.open();
    world.run();
    world.told();
    world.delete("a");
    world.delete("b");
    world.run();
    world.watch("*");
    let mut told = world.told();
    told.retain(|line| line != "#3 * is synced");
    let gone = ["#1 a", "#2 a", "#1 b"].map(|who| format!("{who} fails: 5: the server removed the resource"));
    assert_eq!(told, gone, "the others are not told yet, and one watches it by name: that is not its concern");
}

/// A wildcard watcher has received the removal, and is not done with it; the client does not report the removal again
/// to a watcher that arrives by name.
#[test]
fn a_watcher_by_name_added_before_the_verdict_receives_the_removal() {
    for fails in [false, true] {
        let mut world = World::<Delta>::new(false, DataErrors::Delete);
        world.watches = Watches::new(TYPE).with_back_pressure();
        world.put("a", 1);
        let all = world.watch("*");
        world.open();
        world.run();
        assert_eq!(world.told(), ["#1 a is 1", "#1 * is synced"]);
        (0..2).for_each(|_| world.watches.handle_done(all));
        world.run();
        let why = if fails {
            world.fail("a", Code::NotFound);
            "5: no"
        } else {
            world.delete("a");
            "5: the server removed the resource"
        };
        world.run();
        assert_eq!(world.told(), [format!("#1 a fails: {why}")]);
        world.watch("a");
        world.watches.handle_done(all);
        world.settle();
        let mut told = world.told();
        told.retain(|line| line.starts_with("#2"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("#2 a fails: 5: "), "{told:?}");
    }
}

/// The same for a watcher that arrives before the update, between the error and its consequence.
#[test]
fn a_watcher_by_name_receives_the_removing_error_before_and_after_its_update() {
    let mut world = World::<Sotw>::new(true, DataErrors::Drop);
    world.put("a", 1);
    world.watch("*");
    world.open();
    world.run();
    world.told();
    world.fail("a", Code::PermissionDenied);
    let response = world.server.as_mut().and_then(|server| server.poll_transmit(world.now, &world.cache));
    world.client.handle_response(world.now, Sotw::message(&response.expect("news"))).expect("a good response");
    let errors = world.client.poll_action().expect("the error");
    assert_eq!(world.watches.handle_action(errors, decode), None);
    assert_eq!(world.told(), ["#1 a fails: 7: no"]);
    let late = world.watch("a");
    assert_eq!(world.told(), ["#2 a fails: 7: no"]);
    world.unwatch(late);
    let update = world.client.poll_action().expect("the update");
    assert_eq!(world.watches.handle_action(update, decode), None);
    world.watch("a");
    assert_eq!(world.told(), ["#3 a fails: 7: no"], "and after the update, with its reason");
}

#[test]
fn a_watcher_added_late_to_a_nonexistent_name_receives_the_error_at_once() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    world.put("b", 1);
    world.fail("c", Code::NotFound);
    for name in ["a", "b", "c"] {
        world.watch(name);
    }
    world.open();
    world.run();
    assert_eq!(world.told(), ["#3 c fails: 5: no", "#1 a fails: 5: the resource does not exist", "#2 b is 1"]);
    world.watch("a");
    assert_eq!(world.told(), ["#4 a fails: 5: the resource does not exist"]);
    world.delete("b");
    world.run();
    assert_eq!(world.told(), ["#2 b fails: 5: the server removed the resource"]);
    world.put("b", 1);
    world.run();
    assert_eq!(world.told(), ["#2 b is 1"]);
}

#[test]
fn data_errors_are_handled_as_configured() {
    let line = |data_errors| {
        let mut world = World::<Sotw>::new(true, data_errors);
        let names = ["a", "b", "c", "d"];
        for name in names {
            world.put(name, 1);
            world.watch(name);
        }
        world.open();
        world.run();
        world.told();
        world.put("a", 9);
        world.delete("b");
        world.fail("c", Code::PermissionDenied);
        world.fail("d", Code::Unavailable);
        world.run();
        let mut told = world.told();
        told.sort();
        told
    };
    let (ambient, transient) = ("#1 a has beside it 3: nine", "#4 d has beside it 14: no");
    let (denied, removed) = ("#3 c has beside it 7: no", "#2 b fails: 5: the server removed the resource");
    assert_eq!(line(DataErrors::Delete), [ambient, removed, denied, transient]);
    let deleted = "#2 b has beside it 5: the server deleted the resource";
    assert_eq!(line(DataErrors::Keep), [ambient, deleted, denied, transient]);
    assert_eq!(line(DataErrors::Drop), ["#1 a fails: 3: nine", removed, "#3 c fails: 7: no", transient]);
}

#[test]
fn a_wildcard_watcher_receives_the_events_of_all_resources() {
    let mut world = World::<Delta>::new(true, DataErrors::Delete);
    let all = world.watch("*");
    world.open();
    world.run();
    assert_eq!(world.told(), ["#1 * is synced"]);
    world.put("a", 1);
    world.put("b", 9);
    world.run();
    assert_eq!(world.told(), ["#1 a is 1", "#1 b fails: 3: nine"]);
    world.watch("a");
    let late = world.watch("*");
    assert_eq!(world.told(), ["#2 a is 1", "#3 a is 1", "#3 * is synced"]);
    world.run();
    world.fail("*", Code::PermissionDenied);
    world.run();
    assert_eq!(world.told(), ["#1 * has beside it 7: no", "#3 * has beside it 7: no"]);
    world.delete("a");
    world.run();
    let gone = |watch| format!("#{watch} a fails: 5: the server removed the resource");
    let fine = |watch| format!("#{watch} * is fine");
    assert_eq!(world.told(), [fine(1), fine(3), gone(2), gone(1), gone(3)]);
    world.put("a", 2);
    world.put("b", 2);
    world.unwatch(all);
    world.unwatch(late);
    world.run();
    assert_eq!(world.told(), ["#2 a is 2"]);
    assert_eq!(world.watches.get("b"), None, "nobody watches it");
}

/// A response may have both an error of the wildcard and content, and the error persists.
#[test]
fn an_error_of_the_wildcard_and_content_of_one_response_are_both_reported() {
    let mut world = World::<Delta>::new(true, DataErrors::Delete);
    world.put("a", 1);
    world.watch("*");
    world.open();
    world.run();
    assert_eq!(world.told(), ["#1 a is 1", "#1 * is synced"]);
    world.put("a", 2);
    world.fail("*", Code::Unavailable);
    world.run();
    assert_eq!(world.told(), ["#1 * has beside it 14: no", "#1 a is 2"]);
    world.delete("*");
    world.put("a", 3);
    world.run();
    assert_eq!(world.told(), ["#1 * is fine", "#1 a is 3"]);
}

#[test]
fn a_collection_watcher_receives_the_events_of_its_members() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    let (glob, a, other) = ("xdstp://x/type/d/*", "xdstp://x/type/d/a", "xdstp://x/type/e/a");
    world.put(a, 1);
    world.put(other, 1);
    let whole = world.watch(glob);
    world.open();
    world.run();
    assert_eq!(world.told(), [format!("#1 {a} is 1")]);
    world.watch(a);
    assert_eq!(world.told(), [format!("#2 {a} is 1")], "at once");
    world.fail(a, Code::Unavailable);
    world.run();
    assert_eq!(world.told(), ["#1", "#2"].map(|watch| format!("{watch} {a} has beside it 14: no")));
    world.unwatch(whole);
    world.put(a, 2);
    world.run();
    assert_eq!(world.told(), [format!("#2 {a} is 2")]);
}

/// A removal is remembered until every wildcard watcher has received it, or has left.
#[test]
fn a_removal_is_forgotten_once_each_wildcard_watcher_received_it_or_was_removed() {
    for told_first in [false, true] {
        let mut world = World::<Delta>::new(true, DataErrors::Delete);
        world.put("a", 1);
        let (one, two) = (world.watch("*"), world.watch("*"));
        world.open();
        world.run();
        world.told();
        world.delete("a");
        world.run();
        assert!(world.watches.error("a").is_some());
        if told_first {
            assert!(world.watches.poll_watch(two).is_some());
            assert!(world.watches.error("a").is_some(), "one is to be told still");
        }
        world.unwatch(one);
        assert_eq!(world.watches.poll_watch(two).is_some(), !told_first);
        assert_eq!(world.watches.error("a"), None);
        world.watch("*");
        assert_eq!(world.told(), ["#3 * is synced"]);
    }
}

#[test]
fn resources_watched_only_by_the_wildcard_are_dropped_with_its_last_watcher() {
    let mut world = World::<Delta>::new(true, DataErrors::Delete);
    world.put("a", 1);
    world.put("b", 1);
    let all = world.watch("*");
    world.watch("b");
    world.open();
    world.run();
    let held = |world: &World<Delta>| ["a", "b"].map(|name| world.watches.get(name).copied());
    assert_eq!(held(&world), [Some(1), Some(1)]);
    world.unwatch(all);
    assert_eq!(held(&world), [None, Some(1)]);
}

#[test]
fn a_member_ends_the_error_of_its_collection() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    let (glob, a) = ("xdstp://x/type/d/*", "xdstp://x/type/d/a");
    world.fail(glob, Code::Unavailable);
    world.watch(glob);
    world.open();
    world.run();
    assert_eq!(world.told(), [format!("#1 {glob} has beside it 14: no")]);
    world.put(a, 1);
    world.run();
    assert_eq!(world.told(), [format!("#1 {glob} is fine"), format!("#1 {a} is 1")]);
}

#[test]
fn a_verdict_does_not_wait_for_watchers_of_unchanged_resources() {
    let mut world = World::<Sotw>::new(true, DataErrors::Delete);
    world.watches = Watches::new(TYPE).with_back_pressure();
    world.put("a", 1);
    world.put("b", 1);
    let (a, b) = (world.watch("a"), world.watch("b"));
    world.open();
    world.run();
    for watch in [a, b] {
        assert!(world.watches.poll_watch(watch).is_some());
        world.watches.handle_done(watch);
    }
    world.put("b", 2);
    world.run();
    assert!(world.watches.poll_watch(b).is_some());
    assert_eq!(world.watches.poll_verdict(), None);
    world.watches.handle_done(b);
    assert!(world.watches.poll_verdict().is_some());
}

#[test]
fn an_unreachable_server_is_reported_to_all_watchers() {
    let mut world = World::<Sotw>::new(false, DataErrors::Delete);
    world.put("a", 1);
    world.watch("a");
    world.open();
    world.run();
    world.told();
    world.cut();
    let away = || Status::new(Code::Unavailable, "away");
    world.watch("b");
    world.watches.handle_unreachable(away());
    world.watches.handle_unreachable(away());
    assert_eq!(world.told(), ["#1 a has beside it 14: away", "#2 b fails: 14: away"]);
    world.watch("c");
    assert_eq!(world.told(), ["#3 c fails: 14: away"], "and of what is asked for now (gRFC A57)");
    world.watches.handle_reachable();
    assert_eq!(world.told(), ["#1 a is fine"]);
    world.put("b", 1);
    world.open();
    world.settle();
    assert_eq!(world.told(), ["#2 b is 1", "#3 c fails: 5: the resource does not exist"]);
}

#[test]
fn a_verdict_waits_for_all_watchers_that_receive_the_update() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    world.watches = Watches::new(TYPE).with_back_pressure();
    world.put("a", 1);
    let (one, two, three) = (world.watch("a"), world.watch("a"), world.watch("b"));
    world.open();
    world.run();
    let waits = |world: &mut World<Delta>| {
        world.run();
        !world.client.wants_transmit()
            && world.server.as_mut().expect("up").poll_transmit(world.now, &world.cache).is_none()
    };
    world.put("a", 2);
    assert!(waits(&mut world), "nobody was told");
    assert_eq!(world.told(), ["#3 b fails: 5: the resource does not exist", "#1 a is 1", "#2 a is 1"]);
    world.watches.handle_done(one);
    world.watches.handle_done(three);
    assert!(waits(&mut world), "one is not done");
    assert_eq!(world.told(), [""; 0]);
    world.unwatch(two);
    world.run();
    assert_eq!(world.told(), ["#1 a is 2"], "who has left is not waited for");
    world.put("a", 3);
    assert!(waits(&mut world));
    world.watches.handle_done(one);
    world.run();
    assert_eq!(world.told(), ["#1 a is 3"]);
    // A rejection is an event too.
    world.watches.handle_done(one);
    world.run();
    world.put("a", 9);
    world.run();
    assert_eq!(world.told(), ["#1 a has beside it 3: nine"]);
}

/// The news that the verdict waited for is obsolete: the verdict waits for no watcher.
#[test]
fn a_verdict_does_not_wait_for_watchers_whose_change_is_obsolete() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    world.watches = Watches::new(TYPE).with_back_pressure();
    world.put("a", 1);
    let one = world.watch("a");
    world.open();
    world.run();
    assert_eq!(world.told(), ["#1 a is 1"]);
    world.watches.handle_done(one);
    world.run();
    world.fail("a", Code::Unavailable);
    world.run();
    world.put("a", 1);
    world.run();
    // The error came and went, and the update has its verdict.
    world.put("a", 2);
    world.run();
    assert_eq!(world.told(), ["#1 a is 2"]);
}

#[test]
fn an_action_of_another_type_is_given_back() {
    let mut world = World::<Delta>::new(false, DataErrors::Delete);
    let mut other = Watches::<u8>::new("other");
    other.watch(&mut world.client, "a").expect("a name");
    world.open();
    let first = world.client.poll_transmit().expect("a request");
    world.client.handle_sent(world.now, first.sent);
    world.client.handle_timeout(world.client.poll_timeout().expect("an existence time-out"));
    let missing = world.client.poll_action().expect("it is missing");
    assert_eq!(world.watches.handle_action(missing.clone(), decode), Some(missing.clone()));
    assert_eq!(other.handle_action(missing, decode), None);
    assert_eq!(world.watches.watch(&mut world.client, ""), Err(xds_machine::Misuse::EmptyName));
    assert_eq!(world.watches.poll_event(), None);
}

/// The state that a watcher derives from its events: of each resource the content and the error beside it.
#[derive(Clone, Debug, Default)]
struct View(BTreeMap<String, (Option<u8>, Option<Status>)>);

impl View {
    /// Takes an event, which must be news.
    fn take(&mut self, event: Event<u8>) {
        let seen = self.0.entry(event.name.to_string()).or_default();
        match event.news {
            News::Changed(Ok(content)) => {
                assert_ne!(seen.0, Some(content), "no event if equal");
                *seen = (Some(content), None);
            }
            News::Changed(Err(status)) => *seen = (None, Some(status)),
            News::Ambient(error) => {
                assert!(seen.0.is_some(), "an error beside nothing");
                assert_ne!(seen.1, error, "the same error");
                seen.1 = error;
            }
            News::Synced => _ = self.0.remove(event.name.as_str()),
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Watch(usize),
    Unwatch(usize),
    Put(usize, u8),
    Delete(usize),
    Fail(usize, Code),
    Cut,
    Run,
    /// Takes this many events.
    Take(usize),
}

const NAMES: [&str; 4] = ["a", "b", "c", "*"];

fn op() -> impl Strategy<Value = Op> {
    let codes = prop_oneof![Just(Code::NotFound), Just(Code::PermissionDenied), Just(Code::Unavailable)];
    prop_oneof![
        3 => (0..4usize).prop_map(Op::Watch),
        2 => (0..6usize).prop_map(Op::Unwatch),
        4 => (0..3usize, prop_oneof![0..3u8, Just(9)]).prop_map(|(name, content)| Op::Put(name, content)),
        2 => (0..3usize).prop_map(Op::Delete),
        2 => (0..3usize, codes).prop_map(|(name, code)| Op::Fail(name, code)),
        1 => Just(Op::Cut),
        4 => Just(Op::Run),
        2 => (0..4usize).prop_map(Op::Take),
    ]
}

/// Plays the operations, and compares the view of each watcher with the client's state of each resource.
fn play<V: Both>(full_state: bool, data_errors: DataErrors, ops: Vec<Op>) {
    let mut world = World::<V>::new(full_state, data_errors);
    let mut views: BTreeMap<WatchId, (&str, View)> = BTreeMap::new();
    world.open();
    let take = |world: &mut World<V>, views: &mut BTreeMap<WatchId, (&str, View)>, most: usize| {
        for event in std::iter::from_fn(|| world.watches.poll_event()).take(most) {
            let (name, view) = views.get_mut(&event.watch).expect("a watcher that is there");
            assert!(*name == "*" || event.name == *name, "{name} is told of {}", event.name);
            view.take(event);
        }
    };
    for op in ops.into_iter().chain([Op::Run]) {
        match op {
            Op::Watch(name) => _ = views.insert(world.watch(NAMES[name]), (NAMES[name], View::default())),
            Op::Unwatch(number) => {
                if let Some(&watch) = views.keys().nth(number) {
                    views.remove(&watch);
                    world.unwatch(watch);
                }
            }
            Op::Put(name, content) => world.put(NAMES[name], content),
            Op::Delete(name) => world.delete(NAMES[name]),
            Op::Fail(name, code) => world.fail(NAMES[name], code),
            Op::Cut => {
                world.cut();
                world.open();
            }
            Op::Run => world.run(),
            Op::Take(most) => take(&mut world, &mut views, most),
        }
    }
    world.settle();
    take(&mut world, &mut views, usize::MAX);
    for (watched, view) in views.values() {
        for name in NAMES.into_iter().filter(|&name| name != "*" && (*watched == name || *watched == "*")) {
            let state = world.client.resources(&type_url()).state(name);
            let held = state.is_some_and(|state| state.version.is_some());
            let (content, error) = view.0.get(name).cloned().unwrap_or_default();
            assert_eq!(content.is_some(), held, "{watched}: {name}: {state:?}, seen {content:?} {error:?}");
            assert_eq!(content.as_ref(), world.watches.get(name));
            if *watched == name {
                assert!(content.is_some() || error.is_some(), "{name}: {state:?}, and nothing was told");
            }
            if held {
                let wrong = state.and_then(|state| state.error).map(|error| error.status.clone());
                assert_eq!(error, wrong, "{name}: {state:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_view_of_each_watcher_matches_the_client_state(
        sotw in any::<bool>(),
        full_state in any::<bool>(),
        data_errors in prop_oneof![Just(DataErrors::Delete), Just(DataErrors::Keep), Just(DataErrors::Drop)],
        ops in vec(op(), 0..40),
    ) {
        if sotw {
            play::<Sotw>(full_state, data_errors, ops);
        } else {
            play::<Delta>(full_state, data_errors, ops);
        }
    }
}

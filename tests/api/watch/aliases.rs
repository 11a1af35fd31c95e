//! Watchers by an alias: they receive the resource that the alias stands for, under the watched name.

use std::time::Duration;

use xds_machine::client::{self, DataErrors, ResourceStatus};
use xds_machine::message::{Any, Resource as Wrapper, delta};
use xds_machine::server::Resource;
use xds_machine::watch::WatchId;
use xds_machine::{Code, Delta};

use super::{World, type_url};

fn world() -> World<Delta> {
    World::new(false, DataErrors::Delete)
}

fn resource(name: &str, content: u8, aliases: &[&str]) -> Resource {
    let body = [&[0x0a, name.len() as u8], name.as_bytes(), &[0x78, content]].concat();
    Resource::new(name, body).with_aliases(aliases.iter().copied())
}

impl World<Delta> {
    fn put_as(&mut self, name: &str, content: u8, aliases: &[&str]) {
        self.cache.insert(&type_url(), resource(name, content, aliases));
    }

    /// Opens a stream, runs, and returns the reported events.
    fn begin(&mut self) -> Vec<String> {
        self.open();
        self.goes_on()
    }

    /// Runs, and returns the reported events, by watcher.
    fn goes_on(&mut self) -> Vec<String> {
        self.run();
        let mut told = self.told();
        told.sort();
        told
    }

    fn status(&self, name: &str) -> Option<ResourceStatus> {
        self.client.resources(&type_url()).state(name).map(|state| state.status)
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_resource_is_reported_and_kept_under_its_watched_alias() {
    let mut world = world();
    world.put_as("r", 1, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    assert_eq!((world.watches.get("x"), world.watches.get("r")), (Some(&1), None));
    world.watch("x");
    assert_eq!(world.told(), ["#2 x is 1"], "at once");
    world.put_as("r", 2, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is 2", "#2 x is 2"]);
    world.delete("r");
    assert_eq!(
        world.goes_on(),
        ["#1 x fails: 5: the resource does not exist", "#2 x fails: 5: the resource does not exist"]
    );
    assert_eq!((world.watches.get("x"), world.watches.error("x").map(|error| error.code)), (None, Some(5)));
    world.put_as("other", 3, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is 3", "#2 x is 3"]);
}

#[test]
fn an_undecodable_resource_is_rejected_and_its_alias_watcher_receives_the_error() {
    let mut world = world();
    world.put_as("r", 9, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x fails: 3: nine"]);
    assert_eq!(world.status("x"), Some(ResourceStatus::Requested));
    world.put_as("r", 1, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is 1"]);
    world.put_as("r", 9, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x has beside it 3: nine"]);
    assert_eq!(world.watches.get("x"), Some(&1));
    world.put_as("r", 1, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is fine"]);
}

#[test]
fn a_resource_without_watchers_by_name_or_alias_is_not_decoded() {
    let mut world = world();
    world.put_as("r", 9, &["x"]);
    let watch = world.watch("x");
    world.open();
    let transmit = world.client.poll_transmit().expect("a request");
    let server = world.server.as_mut().expect("a stream");
    server.handle_request(world.now, transmit.request).expect("a request");
    let response = server.poll_transmit(world.now, &world.cache).expect("an answer");
    world.client.handle_response(world.now, (&response).into()).expect("an answer");
    world.unwatch(watch);
    let action = world.client.poll_action().expect("an update");
    let decode = |_: client::Resource<'_>| -> Result<u8, String> { panic!("nobody watches it") };
    assert_eq!(world.watches.handle_action(action, decode), None);
    assert_eq!(world.told(), NOTHING);
}

#[test]
fn an_alias_of_no_resource_is_reported_as_nonexistent() {
    let mut world = world();
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x fails: 5: the resource does not exist"]);
    world.put_as("r", 1, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is 1"]);
}

#[test]
fn a_watcher_by_alias_receives_only_the_new_resource_of_a_moved_alias() {
    for first in [true, false] {
        let mut world = world();
        let (from, to) = if first { ("a", "c") } else { ("c", "a") };
        world.put_as(from, 1, &["x"]);
        world.watch("x");
        assert_eq!(world.begin(), ["#1 x is 1"]);
        world.put_as(from, 1, &[]);
        world.put_as(to, 2, &["x"]);
        assert_eq!(world.goes_on(), ["#1 x is 2"]);
        world.put_as(from, 3, &[]);
        assert_eq!(world.goes_on(), NOTHING, "it stands for another");
        world.delete(from);
        assert_eq!(world.goes_on(), NOTHING);
        world.put_as(to, 4, &["x"]);
        assert_eq!(world.goes_on(), ["#1 x is 4"]);
    }
}

/// The former resource of the alias is also watched by its own name, and stays; the new resource is rejected.
#[test]
fn an_alias_moved_to_a_rejected_resource_keeps_the_former_content() {
    for (from, to) in [("a", "c"), ("c", "a")] {
        let mut world = world();
        world.put_as(from, 1, &["x"]);
        world.watch("x");
        world.watch(from);
        assert_eq!(world.begin(), ["#1 x is 1", &format!("#2 {from} is 1")]);
        world.put_as(from, 5, &[]);
        world.put_as(to, 9, &["x"]);
        assert_eq!(world.goes_on(), ["#1 x has beside it 3: nine", &format!("#2 {from} is 5")]);
        assert_eq!((world.watches.get("x"), world.watches.get(from)), (Some(&1), Some(&5)));
        world.put_as(from, 6, &[]);
        assert_eq!(world.goes_on(), [format!("#2 {from} is 6")]);
        world.put_as(to, 2, &["x"]);
        assert_eq!(world.goes_on(), ["#1 x is 2"]);
    }
}

/// No other watcher keeps the former resource of the alias: the resource is removed, with the rejection of the new one
/// as the reason.
#[test]
fn an_alias_moved_to_a_rejected_resource_fails_if_the_former_one_is_removed() {
    let mut world = world();
    world.put_as("a", 1, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.put_as("a", 1, &[]);
    world.put_as("c", 9, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x fails: 3: nine"]);
    assert_eq!(world.watches.get("x"), None);
    world.put_as("c", 2, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is 2"]);
}

#[test]
fn a_lost_alias_is_reported_as_nonexistent() {
    let mut world = world();
    world.put_as("r", 1, &["x", "y"]);
    world.watch("x");
    world.watch("y");
    world.watch("r");
    assert_eq!(world.begin(), ["#1 x is 1", "#2 y is 1", "#3 r is 1"]);
    world.put_as("r", 2, &["y"]);
    assert_eq!(world.goes_on(), ["#1 x fails: 5: the resource does not exist", "#2 y is 2", "#3 r is 2"]);
    world.put_as("r", 3, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is 3", "#2 y fails: 5: the resource does not exist", "#3 r is 3"]);
    world.delete("r");
    let told = world.goes_on();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(world.watches.get("x").is_none() && world.watches.get("r").is_none());
}

/// A resource is reported under each of its watched names, and to a wildcard watcher under its own name.
#[test]
fn a_resource_is_reported_under_each_watched_name_and_to_wildcard_watchers() {
    let mut world = world();
    world.put_as("r", 1, &["x"]);
    world.watch("*");
    assert_eq!(world.begin(), ["#1 * is synced", "#1 r is 1"]);
    world.watch("r");
    world.watch("x");
    assert_eq!(world.goes_on(), ["#2 r is 1", "#3 x is 1"]);
    world.watch("*");
    assert_eq!(world.told(), ["#4 r is 1", "#4 * is synced"], "an alias is no part of the whole");
    world.put_as("r", 2, &["x"]);
    assert_eq!(world.goes_on(), ["#1 r is 2", "#2 r is 2", "#3 x is 2", "#4 r is 2"]);
    world.delete("r");
    let told = world.goes_on();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().all(|line| line.contains("fails: 5")), "{told:?}");
}

/// A name becomes an alias of another resource, for a watcher of the name and for a watcher of the wildcard.
#[test]
fn a_watcher_of_a_name_that_becomes_an_alias_receives_the_new_resource() {
    let mut world = world();
    world.put_as("x", 1, &[]);
    world.watch("*");
    world.watch("x");
    assert_eq!(world.begin(), ["#1 * is synced", "#1 x is 1", "#2 x is 1"]);
    world.delete("x");
    world.run();
    world.put_as("r", 2, &["x"]);
    assert_eq!(world.goes_on(), ["#1 r is 2", "#1 x fails: 5: the server removed the resource", "#2 x is 2"]);
    world.watch("*");
    assert_eq!(world.told(), ["#3 r is 2", "#3 * is synced"]);
    world.delete("r");
    world.put_as("x", 3, &[]);
    let told = world.goes_on();
    assert!(told.contains(&"#1 x is 3".into()) && told.contains(&"#2 x is 3".into()), "{told:?}");
    assert_eq!(world.watches.get("x"), Some(&3));
}

/// An error of the resource also applies to its aliases, if it is reported; an error of an alias only to the alias.
#[test]
fn a_resource_error_applies_to_its_aliases_and_an_alias_error_only_to_the_alias() {
    let mut world = world();
    world.put_as("r", 1, &["x"]);
    world.watch("x");
    world.watch("r");
    assert_eq!(world.begin(), ["#1 x is 1", "#2 r is 1"]);
    world.fail("r", Code::Unavailable);
    assert_eq!(world.goes_on(), ["#1 x has beside it 14: no", "#2 r has beside it 14: no"]);
    world.put_as("r", 1, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x is fine", "#2 r is fine"]);
    world.fail("x", Code::Unavailable);
    assert_eq!(world.goes_on(), ["#1 x has beside it 14: no"]);
    world.fail("x", Code::NotFound);
    assert_eq!(world.goes_on(), ["#1 x fails: 5: no"]);
    assert_eq!((world.watches.get("x"), world.watches.get("r")), (None, Some(&1)));
    world.fail("r", Code::NotFound);
    assert_eq!(world.goes_on(), ["#2 r fails: 5: no"]);
}

#[test]
fn an_expired_resource_fails_for_watchers_by_alias() {
    let mut world = world();
    let mortal = resource("r", 1, &["x"]).with_ttl(Duration::from_secs(5));
    world.cache.insert(&type_url(), mortal);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.cut();
    world.settle();
    assert_eq!(world.told(), ["#1 x fails: 5: the TTL of the resource ran out"]);
    assert_eq!(world.begin(), ["#1 x is 1"]);
}

/// Changes while there is no stream, and watchers that arrive then.
#[test]
fn watchers_by_alias_receive_changes_on_a_new_stream() {
    let mut world = world();
    world.put_as("r", 1, &["x", "y"]);
    let x: WatchId = world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.cut();
    assert_eq!(world.begin(), NOTHING);
    world.cut();
    world.watch("y");
    world.put_as("r", 2, &["x", "y"]);
    assert_eq!(world.begin(), ["#1 x is 2", "#2 y is 2"]);
    world.cut();
    world.delete("r");
    world.begin();
    assert!(world.watches.get("x").is_none() && world.watches.get("y").is_none());
    world.unwatch(x);
    world.put_as("r", 3, &["x", "y"]);
    assert_eq!(world.goes_on(), ["#2 y is 3"]);
    assert_eq!(world.watches.get("x"), None);
}

/// A second alias of a held resource becomes watched, with or without a stream.
#[test]
fn a_watcher_by_another_alias_receives_the_held_resource() {
    for cut in [false, true] {
        let mut world = world();
        world.put_as("r", 1, &["x", "y"]);
        world.watch("x");
        assert_eq!(world.begin(), ["#1 x is 1"]);
        if cut {
            world.cut();
            world.watch("y");
            assert_eq!(world.begin(), ["#2 y is 1"]);
        } else {
            world.watch("y");
            assert_eq!(world.goes_on(), ["#2 y is 1"]);
        }
    }
}

/// A deleted resource that is kept is also kept by its alias.
#[test]
fn a_deleted_resource_that_is_kept_is_also_kept_under_its_alias() {
    let mut world = World::<Delta>::new(false, DataErrors::Keep);
    world.put_as("r", 1, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.delete("r");
    world.run();
    assert!(world.client.layer(&type_url()).held().any(|(name, _)| name == "r"));
    assert_eq!(world.watches.get("x"), Some(&1));
}

/// A rejected resource is dropped, by its alias too.
#[test]
fn a_rejected_resource_that_is_dropped_is_also_dropped_under_its_alias() {
    let mut world = World::<Delta>::new(false, DataErrors::Drop);
    world.put_as("r", 1, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.put_as("r", 9, &["x"]);
    assert_eq!(world.goes_on(), ["#1 x fails: 3: nine"]);
    assert_eq!(world.watches.get("x"), None);
}

impl World<Delta> {
    /// Passes a response of the server to the client, and the client's actions to the watchers; the verdict is still
    /// pending.
    fn hears(&mut self) {
        let server = self.server.as_mut().expect("a stream");
        let response = server.poll_transmit(self.now, &self.cache).expect("something is new");
        self.hears_response((&response).into());
    }

    fn hears_response(&mut self, response: delta::Response) {
        self.client.handle_response(self.now, response).expect("a response");
        while let Some(action) = self.client.poll_action() {
            assert_eq!(self.watches.handle_action(action, super::decode), None);
        }
    }
}

/// A watcher by name that arrives before the verdict receives a removal due to a moved alias, which the client does not
/// report again.
#[test]
fn a_watcher_added_before_the_verdict_receives_a_removal_by_a_moved_alias() {
    let mut world = world();
    world.put_as("a", 1, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.delete("a");
    world.put_as("b", 2, &["x"]);
    world.hears();
    world.watch("a");
    assert_eq!(world.goes_on(), ["#1 x is 2", "#2 a fails: 5: the server removed the resource"]);
}

/// The same if the alias was reported to stand for nothing just before.
#[test]
fn a_watcher_added_before_the_verdict_receives_a_removal_after_a_lost_alias() {
    let mut world = world();
    world.put_as("a", 1, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.delete("a");
    world.hears();
    world.watch("a");
    let told = ["#1 x fails: 5: the resource does not exist", "#2 a fails: 5: the server removed the resource"];
    assert_eq!(world.goes_on(), told);
}

/// The same for a watcher that arrives between the two: the loss of the alias, and the removal.
#[test]
fn a_watcher_added_between_a_lost_alias_and_the_removal_receives_the_removal() {
    let mut world = world();
    world.put_as("a", 1, &["x"]);
    world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.delete("a");
    let server = world.server.as_mut().expect("a stream");
    let response = server.poll_transmit(world.now, &world.cache).expect("what is gone");
    world.client.handle_response(world.now, (&response).into()).expect("a response");
    let missing = world.client.poll_action().expect("the alias");
    assert_eq!(world.watches.handle_action(missing, super::decode), None);
    world.watch("a");
    let told = ["#1 x fails: 5: the resource does not exist", "#2 a fails: 5: the server removed the resource"];
    assert_eq!(world.goes_on(), told);
}

/// A watcher by name that arrives after the last watcher of the alias has left receives the server's answer to its own
/// subscription.
#[test]
fn a_name_watched_after_the_last_watcher_by_alias_awaits_the_server_response() {
    let mut world = world();
    world.put_as("a", 1, &["x"]);
    let watch = world.watch("x");
    assert_eq!(world.begin(), ["#1 x is 1"]);
    world.put_as("a", 1, &[]);
    world.put_as("b", 2, &["x"]);
    world.hears();
    world.unwatch(watch);
    world.watch("a");
    assert_eq!(world.told(), NOTHING);
    assert_eq!(world.goes_on(), ["#2 a is 1"]);
}

/// A removal is forgotten once no watcher watches the resource by its name: an alias that stood for nothing by the time
/// of the removal does not keep that removal known.
#[test]
fn a_lost_alias_does_not_keep_a_removal_known() {
    let mut world = world();
    world.put_as("a", 1, &["x"]);
    world.watch("x");
    let by_name = world.watch("a");
    assert_eq!(world.begin(), ["#1 x is 1", "#2 a is 1"]);
    world.put_as("a", 2, &[]);
    assert_eq!(world.goes_on(), ["#1 x fails: 5: the resource does not exist", "#2 a is 2"]);
    world.delete("a");
    assert_eq!(world.goes_on(), ["#2 a fails: 5: the server removed the resource"]);
    world.put_as("a", 3, &[]);
    assert_eq!(world.goes_on(), ["#2 a is 3"]);
    world.delete("a");
    assert_eq!(world.goes_on(), ["#2 a fails: 5: the server removed the resource"]);
    world.unwatch(by_name);
    world.watch("a");
    assert_eq!(world.told(), NOTHING, "the server has not answered yet");
    assert_eq!(world.goes_on(), ["#3 a fails: 5: the resource does not exist"]);
}

/// The expiry of a resource is no event for a watcher of an alias that stood for the resource before.
#[test]
fn the_expiry_of_a_resource_is_not_reported_to_watchers_by_a_lost_alias() {
    let mut world = world();
    let ttl = Duration::from_secs(5);
    world.cache.insert(&type_url(), resource("a", 1, &["x"]).with_ttl(ttl));
    world.watch("x");
    world.watch("a");
    assert_eq!(world.begin(), ["#1 x is 1", "#2 a is 1"]);
    world.cache.insert(&type_url(), resource("a", 2, &[]).with_ttl(ttl));
    assert_eq!(world.goes_on(), ["#1 x fails: 5: the resource does not exist", "#2 a is 2"]);
    world.cut();
    world.settle();
    assert_eq!(world.told(), ["#2 a fails: 5: the TTL of the resource ran out"]);
}

/// A removed name becomes an alias of another resource in the same update: a watcher of the name receives the content
/// of that resource.
#[test]
fn a_name_removed_and_made_an_alias_by_one_update_has_the_new_content() {
    let mut world = world();
    world.put_as("a", 1, &["x"]);
    world.watch("x");
    world.watch("a");
    assert_eq!(world.begin(), ["#1 x is 1", "#2 a is 1"]);
    let any = Any { type_url: type_url(), value: resource("b", 2, &[]).body().clone() };
    let moved =
        Wrapper { name: "b".into(), version: "2".into(), body: Some(any), ttl: None, aliases: vec!["a".into()] };
    let response = delta::Response {
        system_version: "2".into(),
        resources: vec![moved],
        removed: vec!["a".into()],
        type_url: type_url(),
        nonce: "made here".into(),
        control_plane: String::new(),
        errors: Vec::new(),
    };
    world.hears_response(response);
    let mut told = world.told();
    told.sort();
    assert_eq!(told, ["#1 x fails: 5: the resource does not exist", "#2 a is 2"]);
    assert_eq!(world.watches.get("a"), Some(&2));
}

/// A watcher by name that arrives later also receives the reason of the last removal.
#[test]
fn a_watcher_added_late_receives_the_reason_of_a_dropped_resource() {
    let mut world = World::<Delta>::new(false, DataErrors::Drop);
    world.put_as("a", 1, &["x"]);
    world.watch("*");
    world.watch("x");
    assert_eq!(world.begin(), ["#1 * is synced", "#1 a is 1", "#2 x is 1"]);
    let broken = resource("a", 2, &["x"]).with_version("v".repeat(5000));
    world.cache.insert(&type_url(), broken);
    world.hears();
    let why = "fails: 3: version of 5000 bytes, limit 4096";
    let mut told = world.told();
    told.sort();
    assert_eq!(told, [format!("#1 a {why}"), format!("#2 x {why}")]);
    world.watch("a");
    assert_eq!(world.goes_on(), [format!("#3 a {why}")]);
}

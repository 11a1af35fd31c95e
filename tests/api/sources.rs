//! The source that serves a stream, and the behaviour of a closed stream.

use std::cell::Cell;
use std::time::Duration;

use xds_machine::message::{Node, delta};
use xds_machine::server::{
    Action, Cache, Config, Entry, Page, Resource, ResponseLimit, Revision, Server, Source, StreamId,
};
use xds_machine::{Code, Delta, Instant, ResourceName, Status, TypeUrl, Version};

const NOW: Instant = Instant::EPOCH;

fn cache(epoch: u64) -> Cache {
    let mut cache = Cache::new(epoch);
    cache.insert(&"t".into(), Resource::new("a", vec![epoch as u8]).with_ttl(Duration::from_secs(9)));
    cache
}

fn ask(server: &mut Server<Delta>, names: &[&str]) {
    let subscribe = names.iter().copied().map(ResourceName::from).collect();
    server.handle_request(NOW, delta::Request { subscribe, ..delta::Request::new("t") }).expect("a request");
}

fn started_anew() -> Action {
    Action::Close(Status::new(Code::Unavailable, "the source of resources started anew"))
}

/// Polling before the client's group of nodes is known binds the stream to no source.
#[test]
fn a_stream_without_requests_is_bound_to_no_source() {
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    assert!(server.poll_transmit(NOW, &cache(1)).is_none());
    ask(&mut server, &["a"]);
    let response = server.poll_transmit(NOW, &cache(2)).expect("what the second source has");
    assert_eq!(response.resources().next().map(|resource| resource.body().to_vec()), Some(vec![2]));
    while server.poll_action().is_some_and(|action| matches!(action, Action::Subscribed { .. })) {}
    assert!(server.poll_transmit(NOW, &cache(1)).is_none());
    assert_eq!(server.poll_action(), Some(started_anew()));
}

/// A driver may flush its messages, and wait, before it drops a stream that is to be closed.
#[test]
fn a_closed_stream_has_no_timers_responses_or_actions() {
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let node = xds_machine::message::Node {
        client_features: vec![xds_machine::message::feature::TTL.into()],
        ..xds_machine::message::Node::new("n")
    };
    let subscribe = vec!["a".into()];
    let request = delta::Request { subscribe, node: Some(node.into()), ..delta::Request::new("t") };
    assert_eq!(server.node(), None);
    server.handle_request(NOW, request).expect("a request");
    assert_eq!(server.node().map(|node| node.id.as_str()), Some("n"));
    let response = server.poll_transmit(NOW, &cache(1)).expect("an answer");
    let ack = delta::Request { nonce: response.nonce().clone(), ..delta::Request::new("t") };
    server.handle_request(NOW, ack).expect("an answer");
    assert!(server.poll_timeout().is_some(), "a heartbeat is due some time");
    assert!(server.poll_transmit(NOW, &cache(2)).is_none());
    assert_eq!(std::iter::from_fn(|| server.poll_action()).last(), Some(started_anew()));
    assert_eq!(server.poll_timeout(), None);
    let later = NOW + Duration::from_secs(100);
    server.handle_timeout(later);
    assert!(server.poll_transmit(later, &cache(1)).is_none());
    assert_eq!((server.poll_timeout(), server.poll_action()), (None, None));
}

/// A stream has at most one response of each type in flight, until the ACK or the NACK of each.
#[test]
fn responses_in_flight_are_counted() {
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let mut store = cache(1);
    store.insert(&"u".into(), Resource::new("a", &b"u"[..]));
    assert_eq!(server.in_flight(), 0);
    for type_url in ["t", "u"] {
        let subscribe = vec!["a".into()];
        server.handle_request(NOW, delta::Request { subscribe, ..delta::Request::new(type_url) }).expect("a request");
    }
    assert_eq!(server.in_flight(), 0, "nothing was sent");
    let nonces = [1, 2].map(|sent| {
        let nonce = server.poll_transmit(NOW, &store).expect("an answer").nonce().clone();
        assert_eq!(server.in_flight(), sent);
        nonce
    });
    let no = Status::new(Code::InvalidArgument, "no");
    for (nonce, (type_url, error, left)) in nonces.into_iter().zip([("t", None, 1), ("u", Some(no), 0)]) {
        let verdict = delta::Request { nonce, error, ..delta::Request::new(type_url) };
        server.handle_request(NOW, verdict).expect("a verdict");
        assert_eq!(server.in_flight(), left);
    }
}

/// A source whose pages are made anew each time, so that they share no name with its entries, and are counted.
struct Anew(Cache, Cell<usize>);

impl Source for Anew {
    fn epoch(&self) -> u64 {
        self.0.epoch()
    }

    fn revision(&self) -> Revision {
        self.0.revision()
    }

    fn type_revision(&self, type_url: &TypeUrl) -> Revision {
        self.0.type_revision(type_url)
    }

    fn version(&self, type_url: &TypeUrl) -> Version {
        Source::version(&self.0, type_url)
    }

    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_> {
        Source::get(&self.0, type_url, name)
    }

    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.0.changes(type_url, since)
    }

    fn removals(
        &self,
        type_url: &TypeUrl,
        since: Revision,
    ) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        self.0.removals(type_url, since)
    }

    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page> {
        let anew = |resource: &Resource| {
            let same = Resource::new(resource.name().as_str(), resource.body().clone());
            resource.ttl().into_iter().fold(same, Resource::with_ttl)
        };
        let count = |_: &Page| self.1.set(self.1.get() + 1);
        self.0.pages(type_url).inspect(count).map(move |page| Page::new(page.resources().iter().map(anew).collect()))
    }

    fn expiring(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        self.0.expiring(type_url)
    }

    fn is_known(&self, type_url: &TypeUrl) -> bool {
        Source::is_known(&self.0, type_url)
    }
}

/// The resources that a returning client receives do not depend on whether pages and entries share their names in
/// memory.
#[test]
fn a_client_that_reconnects_receives_only_the_resources_it_lacks_from_any_source() {
    let type_url = TypeUrl::from("t");
    let mut cache = Cache::new(1);
    ["a", "b", "c", "d"]
        .iter()
        .for_each(|&name| _ = cache.insert(&type_url, Resource::new(name, name.as_bytes().to_vec())));
    let claims: Vec<_> = cache.resources(&type_url).filter(|resource| resource.name() != "b").collect();
    let claims = claims.into_iter().map(|resource| (resource.name().clone(), resource.version().clone()));
    let subscribe = vec!["*".into()];
    let request = delta::Request { subscribe, initial_versions: claims.collect(), ..delta::Request::new("t") };
    let sent = |source: &dyn Fn(&mut Server<Delta>) -> Vec<ResourceName>| {
        let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
        server.handle_request(NOW, request.clone()).expect("a request");
        source(&mut server)
    };
    fn names<S: Source>(server: &mut Server<Delta>, source: &S) -> Vec<ResourceName> {
        let response = server.poll_transmit(NOW, source).expect("an answer");
        response.resources().map(|resource| resource.name().clone()).collect()
    }
    assert_eq!(sent(&|server| names(server, &cache)), ["b"]);
    let anew = Anew(cache.clone(), Cell::default());
    assert_eq!(sent(&|server| names(server, &anew)), ["b"]);
}

/// S-DELTA-07: a claimed resource that is gone is announced as removed, although the subscribed alias now stands for a
/// resource that is not known, and the source has forgotten the former target of the alias.
#[test]
fn a_claimed_nonexistent_resource_is_sent_as_removed_while_its_alias_is_unknown() {
    let t = TypeUrl::from("t");
    let mut cache = Cache::new(1).with_tombstones(0);
    let target = |name| Resource::new(name, vec![1]).with_aliases(["alias"]);
    cache.insert(&t, target("old"));
    cache.remove(&t, "old");
    cache.insert(&t, target("new"));
    cache.set_error(&t, "new", Status::new(Code::Unavailable, "for now"));

    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let initial_versions = [("old", "1")].into();
    let request = delta::Request { subscribe: vec!["alias".into()], initial_versions, ..delta::Request::new("t") };
    server.handle_request(NOW, request).expect("a request");
    assert_eq!(server.poll_transmit(NOW, &cache).expect("an answer").removed(), ["old"]);
}

/// The heartbeats of a stream that rejected a page read the pages once, and not once for each resource with a TTL.
#[test]
fn heartbeats_after_a_rejected_page_read_the_pages_once() {
    let type_url = TypeUrl::from("t");
    let mut cache = Cache::new(1).with_page(1);
    for number in 0..100 {
        let resource = Resource::new(format!("r{number:02}"), vec![number as u8]).with_ttl(Duration::from_secs(9));
        cache.insert(&type_url, resource);
    }
    let source = Anew(cache, Cell::default());
    let limit = ResponseLimit { resources: 60, ..ResponseLimit::default() };
    let mut server = Server::<Delta>::new(Config::ads().with_response_limit(limit), StreamId(1));
    let client_features = vec![xds_machine::message::feature::TTL.into()];
    let node = Node { client_features, ..Node::new("n") };
    let request = delta::Request { subscribe: vec!["*".into()], node: Some(node.into()), ..delta::Request::new("t") };
    server.handle_request(NOW, request).expect("a request");
    for error in [Some(Status::new(Code::InvalidArgument, "no")), None] {
        let response = server.poll_transmit(NOW, &source).expect("a portion");
        let nonce = response.nonce().clone();
        server.handle_request(NOW, delta::Request { nonce, error, ..delta::Request::new("t") }).expect("a verdict");
    }
    assert_eq!(server.poll_transmit(NOW, &source), None);
    source.1.set(0);
    let due = server.poll_timeout().expect("heartbeats");
    server.handle_timeout(due);
    let response = server.poll_transmit(due, &source).expect("heartbeats");
    assert_eq!(response.resources().count(), 100);
    assert!(source.1.get() <= 100, "{} pages of 100 are read", source.1.get());
}

//! The delivery of one resource, step by step.

use xds_machine::message::delta;
use xds_machine::server::{Cache, Config, DeliveryStatus, Resource, ResponseLimit, Revision, Server, Source, StreamId};
use xds_machine::{Code, Delta, Instant, Nonce, ResourceName, Status, TypeUrl, type_url};

const NOW: Instant = Instant::EPOCH;

struct Stream {
    server: Server<Delta>,
    cache: Cache,
}

fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

impl Stream {
    fn new(config: Config) -> Self {
        Self { server: Server::new(config, StreamId(1)), cache: Cache::new(1) }
    }

    fn put(&mut self, name: &str, content: &'static [u8]) -> Revision {
        self.cache.insert(&clusters(), Resource::new(name, content));
        self.cache.revision()
    }

    fn ask(&mut self, subscribe: &[&str], unsubscribe: &[&str]) {
        let names = |names: &[&str]| names.iter().copied().map(ResourceName::from).collect();
        let (subscribe, unsubscribe) = (names(subscribe), names(unsubscribe));
        let request = delta::Request { subscribe, unsubscribe, ..delta::Request::new(clusters()) };
        self.server.handle_request(NOW, request).expect("a request");
    }

    fn send(&mut self) -> Nonce {
        self.server.poll_transmit(NOW, &self.cache).expect("a response").nonce().clone()
    }

    fn answer(&mut self, nonce: Nonce, error: Option<&str>) {
        let error = error.map(|message| Status::new(Code::InvalidArgument, message));
        let request = delta::Request { nonce, error, ..delta::Request::new(clusters()) };
        self.server.handle_request(NOW, request).expect("a verdict");
    }

    /// Sends a response, which is accepted.
    fn deliver(&mut self) {
        let nonce = self.send();
        self.answer(nonce, None);
    }

    /// Returns the status, and whether an earlier form was sent.
    fn status(&self, name: &str) -> Option<(DeliveryStatus, bool)> {
        let delivery = self.server.delivery(&clusters(), name, &self.cache)?;
        Some((delivery.status, delivery.earlier))
    }
}

#[test]
fn the_delivery_status_of_a_name_follows_its_requests_responses_and_verdicts() {
    use DeliveryStatus::{Acknowledged, NotSent, Rejected, Sent};
    let mut stream = Stream::new(Config::ads());
    stream.put("a", b"1");
    stream.put("other", b"1");
    assert_eq!(stream.status("a"), None, "nothing was requested");
    stream.ask(&["a", "missing"], &[]);
    assert_eq!([stream.status("a"), stream.status("missing")], [Some((NotSent, false)); 2]);
    assert_eq!((stream.status("other"), stream.status("nowhere")), (None, None), "not subscribed to");

    let nonce = stream.send();
    assert_eq!([stream.status("a"), stream.status("missing")], [Some((Sent, false)); 2]);
    stream.answer(nonce, None);
    assert_eq!([stream.status("a"), stream.status("missing")], [Some((Acknowledged, false)); 2]);

    let second = stream.put("a", b"2");
    assert_eq!(stream.status("a"), Some((NotSent, true)));
    let delivery = stream.server.delivery(&clusters(), "a", &stream.cache).expect("subscribed to");
    assert_eq!(delivery.revision, second, "that of the form which was not sent");
    let nonce = stream.send();
    stream.answer(nonce, Some("no"));
    assert_eq!((stream.status("a"), stream.status("missing")), (Some((Rejected, false)), Some((Acknowledged, false))));

    stream.cache.remove(&clusters(), "a");
    assert_eq!(stream.status("a"), Some((NotSent, true)));
    stream.ask(&["a"], &[]);
    assert_eq!(stream.status("a"), Some((NotSent, false)), "what is requested anew was not sent");
    let nonce = stream.send();
    assert_eq!(stream.status("a"), Some((Sent, false)));
    stream.answer(nonce, None);
    assert_eq!(stream.status("a"), Some((Acknowledged, false)));
    stream.ask(&[], &["a"]);
    assert_eq!(stream.status("a"), None);
}

/// A collection is subscribed to when one of its resources is gone, and the wildcard when a resource changes.
#[test]
fn a_resource_that_was_not_subscribed_has_no_earlier_form() {
    use DeliveryStatus::{NotSent, Sent};
    const MEMBER: &str = "xdstp:///envoy.config.cluster.v3.Cluster/some/a";
    let mut stream = Stream::new(Config::ads());
    stream.put(MEMBER, b"1");
    stream.put("b", b"1");
    stream.ask(&["other"], &[]);
    stream.deliver();
    stream.cache.remove(&clusters(), MEMBER);
    stream.put("b", b"2");
    stream.ask(&["xdstp:///envoy.config.cluster.v3.Cluster/some/*"], &[]);
    assert_eq!((stream.status(MEMBER), stream.status("b")), (Some((NotSent, false)), None));
    stream.ask(&["*"], &[]);
    assert_eq!([stream.status(MEMBER), stream.status("b")], [Some((NotSent, false)); 2]);
    stream.send();
    assert_eq!(stream.status("b"), Some((Sent, false)));
}

/// An alias comes to stand for a resource of which the client has nothing.
#[test]
fn a_resource_that_no_alias_stood_for_has_no_earlier_form() {
    use DeliveryStatus::{NotSent, Sent};
    let mut stream = Stream::new(Config::ads());
    stream.put("a", b"1");
    stream.ask(&["alias"], &[]);
    stream.deliver();
    let put = |stream: &mut Stream, content: &'static [u8]| {
        stream.cache.insert(&clusters(), Resource::new("a", content).with_aliases(["alias"]));
    };
    put(&mut stream, b"2");
    assert_eq!(stream.status("a"), Some((NotSent, false)));
    let nonce = stream.send();
    assert_eq!(stream.status("a"), Some((Sent, false)));
    stream.answer(nonce, None);
    put(&mut stream, b"3");
    assert_eq!(stream.status("a"), Some((NotSent, true)), "by the alias");
}

#[test]
fn a_resource_that_was_unknown_for_a_while_has_its_earlier_form() {
    use DeliveryStatus::{Acknowledged, NotSent};
    let mut stream = Stream::new(Config::ads());
    stream.put("a", b"1");
    stream.ask(&["a"], &[]);
    stream.deliver();
    stream.cache.set_unknown(&clusters(), "a");
    stream.put("a", b"2");
    assert_eq!(stream.status("a"), Some((NotSent, true)));
    stream.deliver();
    assert_eq!(stream.status("a"), Some((Acknowledged, false)));
}

/// Resources whose names are in another order than the pages, and portions that end within a page.
#[test]
fn the_delivery_status_of_each_resource_is_exact_during_an_answer_in_portions() {
    use DeliveryStatus::{Acknowledged, NotSent, Sent};
    const NAMES: [&str; 6] = ["m", "n", "o", "a", "b", "c"];
    for (page, portion) in [(1, 1), (3, 2), (3, 4), (2, 3), (6, 1)] {
        let limit = ResponseLimit { resources: portion, ..ResponseLimit::default() };
        let mut stream = Stream::new(Config::ads().with_response_limit(limit));
        stream.cache = Cache::new(1).with_page(page);
        for name in NAMES {
            stream.put(name, b"1");
        }
        stream.ask(&["*"], &[]);
        let all = |stream: &Stream| NAMES.map(|name| stream.status(name).expect("the wildcard covers it").0);
        let mut expected = [NotSent; 6];
        assert_eq!(all(&stream), expected);
        while expected.contains(&NotSent) {
            let response = stream.server.poll_transmit(NOW, &stream.cache).expect("a portion");
            let sent: Vec<&str> = response.resources().map(|resource| resource.name().as_str()).collect();
            let left = expected.iter().filter(|status| **status == NotSent).count();
            assert_eq!(sent.len(), portion.min(left));
            for (name, status) in NAMES.iter().zip(&mut expected) {
                if sent.contains(name) {
                    assert_eq!(*status, NotSent, "{name} is sent once");
                    *status = Sent;
                }
            }
            assert_eq!(all(&stream), expected, "pages of {page}, portions of {portion}");
            let is_whole = !expected.contains(&NotSent);
            assert_eq!(stream.status("gone") != Some((NotSent, false)), is_whole, "absent from the whole answer alone");
            let nonce = response.nonce().clone();
            stream.answer(nonce, None);
            expected = expected.map(|status| if status == Sent { Acknowledged } else { status });
            assert_eq!(all(&stream), expected, "pages of {page}, portions of {portion}");
        }
    }
}

/// The type of the listeners is not known yet, so the removal of a cluster waits for its time.
#[test]
fn a_stream_with_a_removal_that_waits_is_not_settled() {
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let mut cache = Cache::unknown(1);
    cache.insert(&clusters(), Resource::new("c", &b""[..]));
    let request = |type_url: &str, name: &str| delta::Request {
        subscribe: vec![name.into()],
        ..delta::Request::new(TypeUrl::from(type_url))
    };
    let ack = |nonce: &Nonce| delta::Request { nonce: nonce.clone(), ..delta::Request::new(clusters()) };
    server.handle_request(NOW, request(type_url::CLUSTER, "c")).expect("a request");
    let response = server.poll_transmit(NOW, &cache).expect("the cluster");
    assert_eq!((server.in_flight(), server.is_settled()), (1, false));
    server.handle_request(NOW, ack(response.nonce())).expect("an ACK");
    assert_eq!((server.in_flight(), server.is_settled()), (0, true));

    server.handle_request(NOW, request(type_url::LISTENER, "l")).expect("a request");
    cache.remove(&clusters(), "c");
    assert!(server.poll_transmit(NOW, &cache).is_none());
    assert_eq!((server.in_flight(), server.is_settled()), (0, false));
    let due = server.poll_timeout().expect("the time until which the removal may wait");
    server.handle_timeout(due);
    let response = server.poll_transmit(due, &cache).expect("the removal");
    assert_eq!(response.removed(), ["c"]);
    server.handle_request(due, ack(response.nonce())).expect("an ACK");
    assert_eq!((server.in_flight(), server.is_settled()), (0, true));
}

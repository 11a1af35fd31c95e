use std::sync::Arc;

use xds_machine::message::{Node, delta, sotw};
use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::server::{Action, Cache, Config, Limits, Resource, Server, StreamId, Variant};
use xds_machine::{Delta, Error, Nonce, ResourceName, Sotw, Status};

use super::Row;
use super::{NOW, refused};

/// The inputs of the rows, independent of the variant.
#[derive(Clone, Default)]
struct Request {
    node: Option<Node>,
    type_url: &'static str,
    names: Vec<ResourceName>,
    unsubscribe: Vec<ResourceName>,
    initial: Vec<(&'static str, &'static str)>,
    version: &'static str,
    nonce: Nonce,
    error: Option<Status>,
}

trait Make: Variant {
    fn make(request: Request) -> Self::Request;
}

impl Make for Sotw {
    fn make(request: Request) -> sotw::Request {
        sotw::Request {
            node: request.node.map(Arc::new),
            type_url: request.type_url.into(),
            names: request.names,
            version: request.version.into(),
            nonce: request.nonce,
            error: request.error,
        }
    }
}

impl Make for Delta {
    fn make(request: Request) -> delta::Request {
        delta::Request {
            node: request.node.map(Arc::new),
            type_url: request.type_url.into(),
            subscribe: request.names,
            unsubscribe: request.unsubscribe,
            initial_versions: request.initial.into_iter().collect(),
            nonce: request.nonce,
            error: request.error,
        }
    }
}

const LONG: &str = "too long!";

fn config(config: Config) -> Config {
    let limits = Limits {
        names_per_type: 3,
        names_per_stream: 4,
        name_bytes_per_stream: 16,
        name_bytes: 8,
        initial_versions: 2,
        version_bytes: 8,
        types: 2,
        type_url_bytes: 8,
        error_bytes: 8,
        stale_requests: 3,
        ..Limits::default()
    };
    config.with_limits(limits).with_types(TypeRegistry::new([ResourceType::full_state("a")]))
}

fn names(names: &[&str]) -> Vec<ResourceName> {
    names.iter().map(|&name| name.into()).collect()
}

fn of(type_url: &'static str, listed: &[&str]) -> Request {
    Request { type_url, names: names(listed), ..Request::default() }
}

fn of_a(listed: &[&str]) -> Request {
    of("a", listed)
}

fn cache() -> Cache {
    let mut cache = Cache::new(1);
    cache.insert(&"a".into(), Resource::new("x", &b"\x0a\x01x"[..]).with_version("1"));
    cache
}

/// A stream after some requests, each with its response, and the effects of the last one.
struct Played<V: Make> {
    server: Server<V>,
    error: Option<Error>,
    actions: Vec<Action>,
    /// The names in the response to the last request, and the removed names.
    answer: Option<(Vec<String>, Vec<String>)>,
}

fn play<V: Make>(with: Config, requests: impl IntoIterator<Item = Request>) -> Played<V> {
    let (cache, mut nonce) = (cache(), Nonce::default());
    let server = Server::<V>::new(config(with), StreamId(1));
    let mut played = Played { server, error: None, actions: Vec::new(), answer: None };
    for mut request in requests {
        assert_eq!(played.error, None, "only the last is bad");
        if request.nonce == "LAST" {
            request.nonce = nonce.clone();
        }
        let before = played.server.clone();
        played.error = played.server.handle_request(NOW, V::make(request)).err();
        if played.error.is_some() {
            assert_eq!(played.server, before, "what is refused changes nothing");
        }
        played.actions = std::iter::from_fn(|| played.server.poll_action()).collect();
        let response = played.server.poll_transmit(NOW, &cache);
        nonce = response.as_ref().map_or(nonce, |response| response.nonce().clone());
        played.answer = response.map(|response| {
            let sent = response.resources().map(|resource| resource.name().to_string()).collect();
            (sent, response.removed().iter().map(ToString::to_string).collect())
        });
    }
    played
}

impl<V: Make> Played<V> {
    fn outcome(&self) -> String {
        if let Some(error) = &self.error {
            return refused(error);
        }
        let word = |action: &Action| match action {
            Action::Close(status) => {
                assert_eq!(status.code, 8);
                Some("closed: RESOURCE_EXHAUSTED")
            }
            Action::DropStale { .. } => Some("stale"),
            _ => None,
        };
        // The last action counts: a stream is closed after a stale request.
        self.actions.iter().filter_map(word).next_back().unwrap_or("taken").into()
    }

    /// Returns whether the last request had the same effect as another.
    fn as_if(&self, other: &Self) -> String {
        assert_eq!(self.server, other.server, "not ignored");
        assert_eq!((&self.error, &self.actions, &self.answer), (&other.error, &other.actions, &other.answer));
        "ignored".into()
    }

    fn wants(&self, wanted: &[&str]) -> bool {
        self.server.interest(&"a".into()).is_some_and(|interest| interest.names().eq(wanted.iter()))
    }
}

/// Returns the rows that are the same in both variants.
fn common<V: Make>(variant: &'static str) -> Vec<Row> {
    let ads = Config::ads;
    let ack = Request { nonce: "LAST".into(), ..of_a(&[]) };
    let nack = |code, message: &str| Request { error: Some(Status { code, message: message.into() }), ..ack.clone() };
    let outcome = |requests: &[Request]| play::<V>(ads(), requests.to_vec()).outcome();
    let node = |id| Request { node: Some(Node::new(id)), ..of_a(&["x"]) };
    let required = |request| play::<V>(ads().with_node_required(), [request]).outcome();
    let single = |type_url| play::<V>(Config::single("a"), [of(type_url, &["x"])]).outcome();
    let listed = "resource_names, resource_names_subscribe";
    let as_if = |requests: &[Request], others: &[Request]| {
        play::<V>(ads(), requests.to_vec()).as_if(&play::<V>(ads(), others.to_vec()))
    };

    let later_node = Request { node: Some(Node::new("other")), nonce: "LAST".into(), ..of_a(&["x"]) };
    let no_node = Request { node: None, ..later_node.clone() };
    let versioned = Request { version: LONG, ..of_a(&["x"]) };
    let twice = play::<V>(ads(), [of_a(&["x", "x"])]);
    assert!(twice.wants(&["x"]));
    let many_stale = |count| vec![Request { nonce: "nobody's".into(), ..of_a(&["x"]) }; count];
    let first_nonce = Request { nonce: "nobody's".into(), ..of_a(&["x"]) };
    let first_error = Request { error: Some(Status { code: 13, message: "old".into() }), ..of_a(&["x"]) };

    let long_nonce: Nonce = "n".repeat(65).into();
    let long = play::<V>(ads(), [of_a(&["x"]), Request { nonce: long_nonce, ..of_a(&["x"]) }]);
    let repeated = |action: &Action| matches!(action, Action::DropStale { nonce, .. } if !nonce.is_empty());
    assert!(!long.actions.iter().any(repeated), "a long nonce is not kept");

    let zero = play::<V>(ads(), [of_a(&["x"]), nack(0, "zero")]);
    assert!(matches!(&zero.actions[0], Action::Nack { error, .. } if error.code == 0), "{:?}", zero.actions);
    let cut = play::<V>(ads(), [of_a(&["x"]), nack(13, LONG)]);
    assert!(matches!(&cut.actions[0], Action::Nack { error, .. } if error.message == LONG[..8]), "{:?}", cut.actions);

    let row = |key, actual| (key, actual, variant);
    vec![
        row(("node", "none in the first request, where one is required"), required(of_a(&["x"]))),
        row(("node", "no id in it, where one is required"), required(node(""))),
        row(("node", "another one later"), as_if(&[node("n"), later_node], &[node("n"), no_node])),
        row(("type_url", "empty, on an aggregated stream"), outcome(&[of("", &["x"])])),
        row(("type_url", "empty, on a stream of one type"), single("")),
        row(("type_url", "another, on a stream of one type"), single("b")),
        row(("type_url", "too long"), outcome(&[of(LONG, &["x"])])),
        row(("type_url", "one more than there may be"), outcome(&[of_a(&["x"]), of("b", &["x"]), of("c", &["x"])])),
        row(("type_url", "an unknown one"), outcome(&[of("unknown", &["x"])])),
        row(("version_info", "anything"), as_if(&[versioned], &[of_a(&["x"])])),
        row((listed, "an empty name"), outcome(&[of_a(&["x", ""])])),
        row((listed, "a name that is too long"), outcome(&[of_a(&[LONG])])),
        row((listed, "too many of one type"), outcome(&[of_a(&["x", "y", "z", "w"])])),
        row((listed, "too many on the stream"), outcome(&[of_a(&["x", "y", "z"]), of("b", &["x", "y"])])),
        row((listed, "too many bytes on the stream"), outcome(&[of_a(&["12345678", "1234567", "12"])])),
        row((listed, "a name twice"), twice.outcome()),
        row((listed, "a structured name that can be none"), outcome(&[of_a(&["xdstp://"])])),
        row(("response_nonce", "one that no response had"), outcome(&[of_a(&["x"]), many_stale(1).remove(0)])),
        row(("response_nonce", "one of more than 64 bytes"), long.outcome()),
        row(("response_nonce", "stale ones in a row, more than there may be"), {
            let mut requests = many_stale(4);
            requests.insert(0, of_a(&["x"]));
            assert_eq!(outcome(&requests[..4]), "stale");
            outcome(&requests)
        }),
        row(("response_nonce", "any in the first request of a type"), as_if(&[first_nonce], &[of_a(&["x"])])),
        row(("error_detail", "code 0"), zero.outcome()),
        row(("error_detail", "a message that is too long"), cut.outcome()),
        row(("error_detail", "with no nonce, or another"), {
            let none = Request { nonce: Nonce::default(), ..nack(13, "what?") };
            let other = Request { nonce: "nobody's".into(), ..nack(13, "what?") };
            assert_eq!(outcome(&[of_a(&["x"]), none]), "stale");
            outcome(&[of_a(&["x"]), other])
        }),
        row(("error_detail", "in the first request of a type"), as_if(&[first_error], &[of_a(&["x"])])),
    ]
}

fn incremental() -> Vec<Row> {
    let play = |requests: &[Request]| play::<Delta>(Config::ads(), requests.to_vec());
    let outcome = |requests: &[Request]| play(requests).outcome();
    let less = |gone: &[&str]| Request { unsubscribe: names(gone), ..of_a(&[]) };
    let both = play(&[Request { unsubscribe: names(&["x"]), ..of_a(&["x", "y"]) }]);
    assert!(both.wants(&["y"]), "the unsubscription counts");
    let had = |initial: &[(&'static str, &'static str)], listed: &[&str]| Request {
        initial: initial.to_vec(),
        ..of_a(listed)
    };
    let (less_key, had_key) = ("resource_names_unsubscribe", "initial_resource_versions");

    // The response to a wildcard subscription, or to a name, with this claim.
    let everything = play(&[had(&[("*", "1")], &[])]);
    assert_eq!(everything.answer, play(&[of_a(&[])]).answer);
    let unasked = play(&[had(&[("gone", "1")], &["x"])]);
    assert_eq!(unasked.answer, play(&[of_a(&["x"])]).answer);
    let later = |initial| play(&[of_a(&["y"]), Request { nonce: "LAST".into(), ..had(initial, &["x"]) }]);

    let row = |key, actual| (key, actual, "delta");
    vec![
        row((less_key, "an empty name"), outcome(&[less(&[""])])),
        row((less_key, "a name that is too long"), outcome(&[less(&[LONG])])),
        row((less_key, "a name that was not subscribed to"), {
            let ack = |gone: &[&str]| Request { nonce: "LAST".into(), ..less(gone) };
            play(&[of_a(&["x"]), ack(&["y"])]).as_if(&play(&[of_a(&["x"]), ack(&[])]))
        }),
        row((less_key, "a name that is subscribed to in the same request"), both.outcome()),
        row((had_key, "too many"), outcome(&[had(&[("1", ""), ("2", ""), ("3", "")], &[])])),
        row((had_key, "an empty name"), outcome(&[had(&[("", "1")], &[])])),
        row((had_key, "a name that is too long"), outcome(&[had(&[(LONG, "1")], &[])])),
        row((had_key, "a version that is too long"), outcome(&[had(&[("x", LONG)], &[])])),
        row((had_key, "the wildcard for a name"), everything.as_if(&play(&[of_a(&[])]))),
        row((had_key, "a name that is not subscribed to"), "ignored".into()),
        row((had_key, "not in the first request of the type"), later(&[("x", "1"), ("z", "1")]).as_if(&later(&[]))),
    ]
}

/// Returns the table, each row freshly tested.
pub fn rows() -> Vec<Row> {
    let mut rows = common::<Sotw>("SotW");
    rows.extend(common::<Delta>("delta"));
    rows.extend(incremental());
    rows
}

/// Returns the message of each refusal.
pub fn messages() -> Vec<String> {
    let played = [
        play::<Delta>(Config::ads().with_node_required(), [of_a(&[])]),
        play(Config::ads(), [of("", &[])]),
        play(Config::single("a"), [of("b", &[])]),
        play(Config::ads(), [of(LONG, &[])]),
        play(Config::ads(), [of_a(&[]), of("b", &[]), of("c", &[])]),
        play(Config::ads(), [of_a(&[""])]),
        play(Config::ads(), [of_a(&[LONG])]),
        play(Config::ads(), [of_a(&["1", "2", "3", "4"])]),
        play(Config::ads(), [of_a(&["1", "2", "3"]), of("b", &["1", "2"])]),
        play(Config::ads(), [of_a(&["12345678", "1234567", "12"])]),
        play(Config::ads(), [Request { initial: vec![("1", ""), ("2", ""), ("3", "")], ..of_a(&[]) }]),
        play(Config::ads(), [Request { initial: vec![("1", LONG)], ..of_a(&[]) }]),
    ];
    played.into_iter().map(|played| played.error.map_or("nothing".into(), |error| error.to_string())).collect()
}

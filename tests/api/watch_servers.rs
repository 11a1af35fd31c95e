//! Watchers over several servers: the events of each watcher when servers fail, are replaced, and recover.

use bytes::Bytes;
use xds_machine::client::{Config, Resource};
use xds_machine::message::{Any, Node, sotw};
use xds_machine::servers::{self, Action, Connect, Policy, ServerId, Servers, Stream};
use xds_machine::watch::{News, WatchId, Watched, Watches};
use xds_machine::{Instant, Sotw, TypeUrl, type_url};

const LISTENERS: &str = type_url::LISTENER;
const ENDPOINTS: &str = type_url::ENDPOINT;

fn decode(resource: Resource<'_>) -> Result<u8, String> {
    resource.body().last().copied().ok_or_else(|| "nothing".into())
}

/// A driver, and watches of two types.
struct Program {
    now: Instant,
    servers: Servers<Sotw>,
    watches: [Watches<u8>; 2],
    /// Actions that were passed on and belong to no type.
    others: Vec<Action>,
    /// The servers whose resources were decoded.
    decoded: Vec<ServerId>,
}

impl Program {
    fn new(policy: Policy, count: usize) -> Self {
        Self::with(servers::Config::new(policy, (0..count).map(|_| Config::new(Node::new("n")))))
    }

    fn with(config: servers::Config) -> Self {
        let servers = Servers::new(config).expect("a configuration");
        let watches = [Watches::new(LISTENERS), Watches::new(ENDPOINTS)];
        Self { now: Instant::EPOCH, servers, watches, others: Vec::new(), decoded: Vec::new() }
    }

    fn watch(&mut self, of: usize, name: &str) -> WatchId {
        let watch = self.watches[of].watch(&mut self.servers, name).expect("a name");
        self.drive();
        watch
    }

    /// Performs the duties of a driver after each input.
    fn drive(&mut self) {
        while let Some(action) = self.servers.poll_action() {
            let [first, second] = &mut self.watches;
            let mut decode = |server, resource: Resource<'_>| {
                self.decoded.push(server);
                decode(resource)
            };
            let action = first.handle_servers_action(action, &mut decode);
            let action = action.and_then(|action| second.handle_servers_action(action, &mut decode));
            self.others.extend(action);
        }
        for watches in &mut self.watches {
            while let Some(verdict) = watches.poll_verdict() {
                self.servers.handle_verdict(self.now, verdict).expect("it is out");
            }
        }
    }

    /// Waits until there is a stream to open, and returns the stream.
    fn connect(&mut self) -> Stream {
        loop {
            match self.servers.poll_connect(self.now) {
                Some(Connect::Open(stream)) => return stream,
                Some(Connect::Close(_)) => {}
                None => self.now = self.servers.poll_timeout().expect("something goes on"),
            }
        }
    }

    fn fail(&mut self, server: usize) {
        let stream = self.connect();
        assert_eq!(stream.server(), ServerId(server));
        self.servers.handle_close(self.now, stream, 0);
        self.drive();
    }

    /// Answers from a server with a listener of this content. Returns the stream.
    fn answer(&mut self, server: usize, content: u8) -> Stream {
        let stream = self.connect();
        assert_eq!(stream.server(), ServerId(server));
        self.servers.handle_open(stream);
        while self.servers.poll_transmit(stream).is_some() {}
        let type_url = TypeUrl::from(LISTENERS);
        let value = Bytes::from(vec![0x0a, 1, b'a', 0x78, content]);
        let response = sotw::Response {
            version: "1".into(),
            resources: vec![sotw::Item::Bare(Any { type_url: type_url.clone(), value })],
            type_url,
            nonce: "1".into(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        self.servers.handle_response(self.now, stream, response).expect("a response");
        self.drive();
        assert_eq!(self.servers.check_invariants(), Ok(()));
        stream
    }

    /// Returns what is watched of a type, one line each: the name, the held content, the error, and the number of
    /// watchers.
    fn watched(&self, of: usize) -> Vec<String> {
        let line = |of: Watched<'_, u8>| {
            let error = of.error.or(of.unreachable).map_or("fine".into(), |error| format!("fails: {error}"));
            format!("{} {:?} {error}, {}", of.name, of.value, of.watchers)
        };
        self.watches[of].iter().map(line).collect()
    }

    /// Returns the reported events of both types, one per line.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        for (of, watches) in ["listener", "endpoints"].into_iter().zip(&mut self.watches) {
            while let Some(event) = watches.poll_event() {
                let news = match event.news {
                    News::Changed(Ok(content)) => format!("is {content}"),
                    News::Changed(Err(status)) => format!("fails: {status}"),
                    News::Ambient(Some(status)) => format!("has beside it {status}"),
                    News::Ambient(None) => "is fine".into(),
                    News::Synced => "is synced".into(),
                    other => panic!("{other:?}"),
                };
                told.push(format!("{of} {} {news}", event.name));
            }
        }
        told
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_failing_server_is_reported_to_watchers_of_all_types_until_it_responds() {
    for policy in [Policy::Grpc, Policy::Envoy] {
        let mut program = Program::new(policy, 1);
        program.watch(0, "a");
        program.watch(1, "b");
        program.fail(0);
        let away = "fails: 14: server 0 can't be reached";
        assert_eq!(program.told(), [format!("listener a {away}"), format!("endpoints b {away}")]);
        program.fail(0);
        assert_eq!(program.told(), NOTHING, "once");
        program.watch(1, "late");
        assert_eq!(program.told(), [format!("endpoints late {away}")]);
        assert_eq!(program.watched(1), [format!("b None {away}, 1"), format!("late None {away}, 1")]);
        assert!(program.watches[0].error("a").is_none() && program.watches[0].unreachable("whatever").is_some());
        let stream = program.answer(0, 1);
        assert_eq!((program.watched(0), &program.decoded[..]), (vec!["a Some(1) fine, 1".into()], &[ServerId(0)][..]));
        assert_eq!(program.watches[0].unreachable("a"), None);
        assert_eq!(program.told(), ["listener a is 1"]);
        assert_eq!(program.others.last(), Some(&Action::Reachable { authority: None }));
        program.watch(1, "later");
        assert_eq!(program.told(), NOTHING);
        // gRFC A57: a stream that ends after a response is no error.
        program.servers.handle_close(program.now, stream, 0);
        program.drive();
        assert_eq!(program.told(), NOTHING);
        program.fail(0);
        let told = program.told();
        assert_eq!(told[0], "listener a has beside it 14: server 0 can't be reached");
    }
}

/// U4: a watcher that arrives while the fallback is being asked waits for its answer.
#[test]
fn a_watcher_added_while_the_fallback_server_is_tried_waits_for_the_outcome() {
    let mut program = Program::new(Policy::Grpc, 2);
    let first = program.watch(0, "a");
    let up = program.answer(0, 1);
    assert_eq!(program.told(), ["listener a is 1"]);
    program.servers.handle_close(program.now, up, 0);
    program.drive();
    program.fail(0);
    // All wanted resources are known, so the fallback is not asked (gRFC A71).
    assert_eq!(program.told(), ["listener a has beside it 14: server 0 can't be reached"]);
    program.others.clear();
    program.watch(1, "late");
    let switched = Action::Switched { authority: None, to: ServerId(1) };
    assert_eq!(program.others, [switched, Action::Reachable { authority: None }]);
    assert_eq!(program.told(), ["listener a is fine"], "and the late one is not told that it fails");
    let to = program.connect();
    assert_eq!(to.server(), ServerId(1));
    program.servers.handle_close(program.now, to, 0);
    program.drive();
    let told = program.told();
    assert_eq!(
        told,
        [
            "listener a has beside it 14: server 1 can't be reached",
            "endpoints late fails: 14: server 1 can't be reached"
        ]
    );
    program.watches[0].unwatch(&mut program.servers, first);
}

#[test]
fn the_error_of_an_unreachable_server_ends_with_the_last_watcher() {
    let mut program = Program::new(Policy::Grpc, 1);
    let watch = program.watch(0, "a");
    program.fail(0);
    assert_eq!(program.told(), ["listener a fails: 14: server 0 can't be reached"]);
    program.watches[0].unwatch(&mut program.servers, watch);
    program.drive();
    assert_eq!(program.others.last(), Some(&Action::Reachable { authority: None }));
    program.watch(0, "b");
    assert_eq!(program.told(), NOTHING, "it is tried before it counts as failing");
}

#[test]
fn the_failure_of_a_server_is_reported_only_to_watchers_of_its_authority() {
    let clients = (0..2).map(|_| Config::new(Node::new("n")));
    let config = servers::Config::new(Policy::Grpc, clients);
    let config = config.with_default([ServerId(0)]).with_authority("x", [ServerId(1)]);
    let mut program = Program::with(config);
    let of_x = format!("xdstp://x/{}/b", ENDPOINTS.trim_start_matches("type.googleapis.com/"));
    program.watch(0, "a");
    program.watch(1, &of_x);
    let (first, second) = (program.connect(), program.connect());
    let of = |server| if first.server() == ServerId(server) { first } else { second };
    program.servers.handle_close(program.now, of(1), 0);
    program.drive();
    assert_eq!(program.told(), [format!("endpoints {of_x} fails: 14: server 1 can't be reached")]);
    program.servers.handle_close(program.now, of(0), 0);
    program.drive();
    assert_eq!(program.told(), ["listener a fails: 14: server 0 can't be reached"]);
    while program.connect().server() != ServerId(0) {}
    let authorities = |action: &Action| matches!(action, Action::Unreachable { .. });
    assert_eq!(program.others.iter().filter(|action| authorities(action)).count(), 2);
    assert_eq!(program.watches[1].error(&of_x), None, "that is of the server");
}

/// One call reports recovery, whatever was reported about authorities.
#[test]
fn a_recovery_reported_by_the_driver_ends_the_error_of_an_authority() {
    let mut program = Program::new(Policy::Grpc, 1);
    program.watch(0, "a");
    program.fail(0);
    assert_eq!(program.told().len(), 1);
    program.watches[0].handle_reachable();
    program.watches[0].watch(&mut program.servers, "b").expect("a name");
    assert_eq!(program.told(), NOTHING);
}

/// A wildcard lists each of its resources once, even if watchers by name exist too.
#[test]
fn a_wildcard_lists_each_of_its_resources_once() {
    let mut program = Program::new(Policy::Grpc, 2);
    program.watch(0, "*");
    program.fail(0);
    program.answer(1, 7);
    assert_eq!(program.decoded, [ServerId(1)], "of the server that sent it");
    assert_eq!(program.watched(0), ["* None fine, 1", "a Some(7) fine, 0"]);
    program.watch(0, "a");
    program.watch(0, "a");
    assert_eq!(program.watched(0), ["* None fine, 1", "a Some(7) fine, 2"]);
    assert_eq!(program.watched(1), NOTHING);
}

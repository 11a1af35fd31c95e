//! One client over all its streams.

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use xds_machine::client::{Action, Backoff, Client, Config, Verdict};
use xds_machine::message::{Any, Node, Resource, delta};
use xds_machine::proto::Wire;
use xds_machine::{Delta, Instant, Sotw, TypeUrl, proto, type_url};
use xds_machine_driver::client::{Application, Ended, Reason, run, run_stream};
use xds_machine_testing::driver::{Network, Pipe, Received, check_driver};
use xds_machine_testing::variant::Both;

use crate::support::{Broken, Clock, halves};

/// The application of a check.
struct Checked<'a>(&'a Network, &'a Cell<bool>);

impl<V: Both> Application<V> for Checked<'_> {
    fn handle_action(&mut self, _: &mut Client<V>, action: Action) -> Option<Verdict> {
        match action {
            Action::Apply(update) => Some(self.0.apply(update)),
            _ => None,
        }
    }

    fn poll(&mut self, _: &mut Context<'_>, _: &mut Client<V>, _: Instant) -> Poll<()> {
        if self.1.get() { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn drive<V: Both>(network: &Network) {
    let mut client = Client::<V>::new(Config::new(Node::new("driver")));
    let subscribed = client.resources_mut(&network.type_url()).subscribe(network.names());
    subscribed.expect("these are names");
    let over = Cell::new(false);
    let connect = || {
        let pipe = network.connect();
        over.set(pipe.is_none());
        ready(pipe.map(halves::<V>).ok_or(Broken::Away))
    };
    let (clock, mut app) = (Clock::default(), Checked(network, &over));
    let run = run(&mut client, connect, Backoff::envoy(), || 0, &clock, &mut app, |_, _| {});
    futures_executor::block_on(run).expect("no misuse");
}

#[test]
fn the_client_driver_passes_the_driver_check_in_both_variants() {
    assert_eq!(check_driver::<Sotw>(|network| drive::<Sotw>(&network)), Ok(()));
    assert_eq!(check_driver::<Delta>(|network| drive::<Delta>(&network)), Ok(()));
}

fn response(nonce: &str, names: &[&str], ttl: Option<Duration>) -> Vec<u8> {
    let resource = |&name: &&str| Resource {
        name: name.into(),
        version: "1".into(),
        aliases: vec![],
        body: Some(Any { type_url: type_url::CLUSTER.into(), value: (&b"x"[..]).into() }),
        ttl,
    };
    proto::delta::encode_response(&delta::Response {
        system_version: "s".into(),
        resources: names.iter().map(resource).collect(),
        removed: vec![],
        type_url: type_url::CLUSTER.into(),
        nonce: nonce.into(),
        control_plane: String::new(),
        errors: vec![],
    })
}

fn client(names: &[&str]) -> Client<Delta> {
    let mut client = Client::new(Config::new(Node::new("driver")));
    client.resources_mut(&TypeUrl::from(type_url::CLUSTER)).subscribe(names.iter().copied()).expect("names");
    client
}

fn request(pipe: &Pipe) -> delta::Request {
    match pipe.recv(Some(Duration::ZERO)) {
        Received::Message(bytes) => Delta::decode_request(bytes).expect("a request"),
        other => panic!("{other:?}"),
    }
}

fn once<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Reconnects after a growing delay, which a response resets, and a connection alone does not. A TTL expires without
/// a stream.
#[test]
fn only_a_response_resets_the_backoff_and_a_ttl_expires_without_a_stream() {
    let (clock, log) = (Clock::default(), RefCell::new(Vec::new()));
    let (peers, refuses) = (RefCell::new(Vec::new()), Cell::new(false));
    let connect = || {
        if refuses.get() {
            return ready(Err(Broken::Away));
        }
        let (own, peer) = Pipe::new();
        peers.borrow_mut().push(peer);
        ready(Ok(halves::<Delta>(own)))
    };
    let mut app = |_: &mut Client<Delta>, action: Action| match action {
        Action::Apply(update) => {
            log.borrow_mut().push("apply".to_string());
            Some(update.accept())
        }
        Action::Expired { names, .. } => {
            log.borrow_mut().push(format!("{} expired", names[0]));
            None
        }
        _ => None,
    };
    let ended = |ended: Ended<Broken, Broken>, wait: Duration| {
        log.borrow_mut().push(format!("{:?} {} {}", ended.reason, ended.answered, wait.as_millis()));
    };
    let mut client = client(&["a"]);
    let run = run(&mut client, connect, Backoff::grpc(), || 500, &clock, &mut app, ended);
    let mut run = std::pin::pin!(run);
    let mut step = |expected: &[&str]| {
        assert!(once(run.as_mut()).is_pending());
        assert_eq!(log.take(), expected);
    };

    step(&[]);
    peers.borrow()[0].close();
    step(&["Finished false 1000"]);
    clock.advance(Duration::from_millis(999));
    step(&[]);
    assert_eq!(peers.borrow().len(), 1);
    clock.advance(Duration::from_millis(1));
    refuses.set(true);
    step(&["Inbound(Away) false 1600"]);
    refuses.set(false);
    clock.advance(Duration::from_millis(1600));
    step(&[]);
    let peer = peers.borrow()[1].clone();
    assert_eq!(request(&peer).subscribe, ["a"]);
    peer.send(response("1", &["a"], Some(Duration::from_millis(500))));
    step(&["apply"]);
    assert_eq!(request(&peer).nonce, "1");
    peer.close();
    step(&["Finished true 1000"]);
    refuses.set(true);
    clock.advance(Duration::from_millis(500));
    step(&["a expired"]);
    clock.advance(Duration::from_millis(500));
    step(&["Inbound(Away) false 1600"]);
}

/// A verdict that comes late, without an action before it, is sent, and brings the next update.
#[test]
fn a_late_verdict_is_sent_and_releases_the_next_update() {
    #[derive(Default)]
    struct Late {
        given: RefCell<Vec<xds_machine::client::Update>>,
        judged: Cell<bool>,
    }
    impl Application<Delta> for &Late {
        fn handle_action(&mut self, _: &mut Client<Delta>, action: Action) -> Option<Verdict> {
            if let Action::Apply(update) = action {
                self.given.borrow_mut().push(update);
            }
            None
        }
        fn poll(&mut self, _: &mut Context<'_>, client: &mut Client<Delta>, now: Instant) -> Poll<()> {
            if self.judged.take() {
                let update = self.given.borrow_mut().remove(0);
                client.handle_verdict(now, update.reject_all("late")).expect("it waits");
            }
            Poll::Pending
        }
    }
    let (late, clock, (own, peer)) = (Late::default(), Clock::default(), Pipe::new());
    let mut client = client(&["a", "b"]);
    let (inbound, outbound) = halves::<Delta>(own);
    let mut app = &late;
    let mut run = std::pin::pin!(run_stream(&mut client, inbound, outbound, &clock, &mut app));
    assert!(once(run.as_mut()).is_pending());
    request(&peer);
    peer.send(response("1", &["a"], None));
    peer.send(response("2", &["b"], None));
    assert!(once(run.as_mut()).is_pending());
    assert_eq!(peer.recv(Some(Duration::ZERO)), Received::Timeout, "no verdict, no answer");
    late.judged.set(true);
    assert!(once(run.as_mut()).is_pending());
    let nack = request(&peer);
    assert_eq!((nack.nonce.as_str(), nack.error.expect("a NACK").message.as_str()), ("1", "a: late"));
    assert_eq!(late.given.borrow().len(), 1, "the next update");
    assert_eq!(late.given.borrow()[0].nonce(), "2");
}

/// A sink that fails does not hide the status with which the inbound half ends; without one, the sink's error counts.
#[test]
fn a_sink_error_is_the_reason_for_the_end_unless_the_server_sends_a_status() {
    use futures_util::{sink, stream};
    let (clock, mut client) = (Clock::default(), client(&["a"]));
    let mut app = |_: &mut Client<Delta>, _: Action| None;
    let broken = || sink::unfold((), |(), _: delta::Request| ready(Err::<(), _>("the pipe broke")));

    let status = stream::iter([Err::<delta::Response, _>("UNAVAILABLE")]);
    let ended = futures_executor::block_on(run_stream(&mut client, status, broken(), &clock, &mut app));
    assert_eq!(ended.reason, Reason::Inbound("UNAVAILABLE"));

    let silent = stream::pending::<Result<delta::Response, &str>>();
    let mut run = std::pin::pin!(run_stream(&mut client, silent, broken(), &clock, &mut app));
    assert!(once(run.as_mut()).is_pending());
    clock.advance(Duration::from_secs(1));
    let Poll::Ready(ended) = once(run.as_mut()) else { panic!("it is over") };
    assert_eq!(ended.reason, Reason::Outbound("the pipe broke"));
}

//! Several servers in one task.

use std::cell::RefCell;
use std::future::{Ready, ready};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use xds_machine::client;
use xds_machine::message::Node;
use xds_machine::proto::Wire;
use xds_machine::server::{self, Cache, Server, StreamId};
use xds_machine::servers::{Action, Config, Policy, ServerId, Servers};
use xds_machine::{Delta, Instant, TypeUrl, type_url};
use xds_machine_driver::client::{Connector, Event, Links};
use xds_machine_testing::driver::{Pipe, Received};

use crate::support::{Broken, Clock, Inbound, Outbound, halves};

/// The servers' ends of the streams, for the servers that are there.
#[derive(Clone, Default)]
struct Network(Rc<RefCell<[Option<Vec<Pipe>>; 2]>>);

impl Connector<Delta> for Network {
    type Inbound = Inbound<Delta>;
    type Outbound = Outbound<Delta>;
    type Connecting = Ready<Result<(Inbound<Delta>, Outbound<Delta>), Broken>>;
    type Error = Broken;
    type SinkError = Broken;

    fn connect(&mut self, server: ServerId) -> Self::Connecting {
        ready(match &mut self.0.borrow_mut()[server.0] {
            None => Err(Broken::Away),
            Some(streams) => {
                let (own, peer) = Pipe::new();
                streams.push(peer);
                Ok(halves(own))
            }
        })
    }

    fn random(&mut self) -> u64 {
        500
    }
}

/// Polls until nothing is left to do. Returns what happened.
fn settle(links: &mut Links<Delta, Network, Clock>, servers: &mut Servers<Delta>) -> Vec<String> {
    let mut log = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        while let Some(action) = servers.poll_action() {
            if let Action::Client { server, action: client::Action::Apply(update) } = action {
                log.push(format!("update of {}", server.0));
                servers.handle_verdict(Instant::EPOCH, update.accept()).expect("it waits");
            }
        }
        log.push(match links.poll(&mut cx, servers) {
            Poll::Pending => return log,
            Poll::Ready(Event::Response(_) | Event::Timeout) => continue,
            Poll::Ready(Event::Opened(server)) => format!("open {}", server.0),
            Poll::Ready(Event::Closed(server)) => format!("closed {}", server.0),
            Poll::Ready(Event::Ended { server, ended, again }) => {
                let again = again.map(|again| again.since_epoch().as_millis());
                format!("{} ended: {:?}, again at {again:?}", server.0, ended.reason)
            }
            Poll::Ready(other) => format!("{other:?}"),
        });
    }
}

/// Answers the requests on a stream from a store. Returns the number of requests.
fn serve(pipe: &Pipe, server: &mut Server<Delta>, cache: &Cache) -> usize {
    let mut requests = 0;
    while let Received::Message(bytes) = pipe.recv(Some(Duration::ZERO)) {
        requests += 1;
        server.handle_request(Instant::EPOCH, Delta::decode_request(bytes).expect("a request")).expect("a good one");
    }
    while let Some(response) = server.poll_transmit(Instant::EPOCH, cache) {
        pipe.send(response.chunks().flatten().collect::<Vec<u8>>());
    }
    requests
}

#[test]
fn the_fallback_is_used_until_the_primary_answers() {
    let (network, clock) = (Network::default(), Clock::default());
    let mut links = Links::new(network.clone(), clock.clone());
    let client = client::Config::new(Node::new("me"));
    let mut servers = Servers::<Delta>::new(Config::new(Policy::Grpc, [client.clone(), client])).expect("two servers");
    let clusters = TypeUrl::from(type_url::CLUSTER);
    servers.resources_mut(&clusters).subscribe(["a"]).expect("a name");
    let mut cache = Cache::new(1);
    cache.insert(&clusters, server::Resource::new("a", &b"x"[..]));
    let mut streams = [1, 2].map(|id| Server::<Delta>::new(server::Config::ads(), StreamId(id)));

    network.0.borrow_mut()[1] = Some(Vec::new());
    assert_eq!(settle(&mut links, &mut servers), ["0 ended: Inbound(Away), again at Some(1000)", "open 1"]);
    let fallback = network.0.borrow()[1].as_ref().expect("it is there")[0].clone();
    assert_eq!(serve(&fallback, &mut streams[1], &cache), 1);
    // An owner that can't take more reads no more.
    links.set_reads(false);
    assert_eq!(settle(&mut links, &mut servers), [""; 0]);
    links.set_reads(true);
    assert_eq!(settle(&mut links, &mut servers), ["update of 1"]);
    assert_eq!(serve(&fallback, &mut streams[1], &cache), 1, "the ACK");

    network.0.borrow_mut()[0] = Some(Vec::new());
    assert_eq!(settle(&mut links, &mut servers), [""; 0]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(settle(&mut links, &mut servers), ["open 0"]);
    let primary = network.0.borrow()[0].as_ref().expect("it is there")[0].clone();
    assert_eq!(serve(&primary, &mut streams[0], &cache), 1);
    assert_eq!(settle(&mut links, &mut servers), ["update of 0", "closed 1"]);
    assert_eq!(fallback.recv(Some(Duration::ZERO)), Received::Closed);

    primary.close();
    assert_eq!(settle(&mut links, &mut servers), ["0 ended: Finished, again at Some(2000)"]);
}

//! A slow verdict on a resource of one server stops neither another server nor another type.

use super::*;
use xds_machine::servers::{self, Connect, Policy, ServerId, Servers, Stream};

type Open = (Servers<Delta>, Vec<Stream>);

fn open(config: servers::Config, subscriptions: &[(&TypeUrl, &str)]) -> Open {
    let mut servers = Servers::new(config).expect("a good configuration");
    for (type_url, name) in subscriptions {
        servers.resources_mut(type_url).subscribe([*name]).expect("a name");
    }
    let mut streams = Vec::new();
    while let Some(Connect::Open(stream)) = servers.poll_connect(at(0)) {
        servers.handle_open(stream);
        streams.push(stream);
    }
    for &stream in &streams {
        while let Some(transmit) = servers.poll_transmit(stream) {
            servers.handle_sent(at(0), stream, transmit.sent);
        }
    }
    (servers, streams)
}

fn updates(servers: &mut Servers<Delta>) -> Vec<Update> {
    let actions = std::iter::from_fn(|| servers.poll_action());
    let update = |action| match action {
        servers::Action::Client { action: Action::Apply(update), .. } => Some(update),
        servers::Action::Switched { .. } => None,
        other => panic!("{other:?}"),
    };
    let updates = actions.filter_map(update).collect();
    assert_eq!(servers.check_invariants(), Ok(()));
    updates
}

fn shown_all(updates: &[Update]) -> Vec<String> {
    updates.iter().flat_map(shown).collect()
}

#[test]
fn a_slow_verdict_of_one_authority_stops_no_other() {
    let (cds, eds) = (clusters(), endpoints());
    let config = servers::Config::new(Policy::Grpc, vec![spec(); 2])
        .with_authority("x", [ServerId(0)])
        .with_authority("y", [ServerId(1)]);
    let name = |authority: &str, of: &str| format!("xdstp://{authority}/envoy.config.{of}/r");
    let ex = name("x", "endpoint.v3.ClusterLoadAssignment");
    let ey = name("y", "endpoint.v3.ClusterLoadAssignment");
    let cy = name("y", "cluster.v3.Cluster");
    let (mut servers, streams) = open(config, &[(&eds, &ex), (&eds, &ey), (&cds, &cy)]);
    let of = |number| *streams.iter().find(|stream| stream.server() == ServerId(number)).expect("a stream");
    let answer = |type_url: &TypeUrl, name: &str| response(type_url, 1, vec![resource(type_url, name, "1", None)]);
    servers.handle_response(at(1), of(0), answer(&eds, &ex)).expect("read");
    let mut slow = updates(&mut servers);
    assert_eq!(shown_all(&slow), [format!("{ex}@1")]);
    servers.handle_response(at(2), of(1), answer(&eds, &ey)).expect("read");
    servers.handle_response(at(2), of(1), answer(&cds, &cy)).expect("read");
    let fast = updates(&mut servers);
    assert_eq!(shown_all(&fast), [format!("{ey}@1"), format!("{cy}@1")]);
    servers.handle_timeout(at(16_000));
    assert_eq!(updates(&mut servers), []);
    for update in fast.into_iter().chain(slow.drain(..)) {
        servers.handle_verdict(at(16_000), update.accept()).expect("it is out");
    }
    assert_eq!(updates(&mut servers), []);
    assert!(servers.is_held(&eds, &ex.as_str().into()) && servers.is_held(&eds, &ey.as_str().into()));
}

/// Two servers that are asked for the same names are one session: their updates of a type take turns.
#[test]
fn a_fallback_and_its_primary_take_turns() {
    let eds = endpoints();
    let config = servers::Config::new(Policy::Grpc, vec![spec(); 2]);
    let mut servers = Servers::<Delta>::new(config).expect("a good configuration");
    servers.resources_mut(&eds).subscribe(["a"]).expect("a name");
    let Some(Connect::Open(primary)) = servers.poll_connect(at(0)) else { panic!("a stream") };
    servers.handle_close(at(0), primary, 4);
    let Some(Connect::Open(fallback)) = servers.poll_connect(at(0)) else { panic!("a stream") };
    servers.handle_open(fallback);
    while let Some(transmit) = servers.poll_transmit(fallback) {
        servers.handle_sent(at(0), fallback, transmit.sent);
    }
    servers.handle_response(at(1), fallback, response(&eds, 1, vec![resource(&eds, "a", "1", None)])).expect("read");
    let slow = updates(&mut servers);
    assert_eq!(shown_all(&slow), ["a@1"]);
    let Some(Connect::Open(primary)) = servers.poll_connect(at(2_000)) else { panic!("a stream") };
    servers.handle_open(primary);
    while let Some(transmit) = servers.poll_transmit(primary) {
        servers.handle_sent(at(2_000), primary, transmit.sent);
    }
    servers.handle_response(at(2_001), primary, response(&eds, 1, vec![resource(&eds, "a", "2", None)])).expect("read");
    assert_eq!(updates(&mut servers), [], "no newer content is overwritten by an older verdict");
    servers.handle_verdict(at(2_002), slow.into_iter().next().expect("one").accept()).expect("it is out");
    assert_eq!(shown_all(&updates(&mut servers)), ["a@2"]);
}

//! The ledgers between a chain and several servers.

use xds_machine::client::{Action, Client, Config as ClientConfig};
use xds_machine::message::{Any, Node, sotw};
use xds_machine::servers::{Config, Connect, Policy, ServerId, Servers, Stream};
use xds_machine::{Code, Instant, Sotw, Status, TypeUrl, type_url};
use xds_machine_grpc::chain::{Chain, Children, Linked, Target};
use xds_machine_grpc::ledgers::{Ledgers, Lookup};
use xds_machine_grpc::links::{ClusterLinks, HostPort, Links, ListenerLinks, RouteSource, VirtualHost};

/// A driver of two servers, of which the second is that of the authority `x`.
struct Driver {
    servers: Servers<Sotw>,
    chain: Chain<String>,
    ledgers: Ledgers<String>,
    streams: [Stream; 2],
    lookups: Vec<Lookup>,
    versions: usize,
}

/// Makes a resource: its name, and its links in words: `eds x`, `dns x`, `rds x`, `clusters x y`, `ok`, `bad`.
fn any(type_url: &str, name: &str, content: &str) -> Any {
    let mut value = vec![0x0a, name.len() as u8];
    value.extend(name.as_bytes());
    value.extend([0x7a, content.len() as u8]);
    value.extend(content.as_bytes());
    Any { type_url: type_url.into(), value: value.into() }
}

fn decode(_: ServerId, target: &Target, resource: xds_machine::client::Resource<'_>) -> Result<Linked<String>, String> {
    let body = resource.body();
    let name = usize::from(body[1]);
    let content = String::from_utf8(body[4 + name..].to_vec()).expect("text");
    let words: Vec<&str> = content.split(' ').collect();
    let names = || words[1..].iter().map(|&name| name.into()).collect();
    let links = match (target, words[0]) {
        (Target::Listener(_), "rds") => Links::Listener(ListenerLinks::Api(RouteSource::Rds(words[1].into()))),
        (Target::Routes(_), "clusters") => {
            Links::Routes(vec![VirtualHost { name: "v".into(), domains: vec!["*".into()], clusters: names() }])
        }
        (Target::Cluster(_), "eds") => Links::Cluster(ClusterLinks::Eds(words[1].into())),
        (Target::Cluster(_), "dns") => Links::Cluster(ClusterLinks::Dns(HostPort { host: words[1].into(), port: 1 })),
        (Target::Endpoints(_), "ok") => Links::Endpoints(None),
        _ => return Err(format!("{target} is bad")),
    };
    Ok(Linked::new(links, content))
}

fn response(version: usize, type_url: &str, resources: &[(&str, &str)]) -> sotw::Response {
    let version = version.to_string();
    let resources = resources.iter().map(|(name, content)| sotw::Item::Bare(any(type_url, name, content)));
    sotw::Response {
        version: version.as_str().into(),
        resources: resources.collect(),
        type_url: TypeUrl::from(type_url),
        nonce: version.as_str().into(),
        control_plane: String::new(),
        errors: vec![],
    }
}

impl Driver {
    fn new() -> Self {
        let client = || ClientConfig::new(Node::new("me"));
        let config = Config::new(Policy::Grpc, [client(), client()])
            .with_default([ServerId(0)])
            .with_authority("x", [ServerId(1)]);
        let mut servers = Servers::new(config).expect("a good configuration");
        // Both streams are opened for names that the tests do not use.
        for name in ["other", "xdstp://x/o/other"] {
            servers.resources_mut(&"o".into()).subscribe([name]).expect("a server");
        }
        let streams = [(); 2].map(|()| match servers.poll_connect(Instant::EPOCH) {
            Some(Connect::Open(stream)) => stream,
            other => panic!("{other:?}"),
        });
        streams.iter().for_each(|&stream| servers.handle_open(stream));
        let (chain, ledgers) = (Chain::new("l", "host"), Ledgers::new());
        Self { servers, chain, ledgers, streams, lookups: vec![], versions: 0 }
    }

    fn settle(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            while let Some(action) = self.servers.poll_action() {
                self.ledgers.handle_servers_action(action, decode);
            }
            let dns = |lookup| self.lookups.push(lookup);
            let outcome = self.ledgers.settle(&mut self.chain, &mut self.servers, dns);
            let mut quiet = outcome.is_none();
            told.extend(outcome.map(|outcome| match outcome {
                Ok(config) => {
                    let clusters = config.clusters.iter().map(|(name, entry)| match entry {
                        Ok(cluster) => match &cluster.children {
                            Children::Endpoints { value: Some(value), note, .. } => format!("{name} {value}{note}"),
                            other => format!("{name} {other:?}"),
                        },
                        Err(failure) => format!("{name} !{failure}"),
                    });
                    clusters.collect::<Vec<_>>().join(", ")
                }
                Err(failure) => format!("!{failure}"),
            }));
            while let Some(verdict) = self.ledgers.poll_verdict() {
                quiet = false;
                self.servers.handle_verdict(Instant::EPOCH, verdict).expect("each update is judged once");
            }
            if quiet {
                return told;
            }
        }
    }

    /// Returns the names of each request that waits on a server's stream, by type, and its error.
    fn requests(&mut self, server: usize) -> Vec<String> {
        let requests = std::iter::from_fn(|| self.servers.poll_transmit(self.streams[server]));
        let shown = requests.map(|transmit| {
            let request = transmit.request;
            let names: Vec<&str> = request.names.iter().map(|name| name.as_str()).collect();
            let short = request.type_url.as_str().rsplit('.').next().expect("a name").to_string();
            let error = request.error.map_or(String::new(), |error| format!(" !{}", error.message));
            format!("{short}[{}]{error}", names.join(","))
        });
        shown.filter(|shown| !shown.starts_with("o[")).collect()
    }

    fn give(&mut self, server: usize, type_url: &str, resources: &[(&str, &str)]) -> Vec<String> {
        (0..2).for_each(|server| drop(self.requests(server))); // a server answers the requests that it was sent
        self.versions += 1;
        let response = response(self.versions, type_url, resources);
        self.servers.handle_response(Instant::EPOCH, self.streams[server], response).expect("a good response");
        self.settle()
    }
}

#[test]
fn settle_passes_watches_and_updates_between_chain_and_servers() {
    let mut d = Driver::new();
    assert_eq!(d.settle(), [""; 0]);
    assert_eq!(d.requests(0), ["Listener[l]"]);
    d.give(0, type_url::LISTENER, &[("l", "rds r")]);
    assert_eq!(d.requests(0), ["Listener[l]", "RouteConfiguration[r]"]);
    d.give(
        0,
        type_url::ROUTE,
        &[("r", "clusters a xdstp://x/envoy.config.cluster.v3.Cluster/b xdstp://y/envoy.config.cluster.v3.Cluster/c")],
    );
    assert_eq!(d.requests(0), ["RouteConfiguration[r]", "Cluster[a]"]);
    let b = "xdstp://x/envoy.config.cluster.v3.Cluster/b";
    assert_eq!(d.requests(1), [format!("Cluster[{b}]")]);
    d.give(1, type_url::CLUSTER, &[(b, "dns h")]);
    assert_eq!(d.lookups, [Lookup::Begin(HostPort { host: "h".into(), port: 1 })]);
    d.give(1, type_url::CLUSTER, &[(b, "eds e")]);
    assert_eq!(d.lookups[1..], [Lookup::End(HostPort { host: "h".into(), port: 1 })]);
    assert_eq!(d.requests(0), ["ClusterLoadAssignment[e]"]);
    d.give(0, type_url::CLUSTER, &[("a", "eds e")]);
    assert_eq!(d.requests(0), ["Cluster[a]"], "the endpoints are asked for already");
    // R-BOOT-36, R-CHAIN-26: no server is asked for the third cluster, and only this cluster fails.
    let failed = "xdstp://y/envoy.config.cluster.v3.Cluster/c !CDS resource xdstp://y/envoy.config.cluster.v3.Cluster/c: no server is configured for xdstp://y/envoy.config.cluster.v3.Cluster/c";
    let told = d.give(0, type_url::ENDPOINT, &[("e", "ok 1")]);
    assert_eq!(told, [format!("a ok 1, {b} ok 1, {failed}")]);
    // R-CHAIN-03
    d.give(0, type_url::LISTENER, &[("l", "rds r2")]);
    assert_eq!(d.requests(0), ["Listener[l]", "RouteConfiguration[r2]"]);
}

#[test]
fn a_rejection_is_an_error_without_a_held_resource_and_a_note_with_one() {
    // R-CHAIN-17, R-CHAIN-29
    let mut d = Driver::new();
    d.settle();
    d.requests(0);
    assert_eq!(d.give(0, type_url::LISTENER, &[("l", "bad")]), ["!LDS resource l: LDS resource l is bad"]);
    assert_eq!(d.requests(0), ["Listener[l] !l: LDS resource l is bad"]);
    d.give(0, type_url::LISTENER, &[("l", "rds r")]);
    d.give(0, type_url::ROUTE, &[("r", "clusters a")]);
    d.give(0, type_url::CLUSTER, &[("a", "eds e")]);
    assert_eq!(d.give(0, type_url::ENDPOINT, &[("e", "ok")]), ["a ok"]);
    let noted = "a okCDS resource a: CDS resource a is bad";
    assert_eq!(d.give(0, type_url::CLUSTER, &[("a", "bad")]), [noted]);
}

#[test]
fn an_unreachable_server_fails_awaited_resources() {
    let mut d = Driver::new();
    d.settle();
    d.servers.handle_close(Instant::EPOCH, d.streams[0], 0);
    assert_eq!(d.settle(), ["!LDS resource l: server 0 can't be reached"]);
}

/// The ledgers over a client of one server.
#[test]
fn the_ledgers_work_over_a_single_client() {
    let mut client = Client::<Sotw>::new(ClientConfig::new(Node::new("me")));
    let (mut chain, mut ledgers) = (Chain::<String>::new("l", "host"), Ledgers::new());
    client.handle_open();
    client.resources_mut(&"o".into()).subscribe(["other"]).expect("a good name");
    let mut told = |client: &mut Client<Sotw>, ledgers: &mut Ledgers<String>| {
        let outcome = ledgers.settle(&mut chain, client, |_| ());
        outcome.map(|outcome| outcome.map(|config| config.clusters.len()).map_err(|failure| failure.to_string()))
    };
    assert_eq!(told(&mut client, &mut ledgers), None);
    while client.poll_transmit().is_some() {}

    ledgers.handle_unreachable(&Status::new(Code::Unavailable, "away"));
    assert_eq!(told(&mut client, &mut ledgers), Some(Err("LDS resource l: away".into())));

    let mut give = |client: &mut Client<Sotw>, type_url: &str, content: (&str, &str)| {
        client.handle_response(Instant::EPOCH, response(1, type_url, &[content])).expect("a good response");
        let action = client.poll_action().expect("an update");
        let left = ledgers.handle_action(action, |target, resource| decode(ServerId(0), target, resource));
        (left, std::iter::from_fn(|| ledgers.poll_verdict()).count())
    };
    let (left, verdicts) = give(&mut client, "o", ("other", "any"));
    assert!(matches!(left, Some(Action::Apply(update)) if update.type_url().as_str() == "o"), "of no concern here");
    assert_eq!(verdicts, 0);
    let (left, verdicts) = give(&mut client, type_url::LISTENER, ("l", "bad"));
    assert_eq!((left.is_none(), verdicts), (true, 1));
}

/// R-CHAIN-33: An unreachable server is a note beside each held resource, until the server answers.
#[test]
fn the_note_of_an_unreachable_server_ends_when_it_is_reachable_again() {
    let mut d = Driver::new();
    d.settle();
    d.give(0, type_url::LISTENER, &[("l", "rds r")]);
    d.give(0, type_url::ROUTE, &[("r", "clusters a")]);
    d.give(0, type_url::CLUSTER, &[("a", "eds e")]);
    assert_eq!(d.give(0, type_url::ENDPOINT, &[("e", "ok")]), ["a ok"]);
    d.ledgers.handle_unreachable(&Status::new(Code::Unavailable, "away"));
    let notes = "LDS resource l: away; RDS resource r: away; CDS resource a: away; EDS resource e: away";
    assert_eq!(d.settle(), [format!("a ok{notes}")]);
    d.ledgers.handle_reachable();
    assert_eq!(d.settle(), ["a ok"]);
}

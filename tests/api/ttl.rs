//! A client and a server without loss between them: while the server exists, a resource with a TTL does not expire,
//! whatever else happens, and the client takes no heartbeat for anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xds_machine::client::{self, Action, Client, Update};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, ResourceName, Sotw, TypeUrl, type_url};
use xds_machine_testing::random::Random;
use xds_machine_testing::replay::message::Wire;

const TTL: Duration = Duration::from_secs(30);
const TYPES: [&str; 4] = [type_url::CLUSTER, type_url::ENDPOINT, type_url::LISTENER, type_url::ROUTE];
const NAMES: [&str; 3] = ["a", "b", "c"];

struct Pair<V: Wire> {
    now: Instant,
    client: Client<V>,
    server: Server<V>,
    cache: Cache,
    /// The resources of the store that have a TTL, and since when.
    lasting: BTreeMap<(usize, usize), Instant>,
    wanted: BTreeSet<(usize, usize)>,
    /// An update of clusters that waits for its verdict, and until when: Envoy waits for endpoints.
    judging: Option<(Instant, Update)>,
    contents: u64,
    heartbeats: usize,
}

impl<V: Wire> Pair<V> {
    fn new(wildcard: bool) -> Self {
        let mut client = Client::new(client::Config::new(Node::new("n")).with_existence_timeout(None));
        if wildcard {
            client.resources_mut(&TYPES[2].into()).subscribe(["*"]).expect("a name");
        }
        client.handle_open();
        Self {
            now: Instant::EPOCH,
            client,
            server: Server::new(server::Config::ads(), StreamId(1)),
            cache: Cache::new(1),
            lasting: BTreeMap::new(),
            wanted: BTreeSet::new(),
            judging: None,
            contents: 0,
            heartbeats: 0,
        }
    }

    fn step(&mut self, dice: &mut Random) {
        let (t, n) = (dice.below(TYPES.len()), dice.below(NAMES.len()));
        let (type_url, name) = (TypeUrl::from(TYPES[t]), ResourceName::from(NAMES[n]));
        match dice.below(6) {
            0 | 1 => self.now = self.now + Duration::from_millis(500 + dice.below(4000) as u64),
            2 | 3 => {
                self.contents += 1;
                let mut body = vec![0x0a, 1, NAMES[n].as_bytes()[0], 0x7a, 8];
                body.extend(self.contents.to_le_bytes());
                let mut resource = Resource::new(name, body);
                // Clusters have no TTL, because they wait for verdicts, and may expire meanwhile.
                if t != 0 && dice.below(3) > 0 {
                    resource = resource.with_ttl(TTL);
                    self.lasting.entry((t, n)).or_insert(self.now);
                } else {
                    self.lasting.remove(&(t, n));
                }
                self.cache.insert(&type_url, resource);
            }
            4 if dice.below(4) == 0 => {
                self.cache.remove(&type_url, NAMES[n]);
                self.lasting.remove(&(t, n));
            }
            5 if self.wanted.insert((t, n)) => self.client.resources_mut(&type_url).subscribe([name]).expect("a name"),
            5 if dice.below(3) == 0 => {
                self.wanted.remove(&(t, n));
                self.client.resources_mut(&type_url).unsubscribe([NAMES[n]]);
            }
            _ => {}
        }
    }

    /// Runs both machines until neither has anything left to do at this moment.
    fn settle(&mut self, dice: &mut Random) {
        self.server.handle_timeout(self.now);
        if let Some((_, update)) = self.judging.take_if(|(until, _)| *until <= self.now) {
            self.client.handle_verdict(self.now, update.accept()).expect("the update is out");
        }
        loop {
            self.act(dice);
            if let Some(transmit) = self.client.poll_transmit() {
                self.client.handle_sent(self.now, transmit.sent);
                self.server.handle_request(self.now, transmit.request).expect("a good request");
                while self.server.poll_action().is_some() {}
            } else if let Some(response) = self.server.poll_transmit(self.now, &self.cache) {
                let mut bytes = Vec::new();
                response.encode(&mut bytes);
                let response = V::decode_response(bytes.into()).expect("a response");
                self.heartbeats += V::heartbeats(&response);
                self.client.handle_response(self.now, response).expect("a good response");
            } else {
                break;
            }
        }
        // Only now, because a message that is sent at a moment arrives at that moment.
        self.client.handle_timeout(self.now);
        self.act(dice);
        for due in [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten() {
            assert!(due > self.now, "a time that has come and stays makes a driver spin");
        }
    }

    fn act(&mut self, dice: &mut Random) {
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::Apply(update) if *update.type_url() == type_url::CLUSTER => {
                    let until = self.now + Duration::from_secs(dice.below(6) as u64);
                    assert!(self.judging.replace((until, update)).is_none());
                }
                Action::Apply(update) => {
                    self.client.handle_verdict(self.now, update.accept()).expect("the update is out");
                }
                Action::Expired { type_url, names } => {
                    let t = TYPES.iter().position(|known| type_url == *known).expect("a type");
                    for name in names {
                        let n = NAMES.iter().position(|known| name == *known).expect("a name");
                        let since = self.lasting.get(&(t, n)).filter(|since| **since + TTL <= self.now);
                        assert_eq!(
                            since, None,
                            "{name} of {type_url} expired at {:?}, and the server has it",
                            self.now
                        );
                    }
                }
                Action::Rejected { faults, .. } => panic!("{faults:?}"),
                _ => {}
            }
        }
    }
}

/// Takes random steps. Returns the number of heartbeats.
fn walk<V: Wire>(seed: u64) -> usize {
    let mut dice = Random(seed);
    let mut pair = Pair::<V>::new(seed % 2 == 0);
    for _ in 0..300 {
        pair.step(&mut dice);
        pair.settle(&mut dice);
    }
    pair.heartbeats
}

#[test]
fn a_resource_with_a_ttl_does_not_expire_while_the_server_exists() {
    let seeds = 0..50;
    let sotw: usize = seeds.clone().map(walk::<Sotw>).sum();
    let delta: usize = seeds.map(walk::<Delta>).sum();
    println!("heartbeats: SotW {sotw}, delta {delta}");
    assert!(sotw > 1000 && delta > 1000, "there was something to see: {sotw}, {delta}");
}

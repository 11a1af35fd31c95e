//! Resources that share aliases, in random walks of a client and a server: at rest the client has what its names stand
//! for. The worlds give each alias to one resource at a time; here several have it, and it stands for the one that got
//! it last.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use xds_machine::client::{Action, Client, Config};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, ResponseLimit};
use xds_machine::{Delta, Instant, ResourceName, TypeUrl, WILDCARD, type_url};
use xds_machine_testing::duo::{Duo, Step};
use xds_machine_testing::random::Random;

const RESOURCES: [&str; 3] = ["a", "b", "c"];
/// One sorts before the names of resources, one between them, and one after them.
const ALIASES: [&str; 3] = ["!", "ab", "~"];

/// What is known without the machines.
#[derive(Default)]
struct Record {
    store: BTreeMap<ResourceName, Vec<u8>>,
    /// The resources with an alias, in the order in which they got it.
    aliases: BTreeMap<ResourceName, Vec<ResourceName>>,
    wanted: BTreeSet<ResourceName>,
    held: BTreeMap<ResourceName, Vec<u8>>,
}

impl Record {
    /// Records that a resource was put with these aliases, or removed.
    fn set(&mut self, name: &ResourceName, content: Option<Vec<u8>>, aliases: &[&str]) {
        self.store.remove(name);
        self.store.extend(content.map(|content| (name.clone(), content)));
        for alias in ALIASES {
            let by = self.aliases.entry(alias.into()).or_default();
            match (aliases.contains(&alias), by.contains(name)) {
                (true, false) => by.push(name.clone()),
                (false, true) => by.retain(|other| other != name),
                _ => {}
            }
        }
    }

    /// Returns the resources that the subscribed names stand for.
    fn expected(&self) -> BTreeMap<ResourceName, Vec<u8>> {
        let stands = |name: &ResourceName| {
            let of = self.aliases.get(name).map_or(Some(name), |by| by.last());
            Some((of?.clone(), self.store.get(of?)?.clone()))
        };
        match self.wanted.contains(WILDCARD) {
            true => self.store.clone(),
            false => self.wanted.iter().filter_map(stands).collect(),
        }
    }

    /// Applies an update, and accepts it.
    fn act(&mut self, client: &mut Client<Delta>, now: Instant, action: Action) {
        let Action::Apply(update) = action else { return };
        update.removed().iter().for_each(|name| _ = self.held.remove(name));
        self.held.extend(update.resources().map(|resource| (resource.name().clone(), resource.body().to_vec())));
        client.handle_verdict(now, update.accept()).expect("it is out");
    }
}

struct Walk {
    random: Random,
    clusters: TypeUrl,
    cache: Cache,
    duo: Duo<Delta>,
    record: Record,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let limit = ResponseLimit { resources: 1 + random.below(2), ..ResponseLimit::default() };
        let config = server::Config::ads();
        let config = if random.one_in(3) { config.with_response_limit(limit) } else { config };
        let client = Config::new(Node::new("proxy")).with_existence_timeout(None);
        let (clusters, cache) = (type_url::CLUSTER.into(), Cache::new(1));
        Self { random, clusters, cache, duo: Duo::new(client, config), record: Record::default() }
    }

    fn step(&mut self) {
        let Self { random, clusters, cache, duo, record } = self;
        let name = ResourceName::from(random.pick(&RESOURCES));
        match random.below(16) {
            0 | 1 => {
                let aliases: Vec<&str> = ALIASES.into_iter().filter(|_| random.one_in(2)).collect();
                let content = vec![random.below(2) as u8];
                cache.insert(clusters, Resource::new(name.clone(), content.clone()).with_aliases(aliases.clone()));
                record.set(&name, Some(content), &aliases);
            }
            2 => {
                cache.remove(clusters, name.as_str());
                record.set(&name, None, &[]);
            }
            3 | 4 => {
                let name: ResourceName = random.pick(&["a", "b", "c", "!", "ab", "~", "!", "~", WILDCARD]).into();
                let mut client = duo.client.resources_mut(clusters);
                if record.wanted.remove(&name) {
                    client.unsubscribe([name.as_str()]);
                } else {
                    client.subscribe([name.clone()]).expect("a name");
                    record.wanted.insert(name);
                }
            }
            5 if random.one_in(8) => duo.take(Step::Cut, cache),
            _ => duo.take(random.pick(&Step::OWN), cache),
        }
        assert_eq!(cache.check_invariants(), Ok(()));
        if random.one_in(2) {
            while let Some(action) = duo.client.poll_action() {
                record.act(&mut duo.client, duo.now, action);
            }
        }
    }

    /// Lets both ends come to rest, and checks what the client has.
    fn check(&mut self) {
        let Self { clusters, cache, duo, record, .. } = self;
        duo.settle(cache, |client, now, action| record.act(client, now, action));
        let held: BTreeSet<ResourceName> = duo.client.layer(clusters).held().map(|(name, _)| name.clone()).collect();
        record.held = take(&mut record.held).into_iter().filter(|(name, _)| held.contains(name)).collect();
        assert_eq!(record.held.keys().cloned().collect::<BTreeSet<_>>(), held, "what is held was applied");
        assert_eq!(record.held, record.expected(), "wanted: {:?}, aliases: {:?}", record.wanted, record.aliases);
    }
}

#[test]
fn a_client_has_the_resource_that_got_a_shared_alias_last() {
    for seed in 0..1_500 {
        let mut walk = Walk::new(seed);
        for _ in 0..8 {
            (0..40).for_each(|_| walk.step());
            walk.check();
        }
    }
}

//! Random changes to a store and to a cache, with clients of both variants for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use xds_machine::client::{self, Action};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, ResponseLimit, Source};
use xds_machine::xdstp::Uri;
use xds_machine::{Delta, ResourceName, Sotw, TypeUrl, WILDCARD, type_url};

use super::probe::Probe;
use crate::duo::{Duo, Step};
use crate::random::Random;
use crate::search::catch;
use crate::variant::Both;
use crate::world::store::body;

/// A [`Source`] whose resources a test can change.
pub trait Store: Source {
    /// Adds a resource, or replaces the one of its name. Does nothing if both are equal.
    fn put(&mut self, type_url: &TypeUrl, resource: Resource);
    /// Removes a resource if present.
    fn remove(&mut self, type_url: &TypeUrl, name: &str);
}

impl Store for Cache {
    fn put(&mut self, type_url: &TypeUrl, resource: Resource) {
        self.insert(type_url, resource);
    }

    fn remove(&mut self, type_url: &TypeUrl, name: &str) {
        Cache::remove(self, type_url, name);
    }
}

/// The plan of [`check_source`]. The default suits a store of any types and names.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The types of resources.
    pub types: Vec<TypeUrl>,
    /// The names of resources. Clients subscribe to these, to the wildcard, and to the collections that the names
    /// belong to. A structured name (`xdstp:`) is used with its own type.
    pub names: Vec<ResourceName>,
    /// Whether some resources have a TTL.
    pub ttls: bool,
    /// The number of walks, each with a new store and another seed.
    pub walks: u64,
    /// The number of steps of each walk: changes of the store and of subscriptions, broken streams, and pauses in which
    /// everything settles.
    pub steps: usize,
}

impl Default for Plan {
    fn default() -> Self {
        let names = ["a", "b", "c", "d", "e"].map(ResourceName::from).to_vec();
        let types = [type_url::CLUSTER, type_url::ENDPOINT].map(TypeUrl::from).to_vec();
        Self { types, names, ttls: false, walks: 50, steps: 80 }
    }
}

/// A failed walk.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The number of the walk, which reproduces it.
    pub walk: u64,
    /// The violated rule of the contract, or the difference between store and cache.
    pub what: String,
    /// The events before the failure, a line each.
    pub story: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let story = &self.story[self.story.len().saturating_sub(20)..];
        write!(f, "walk {}: {}\n{}", self.walk, self.what, story.join("\n"))
    }
}

impl std::error::Error for Failure {}

/// Changes a store at random, and a [`Cache`] in the same way. Clients of both variants are served from each, with
/// limited responses and over streams that break; a [`Probe`] checks each call. Whenever everything has settled, the
/// clients of the store must have the same resources as those of the cache, which are the present ones.
///
/// # Errors
///
/// Returns the first walk that fails.
pub fn check_source<S: Store>(plan: &Plan, mut new: impl FnMut() -> S) -> Result<(), Failure> {
    for walk in 0..plan.walks {
        let mut story = Vec::new();
        let mut random = Random(walk);
        let mut all = Walk::new(plan, new(), &mut random);
        let taken = catch(|| {
            for _ in 0..plan.steps {
                all.step(&mut random, &mut story);
            }
            all.rest();
        });
        if let Some(what) = taken {
            return Err(Failure { walk, what, story });
        }
    }
    Ok(())
}

/// A client, and the resources of its application.
struct Side<V: Both> {
    duo: Duo<V>,
    has: BTreeMap<(TypeUrl, ResourceName), Content>,
    /// The names that are subscribed to.
    wanted: BTreeSet<(TypeUrl, ResourceName)>,
}

/// The content of a resource.
type Content = Vec<u8>;

impl<V: Both> Side<V> {
    fn new(response_limit: ResponseLimit) -> Self {
        let client = client::Config::new(Node::new("n")).with_existence_timeout(None);
        let server = server::Config::ads().with_response_limit(response_limit);
        Self { duo: Duo::new(client, server), has: BTreeMap::new(), wanted: BTreeSet::new() }
    }

    fn want(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        if self.wanted.insert((type_url.clone(), name.clone())) {
            self.duo.client.resources_mut(type_url).subscribe([name]).expect("a good name");
        } else {
            self.wanted.remove(&(type_url.clone(), name.clone()));
            self.duo.client.resources_mut(type_url).unsubscribe([name]);
        }
        let wanted = &self.wanted;
        self.has.retain(|(of, name), _| wants(wanted, of, name));
    }

    fn settle(&mut self, source: &impl Source) {
        let Self { duo, has, wanted } = self;
        duo.settle(source, |client, now, action| match action {
            Action::Apply(update) => {
                let of = update.type_url().clone();
                for resource in update.resources() {
                    if wants(wanted, &of, resource.name()) {
                        has.insert((of.clone(), resource.name().clone()), resource.body().to_vec());
                    }
                }
                update.removed().iter().for_each(|name| _ = has.remove(&(of.clone(), name.clone())));
                client.handle_verdict(now, update.accept()).expect("the update is out");
            }
            Action::Expired { type_url, names } => {
                names.into_iter().for_each(|name| _ = has.remove(&(type_url.clone(), name)));
            }
            Action::Rejected { faults, .. } => panic!("a client finds fault with what it is sent: {faults:?}"),
            _ => {}
        });
    }

    /// Takes some of the protocol's own steps, and leaves the rest of the messages in flight.
    fn stir(&mut self, source: &impl Source, random: &mut Random) {
        let Some(step) = self.duo.steps(source).next().filter(|step| !matches!(step, Step::Tick | Step::Cut)) else {
            return self.settle(source);
        };
        if random.one_in(3) {
            return self.settle(source);
        }
        self.duo.take(step, source);
    }
}

fn wants(wanted: &BTreeSet<(TypeUrl, ResourceName)>, of: &TypeUrl, name: &ResourceName) -> bool {
    let has = |name: ResourceName| wanted.contains(&(of.clone(), name));
    has(name.clone()) || has(WILDCARD.into()) || name.glob().is_some_and(has)
}

/// Returns one of the names that a resource of a type may have: a structured name contains its type.
fn pick<'a>(random: &mut Random, names: &'a [ResourceName], of: &TypeUrl) -> Option<&'a ResourceName> {
    let fits = |name: &&ResourceName| {
        !name.as_str().starts_with("xdstp:") || Uri::parse(name.as_str()).is_ok_and(|uri| uri.is_of(of))
    };
    let names: Vec<&ResourceName> = names.iter().filter(fits).collect();
    names.get(random.below(names.len())).copied()
}

struct Walk<'a, S> {
    plan: &'a Plan,
    store: Probe<S>,
    cache: Cache,
    sotw: [Side<Sotw>; 2],
    delta: [Side<Delta>; 2],
    wishes: Vec<ResourceName>,
    contents: u8,
}

impl<'a, S: Store> Walk<'a, S> {
    fn new(plan: &'a Plan, store: S, random: &mut Random) -> Self {
        let resources = random.pick(&[1, 2, 3, usize::MAX]);
        let response_limit = ResponseLimit { resources, ..ResponseLimit::default() };
        let globs: BTreeSet<ResourceName> = plan.names.iter().filter_map(ResourceName::glob).collect();
        Self {
            plan,
            store: Probe::new(store),
            cache: Cache::new(1),
            sotw: [Side::new(response_limit), Side::new(response_limit)],
            delta: [Side::new(response_limit), Side::new(response_limit)],
            wishes: plan.names.iter().cloned().chain(globs).chain([WILDCARD.into()]).collect(),
            contents: 0,
        }
    }

    fn step(&mut self, random: &mut Random, story: &mut Vec<String>) {
        let of = self.plan.types[random.below(self.plan.types.len())].clone();
        match random.below(16) {
            0..5 => {
                let Some(name) = pick(random, &self.plan.names, &of) else { return };
                self.contents = random.below(100) as u8;
                story.push(format!("put {name} of {of}, content {}", self.contents));
                let resource = Resource::new(name.clone(), body(name, self.contents));
                let ttl = (self.plan.ttls && random.one_in(3)).then_some(Duration::from_secs(90));
                let resource = ttl.into_iter().fold(resource, Resource::with_ttl);
                self.store.get_mut().put(&of, resource.clone());
                self.cache.insert(&of, resource);
            }
            5..8 => {
                let Some(name) = pick(random, &self.plan.names, &of) else { return };
                story.push(format!("remove {name} of {of}"));
                self.store.get_mut().remove(&of, name.as_str());
                self.cache.remove(&of, name.as_str());
            }
            8..11 => {
                let Some(name) = pick(random, &self.wishes, &of).cloned() else { return };
                story.push(format!("clients want {name} of {of}, or do so no longer"));
                self.sotw.iter_mut().for_each(|side| side.want(&of, &name));
                self.delta.iter_mut().for_each(|side| side.want(&of, &name));
            }
            11 => {
                story.push("all streams break".into());
                self.sotw.iter_mut().for_each(|side| side.duo.take(Step::Cut, &self.cache));
                self.delta.iter_mut().for_each(|side| side.duo.take(Step::Cut, &self.cache));
            }
            12..15 => {
                self.sotw[0].stir(&self.store, random);
                self.sotw[1].stir(&self.cache, random);
                self.delta[0].stir(&self.store, random);
                self.delta[1].stir(&self.cache, random);
            }
            _ => {
                story.push("all comes to rest".into());
                self.rest();
            }
        }
        for of in &self.plan.types {
            self.store.check(of).unwrap_or_else(|broken| panic!("{broken}"));
        }
    }

    fn rest(&mut self) {
        self.sotw[0].settle(&self.store);
        self.sotw[1].settle(&self.cache);
        self.delta[0].settle(&self.store);
        self.delta[1].settle(&self.cache);
        for of in &self.plan.types {
            for name in &self.plan.names {
                let key = (of.clone(), name.clone());
                let cache = self.cache.resources(of).find(|resource| resource.name() == name);
                let there = cache.map(|resource| resource.body().to_vec());
                let delta = self.delta.each_ref().map(|side| side.has.get(&key));
                let expected = there.as_ref().filter(|_| wants(&self.delta[0].wanted, of, name));
                assert_eq!(delta[1], expected, "delta, over the cache: {name} of {of}");
                assert_eq!(delta[0], expected, "a delta client of the store ends otherwise: {name} of {of}");
                let sotw = self.sotw.each_ref().map(|side| side.has.get(&key));
                // SotW can't report removals of a partial type.
                let says =
                    there.is_some() || xds_machine::resource_type::TypeRegistry::default().get(of).is_full_state();
                assert!(
                    sotw[0] == sotw[1] || !says,
                    "a SotW client of the store ends otherwise: {name} of {of}: {sotw:?}"
                );
            }
        }
    }
}

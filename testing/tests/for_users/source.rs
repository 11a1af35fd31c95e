//! A source over a `BTreeMap`, as a user would write it, and faults that were seen in such sources: `check_source`
//! finds each fault, and names the sentence of the contract.

use std::collections::BTreeMap;

use xds_machine::server::{Cache, Entry, Page, Resource, Revision, Source, State};
use xds_machine::{ResourceName, TypeUrl, Version, type_url};
use xds_machine_testing::source::{Plan, Probe, Store, check_source};

/// A fault of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    OldestFirst,
    EarlySince,
    SharedSince,
    ForgottenRemovals,
    StaleGet,
    RenumberedPages,
    LackingMember,
    StandingRevision,
    UnorderedRemovals,
    LateRemovalIsSilent,
    ForgottenTtl,
    ChangesOfTheGone,
}

/// The present and the removed resources of one type, each with the revision of its last change.
#[derive(Default)]
struct Kind {
    revision: Revision,
    there: BTreeMap<ResourceName, (Revision, Resource)>,
    gone: BTreeMap<ResourceName, Revision>,
    /// The name on each page, if any: a resource keeps the number of its page.
    pages: Vec<Option<ResourceName>>,
    /// The former resources, which a source with `StaleGet` returns.
    stale: BTreeMap<ResourceName, (Revision, Resource)>,
}

struct Map {
    fault: Option<Fault>,
    revision: Revision,
    kinds: BTreeMap<TypeUrl, Kind>,
    nothing: Kind,
}

impl Map {
    fn new(fault: Option<Fault>) -> Self {
        Self { fault, revision: Revision(0), kinds: BTreeMap::new(), nothing: Kind::default() }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn of(&self, type_url: &TypeUrl) -> &Kind {
        self.kinds.get(type_url).unwrap_or(&self.nothing)
    }

    /// Makes the revision of a change.
    fn next(&mut self) -> Revision {
        let stands = self.has(Fault::StandingRevision) && self.revision.0 > 3;
        let shares = self.has(Fault::SharedSince) && self.revision.0 % 2 == 1;
        if !stands && !shares {
            self.revision.0 += 1;
        }
        if self.has(Fault::EarlySince) { Revision(self.revision.0 - 1) } else { self.revision }
    }
}

impl Store for Map {
    fn put(&mut self, type_url: &TypeUrl, resource: Resource) {
        let name = resource.name().clone();
        if self.of(type_url).there.get(&name).is_some_and(|(_, there)| *there == resource) {
            return;
        }
        let (since, revision) = (self.next(), self.revision);
        let kind = self.kinds.entry(type_url.clone()).or_default();
        kind.gone.remove(&name);
        if !kind.there.contains_key(&name) {
            match kind.pages.iter().position(Option::is_none) {
                Some(free) => kind.pages[free] = Some(name.clone()),
                None => kind.pages.push(Some(name.clone())),
            }
        }
        if let Some(before) = kind.there.insert(name.clone(), (since, resource)) {
            kind.stale.insert(name, before);
        }
        kind.revision = revision;
    }

    fn remove(&mut self, type_url: &TypeUrl, name: &str) {
        if !self.of(type_url).there.contains_key(name) {
            return;
        }
        let silent = self.has(Fault::LateRemovalIsSilent);
        let (since, revision) = if silent { (self.revision, self.revision) } else { (self.next(), self.revision) };
        let kind = self.kinds.entry(type_url.clone()).or_default();
        kind.there.remove(name);
        kind.stale.remove(name);
        kind.gone.insert(name.into(), since);
        kind.pages.iter_mut().filter(|page| page.as_ref().is_some_and(|of| *of == name)).for_each(|page| *page = None);
        kind.revision = revision;
    }
}

fn entry(state: State<'_>, since: Revision) -> Entry<'_> {
    match state {
        State::Present(resource) => Entry::present(resource, since),
        State::Absent => Entry::absent(since),
        State::Unknown => Entry::unknown(since),
    }
}

impl Source for Map {
    fn epoch(&self) -> u64 {
        1
    }

    fn revision(&self) -> Revision {
        self.revision
    }

    fn type_revision(&self, type_url: &TypeUrl) -> Revision {
        self.of(type_url).revision
    }

    fn is_known(&self, _: &TypeUrl) -> bool {
        true
    }

    fn version(&self, type_url: &TypeUrl) -> Version {
        self.of(type_url).revision.0.to_string().into()
    }

    fn get(&self, type_url: &TypeUrl, name: &ResourceName) -> Entry<'_> {
        let kind = self.of(type_url);
        let stale = kind.stale.get(name).filter(|_| self.has(Fault::StaleGet));
        match (stale.or(kind.there.get(name)), kind.gone.get(name)) {
            (Some((since, resource)), _) => entry(State::Present(resource), *since),
            (None, gone) => entry(State::Absent, gone.copied().unwrap_or_default()),
        }
    }

    fn changes(&self, type_url: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        let kind = self.of(type_url);
        let mut all: Vec<_> = kind.there.values().filter(|(at, _)| *at > since).collect();
        all.sort_by_key(|(at, _)| if self.has(Fault::OldestFirst) { at.0 } else { u64::MAX - at.0 });
        let gone = kind.gone.values().filter(|_| self.has(Fault::ChangesOfTheGone)).map(|at| entry(State::Absent, *at));
        let gone: Vec<_> = gone.filter(|gone| gone.since > since).collect();
        gone.into_iter().chain(all.into_iter().map(|(at, resource)| entry(State::Present(resource), *at)))
    }

    fn removals(
        &self,
        type_url: &TypeUrl,
        since: Revision,
    ) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        let forgets = self.has(Fault::ForgottenRemovals);
        let mut all: Vec<_> = self.of(type_url).gone.iter().filter(|(_, at)| **at > since && !forgets).collect();
        all.sort_by_key(|(_, at)| if self.has(Fault::UnorderedRemovals) { at.0 } else { u64::MAX - at.0 });
        Some(all.into_iter().map(|(name, at)| (name, entry(State::Absent, *at))))
    }

    fn pages(&self, type_url: &TypeUrl) -> impl Iterator<Item = Page> {
        let kind = self.of(type_url);
        let renumbers = self.has(Fault::RenumberedPages);
        let slots = kind.pages.iter().filter(move |page| page.is_some() || !renumbers);
        slots.map(|name| Page::new(name.iter().map(|name| kind.there[name].1.clone()).collect()))
    }

    fn expiring(&self, type_url: &TypeUrl) -> impl Iterator<Item = Entry<'_>> {
        let forgets = self.has(Fault::ForgottenTtl);
        let all = self.of(type_url).there.values().filter(move |(_, resource)| resource.ttl().is_some() && !forgets);
        all.map(|(at, resource)| entry(State::Present(resource), *at))
    }

    fn members(&self, type_url: &TypeUrl, glob: &ResourceName) -> impl Iterator<Item = Entry<'_>> {
        let of = move |name: &ResourceName| name.glob().is_some_and(|of| of == *glob);
        let all = self.of(type_url).there.iter().filter(move |(name, _)| of(name));
        all.skip(usize::from(self.has(Fault::LackingMember)))
            .map(|(_, (at, resource))| entry(State::Present(resource), *at))
    }
}

/// Names and members of two collections, some with a TTL.
fn plan() -> Plan {
    let names = ["a", "b", "c", "xdstp:///T/x/1", "xdstp:///T/x/2", "xdstp:///T/y/1"].map(ResourceName::from).to_vec();
    let types = [type_url::CLUSTER, "T"].map(TypeUrl::from).to_vec();
    Plan { types, names, ttls: true, ..Plan::default() }
}

#[test]
fn a_source_that_keeps_the_contract_passes() {
    if let Err(failure) = check_source(&plan(), || Map::new(None)) {
        panic!("{failure}");
    }
    if let Err(failure) = check_source(&Plan::default(), || Cache::new(7).with_tombstones(2).with_page(2)) {
        panic!("{failure}");
    }
}

#[test]
fn every_fault_is_found_and_named() {
    let faults = [
        (Fault::OldestFirst, "`changes` has the latest first"),
        (Fault::EarlySince, "what changed between two calls has a revision that is later than what was seen"),
        (Fault::SharedSince, "what changed between two calls has a revision that is later than what was seen"),
        (Fault::ForgottenRemovals, "`removals` leaves out nothing that `get` tells"),
        (Fault::StaleGet, "`get` says what `changes` says"),
        (Fault::RenumberedPages, "a page keeps its number"),
        (Fault::LackingMember, "`members` leaves out nothing that `get` tells"),
        (Fault::StandingRevision, "each change has a revision of its own"),
        (Fault::UnorderedRemovals, "`removals` has the latest first"),
        (Fault::LateRemovalIsSilent, "what changed between two calls has a revision that is later than what was seen"),
        (Fault::ForgottenTtl, "`expiring` has the resources that have a TTL, and no others"),
        (Fault::ChangesOfTheGone, "what is in `changes` is present"),
    ];
    let mut wrong = Vec::new();
    for (fault, rule) in faults {
        match check_source(&plan(), || Map::new(Some(fault))) {
            Err(failure) if failure.what.contains(&format!("the contract of Source is broken: {rule}: ")) => {}
            Err(failure) => wrong.push(format!("{fault:?}: {}", failure.what)),
            Ok(()) => wrong.push(format!("{fault:?} is not found")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Two changes share a revision, and the probe did not look between them.
#[test]
fn a_revision_shared_by_two_changes_is_found_by_the_first_check() {
    let (of, mut map) = (TypeUrl::from(type_url::CLUSTER), Map::new(Some(Fault::SharedSince)));
    for name in ["a", "b"] {
        map.put(&of, Resource::new(name, name));
    }
    let broken = Probe::new(map).check(&of).expect_err("both are of revision 1");
    assert_eq!(broken.rule, "each change has a revision of its own");
    assert_eq!(
        broken.to_string(),
        "the contract of Source is broken: each change has a revision of its own: b since Revision(1), asked for after Revision(0)"
    );
}

/// To a client, an alias stands for the last resource that it received with it.
#[test]
fn an_alias_of_two_resources_is_found() {
    let (of, mut map, mut cache) = (TypeUrl::from(type_url::CLUSTER), Map::new(None), Cache::new(1));
    for name in ["a", "b"] {
        let resource = Resource::new(name, name).with_aliases(["x"]);
        map.put(&of, resource.clone());
        cache.insert(&of, resource);
    }
    let broken = Probe::new(map).check(&of).expect_err("the map looks up no alias");
    assert_eq!(broken.rule, "a resource has only aliases that stand for it");
    assert_eq!(broken.what, "a has x, which stands for None");
    assert_eq!(Probe::new(cache).check(&of), Ok(()));
}

/// A probe panics at the call.
#[test]
#[should_panic = "`changes` has the latest first"]
fn a_probe_panics_at_the_call_that_breaks_the_contract() {
    let (of, mut map) = (TypeUrl::from(type_url::CLUSTER), Map::new(Some(Fault::OldestFirst)));
    for name in ["a", "b"] {
        map.put(&of, Resource::new(name, name));
    }
    drop(Probe::new(map).changes(&of, Revision(1)));
}

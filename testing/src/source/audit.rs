//! The contract of a source, rule by rule: compares the current state of a type with earlier observations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use xds_machine::server::{Entry, Resource, Revision, Source, State};
use xds_machine::{ResourceName, TypeUrl};

/// A violated rule of the contract of [`Source`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broken {
    /// The rule: a sentence without names and revisions.
    pub rule: &'static str,
    /// The observed behaviour.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the contract of Source is broken: {}: {}", self.rule, self.what)
    }
}

impl std::error::Error for Broken {}

pub(super) fn ensure(holds: bool, rule: &'static str, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { rule, what: what() }) }
}

/// The state of a name that a source returned.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Said {
    Present(Resource),
    Absent,
    Unknown,
}

impl Said {
    fn of(state: &State<'_>) -> Self {
        match state {
            State::Present(resource) => Self::Present((*resource).clone()),
            State::Absent => Self::Absent,
            State::Unknown => Self::Unknown,
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present(resource) => write!(f, "{} of version {}", resource.name(), resource.version()),
            Self::Absent => f.write_str("absent"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The state of a type when it was last examined.
#[derive(Clone, Debug, Default)]
pub(super) struct OfType {
    /// Whether the type was examined before.
    seen: bool,
    revision: Revision,
    of_type: Revision,
    /// All names that were present at some time, or looked up.
    names: BTreeMap<ResourceName, (Said, Revision)>,
    /// The names that were present.
    had: BTreeSet<ResourceName>,
    /// The page of each resource.
    pages: BTreeMap<ResourceName, usize>,
}

fn name_of<'a>(entry: &Entry<'a>) -> Option<&'a ResourceName> {
    match entry.state {
        State::Present(resource) => Some(resource.name()),
        State::Absent | State::Unknown => None,
    }
}

impl OfType {
    /// Adds a name to be examined.
    pub(super) fn notice(&mut self, name: &ResourceName) {
        self.names.entry(name.clone()).or_insert((Said::Absent, Revision(u64::MAX)));
    }

    /// Examines the source's complete state of a type, and compares it with the previous state.
    pub(super) fn audit<S: Source>(&mut self, source: &S, type_url: &TypeUrl) -> Result<(), Broken> {
        let (revision, of_type) = (source.revision(), source.type_revision(type_url));
        let (before, seen) = (self.revision, self.seen);
        ensure(revision >= before, "revisions only grow while `epoch` stays", || {
            format!("`revision` is {revision:?}, and was {before:?}")
        })?;
        ensure(of_type >= self.of_type, "revisions only grow while `epoch` stays", || {
            format!("`type_revision` is {of_type:?}, and was {:?}", self.of_type)
        })?;
        ensure(of_type <= revision, "`type_revision` is at most `revision`", || {
            format!("{of_type:?} of {revision:?}")
        })?;
        let there = self.check_changes(source, type_url, Revision(0))?;
        if seen {
            self.check_changes(source, type_url, before)?;
        }
        self.check_pages(source, type_url, &there)?;
        check_ttls(source, type_url, &there)?;
        for name in there.keys() {
            self.notice(name);
        }
        let names: Vec<ResourceName> = self.names.keys().cloned().collect();
        let mut revisions = BTreeMap::new();
        for name in &names {
            let entry = source.get(type_url, name);
            self.check_name(source, type_url, name, &entry, of_type)?;
            let own = match entry.state {
                State::Present(resource) => resource.name() == name,
                State::Absent => self.had.contains(name) && source.former_targets(type_url, name).is_none(),
                State::Unknown => false,
            };
            // A forgotten removal has the latest revision that it can have had, possibly shared with others.
            let remembered = entry.state != State::Absent
                || source.removals(type_url, Revision(0)).into_iter().flatten().any(|(gone, _)| gone == name);
            if own && remembered {
                let other = revisions.insert(entry.since, name.clone());
                ensure(other.is_none(), "each change has a revision of its own", || {
                    format!("{name} and {} have {:?}", other.as_ref().expect("one"), entry.since)
                })?;
            }
            if own && entry.state != State::Absent {
                self.had.insert(name.clone());
            }
            self.names.insert(name.clone(), (Said::of(&entry.state), entry.since));
        }
        self.check_removals(source, type_url, Revision(0))?;
        if seen {
            self.check_removals(source, type_url, before)?;
        }
        for glob in names.iter().filter_map(ResourceName::glob).collect::<BTreeSet<_>>() {
            self.check_members(source, type_url, &glob)?;
        }
        check_errors(source, type_url)?;
        ensure(of_type == Revision(0) || !source.version(type_url).is_empty(), "`version` is not empty", || {
            type_url.to_string()
        })?;
        (self.seen, self.revision, self.of_type) = (true, revision, of_type);
        Ok(())
    }

    /// Checks how a name changed since the last examination.
    fn check_name<S: Source>(
        &self,
        source: &S,
        type_url: &TypeUrl,
        name: &ResourceName,
        entry: &Entry<'_>,
        of_type: Revision,
    ) -> Result<(), Broken> {
        let (now, since) = (Said::of(&entry.state), entry.since);
        ensure(since <= of_type || entry.state == State::Absent, "`since` is at most `type_revision`", || {
            format!("{name} is {now} since {since:?}, the type {of_type:?}")
        })?;
        ensure(since <= source.revision(), "`since` is at most `revision`", || {
            format!("{name} is {now} since {since:?}")
        })?;
        if let State::Present(resource) = entry.state {
            let stands = resource.name() == name || resource.aliases().contains(name);
            ensure(stands, "`get` gives the resource of the name, or one that has it as an alias", || {
                format!("{name} is {now}")
            })?;
            for alias in resource.aliases() {
                let of = source.get(type_url, alias).resource().map(Resource::name);
                ensure(of == Some(resource.name()), "a resource has only aliases that stand for it", || {
                    format!("{} has {alias}, which stands for {of:?}", resource.name())
                })?;
            }
            ensure(source.error(type_url, name).is_none(), "no resource that is present has an `error`", || {
                name.to_string()
            })?;
        }
        let Some((was, earlier)) = self.names.get(name).filter(|(_, since)| *since != Revision(u64::MAX)) else {
            // The name was not looked up before; but a present resource was visible.
            let new = matches!(now, Said::Present(_)) && self.seen;
            return ensure(!new || since > self.revision, CHANGED, || {
                format!("{name} is {now} since {since:?}, and it was not there at {:?}", self.revision)
            });
        };
        if *was == now {
            return ensure(since >= *earlier, "revisions only grow while `epoch` stays", || {
                format!("{name} is {now} since {since:?}, and was so since {earlier:?}")
            });
        }
        ensure(since > self.revision, CHANGED, || {
            format!("{name} is {now} since {since:?}, and at {:?} it was {was}", self.revision)
        })
    }

    /// Checks `changes` after a revision: in order, and in agreement with `get`. Returns the present resources.
    pub(super) fn check_changes<S: Source>(
        &self,
        source: &S,
        type_url: &TypeUrl,
        after: Revision,
    ) -> Result<BTreeMap<ResourceName, Revision>, Broken> {
        let (mut last, mut there) = (None::<Revision>, BTreeMap::new());
        for entry in source.changes(type_url, after) {
            let Some(name) = name_of(&entry) else {
                return Err(Broken { rule: "what is in `changes` is present", what: format!("{entry:?}") });
            };
            let at = || format!("{name} since {:?}, asked for after {after:?}", entry.since);
            ensure(entry.since > after, "what is in `changes` changed after the revision asked for", at)?;
            if let Some(last) = last {
                ensure(entry.since <= last, "`changes` has the latest first", || format!("{} follows {last:?}", at()))?;
                ensure(entry.since < last, "each change has a revision of its own", at)?;
            }
            last = Some(entry.since);
            let told = source.get(type_url, name);
            ensure((told.state, told.since) == (entry.state, entry.since), "`get` says what `changes` says", || {
                format!("{name}: {} since {:?}, and {}", Said::of(&told.state), told.since, at())
            })?;
            there.insert(name.clone(), entry.since);
        }
        let known = self.names.keys().filter(|name| !there.contains_key(*name));
        for name in known {
            let told = source.get(type_url, name);
            let left_out = name_of(&told) == Some(name) && told.since > after;
            ensure(!left_out, "`changes` leaves out nothing that `get` tells", || {
                format!("{name} since {:?}, asked for after {after:?}", told.since)
            })?;
        }
        Ok(there)
    }

    /// Checks `removals` after a revision likewise.
    pub(super) fn check_removals<S: Source>(
        &self,
        source: &S,
        type_url: &TypeUrl,
        after: Revision,
    ) -> Result<(), Broken> {
        let Some(removals) = source.removals(type_url, after) else { return Ok(()) };
        let (mut last, mut gone) = (None::<Revision>, BTreeSet::new());
        for (name, entry) in removals {
            let at = || format!("{name} since {:?}, asked for after {after:?}", entry.since);
            ensure(entry.state == State::Absent, "what is in `removals` is absent", at)?;
            ensure(entry.since > after, "what is in `removals` went after the revision asked for", at)?;
            let order = last.is_none_or(|last| entry.since <= last);
            ensure(order, "`removals` has the latest first", || format!("{} follows {last:?}", at()))?;
            last = Some(entry.since);
            let told = source.get(type_url, name);
            ensure((told.state, told.since) == (entry.state, entry.since), "`get` says what `removals` says", || {
                format!("{name}: {} since {:?}, and {}", Said::of(&told.state), told.since, at())
            })?;
            gone.insert(name);
        }
        for name in self.had.iter().filter(|name| !gone.contains(name)) {
            let told = source.get(type_url, name);
            let left_out = told.state == State::Absent && told.since > after;
            ensure(!left_out, "`removals` leaves out nothing that `get` tells", || {
                format!("{name} since {:?}, asked for after {after:?}", told.since)
            })?;
        }
        Ok(())
    }

    /// Checks the pages: they contain the present resources, and an unchanged resource stays in its page.
    fn check_pages<S: Source>(
        &mut self,
        source: &S,
        type_url: &TypeUrl,
        there: &BTreeMap<ResourceName, Revision>,
    ) -> Result<(), Broken> {
        let mut pages = BTreeMap::new();
        for (number, page) in source.pages(type_url).enumerate() {
            for resource in page.resources() {
                let name = resource.name();
                let same = source.get(type_url, name).state == State::Present(resource);
                ensure(same, "`get` says what `pages` say", || format!("{name} of version {}", resource.version()))?;
                let once = pages.insert(name.clone(), number).is_none();
                ensure(once, "a resource is in one page", || name.to_string())?;
            }
        }
        if let Some(name) = there.keys().find(|name| !pages.contains_key(*name)) {
            return Err(Broken { rule: "`pages` leave out nothing that is present", what: name.to_string() });
        }
        for (name, number) in &pages {
            let stayed = self.names.get(name).is_some_and(|(_, since)| there.get(name) == Some(since));
            let before = self.pages.get(name).filter(|_| stayed);
            ensure(before.is_none_or(|before| before == number), "a page keeps its number", || {
                format!("{name} was in page {}, and is in page {number}", before.copied().unwrap_or_default())
            })?;
        }
        self.pages = pages;
        Ok(())
    }

    /// Checks the members of a collection: the present resources of its directory, and possibly some of unknown state.
    pub(super) fn check_members<S: Source>(
        &self,
        source: &S,
        type_url: &TypeUrl,
        glob: &ResourceName,
    ) -> Result<(), Broken> {
        let mut members = BTreeSet::new();
        for entry in source.members(type_url, glob) {
            let Some(name) = name_of(&entry) else {
                let unknown = entry.state == State::Unknown;
                ensure(unknown, "what is in `members` is not absent", || glob.to_string())?;
                continue;
            };
            let told = source.get(type_url, name);
            ensure(told == entry, "`get` says what `members` say", || {
                format!("{name}: {} since {:?}, and since {:?}", Said::of(&told.state), told.since, entry.since)
            })?;
            ensure(is_in(name, glob.as_str()), "`members` has no others", || format!("{name} in {glob}"))?;
            members.insert(name);
        }
        for entry in source.changes(type_url, Revision(0)) {
            let Some(name) = name_of(&entry).filter(|name| is_in(name, glob.as_str())) else { continue };
            ensure(members.contains(name), "`members` leaves out nothing that `get` tells", || {
                format!("{name} is in {glob}")
            })?;
        }
        Ok(())
    }
}

const CHANGED: &str = "what changed between two calls has a revision that is later than what was seen";

fn is_in(name: &ResourceName, glob: &str) -> bool {
    name.glob().is_some_and(|of| Some(of) == ResourceName::from(glob).glob().or(Some(glob.into())))
}

fn check_ttls<S: Source>(
    source: &S,
    type_url: &TypeUrl,
    there: &BTreeMap<ResourceName, Revision>,
) -> Result<(), Broken> {
    let told: BTreeSet<&ResourceName> = source.expiring(type_url).filter_map(|entry| name_of(&entry)).collect();
    for name in there.keys() {
        if let State::Present(resource) = source.get(type_url, name).state {
            let has = resource.ttl().is_some();
            ensure(has == told.contains(name), "`expiring` has the resources that have a TTL, and no others", || {
                format!("{name} has {:?}", resource.ttl())
            })?;
        }
    }
    Ok(())
}

fn check_errors<S: Source>(source: &S, type_url: &TypeUrl) -> Result<(), Broken> {
    let mut last = None::<Revision>;
    for (name, entry) in source.errors(type_url, Revision(0)) {
        let at = || format!("{name} since {:?}", entry.since);
        ensure(last.is_none_or(|last| entry.since <= last), "`errors` has the latest first", at)?;
        last = Some(entry.since);
        let present = matches!(entry.state, State::Present(_));
        ensure(!present, "no resource that is present has an `error`", at)?;
        ensure(source.error(type_url, name).is_some(), "`error` says what `errors` says", at)?;
    }
    Ok(())
}

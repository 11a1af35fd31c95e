//! The resources that a client may have though the view does not say so: those that it claims as a stream begins
//! (`initial_resource_versions`), and those that an alias may have brought.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use hashbrown::HashTable;

use super::of_type::OfType;
use super::page::Page;
use super::resource::Resource;
use super::source::{Source, State};
use super::view::View;
use super::wanted::Wanted;
use crate::ensure::ensure;
use crate::message::delta::Versions;
use crate::name::{ResourceName, Version};
use crate::revision::Revision;
use crate::xdstp::Parts;

/// Claimed versions. They are compared with the store when it is first read; from then on the view describes the
/// client. The remaining claims are names whose removal may have to be announced.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Claims {
    /// Claims not compared yet, as received.
    versions: Versions,
    /// The same claims, once one of them is doubted. A doubted claim has an empty version: its name was subscribed
    /// again before the first response, and the client may have dropped the resource in between
    /// ([design rule 5](crate::manual::rules#rule-5)).
    doubted: BTreeMap<ResourceName, Version>,
    /// Whether the wildcard was subscribed again.
    all_doubted: bool,
    /// Claimed names to announce as removed if they do not exist, or no name subscribes to them.
    gone: BTreeSet<ResourceName>,
    /// The same for names that were sent, and that the client may have by an alias alone.
    left: BTreeSet<ResourceName>,
    /// Claimed names that no subscription covers: once one does, their removal may have to be announced.
    unwanted: BTreeSet<ResourceName>,
    /// Names that were subscribed while a response was in flight: if such a name is an alias, the client may have a
    /// resource of that response by it.
    late: BTreeSet<ResourceName>,
    /// Whether a name was unsubscribed while others were pending: the client may have a resource of the former by one of
    /// the latter.
    parted: bool,
}

impl Claims {
    pub(super) fn new(versions: Versions) -> Self {
        Self { versions, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_pending() && self.unwanted.is_empty() && !self.has_late() && !self.all_doubted
    }

    /// Returns whether something has to be sent because of the claims.
    pub(super) fn is_pending(&self) -> bool {
        self.is_unsettled() || !self.gone.is_empty() || !self.left.is_empty()
    }

    /// Returns whether the claims were not compared yet.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.versions.is_empty() || !self.doubted.is_empty()
    }

    /// Returns the bytes of claimed names and versions.
    pub(super) fn bytes(&self) -> usize {
        let names = self.gone.iter().chain(&self.unwanted).map(|name| name.as_str().len());
        let doubted = self.doubted.iter().map(|(name, version)| name.as_str().len() + version.as_bytes().len());
        self.versions.sizes().text + doubted.sum::<usize>() + names.sum::<usize>()
    }

    /// Returns the number of claimed names.
    pub(super) fn count(&self) -> usize {
        self.versions.len() + self.doubted.len() + self.gone.len() + self.unwanted.len()
    }

    /// Handles a name that is subscribed, for the first time or again: the client may not have the version that it
    /// claims, and claims that the name newly covers may have to be announced as removed.
    pub(super) fn unclaim(&mut self, name: &ResourceName) {
        if name.is_wildcard() {
            self.all_doubted = true;
            self.gone.append(&mut self.unwanted);
        } else if let Some(glob) = Parts::of(name.as_str()).filter(|_| name.is_glob()) {
            let members = self.doubted().iter_mut().filter(|(name, _)| glob.has(name.as_str()));
            members.for_each(|(_, version)| *version = Version::default());
            let wanted: Vec<ResourceName> =
                self.unwanted.iter().filter(|name| glob.has(name.as_str())).cloned().collect();
            wanted.iter().for_each(|name| _ = self.unwanted.remove(name));
            self.gone.extend(wanted);
        } else {
            if let Some(version) = self.doubted().get_mut(name) {
                *version = Version::default();
            }
            self.unwanted.remove(name); // the name is answered by itself
            self.late.remove(name);
        }
    }

    /// Returns the claims that are not compared yet as a map, to doubt some.
    fn doubted(&mut self) -> &mut BTreeMap<ResourceName, Version> {
        if !self.versions.is_empty() {
            self.doubted = (&core::mem::take(&mut self.versions)).into();
        }
        &mut self.doubted
    }

    /// Compares the claims with the store. A name whose current version the client has needs no answer. Returns the
    /// names of the resources that the client lacks, if these answer a wildcard. `limited`: the answer may not fit in
    /// one response. `limit` bounds the resources that the client may have by aliases with unknown targets.
    pub(super) fn settle<S: Source>(
        &mut self,
        of: OfType<'_, S>,
        wanted: &Wanted,
        view: &mut View,
        names: &mut BTreeSet<ResourceName>,
        limited: bool,
        limit: usize,
    ) -> Option<Vec<ResourceName>> {
        let not_found = Resource::not_found_version();
        let (versions, doubted) = (core::mem::take(&mut self.versions), core::mem::take(&mut self.doubted));
        let doubted = doubted.iter().map(|(name, version)| (name.as_str(), version.as_str()));
        let aliases = wanted.names().iter().filter(|_| wanted.aliases());
        let former_of = |alias| of.former_targets(alias).iter().map(move |name| (name, alias));
        let former: BTreeSet<(&ResourceName, &ResourceName)> = aliases.flat_map(former_of).collect();
        let (mut unwanted, mut unknown) = (Vec::new(), Vec::new());
        let mut current = Vec::with_capacity(versions.len());
        of.get_each(versions.iter().chain(doubted), |name, version, entry| {
            let mut version = version;
            if !former.is_empty() {
                let first = (&ResourceName::from(name), &ResourceName::from(""));
                for (name, alias) in former.range(first..).take_while(|(former, _)| **former == *name) {
                    // The client has the resource by an alias that has another target now, or dropped both.
                    version = "";
                    view.change_aliases(|aliases| aliases.insert(alias, name));
                }
            }
            match entry.state {
                State::Present(resource) if *resource.name() == *name => {
                    if !version.is_empty() && version.as_bytes() == resource.version().as_bytes() {
                        names.remove(name);
                        current.push(resource);
                    }
                    if wanted.wants(of, resource) {
                        view.note_aliases(of, wanted, resource);
                    } else {
                        unwanted.push(resource.name().clone());
                    }
                }
                State::Absent if not_found == *version => _ = names.remove(name),
                State::Absent if wanted.covers(name) => _ = self.gone.insert(name.into()),
                // An unknown resource may turn out to be absent, too.
                State::Unknown if wanted.names().contains(name) => {}
                State::Unknown if wanted.covers(name) => unknown.push(name.into()),
                State::Absent | State::Unknown => unwanted.push(name.into()),
                State::Present(_) => {}
            }
        });
        if !unknown.is_empty() {
            self.bind_to_unknown(of, wanted, view, &unknown, limit); // the wildcard may be unsubscribed
        }
        if !unwanted.is_empty() {
            self.bind_to_unknown(of, wanted, view, &unwanted, limit);
            self.bind_to_forgotten(of, wanted, view, &unwanted);
            self.unwanted.extend(unwanted);
        }
        if self.all_doubted { None } else { note_current(of, wanted, view, current, limited) }
    }

    /// Notes a name that is subscribed while a response is in flight.
    pub(super) fn add_late(&mut self, name: ResourceName) {
        self.late.insert(name);
    }

    /// Notes that a name was unsubscribed while others are pending.
    pub(super) fn note_parted(&mut self) {
        self.parted = true;
    }

    /// Returns whether names were subscribed while a response was in flight, or others unsubscribed meanwhile.
    pub(super) fn has_late(&self) -> bool {
        !self.late.is_empty() || self.parted
    }

    /// Notes the former targets of the late names, and of those that were pending when another was unsubscribed: the
    /// client may have those resources by these names.
    #[inline(never)]
    pub(super) fn settle_late<S: Source>(
        &mut self,
        of: OfType<'_, S>,
        view: &mut View,
        pending: &BTreeSet<ResourceName>,
    ) {
        let late = core::mem::take(&mut self.late);
        let parted = core::mem::take(&mut self.parted);
        let beside = pending.iter().filter(|name| parted && !name.is_glob());
        late.iter().chain(beside).for_each(|alias| view.note_former_targets(of, alias, |_| true));
    }

    /// Notes that the client may have what nothing else covers by an alias that is answered, and whose target is unknown
    /// in its turn.
    #[inline(never)]
    pub(super) fn settle_answered<S: Source>(
        &mut self,
        of: OfType<'_, S>,
        wanted: &Wanted,
        view: &mut View,
        answered: &BTreeSet<ResourceName>,
        limit: usize,
    ) {
        if !self.unwanted.is_empty() && answered.iter().any(|name| of.get(name).state == State::Unknown) {
            let unwanted: Vec<ResourceName> = self.unwanted.iter().cloned().collect();
            self.bind_to_unknown(of, wanted, view, &unwanted, limit);
        }
    }

    /// Notes that the client may have these claimed resources by the aliases whose targets are unknown, because nothing
    /// else covers them. Beyond `limit` pairs the first of these aliases stands for all.
    #[inline(never)]
    fn bind_to_unknown<S: Source>(
        &mut self,
        of: OfType<'_, S>,
        wanted: &Wanted,
        view: &mut View,
        names: &[ResourceName],
        limit: usize,
    ) {
        let unknown = wanted.unknown(of);
        let most = if unknown.len().saturating_mul(names.len()) > limit { 1 } else { unknown.len() };
        if unknown.is_empty() {
            return;
        }
        for alias in unknown.into_iter().take(most) {
            view.change_aliases(|aliases| names.iter().for_each(|name| aliases.insert(alias, name)));
        }
        let is_gone = |name: &&ResourceName| of.get(name).state == State::Absent;
        self.gone.extend(names.iter().filter(is_gone).cloned());
    }

    /// Notes that the client may have these claimed resources by an alias that the source has forgotten, because nothing
    /// else covers them: otherwise such a claim is ignored (S-DELTA-09). Any subscribed name stands for that alias.
    #[inline(never)]
    fn bind_to_forgotten<S: Source>(
        &mut self,
        of: OfType<'_, S>,
        wanted: &Wanted,
        view: &mut View,
        names: &[ResourceName],
    ) {
        let alias = wanted.names().iter().find(|name| wanted.aliases() && !name.is_glob());
        let Some(alias) = alias.filter(|_| of.removals(Revision::default()).is_none()) else { return };
        view.change_aliases(|aliases| names.iter().for_each(|name| aliases.insert(alias, name)));
        self.gone.extend(names.iter().cloned());
    }

    /// Returns the names to announce as removed if they do not exist, or no name subscribes to them.
    pub(super) fn gone(&self) -> impl Iterator<Item = &ResourceName> {
        self.gone.iter().chain(&self.left)
    }

    /// Returns whether the removal of a name may have to be announced.
    pub(super) fn has_gone(&self, name: &ResourceName) -> bool {
        self.gone.contains(name) || self.left.contains(name)
    }

    /// Returns whether a name was sent, and was no claim: the client can have it by an alias alone.
    pub(super) fn has_left(&self, name: &ResourceName) -> bool {
        self.left.contains(name) && !self.gone.contains(name)
    }

    /// Adds names that were sent, and that the client may have by an alias alone.
    pub(super) fn add_left(&mut self, names: impl Iterator<Item = ResourceName>) {
        self.left.extend(names);
    }

    /// Keeps only the names to announce for which there was no room.
    pub(super) fn keep_gone(&mut self, rest: &BTreeSet<ResourceName>) {
        self.gone.retain(|name| rest.contains(name));
        self.left.retain(|name| rest.contains(name));
    }

    /// Checks the invariants.
    pub(super) fn check(&self, wanted: &Wanted) -> Result<(), String> {
        let astray = self.late.iter().find(|name| !wanted.names().contains(*name));
        ensure!(astray.is_none(), "{astray:?} was subscribed while a response was in flight, and is not wanted");
        Ok(())
    }
}

/// Notes the resources of which the client has the current version. Returns the names of the others, if these answer a
/// wildcard. Either the resources that the client has or those that it lacks are noted by name, whichever are fewer.
fn note_current<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &mut View,
    current: Vec<&Resource>,
    limited: bool,
) -> Option<Vec<ResourceName>> {
    let pages = || of.pages().take_while(|_| wanted.wildcard());
    let lacking = pages().map(|page| page.resources().len()).sum::<usize>().saturating_sub(current.len());
    // Names that wait for a later response would be answered even if they are removed until then.
    let by_name = !wanted.globs().is_empty() || lacking > current.len() || (limited && lacking > 0);
    // The answer to a collection and heartbeats need the notes.
    if by_name || of.expiring().next().is_some() {
        for resource in current.iter().filter(|resource| by_name || resource.ttl().is_some()) {
            view.note_sent_ahead(resource.name(), of.now(), usize::MAX);
        }
    }
    if by_name || !wanted.wildcard() {
        return None;
    }
    if lacking == 0 {
        return Some(Vec::new());
    }
    // The pages of most sources share the names with their entries: an address is compared in fewer steps than a name.
    let addresses = Addresses::of(current.iter().map(|resource| resource.name()));
    let lacks = |page: &Page| -> Vec<ResourceName> {
        let names = page.resources().iter().map(Resource::name);
        names.filter(|name| !addresses.have(name)).cloned().collect()
    };
    let mut names: Vec<ResourceName> = pages().flat_map(|page| lacks(&page)).collect();
    if names.len() > lacking {
        let current: BTreeSet<&ResourceName> = current.into_iter().map(Resource::name).collect();
        names.retain(|name| !current.contains(name));
    }
    Some(names)
}

/// The places of names in memory.
struct Addresses(HashTable<usize>);

impl Addresses {
    fn of<'a>(names: impl ExactSizeIterator<Item = &'a ResourceName>) -> Self {
        let mut table = HashTable::with_capacity(names.len());
        names.map(address).for_each(|at| _ = table.insert_unique(scattered(at), at, |&at| scattered(at)));
        Self(table)
    }

    fn have(&self, name: &ResourceName) -> bool {
        let at = address(name);
        self.0.find(scattered(at), |&other| other == at).is_some()
    }
}

fn address(name: &ResourceName) -> usize {
    name.as_str().as_ptr() as usize
}

/// Spreads addresses, whose low bits are alike, over all bits (Fibonacci hashing).
fn scattered(address: usize) -> u64 {
    (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

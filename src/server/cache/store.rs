//! The resources of one type: a slot for each name, found by hash, linked in the order of the last change.

mod aliases;
mod claims;
mod invariants;
mod list;
mod published;
mod slot;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::array;
use core::hash::{Hash, Hasher};
use core::iter;
use core::ops::Bound;

use hashbrown::HashTable;
use twox_hash::XxHash3_64;

use self::aliases::Aliases;
use self::list::List;
use self::published::Published;
use self::slot::{History, NONE, Slot, What};
use crate::error::{Code, Status};
use crate::globs::Collections;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl, Version};
use crate::revision::Revision;
use crate::server::hash;
use crate::server::page::Page;
use crate::server::resource::Resource;
use crate::server::source::Entry;
use crate::server::variant::Variant;

/// Default number of slots in a page.
const PAGE: usize = 128;

/// Number of changes whose previous state is remembered.
const HISTORIES: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct Store {
    seed: u64,
    known: bool,
    /// Whether changes leave an unknown type unknown: it is being loaded, and other names may exist.
    loads: bool,
    /// The revision of the last change.
    revision: Revision,
    /// Removals up to this revision may be forgotten.
    horizon: Revision,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots by name.
    index: HashTable<u32>,
    present: List,
    absent: List,
    /// Slots of resources with a TTL.
    expiring: BTreeSet<u32>,
    /// Errors of absent and unknown slots, by the revision of their change.
    errors: BTreeMap<Revision, (u32, Status)>,
    aliases: Aliases,
    /// Slots of present and unknown names, by collection.
    collections: Collections<u32>,
    /// Changes whose history is kept, the oldest first.
    histories: VecDeque<(u32, Revision)>,
    /// The sum of the hashes of all (name, version) pairs, and the version made of this sum.
    sum: u128,
    version: Version,
    published: Published,
}

impl Store {
    pub(super) fn new(known: bool) -> Self {
        Self {
            seed: 0,
            known,
            loads: false,
            revision: Revision::default(),
            horizon: Revision::default(),
            slots: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            present: List::EMPTY,
            absent: List::EMPTY,
            expiring: BTreeSet::new(),
            errors: BTreeMap::new(),
            aliases: Aliases::default(),
            collections: Collections::default(),
            histories: VecDeque::new(),
            sum: 0,
            version: hash::version(0),
            published: Published::new(PAGE),
        }
    }

    /// Returns the store of a type that is being loaded.
    pub(super) fn loading() -> Self {
        Self { loads: true, ..Self::new(false) }
    }

    pub(super) fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(super) fn with_page(self, page: usize) -> Self {
        Self { published: Published::new(page), ..self }
    }

    // Changes.

    pub(super) fn insert(&mut self, resource: Resource, now: Revision) -> bool {
        let at = self.find(resource.name().as_str());
        if at.is_some_and(|at| self.as_put(at) == Some(&resource)) {
            return false;
        }
        let name = resource.name().clone();
        let others = self.claim(&name, resource.aliases().to_vec(), now);
        self.set_present(at, resource, now);
        self.put_again(others);
        true
    }

    pub(super) fn remove(&mut self, name: &str, now: Revision, tombstones: usize) -> bool {
        let Some(at) = self.find(name) else { return false };
        let name = match &self.slots[at].what {
            What::Present(resource) => resource.name().clone(),
            What::Unknown(name) => name.clone(),
            What::Absent(_) | What::Alias(_) | What::Unaliased(_) | What::Free => return false,
        };
        self.set(Some(at), What::Absent(name.clone()), now);
        let others = self.claim(&name, Vec::new(), now);
        self.put_again(others);
        self.forget(tombstones);
        true
    }

    pub(super) fn set_error(&mut self, name: ResourceName, status: Status, now: Revision, tombstones: usize) -> bool {
        if self.error(name.as_str()) == Some(&status) {
            return false;
        }
        let at = self.find(name.as_str());
        let absent = status.is(Code::NotFound);
        let what = if absent { What::Absent(name.clone()) } else { What::Unknown(name.clone()) };
        self.set(at, what, now);
        if let Some(at) = self.find(name.as_str()) {
            self.errors.insert(now, (at as u32, status));
        }
        if absent {
            let others = self.claim(&name, Vec::new(), now);
            self.put_again(others);
        }
        self.forget(tombstones);
        true
    }

    pub(super) fn set_unknown(&mut self, name: ResourceName, now: Revision) -> bool {
        let at = self.find(name.as_str());
        let failed = self.error(name.as_str()).is_some();
        if !failed && at.is_some_and(|at| matches!(self.slots[at].what, What::Unknown(_))) {
            return false;
        }
        self.set(at, What::Unknown(name), now);
        true
    }

    pub(super) fn set_known(&mut self, now: Revision) -> bool {
        let changed = !self.known;
        if changed {
            self.known = true;
            self.revision = now;
        }
        changed
    }

    fn set(&mut self, at: Option<usize>, what: What, now: Revision) {
        self.known |= !self.loads;
        self.revision = now;
        let at = at.unwrap_or_else(|| self.take_slot(&what));
        self.unlink(at);
        self.take_error(at);
        let there = self.slots.len() - self.free.len() - self.absent.len;
        let slot = &mut self.slots[at];
        let old = core::mem::replace(&mut slot.what, what);
        if let (What::Present(resource), false) = (&old, self.aliases.whole.is_empty()) {
            self.aliases.whole.remove(resource.name());
        }
        if let What::Present(resource) = &old {
            self.sum = self.sum.wrapping_sub(hash::pair(resource.name(), resource.version()));
        }
        self.version = hash::version(self.sum);
        slot.present_since = match (&slot.what, slot.present_since) {
            (What::Present(_), Revision(0)) => now,
            (What::Present(_) | What::Unknown(_), since) => since,
            _ => Revision::default(),
        };
        // A new slot was always absent.
        let new = matches!(old, What::Free);
        let history = History { last: (!new).then_some(old), last_since: slot.since };
        slot.history = Some(Box::new(history));
        slot.since = now;
        if slot.resource().is_some_and(|resource| resource.ttl().is_some()) {
            self.expiring.insert(at as u32);
        } else if !self.expiring.is_empty() {
            self.expiring.remove(&(at as u32));
        }
        if let Some(name) = slot.what.name() {
            match slot.what {
                What::Present(_) | What::Unknown(_) => self.collections.insert(name, at as u32),
                _ => self.collections.remove(name, at as u32),
            }
        }
        slot.left_of = if slot.what.is_absent() { there as u32 } else { 0 };
        let list = match slot.what {
            What::Present(_) => Some(&mut self.present),
            What::Absent(_) | What::Unaliased(_) => Some(&mut self.absent),
            What::Unknown(_) | What::Alias(_) | What::Free => None,
        };
        if let Some(list) = list {
            list.push(&mut self.slots, at as u32);
        }
        self.histories.push_back((at as u32, now));
        if self.histories.len() > HISTORIES {
            if let Some((oldest, then)) = self.histories.pop_front() {
                let slot = &mut self.slots[oldest as usize];
                if slot.since == then {
                    slot.history = None;
                }
            }
        }
        self.published.mark(at);
    }

    fn take_error(&mut self, at: usize) {
        let since = self.slots[at].since;
        if self.errors.get(&since).is_some_and(|(of, _)| *of as usize == at) {
            self.errors.remove(&since);
        }
    }

    fn take_slot(&mut self, what: &What) -> usize {
        let (since, present_since) = (self.horizon, Revision::default());
        let empty =
            Slot { what: What::Free, since, present_since, history: None, left_of: 0, older: NONE, newer: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = empty;
                at as usize
            }
            None => {
                self.slots.push(empty);
                self.slots.len() - 1
            }
        };
        if let Some(name) = what.name() {
            let hash = hash_of(self.seed, name.as_str());
            let (slots, seed) = (&self.slots, self.seed);
            let rehash = |&at: &u32| slots[at as usize].what.name().map_or(0, |name| hash_of(seed, name.as_str()));
            self.index.insert_unique(hash, at as u32, rehash);
        }
        at
    }

    fn unlink(&mut self, at: usize) {
        match self.slots[at].what {
            What::Present(_) => self.present.unlink(&mut self.slots, at as u32),
            What::Absent(_) | What::Unaliased(_) => self.absent.unlink(&mut self.slots, at as u32),
            What::Unknown(_) | What::Alias(_) | What::Free => {}
        }
    }

    /// Forgets a removal once more than `tombstones` of the names that became absent since it had also appeared since:
    /// no stream that was served up to it needs more, however many names become absent at once. Since a removal at most
    /// as many other names became absent as were there before it, and those that appeared since.
    fn forget(&mut self, tombstones: usize) {
        let is_over = |slot: &Slot, kept: usize| kept > tombstones.saturating_add(slot.left_of as usize);
        while self.slots.get(self.absent.oldest as usize).is_some_and(|slot| is_over(slot, self.absent.len)) {
            let at = self.absent.oldest;
            self.absent.unlink(&mut self.slots, at);
            self.take_error(at as usize);
            let slot = &mut self.slots[at as usize];
            self.horizon = slot.since;
            let what = core::mem::replace(&mut slot.what, What::Free);
            (slot.history, slot.present_since, slot.left_of) = (None, Revision::default(), 0);
            if let Some(name) = what.name() {
                let hash = hash_of(self.seed, name.as_str());
                if let Ok(entry) = self.index.find_entry(hash, |&other| other == at) {
                    entry.remove();
                }
            }
            self.free.push(at);
        }
    }

    // Reading.

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn horizon(&self) -> Revision {
        self.horizon
    }

    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    pub(super) fn version(&self) -> Version {
        self.version.clone()
    }

    pub(super) fn get(&self, name: &str) -> Entry<'_> {
        match self.find(name) {
            Some(at) => self.entry(at),
            None => Entry::absent(self.horizon),
        }
    }

    /// Returns the entries of several names. Each step of a look-up waits for memory that the last step found; here
    /// each step is taken for all names, so that the waits overlap.
    pub(super) fn get_block<const N: usize>(&self, names: [&str; N]) -> [Entry<'_>; N] {
        let (mut hashes, mut likely, mut found, mut is_right) = ([0; N], [NONE; N], [None; N], [false; N]);
        for (hash, name) in hashes.iter_mut().zip(names) {
            *hash = hash_of(self.seed, name);
        }
        // The first slot whose hash looks right; nearly always that of the name.
        for (at, hash) in likely.iter_mut().zip(hashes) {
            *at = self.index.find(hash, |_| true).copied().unwrap_or(NONE);
        }
        for (found, at) in found.iter_mut().zip(likely) {
            *found = self.slots.get(at as usize).and_then(|slot| slot.what.name());
        }
        for ((is_right, found), name) in is_right.iter_mut().zip(found).zip(names) {
            *is_right = found.is_some_and(|found| found == name);
        }
        array::from_fn(|i| {
            let at = if is_right[i] { Some(likely[i] as usize) } else { self.find_hashed(hashes[i], names[i]) };
            at.map_or(Entry::absent(self.horizon), |at| self.entry(at))
        })
    }

    pub(super) fn present_since(&self, name: &str) -> Option<Revision> {
        let slot = &self.slots[self.find(name)?];
        slot.resource().map(|_| slot.present_since)
    }

    pub(super) fn previous(&self, name: &str, at: Revision) -> Option<&Resource> {
        let slot = &self.slots[self.find(name)?];
        let history = slot.history.as_deref().filter(|history| history.last_since <= at && at < slot.since)?;
        match history.last.as_ref()? {
            What::Present(resource) => Some(resource),
            _ => None,
        }
    }

    pub(super) fn changes(&self, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.newest_first(&self.present, since).map(Slot::entry)
    }

    pub(super) fn removals(&self, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        self.newest_first(&self.absent, since).filter_map(|slot| Some((slot.what.name()?, slot.entry())))
    }

    fn newest_first(&self, list: &List, since: Revision) -> impl Iterator<Item = &Slot> {
        let mut next = list.newest;
        iter::from_fn(move || {
            let slot = self.slots.get(next as usize).filter(|slot| slot.since > since)?;
            next = slot.older;
            Some(slot)
        })
    }

    pub(super) fn expiring(&self) -> impl Iterator<Item = Entry<'_>> {
        self.expiring.iter().map(|&at| self.slots[at as usize].entry())
    }

    pub(super) fn error(&self, name: &str) -> Option<&Status> {
        if self.errors.is_empty() {
            return None;
        }
        let at = self.find(name)?;
        let (of, status) = self.errors.get(&self.slots[at].since)?;
        (*of as usize == at).then_some(status) // one change may also set the slots of aliases
    }

    pub(super) fn errors(&self, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        let newer = self.errors.range((Bound::Excluded(since), Bound::Unbounded)).rev();
        newer.filter_map(|(_, &(at, _))| {
            let slot = &self.slots[at as usize];
            Some((slot.what.name()?, slot.entry()))
        })
    }

    pub(super) fn members<'a>(&'a self, glob: &str) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        self.collections.members(glob).map(|&at| self.slots[at as usize].entry())
    }

    /// Returns the names that are present or unknown.
    pub(super) fn names(&self) -> impl Iterator<Item = &ResourceName> {
        let open = |slot: &&Slot| matches!(slot.what, What::Present(_) | What::Unknown(_));
        self.slots.iter().filter(open).filter_map(|slot| slot.what.name())
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.slots.iter().filter_map(Slot::resource)
    }

    pub(super) fn publish<V: Variant>(&mut self, type_url: &TypeUrl) {
        self.published.publish::<V>(&self.slots, type_url);
    }

    pub(super) fn published_bytes(&self) -> usize {
        self.published.bytes()
    }

    /// Returns the pages. Skipping to a later page costs nothing.
    pub(super) fn pages(&self) -> impl Iterator<Item = Page> {
        Pages { store: self, next: 0 }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.find_hashed(hash_of(self.seed, name), name)
    }

    fn find_hashed(&self, hash: u64, name: &str) -> Option<usize> {
        let is = |&at: &u32| self.slots[at as usize].what.name().is_some_and(|other| other == name);
        self.index.find(hash, is).map(|&at| at as usize)
    }
}

struct Pages<'a> {
    store: &'a Store,
    next: usize,
}

impl Iterator for Pages<'_> {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        self.nth(0)
    }

    fn nth(&mut self, skip: usize) -> Option<Page> {
        self.next = self.next.saturating_add(skip).saturating_add(1);
        self.store.published.page(&self.store.slots, self.next - 1)
    }
}

fn hash_of(seed: u64, name: &str) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, name.as_bytes())
}

impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        self.known == other.known
            && self.loads == other.loads
            && self.revision == other.revision
            && self.horizon == other.horizon
            && self.slots == other.slots
            && self.free == other.free
            && self.errors == other.errors
    }
}

impl Eq for Store {}

impl Hash for Store {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.known.hash(state);
        self.loads.hash(state);
        self.revision.hash(state);
        self.horizon.hash(state);
        self.slots.hash(state);
        self.free.hash(state);
        self.errors.hash(state);
    }
}

impl Relabel for Store {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.revision.relabel(by);
        self.horizon.relabel(by);
        for slot in &mut self.slots {
            slot.since.relabel(by);
            if slot.present_since != Revision::default() {
                slot.present_since.relabel(by);
            }
            if let Some(history) = &mut slot.history {
                history.last_since.relabel(by);
            }
        }
        self.errors = core::mem::take(&mut self.errors)
            .into_iter()
            .map(|(mut then, error)| {
                then.relabel(by);
                (then, error)
            })
            .collect();
        self.histories.iter_mut().for_each(|(_, then)| then.relabel(by));
    }
}

//! The resources of one type: a slot for each name, found by hash, strung up in the order of the last change.

mod aliases;
mod claims;
mod invariants;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::iter;
use core::ops::Bound;

use hashbrown::HashTable;
use twox_hash::XxHash3_64;

use self::aliases::{Alias, Aliases};
use crate::error::{Code, Status};
use crate::globs::Collections;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl, Version};
use crate::revision::Revision;
use crate::server::hash;
use crate::server::page::Page;
use crate::server::resource::Resource;
use crate::server::source::{Entry, State};
use crate::server::variant::Variant;

/// Slots in a page, unless the caller says otherwise.
const PAGE: usize = 128;

/// How many changes are remembered with what was before them.
const HISTORIES: usize = 1024;

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Store {
    seed: u64,
    /// Slots in a page.
    page: usize,
    known: bool,
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
    with_ttl: BTreeSet<u32>,
    /// Why some are absent or unknown, by the revision of their change.
    errors: BTreeMap<Revision, (u32, Status)>,
    aliases: Aliases,
    /// Slots of what is present or not known, by collection.
    collections: Collections<u32>,
    /// Changes of which the history is kept, the oldest first.
    histories: VecDeque<(u32, Revision)>,
    /// The sum of the hashes of all (name, version) pairs, and the version that is made of it.
    sum: u128,
    version: Version,
    pages: Vec<Published>,
    /// The pages to publish, for each variant.
    stale: [Vec<u32>; 2],
}

/// What was published of some slots.
#[derive(Clone, Debug, Default)]
struct Published {
    /// `None` where it is not true any more.
    page: Option<Page>,
    /// For each variant, whether it is in the list of those to publish.
    stale: [bool; 2],
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Slot {
    what: What,
    since: Revision,
    history: Option<Box<History>>,
    /// In the list of its kind: towards the older and the newer.
    older: u32,
    newer: u32,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum What {
    Free,
    Present(Resource),
    Absent(ResourceName),
    Unknown(ResourceName),
    /// Another name of a resource that is present or not known.
    Alias(Alias),
    /// What was one, and stands for nothing now: absent.
    Unaliased(Alias),
}

/// What a slot was before, so that who was not served in between is spared what comes to nothing (S-DELTA-52,
/// S-DELTA-53): put and gone, gone and put again, changed and changed back.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct History {
    /// What it was until it became what it is.
    last: Option<What>,
    last_since: Revision,
    /// An earlier time at which it was what it is.
    before: (Revision, Revision),
}

/// A doubly linked list through the slots, in the order of the last change.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct List {
    oldest: u32,
    newest: u32,
    len: usize,
}

impl List {
    const EMPTY: Self = Self { oldest: NONE, newest: NONE, len: 0 };

    fn push(&mut self, slots: &mut [Slot], at: u32) {
        slots[at as usize].older = self.newest;
        slots[at as usize].newer = NONE;
        match self.newest {
            NONE => self.oldest = at,
            newest => slots[newest as usize].newer = at,
        }
        self.newest = at;
        self.len += 1;
    }

    fn unlink(&mut self, slots: &mut [Slot], at: u32) {
        let (older, newer) = (slots[at as usize].older, slots[at as usize].newer);
        match older {
            NONE => self.oldest = newer,
            older => slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => slots[newer as usize].older = older,
        }
        self.len -= 1;
    }
}

impl What {
    fn name(&self) -> Option<&ResourceName> {
        match self {
            Self::Free => None,
            Self::Present(resource) => Some(resource.name()),
            Self::Absent(name) | Self::Unknown(name) => Some(name),
            Self::Alias(alias) | Self::Unaliased(alias) => Some(&alias.name),
        }
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent(_) | Self::Unaliased(_))
    }
}

impl Store {
    pub(super) fn new(known: bool) -> Self {
        Self {
            seed: 0,
            page: PAGE,
            known,
            revision: Revision::default(),
            horizon: Revision::default(),
            slots: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            present: List::EMPTY,
            absent: List::EMPTY,
            with_ttl: BTreeSet::new(),
            errors: BTreeMap::new(),
            aliases: Aliases::default(),
            collections: Collections::default(),
            histories: VecDeque::new(),
            sum: 0,
            version: hash::version(0),
            pages: Vec::new(),
            stale: [Vec::new(), Vec::new()],
        }
    }

    pub(super) fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(super) fn with_page(self, page: usize) -> Self {
        Self { page, ..self }
    }

    // Changes.

    pub(super) fn insert(&mut self, resource: Resource, now: Revision) -> bool {
        let at = self.find(resource.name().as_str());
        if at.is_some_and(|at| matches!(&self.slots[at].what, What::Present(old) if *old == resource)) {
            return false;
        }
        self.sum = self.sum.wrapping_add(hash::pair(resource.name(), resource.version()));
        let (name, aliases) = (resource.name().clone(), resource.aliases().to_vec());
        self.set(at, What::Present(resource), now);
        self.claim(&name, aliases, now);
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
        self.claim(&name, Vec::new(), now);
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
            self.claim(&name, Vec::new(), now);
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
        self.known = true;
        self.revision = now;
        let at = at.unwrap_or_else(|| self.take_slot(&what));
        self.unlink(at);
        self.take_error(at);
        let slot = &mut self.slots[at];
        let old = core::mem::replace(&mut slot.what, what);
        if let What::Present(resource) = &old {
            self.sum = self.sum.wrapping_sub(hash::pair(resource.name(), resource.version()));
        }
        self.version = hash::version(self.sum);
        let last = slot.history.take();
        // A slot that is new was absent ever since.
        let new = matches!(old, What::Free);
        let before = match &last {
            Some(history) => match &history.last {
                Some(last) if *last == slot.what => (history.last_since, slot.since),
                None if slot.what.is_absent() => (history.last_since, slot.since),
                Some(_) | None => (Revision::default(), Revision::default()),
            },
            None => (Revision::default(), Revision::default()),
        };
        let history = History { last: (!new).then_some(old), last_since: slot.since, before };
        slot.history = Some(Box::new(history));
        slot.since = now;
        if slot.resource().is_some_and(|resource| resource.ttl().is_some()) {
            self.with_ttl.insert(at as u32);
        } else if !self.with_ttl.is_empty() {
            self.with_ttl.remove(&(at as u32));
        }
        if let Some(name) = slot.what.name() {
            match slot.what {
                What::Present(_) | What::Unknown(_) => self.collections.insert(name, at as u32),
                _ => self.collections.remove(name, at as u32),
            }
        }
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
        self.mark_page(at / self.page);
    }

    fn take_error(&mut self, at: usize) {
        let since = self.slots[at].since;
        if self.errors.get(&since).is_some_and(|(of, _)| *of as usize == at) {
            self.errors.remove(&since);
        }
    }

    fn take_slot(&mut self, what: &What) -> usize {
        let empty = Slot { what: What::Free, since: self.horizon, history: None, older: NONE, newer: NONE };
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

    /// Keeps as many removals as there are resources, and at least `tombstones`.
    fn forget(&mut self, tombstones: usize) {
        while self.absent.len > tombstones.max(self.present.len) {
            let at = self.absent.oldest;
            self.absent.unlink(&mut self.slots, at);
            self.take_error(at as usize);
            let slot = &mut self.slots[at as usize];
            self.horizon = slot.since;
            let what = core::mem::replace(&mut slot.what, What::Free);
            slot.history = None;
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
            None => {
                Entry { state: State::Absent, since: self.horizon, before: (Revision::default(), Revision::default()) }
            }
        }
    }

    pub(super) fn was(&self, name: &str, at: Revision) -> Option<&Resource> {
        let slot = &self.slots[self.find(name)?];
        let history = slot.history.as_deref().filter(|history| history.last_since <= at && at < slot.since)?;
        match (&slot.what, history.last.as_ref()?) {
            (What::Absent(_), What::Present(resource)) => Some(resource),
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

    pub(super) fn with_ttl(&self) -> impl Iterator<Item = Entry<'_>> {
        self.with_ttl.iter().map(|&at| self.slots[at as usize].entry())
    }

    pub(super) fn error(&self, name: &str) -> Option<&Status> {
        if self.errors.is_empty() {
            return None;
        }
        let at = self.find(name)?;
        let (of, status) = self.errors.get(&self.slots[at].since)?;
        (*of as usize == at).then_some(status) // a change may touch aliases too
    }

    pub(super) fn errors(&self, since: Revision) -> impl Iterator<Item = (&ResourceName, Entry<'_>)> {
        let newer = self.errors.range((Bound::Excluded(since), Bound::Unbounded)).rev();
        newer.filter_map(|(_, &(at, _))| {
            let slot = &self.slots[at as usize];
            Some((slot.what.name()?, slot.entry()))
        })
    }

    pub(super) fn members(&self, glob: &str) -> impl Iterator<Item = Entry<'_>> {
        self.collections.members(glob).map(|&at| self.slots[at as usize].entry())
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.slots.iter().filter_map(Slot::resource)
    }

    // Pages.

    fn page(&self, at: usize) -> Option<Page> {
        let slots = self.slots.chunks(self.page).nth(at)?;
        let published = self.pages.get(at).and_then(|published| published.page.as_ref());
        Some(
            published.cloned().unwrap_or_else(|| Page::new(slots.iter().filter_map(Slot::resource).cloned().collect())),
        )
    }

    pub(super) fn publish<V: Variant>(&mut self, type_url: &TypeUrl) {
        for at in core::mem::take(&mut self.stale[V::NUMBER]) {
            let published = &mut self.pages[at as usize];
            published.page = Some(match published.page.take() {
                Some(page) => page.encoded::<V>(type_url),
                None => {
                    let slots = self.slots.chunks(self.page).nth(at as usize).unwrap_or_default();
                    Page::of::<V>(slots.iter().filter_map(Slot::resource), self.page, type_url)
                }
            });
            published.stale[V::NUMBER] = false;
        }
    }

    pub(super) fn published_bytes(&self) -> usize {
        self.pages.iter().filter_map(|published| published.page.as_ref()).map(Page::encoded_bytes).sum()
    }

    fn mark_page(&mut self, at: usize) {
        if self.pages.len() <= at {
            self.pages.resize(at + 1, Published::default());
        }
        let published = &mut self.pages[at];
        published.page = None;
        for (stale, listed) in self.stale.iter_mut().zip(&mut published.stale) {
            if !core::mem::replace(listed, true) {
                stale.push(at as u32);
            }
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        let is = |&at: &u32| self.slots[at as usize].what.name().is_some_and(|other| other == name);
        self.index.find(hash_of(self.seed, name), is).map(|&at| at as usize)
    }
}

/// The pages of a store. To go on with a later one costs nothing.
pub(super) struct Pages<'a> {
    pub(super) store: &'a Store,
    pub(super) next: usize,
}

impl Iterator for Pages<'_> {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        self.nth(0)
    }

    fn nth(&mut self, skip: usize) -> Option<Page> {
        self.next = self.next.saturating_add(skip).saturating_add(1);
        self.store.page(self.next - 1)
    }
}

fn hash_of(seed: u64, name: &str) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, name.as_bytes())
}

impl Slot {
    fn resource(&self) -> Option<&Resource> {
        match &self.what {
            What::Present(resource) => Some(resource),
            _ => None,
        }
    }

    fn entry(&self) -> Entry<'_> {
        let state = match &self.what {
            What::Present(resource) => State::Present(resource),
            What::Unknown(_) => State::Unknown,
            What::Absent(_) | What::Alias(_) | What::Unaliased(_) | What::Free => State::Absent,
        };
        let nothing = (Revision::default(), Revision::default());
        Entry { state, since: self.since, before: self.history.as_ref().map_or(nothing, |history| history.before) }
    }
}

impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        self.known == other.known
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
            if let Some(history) = &mut slot.history {
                history.last_since.relabel(by);
                history.before.0.relabel(by);
                history.before.1.relabel(by);
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

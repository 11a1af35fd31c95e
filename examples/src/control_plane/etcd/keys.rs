//! The resources of all keys, and what changes for each group when keys change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use xds_machine::TypeUrl;
use xds_machine::server::Resource;

use super::generated::event::EventType;
use super::generated::{Event, KeyValue};
use super::key::{Place, Prefix};
use super::value;
use crate::control_plane::news::{Contents, Group, Key, Known, News};

/// The keys of a prefix, each with its last good resource.
#[derive(Debug)]
pub struct Keys {
    prefix: Prefix,
    grouped: bool,
    /// The keys for all nodes, and those of each group.
    scopes: BTreeMap<Group, BTreeMap<Key, Held>>,
    /// The number of resources of each type.
    counts: BTreeMap<TypeUrl, usize>,
}

/// What a key holds.
#[derive(Debug)]
struct Held {
    /// The revision of its last change.
    revision: i64,
    /// The last good value; `None` if there was none yet.
    resource: Option<Resource>,
}

impl Keys {
    /// Creates the keys of a prefix, of which none is known yet. Without `grouped`, only the keys for all nodes count.
    pub fn new(prefix: Prefix, grouped: bool) -> Self {
        Self { prefix, grouped, scopes: BTreeMap::from([(None, BTreeMap::new())]), counts: BTreeMap::new() }
    }

    /// Returns the first key of the prefix, and the first key after all of them.
    pub fn range(&self) -> (Bytes, Bytes) {
        self.prefix.range()
    }

    /// Takes a listing of all keys, and returns the difference. A key of a known revision has not changed, if the
    /// listing is of the same history.
    pub fn list(&mut self, keys: Vec<KeyValue>, same_history: bool) -> News {
        let mut change = self.begin();
        let mut gone: BTreeSet<Place> = self.places();
        for kv in keys {
            let Some(place) = self.place(&kv.key, &mut change.news) else { continue };
            gone.remove(&place);
            let held = self.held(&place).filter(|held| same_history && held.revision == kv.mod_revision);
            if held.is_none() {
                self.put(place, kv, &mut change);
            }
        }
        gone.into_iter().for_each(|place| self.delete(place, &mut change));
        self.tell(change)
    }

    /// Takes events as one change.
    pub fn apply(&mut self, events: Vec<Event>) -> News {
        let mut change = self.begin();
        for event in events {
            let is_put = event.r#type() == EventType::Put;
            let Some(kv) = event.kv else { continue };
            match self.place(&kv.key, &mut change.news) {
                Some(place) if is_put => self.put(place, kv, &mut change),
                Some(place) => self.delete(place, &mut change),
                None => {}
            }
        }
        self.tell(change)
    }

    /// Begins a change. Groups that lost their last key by the previous change are removed: that change was already
    /// reported to their nodes.
    fn begin(&mut self) -> Changed {
        self.scopes.retain(|group, keys| group.is_none() || !keys.is_empty());
        Changed { touched: BTreeSet::new(), news: News { is_there: true, ..News::default() } }
    }

    fn places(&self) -> BTreeSet<Place> {
        let all = self.scopes.iter();
        all.flat_map(|(group, keys)| keys.keys().map(|key| (group.clone(), key.clone()))).collect()
    }

    /// Returns the place of a key that counts.
    fn place(&self, key: &[u8], news: &mut News) -> Option<Place> {
        self.prefix.place(key, self.grouped).unwrap_or_else(|error| {
            news.complaints.push(format!("{}: {error} (it is ignored)", String::from_utf8_lossy(key)));
            None
        })
    }

    fn held(&self, (group, key): &Place) -> Option<&Held> {
        self.scopes.get(group)?.get(key)
    }

    fn put(&mut self, place: Place, kv: KeyValue, change: &mut Changed) {
        let source = String::from_utf8_lossy(&kv.key);
        let (group, key) = &place;
        let held = self.scopes.entry(group.clone()).or_default().entry(key.clone());
        let is_new = matches!(held, std::collections::btree_map::Entry::Vacant(_));
        let held = held.or_insert(Held { revision: 0, resource: None });
        held.revision = kv.mod_revision;
        match value::read(key, &kv.value) {
            Ok(resource) if held.resource.as_ref() == Some(&resource) => {}
            Ok(resource) => {
                if held.resource.replace(resource).is_none() {
                    *self.counts.entry(key.0.clone()).or_default() += 1;
                }
                change.news.note_file(PathBuf::from(&*source), [key].into_iter(), [].into_iter());
                change.touched.insert(place);
            }
            Err(error) => {
                let meaning = match held.resource {
                    Some(_) => "its last good value is still served",
                    None => "it is not known yet, and nothing is said of it",
                };
                change.news.complaints.push(format!("{source}: {error} ({meaning})"));
                if is_new {
                    change.touched.insert(place);
                }
            }
        }
    }

    fn delete(&mut self, place: Place, change: &mut Changed) {
        let (group, key) = &place;
        let Some(held) = self.scopes.get_mut(group).and_then(|keys| keys.remove(key)) else { return };
        if held.resource.is_some() {
            self.counts.entry(key.0.clone()).and_modify(|count| *count -= 1);
            let source = self.prefix.key(group.as_deref(), key);
            change.news.note_file(PathBuf::from(source), [].into_iter(), [key].into_iter());
        }
        change.touched.insert(place);
    }

    /// Adds the touched places to the news of the views.
    fn tell(&self, Changed { touched, mut news }: Changed) -> News {
        news.complete = self.scopes.keys().cloned().collect(); // what is not known of a view is known by name
        let mut places = BTreeSet::new();
        for place in touched {
            // A resource for all nodes is part of every group's view.
            if place.0.is_none() {
                places.extend(self.scopes.keys().flatten().map(|group| (Some(group.clone()), place.1.clone())));
            }
            places.insert(place);
        }
        places.into_iter().for_each(|(group, key)| self.tell_one(group, key, &mut news));
        news
    }

    fn tell_one(&self, group: Group, key: Key, news: &mut News) {
        // A resource of the group takes precedence over one for all nodes, and a bad value hides none.
        let at = [group.clone(), None].map(|group| self.held(&(group, key.clone())));
        let mut present = at.iter().filter_map(|held| held.and_then(|held| held.resource.clone()));
        let known = match present.next() {
            Some(resource) => Known::Present(resource),
            None if at.iter().any(Option::is_some) => Known::Unknown,
            None => Known::Absent,
        };
        news.views.entry(group).or_default().push((key, known));
    }
}

/// A change that is being made.
struct Changed {
    touched: BTreeSet<Place>,
    news: News,
}

impl Contents for Keys {
    fn groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.scopes.keys().flatten()
    }

    fn counts(&self) -> BTreeMap<&TypeUrl, usize> {
        self.counts.iter().map(|(type_url, count)| (type_url, *count)).collect()
    }
}

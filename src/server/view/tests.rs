//! Compares the view with a naive one that remembers what the client was sent of each name: whatever is news to the
//! naive view is news to the view, and nothing else is while the positions are equal and describe the client exactly.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::{Reach, View};
use crate::name::{ResourceName, TypeUrl};
use crate::revision::Revision;
use crate::server::source::{Entry, Source, State};
use crate::server::{Cache, Resource};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A change of a store, or a response of a server.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put {
        name: usize,
        content: u8,
    },
    Remove {
        name: usize,
    },
    /// Sends `count` changes, the oldest first, and after all of them as many removals as remain.
    Tell {
        count: usize,
    },
    /// Sends all changes; removals are deferred.
    TellContent,
    TellAll,
    /// Answers one name, whatever else is new.
    Answer {
        name: usize,
    },
    /// Subscribes to a name again.
    Doubt {
        name: usize,
    },
}

struct World {
    cache: Cache,
    type_url: TypeUrl,
    view: View,
    naive: BTreeMap<&'static str, Option<u8>>,
    /// The number of names sent ahead that are remembered.
    limit: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), 0..2_u8).prop_map(|(name, content)| Step::Put { name, content }),
        3 => name().prop_map(|name| Step::Remove { name }),
        3 => (1..3_usize).prop_map(|count| Step::Tell { count }),
        1 => Just(Step::TellContent),
        2 => Just(Step::TellAll),
        3 => name().prop_map(|name| Step::Answer { name }),
        1 => name().prop_map(|name| Step::Doubt { name }),
    ]
}

impl World {
    fn new(limit: usize) -> Self {
        let mut view = View::default();
        view.advance(Revision::default(), Reach::All, Reach::All, false);
        let naive = NAMES.map(|name| (name, None)).into();
        Self { cache: Cache::new(1), type_url: "t".into(), view, naive, limit }
    }

    fn entry(&self, name: &str) -> Entry<'_> {
        self.cache.get(&self.type_url, &name.into())
    }

    fn content(&self, name: &str) -> Option<u8> {
        self.entry(name).resource().map(|resource| resource.body()[0])
    }

    /// Returns the news of the view, the oldest first: present resources, and removals.
    fn news(&self) -> [Vec<(Revision, &'static str)>; 2] {
        let mut news = [Vec::new(), Vec::new()];
        for name in NAMES {
            let (entry, key) = (self.entry(name), ResourceName::from(name));
            let (list, is_news) = match entry.state {
                State::Present(_) => (0, self.view.is_news(&key, &entry)),
                State::Absent | State::Unknown => (1, self.view.is_removal_news(&key, &entry)),
            };
            news[list].extend(is_news.then_some((entry.since, name)));
        }
        news.iter_mut().for_each(|news| news.sort_unstable());
        news
    }

    fn tell(&mut self, names: &[(Revision, &'static str)]) {
        for (_, name) in names {
            let content = self.content(name);
            self.naive.insert(name, content);
        }
    }

    fn change(&mut self, step: Step) {
        match step {
            Step::Put { name, content } => {
                self.cache.insert(&self.type_url, Resource::new(NAMES[name], [content].to_vec()));
            }
            Step::Remove { name } => _ = self.cache.remove(&self.type_url, NAMES[name]),
            _ => {}
        }
    }

    fn take(&mut self, step: Step) {
        let now = self.cache.revision();
        if matches!(step, Step::Put { .. } | Step::Remove { .. }) {
            self.change(step);
            return;
        }
        match step {
            Step::Put { .. } | Step::Remove { .. } => {}
            Step::Tell { count } => {
                let [changed, removed] = self.news();
                let sent_ahead = changed.len().min(count);
                self.tell(&changed[..sent_ahead]);
                if sent_ahead < changed.len() {
                    self.view.advance(now, Reach::Upto(changed[sent_ahead - 1].0), Reach::Nowhere, false);
                    return;
                }
                let gone = removed.len().min(count - sent_ahead);
                self.tell(&removed[..gone]);
                let reach = match gone {
                    _ if gone == removed.len() => Reach::All,
                    0 => Reach::Nowhere,
                    _ => Reach::Upto(removed[gone - 1].0),
                };
                self.view.advance(now, Reach::All, reach, false);
            }
            Step::TellContent => {
                let [changed, _] = self.news();
                self.tell(&changed);
                self.view.advance(now, Reach::All, Reach::Nowhere, false);
            }
            Step::TellAll => {
                self.news().iter().for_each(|news| self.tell(news));
                self.view.advance(now, Reach::All, Reach::All, false);
            }
            Step::Answer { name } => {
                let (name, entry) = (NAMES[name], self.entry(NAMES[name]));
                let sent_to = match entry.state {
                    State::Present(_) => self.view.sent_to().unwrap_or_default(),
                    State::Absent | State::Unknown => self.view.removals_sent_to(),
                };
                let since = entry.since;
                self.tell(&[(since, name)]);
                if since > sent_to {
                    self.view.note_sent_ahead(&name.into(), now, self.limit);
                }
            }
            Step::Doubt { name } => self.view.forget_sent_ahead(|sent_ahead| *sent_ahead == NAMES[name]),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.view.check()?;
        let news: Vec<&str> = self.news().iter().flatten().map(|(_, name)| *name).collect();
        for (name, sent_ahead) in &self.naive {
            if *sent_ahead != self.content(name) && !news.contains(name) {
                let there = self.content(name);
                return Err(alloc::format!("lost: {name} is {there:?}, told as {sent_ahead:?}: {:?}", self.view));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(Config { cases: 4000, failure_persistence: None, ..Config::default() })]

    /// Whatever is forgotten, no change is lost.
    #[test]
    fn no_change_is_lost(
        limit in 0..3_usize,
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut world = World::new(limit);
        for (at, step) in steps.iter().enumerate() {
            world.take(*step);
            if let Err(fault) = world.check() {
                return Err(TestCaseError::fail(alloc::format!("{fault}, after {:?}", &steps[..=at])));
            }
        }
    }
}

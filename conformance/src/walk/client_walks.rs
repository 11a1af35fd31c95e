//! Random walks with a client: how each story is made.
//!
//! Every instruction to the client and every response is legal at any place in a story. A resource that cannot be used
//! is sent only when the client must know that it wants the name, because a client may ignore a resource that it does
//! not want.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use super::run::Source;
use crate::client::End;
use crate::client::story::{Content, Item, Send, Step};
use crate::message::Variant;
use crate::resource;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// The number of contents that a resource may have; a content may come back.
const REVISIONS: u64 = 3;

/// Random walks with a client.
#[derive(Clone, Debug)]
pub struct ClientWalks {
    /// The variants, which the walks use in turn.
    pub variants: Vec<Variant>,
    /// The types that the client can ask for, by their short names.
    pub types: Vec<String>,
    /// The types for which the client can subscribe to the wildcard.
    pub wildcard: Vec<String>,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Source for ClientWalks {
    type Step = Step;

    fn variants(&self) -> &[Variant] {
        &self.variants
    }

    fn describe(&self) -> String {
        format!("seed {}", self.seed)
    }

    /// Returns `false`: each walk has a client of its own.
    fn is_alone(&self, _: usize) -> bool {
        false
    }

    fn story(&self, number: usize, steps: usize) -> (Variant, Vec<Step>) {
        let variant = self.variants[number % self.variants.len()];
        let rng = Rng::with_seed(self.seed.wrapping_add(1 + number as u64));
        let wanted = BTreeMap::new();
        let mut walk = Walk { rng, walks: self, variant, wanted, steps: Vec::new() };
        for _ in 0..steps {
            walk.step();
        }
        walk.steps.push(Step::Barrier);
        (variant, walk.steps)
    }
}

struct Walk<'a> {
    rng: Rng,
    walks: &'a ClientWalks,
    variant: Variant,
    /// The names that the client is told to subscribe to, by type.
    wanted: BTreeMap<String, BTreeSet<String>>,
    steps: Vec<Step>,
}

impl Walk<'_> {
    fn one_in(&mut self, times: usize) -> bool {
        self.rng.usize(..times) == 0
    }

    fn name(&mut self) -> String {
        NAMES[self.rng.usize(..NAMES.len())].to_owned()
    }

    fn step(&mut self) {
        let of = self.walks.types[self.rng.usize(..self.walks.types.len())].clone();
        match self.rng.usize(..100) {
            0..35 => self.want(of),
            35..80 => self.send(of),
            80..93 => self.steps.push(Step::Barrier),
            _ => {
                let end = [End::Unavailable, End::Ok, End::Reset, End::Connection][self.rng.usize(..4)];
                self.steps.push(Step::Cut(end));
            }
        }
    }

    /// Tells the client to subscribe to a name or to unsubscribe from one; or to do both at once with the same name,
    /// which a server must be able to distinguish from no change.
    fn want(&mut self, of: String) {
        let wildcard = self.walks.wildcard.contains(&of) && self.one_in(4);
        let name = if wildcard { "*".to_owned() } else { self.name() };
        let (again, and_another) = (self.one_in(6), self.one_in(6));
        let other = self.name();
        let wanted = self.wanted.entry(of.clone()).or_default();
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        if wanted.contains(&name) {
            remove.push(name.clone());
            add.extend(again.then(|| name.clone()));
        } else {
            add.push(name.clone());
        }
        if and_another && other != name && !wanted.contains(&other) {
            add.push(other);
        }
        remove.iter().for_each(|name| _ = wanted.remove(name));
        wanted.extend(add.iter().cloned());
        self.steps.push(Step::Want { type_name: of, add, remove });
    }

    fn send(&mut self, of: String) {
        let wanted = self.wanted.get(&of).cloned().unwrap_or_default();
        if wanted.is_empty() {
            return;
        }
        let full_state = self.variant == Variant::Sotw && resource::is_full_state(resource::type_url(&of));
        let has = |name: &str| wanted.contains(name) || wanted.contains("*");
        let names: Vec<&str> = NAMES.into_iter().filter(|name| has(name)).collect();
        let mut send = Send { type_name: of, ..Send::default() };
        for name in names {
            let is_in = self.one_in(3);
            if full_state && !is_in || !full_state && is_in || self.one_in(2) {
                let content = Content::Revision(1 + self.rng.u64(..REVISIONS));
                send.items.push(Item { name: name.to_owned(), content });
            } else if self.variant == Variant::Delta && self.one_in(3) {
                send.removed.push(name.to_owned());
            }
        }
        if !send.items.is_empty() && self.one_in(6) {
            let at = self.rng.usize(..send.items.len());
            send.items[at].content = Content::Bad;
            self.steps.push(Step::Barrier);
        }
        self.steps.push(Step::Send(send));
    }
}

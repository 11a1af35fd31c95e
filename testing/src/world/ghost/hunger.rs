//! No hunger: what may be sent is sent after a bounded number of other responses, however many of these there are to
//! send. Time tells when it may be sent: a wait for an ACK, or for another type, is over then.

use std::collections::BTreeMap;
use std::time::Duration;

use xds_machine::model::{Label, Relabel};
use xds_machine::{Instant, ResourceName};

use super::super::{Made, Store};
use super::Ghost;

/// The pending resources, by type and name: since when each is, and how many responses went out since its wait was over.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Hunger(BTreeMap<(usize, ResourceName), (Instant, usize)>);

impl Ghost {
    /// Returns whether a response of a type is unanswered, or something of it is to be sent.
    pub fn is_busy(&self, setup: &Made, store: &Store, t: usize) -> bool {
        self.types[t].is_out() || self.types[t].unsent(setup, store, t).next().is_some()
    }

    /// Records a response. Panics if more of them than there are resources overtook one that is pending.
    pub fn overtakes(&mut self, setup: &Made, store: &Store, now: Instant) {
        let (mut pending, wait) = (BTreeMap::new(), waits_at_most(setup));
        for t in (0..setup.types.len()).filter(|&t| store.is_known(t)) {
            for (name, _) in self.types[t].unsent(setup, store, t) {
                let (since, overtaken) = self.hunger.0.remove(&(t, name.clone())).unwrap_or((now, 0));
                let overtaken = overtaken + usize::from(since + wait <= now);
                let most = 4 * setup.types.len() * setup.names.len();
                assert!(overtaken <= most, "type {t}: {name} is pending, and {overtaken} responses overtook it");
                pending.insert((t, name), (since, overtaken));
            }
        }
        self.hunger = Hunger(pending);
    }
}

impl Relabel for Hunger {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.0.values_mut().for_each(|(since, _)| since.relabel(by));
    }
}

/// Returns the time that a resource waits at most: for a response of its own type, and for those of types before it.
fn waits_at_most(setup: &Made) -> Duration {
    setup.answer_wait * 4
}

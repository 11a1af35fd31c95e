//! Responses of one type that wait for an earlier verdict. They are merged, so that what waits is bounded by what the
//! server has, and not by how often it speaks.
//!
//! In SotW a later response stands for those before it: only the last one is answered. In delta each response keeps its
//! nonce and its own faults, and is answered by itself.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::config::Limits;
use super::incoming::{Heartbeat, Incoming, Merged};
use crate::WILDCARD;
use crate::ensure::ensure;
use crate::error::Code;
use crate::message::ResourceError;
use crate::model::{Label, Relabel};
use crate::name::{ResourceName, TypeUrl};

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Waiting {
    /// The responses in order. Each is merged with the one before unless it is much smaller, so that the work on a
    /// resource grows with the logarithm of their number.
    parts: VecDeque<Incoming>,
    /// Whether a response was refused because too much waits, so that its resources must be requested again.
    overflowed: bool,
}

/// How the responses of a type are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merging {
    /// Whether each response is answered by itself (delta).
    pub(super) answers_each: bool,
    /// Whether a resource without content is a heartbeat, and not the report that it does not exist.
    pub(super) heartbeats: bool,
    /// The number of merged responses that keep an answer of their own.
    pub(super) answers: usize,
    /// The bytes of names and contents that may wait.
    pub(super) bytes: usize,
}

impl Merging {
    pub(super) fn new(answers_each: bool, heartbeats: bool, limits: &Limits) -> Self {
        Self { answers_each, heartbeats, answers: limits.waiting_responses, bytes: limits.waiting_bytes }
    }
}

impl Waiting {
    /// Adds a response that is taken at once.
    pub(super) fn pass(&mut self, incoming: Incoming) {
        debug_assert!(self.parts.is_empty(), "responses are processed in order");
        self.parts.push_back(incoming);
    }

    /// Adds a response that has to wait. A response with which too much would wait is refused; a later one with all
    /// resources may replace it.
    pub(super) fn push(&mut self, mut incoming: Incoming, merging: &Merging) {
        incoming.compared = false; // the comparison stays valid only if the response does not have to wait
        incoming.bytes = incoming.measure();
        let replaces = incoming.has_all && !incoming.refused;
        if !replaces && self.bytes() + incoming.bytes > merging.bytes && !self.overflowed {
            let folded = self.take(merging);
            self.parts.extend(folded);
        }
        let before = if replaces { 0 } else { self.bytes() };
        let is_too_much = before + incoming.bytes > merging.bytes || (self.overflowed && !replaces);
        if is_too_much && !incoming.refused {
            let len = before + incoming.bytes;
            incoming.refuse(alloc::format!("{len} bytes wait for a verdict, limit {}", merging.bytes));
            incoming.code = Code::ResourceExhausted;
            incoming.bytes = incoming.measure();
            self.overflowed = true;
        } else if replaces {
            self.overflowed = false;
        }
        let replaces = incoming.has_all;
        while self.parts.back().is_some_and(|last| replaces || last.weight() <= 2 * incoming.weight()) {
            self.parts.pop_back().into_iter().for_each(|last| incoming.absorb(last, merging));
        }
        self.parts.push_back(incoming);
    }

    /// Takes the responses as one.
    pub(super) fn take(&mut self, merging: &Merging) -> Option<Incoming> {
        let mut all = self.parts.pop_back()?;
        while let Some(last) = self.parts.pop_back() {
            all.absorb(last, merging);
        }
        Some(all)
    }

    /// Returns whether a response was refused because too much waited, and forgets it.
    pub(super) fn take_overflowed(&mut self) -> bool {
        core::mem::take(&mut self.overflowed)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the responses, the last one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Incoming> {
        self.parts.iter().rev()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the number of responses that will be answered.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|incoming| 1 + incoming.merged.len()).sum()
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(|incoming| incoming.bytes).sum()
    }

    /// Checks the invariants; `serial` is that of the last response.
    pub(super) fn check(&self, limits: &Limits, serial: u64) -> Result<(), String> {
        ensure!(self.parts.iter().all(|part| part.serial <= serial), "a response of the future waits");
        for part in &self.parts {
            let (merged, limit) = (part.merged.len(), limits.waiting_responses);
            ensure!(merged <= limit, "{merged} merged responses wait, limit {limit}");
            ensure!(part.merged.is_sorted_by(|a, b| a.serial < b.serial), "merged responses are not in order");
            ensure!(part.removed.is_sorted_by(|a, b| a < b), "removals are not in order");
            ensure!(part.resources.names().is_sorted_by(|a, b| a < b), "resources are not in order");
        }
        let contents: usize = self.parts.iter().map(|part| part.resources.bytes()).sum();
        let limit = limits.waiting_bytes;
        ensure!(self.parts.len() < 2 || contents <= limit, "{contents} bytes wait, limit {limit}");
        Ok(())
    }

    pub(super) fn relabel(&mut self, type_url: &TypeUrl, by: &mut dyn FnMut(Label<'_>)) {
        for incoming in &mut self.parts {
            by(Label::Response(type_url, &mut incoming.serial));
            incoming.nonce.relabel(by);
            for heartbeat in &mut incoming.heartbeats {
                by(Label::Response(type_url, &mut heartbeat.serial));
            }
            relabel_merged(&mut incoming.merged, type_url, by);
        }
    }
}

pub(super) fn relabel_merged(merged: &mut [Merged], type_url: &TypeUrl, by: &mut dyn FnMut(Label<'_>)) {
    for merged in merged {
        by(Label::Response(type_url, &mut merged.serial));
        merged.nonce.relabel(by);
    }
}

impl Incoming {
    /// Returns the number of things that merging looks at.
    fn weight(&self) -> usize {
        let errors = self.errors.len() + self.late_errors.len();
        let rest = self.heartbeats.len() + self.removed.len() + errors + self.merged.len();
        1 + self.resources.len() + rest
    }

    /// Returns the bytes that the response holds, with an estimate for the entry of each name.
    fn measure(&self) -> usize {
        const ENTRY: usize = 64;
        let removed: usize = self.removed.iter().map(|name| name.as_str().len()).sum();
        let message = |error: &ResourceError| error.status.as_ref().map_or(0, |status| status.message.len());
        let errors = self.errors.iter().chain(&self.late_errors);
        let errors: usize = errors.map(|error| error.name.as_str().len() + message(error)).sum();
        let heartbeats: usize = self.heartbeats.iter().map(|heartbeat| heartbeat.name.as_str().len()).sum();
        self.resources.bytes() + removed + errors + heartbeats + ENTRY * (self.weight() - 1)
    }

    /// Merges an earlier response that waits as well, as if the application had judged it and at once this one.
    fn absorb(&mut self, mut earlier: Self, merging: &Merging) {
        let received = earlier.resources.bytes();
        (self.compared, self.held) = (false, 0);
        self.new = Vec::new();
        if self.has_all {
            self.replace(&mut earlier);
        } else {
            self.supersede(&mut earlier, merging);
            self.has_all = earlier.has_all;
        }
        self.join_errors(&mut earlier);
        self.join_heartbeats(&mut earlier, merging);
        if merging.answers_each {
            self.keep_answers(&mut earlier, merging.answers);
        } else {
            earlier.faults.append(&mut self.faults);
            self.faults = earlier.faults;
        }
        self.refused &= earlier.refused;
        self.resources.add_earlier(earlier.resources, received);
        self.removed.append(&mut earlier.removed);
        self.removed.sort();
        self.removed.dedup();
        self.heartbeats.append(&mut earlier.heartbeats);
        self.heartbeats.sort_by(|a, b| a.name.cmp(&b.name));
        self.bytes = self.measure();
    }

    /// Drops an earlier response in favour of this one, which has all resources. A name that only the earlier one had
    /// does not exist any more.
    fn replace(&mut self, earlier: &mut Self) {
        let others: BTreeSet<ResourceName> = self.others().cloned().collect();
        let faults = core::mem::take(&mut earlier.faults).into_iter().filter_map(|fault| fault.name);
        earlier.removed.extend(earlier.resources.names().cloned().chain(faults));
        earlier.removed.retain(|name| self.resources.find(name.as_str()).is_none() && !others.contains(name));
        earlier.resources.retain(|resource| self.has_heartbeat(resource.name()));
        earlier.heartbeats = Vec::new();
    }

    /// Drops what this response has anew from an earlier one.
    fn supersede(&mut self, earlier: &mut Self, merging: &Merging) {
        if self.refused {
            return;
        }
        let reports = |heartbeat: &&Heartbeat| {
            merging.answers_each && !merging.heartbeats && heartbeat.ttl.is_none() && !heartbeat.aliases.is_empty()
        };
        let nowhere = self.heartbeats.iter().filter(reports);
        let nowhere: BTreeSet<&ResourceName> =
            nowhere.flat_map(|heartbeat| heartbeat.aliases.iter().chain([&heartbeat.name])).collect();
        let data_errors = self.errors.iter().filter(|error| error.status.as_ref().is_some_and(|it| it.is_data_error()));
        let data_errors: BTreeSet<&ResourceName> = data_errors.map(|error| &error.name).collect();
        let aliases = self.resources.with_aliases().flat_map(|resource| resource.aliases());
        let aliases: BTreeSet<&str> = aliases.chain(nowhere.iter().copied()).map(ResourceName::as_str).collect();
        let has = |name: &ResourceName| self.resources.find(name.as_str()).is_some();
        let removes = |name: &ResourceName| self.removed.binary_search(name).is_ok();
        let ends = |name: &ResourceName| nowhere.contains(name) || data_errors.contains(name);
        earlier.resources.retain(|resource| {
            let name = resource.name();
            !has(name) && !removes(name) && !ends(name)
        });
        if !earlier.resources.is_plain() {
            earlier.resources.drop_aliases(|alias| {
                aliases.contains(alias)
                    || self.resources.find(alias).is_some()
                    || self.removed.binary_search_by(|name| name.as_str().cmp(alias)).is_ok()
            });
        }
        earlier.removed.retain(|name| !has(name));
        let again = |heartbeat: &Heartbeat| {
            let name = &heartbeat.name;
            has(name) || removes(name) || self.has_heartbeat(name)
        };
        earlier.heartbeats.retain(|heartbeat| !again(heartbeat));
        if !merging.answers_each {
            earlier.faults.retain(|fault| !fault.name.as_ref().is_some_and(has));
        }
    }

    /// Merges the errors. An error that this response does not mention stands; an error of content that the application
    /// has yet to judge counts after the verdict.
    fn join_errors(&mut self, earlier: &mut Self) {
        if earlier.errors.is_empty() && earlier.late_errors.is_empty() && self.errors.is_empty() {
            return;
        }
        let of_all = |error: &ResourceError| matches!(error.name.as_str(), "" | WILDCARD);
        let ends_all =
            !self.refused && (!self.resources.is_empty() || self.errors.is_empty() || self.errors.iter().any(of_all));
        let named: BTreeSet<&ResourceName> = self.errors.iter().map(|error| &error.name).collect();
        let mentioned = |name: &ResourceName| {
            self.resources.find(name.as_str()).is_some()
                || self.removed.binary_search(name).is_ok()
                || self.has_heartbeat(name)
                || named.contains(name)
        };
        earlier.errors.retain(|error| if of_all(error) { !ends_all } else { !mentioned(&error.name) });
        earlier.late_errors.retain(|error| !mentioned(&error.name));
        let has_code = |error: &ResourceError| error.status.as_ref().is_some_and(|status| status.code != 0);
        let is_late = |error: &ResourceError| earlier.resources.find(error.name.as_str()).is_some() && has_code(error);
        let (mut late, errors) = core::mem::take(&mut self.errors).into_iter().partition(is_late);
        self.errors = errors;
        self.errors.append(&mut earlier.errors);
        self.late_errors.append(&mut late);
        self.late_errors.append(&mut earlier.late_errors);
    }

    /// Lets heartbeats of content that waits set its TTL.
    fn join_heartbeats(&mut self, earlier: &mut Self, merging: &Merging) {
        if self.heartbeats.is_empty() {
            return;
        }
        let (resources, has_all) = (&mut earlier.resources, earlier.has_all);
        let others: BTreeSet<ResourceName> =
            earlier.heartbeats.iter().map(|heartbeat| heartbeat.name.clone()).collect();
        self.heartbeats.retain(|heartbeat| {
            let Some(at) = resources.find(heartbeat.name.as_str()) else {
                // Of a resource that the earlier response removed.
                return !has_all || heartbeat.renewed || others.contains(&heartbeat.name);
            };
            let version = resources.at(at).version();
            let same =
                *version == heartbeat.version || (!merging.answers_each && *resources.version() == heartbeat.version);
            if same && !heartbeat.renewed {
                resources.set_ttl(at, heartbeat.ttl);
            }
            !same || heartbeat.renewed
        });
    }

    /// Keeps an earlier response, and those that were merged into it, to be answered.
    fn keep_answers(&mut self, earlier: &mut Self, limit: usize) {
        let stays = |name: &ResourceName| {
            earlier.resources.find(name.as_str()).is_some() || earlier.removed.binary_search(name).is_ok()
        };
        let mut merged = core::mem::take(&mut earlier.merged);
        merged.iter_mut().for_each(|merged| merged.names.retain(stays));
        let of_others: BTreeSet<&ResourceName> = merged.iter().flat_map(|merged| &merged.names).collect();
        let names = earlier.resources.names().chain(&earlier.removed);
        let mut names: Vec<ResourceName> = names.filter(|name| !of_others.contains(name)).cloned().collect();
        names.sort();
        let (nonce, serial, code) = (earlier.nonce.clone(), earlier.serial, earlier.code);
        merged.push(Merged { nonce, serial, names, faults: core::mem::take(&mut earlier.faults), code });
        merged.append(&mut self.merged);
        while merged.len() > limit {
            // Of those that have no place an ACK is missed least: the ACK of a later response stands for it.
            let accepted = merged.iter().position(|merged| merged.faults.is_empty());
            merged.remove(accepted.unwrap_or(0));
        }
        self.merged = merged;
    }
}

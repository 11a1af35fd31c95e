//! Invariants of a client between any two calls, whatever the server sent and the application did.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::Client;
use super::variant::Variant;
use crate::ensure::ensure;

impl<V: Variant> Client<V> {
    /// Checks the invariants of the machine, for tests, fuzz targets and custom models. The cost is linear in the state
    /// of the machine.
    ///
    /// # Errors
    ///
    /// The violated invariant, which is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        let settings = self.config.settings();
        let mut types = BTreeSet::new();
        for subscription in &self.types {
            let type_url = subscription.resource_type.type_url();
            ensure!(types.insert(type_url), "{type_url} is there twice");
            let queued = self.pending_acks.iter().filter(|queued| *queued == type_url).count();
            let pending_acks = subscription.in_flight.pending_acks();
            let turns = usize::from(pending_acks > 0);
            ensure!(queued == turns, "{type_url}: {pending_acks} answers, {queued} turns to answer");
            let checked = match &self.stream {
                Some(stream) => subscription.check(settings).and_then(|()| subscription.check_stream(stream.sent)),
                None => subscription.check(settings).and_then(|()| subscription.check_no_stream()),
            };
            let checked = checked.and_then(|()| V::check_stream_state(subscription));
            checked.map_err(|what| alloc::format!("{type_url}: {what}"))?;
            let out = subscription.in_flight.out();
            let epoch = out.map_or(0, |out| out.token.epoch);
            ensure!(epoch <= self.epoch, "{type_url}: an update of stream {epoch}, this is {}", self.epoch);
            let live = out.is_some_and(|out| out.live);
            ensure!(
                !live || epoch == self.epoch,
                "{type_url}: an update of stream {epoch} counts as of {}",
                self.epoch
            );
        }
        ensure!(
            self.pending_acks.iter().all(|type_url| types.contains(type_url)),
            "a turn to answer of an unknown type"
        );
        ensure!(self.paused.values().all(|&times| times > 0), "a type that is not paused counts as paused");
        Ok(())
    }
}

//! The state that all connections to one server share: its address, its control, and the results of its witnesses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::v2;
use crate::control::Control;
use crate::message::Variant;
use crate::resource::{self, Put};
use crate::run::{Op, Trouble};

/// The control of the server, which all connections share.
pub type SharedControl = Arc<Mutex<dyn Control + Send>>;

/// The number of failed witnesses after which no more are tried, if none ever succeeded.
const VAIN: u32 = 2;

/// A server under test.
#[derive(Clone)]
pub struct Target {
    address: String,
    control: SharedControl,
    /// The types that the server serves; empty if it serves all types.
    types: Vec<String>,
    v2: bool,
    node: Option<String>,
    witnesses: Arc<Mutex<BTreeMap<(&'static str, String), Witnesses>>>,
}

/// How the witnesses of a type fared.
#[derive(Clone, Copy, Debug, Default)]
struct Witnesses {
    seen: bool,
    vain: u32,
}

impl Target {
    /// Makes the target of a server at this address. `types` are the types that the server serves, by their short
    /// names; empty if it serves all types.
    pub fn new(address: impl Into<String>, control: SharedControl, types: &[String]) -> Self {
        let types = types.iter().map(|of| resource::type_url(of).to_owned()).collect();
        Self { address: address.into(), control, types, v2: false, node: None, witnesses: Arc::default() }
    }

    /// Sets whether the server uses version 2 of the transport API.
    #[must_use]
    pub fn with_v2(mut self, v2: bool) -> Self {
        self.v2 = v2;
        self
    }

    /// Sets the node id of all streams, for a server that knows nodes by their ids; without it, each case has its own.
    #[must_use]
    pub fn with_node(mut self, node: Option<String>) -> Self {
        self.node = node;
        self
    }

    /// Returns the node id that all streams have.
    pub(super) fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Returns whether the server uses version 2 of the transport API.
    pub fn is_v2(&self) -> bool {
        self.v2
    }

    pub(super) fn serves(&self, type_url: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|of| of == type_url)
    }

    /// Returns the address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Changes the server's resources.
    ///
    /// # Errors
    ///
    /// As [`Control::apply`].
    pub fn apply(&self, ops: &[Op]) -> Result<(), Trouble> {
        let old: Vec<Op> = if self.v2 { ops.iter().cloned().map(as_v2).collect() } else { Vec::new() };
        let ops = if self.v2 { &old } else { ops };
        self.control.lock().unwrap_or_else(PoisonError::into_inner).apply(ops)
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).is_atomic()
    }

    /// Returns whether the control's answer confirms that the server takes a change.
    pub fn is_confirmed(&self) -> bool {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).is_confirmed()
    }

    pub(super) fn has_witnesses(&self, variant: Variant, type_url: &str) -> bool {
        let witnesses = self.witnesses.lock().unwrap_or_else(PoisonError::into_inner);
        witnesses.get(&(name(variant), type_url.to_owned())).is_none_or(|of| of.seen || of.vain < VAIN)
    }

    pub(super) fn note_witness(&self, variant: Variant, type_url: &str, seen: bool) {
        let mut witnesses = self.witnesses.lock().unwrap_or_else(PoisonError::into_inner);
        let of = witnesses.entry((name(variant), type_url.to_owned())).or_default();
        of.seen |= seen;
        of.vain += u32::from(!seen);
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Returns a change with the type URL of version 2.
fn as_v2(mut op: Op) -> Op {
    match &mut op {
        Op::Put(Put { type_url, .. })
        | Op::Delete { type_url, .. }
        | Op::Error { type_url, .. }
        | Op::Unknown { type_url, .. } => *type_url = v2::old(type_url).to_owned(),
        Op::Clear | Op::Restart => {}
    }
    op
}

fn name(variant: Variant) -> &'static str {
    match variant {
        Variant::Sotw => "sotw",
        Variant::Delta => "delta",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Nothing;

    #[test]
    fn witnesses_are_given_up_only_if_none_ever_succeeded() {
        let target = Target::new("a:1", Arc::new(Mutex::new(Nothing)), &["cds".into()]);
        assert!(target.serves(xds_machine::type_url::CLUSTER) && !target.serves(xds_machine::type_url::ROUTE));
        let seen = |seen| target.note_witness(Variant::Sotw, "t", seen);
        seen(false);
        assert!(target.has_witnesses(Variant::Sotw, "t"));
        seen(false);
        assert!(!target.has_witnesses(Variant::Sotw, "t"));
        assert!(target.has_witnesses(Variant::Delta, "t") && target.has_witnesses(Variant::Sotw, "u"));
        seen(true);
        seen(false);
        assert!(target.has_witnesses(Variant::Sotw, "t"));
    }
}

//! What to run with a server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::message::Variant;
use crate::net::{SharedControl, Target};
use crate::report::{Glob, Implementation, variant_name};
use crate::run::Op;

/// What to run, and against what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The address of the server.
    pub address: String,
    /// What the report calls the server.
    pub implementation: Implementation,
    /// Whether the control can change anything.
    pub has_control: bool,
    /// Whether the control changes several types at once.
    pub has_batches: bool,
    /// The variants to run.
    pub variants: Vec<Variant>,
    /// The features of the server.
    pub features: BTreeSet<String>,
    /// Features that the server does not have, each with the reason.
    pub unsupported: BTreeMap<String, String>,
    /// The types that the server serves, by their short names.
    pub types: Vec<String>,
    /// The types that have a wildcard.
    pub wildcard: Vec<String>,
    /// Which cases to run.
    pub filter: Option<Glob>,
    /// How long to wait for what must come, if the user says.
    pub patience: Option<Duration>,
    /// Whether the server speaks version 2 of the transport API.
    pub v2: bool,
    /// The node id of all streams, if the user says.
    pub node: Option<String>,
    /// Whether a failure at level SHOULD counts.
    pub strict: bool,
}

impl Plan {
    /// Returns the server.
    pub(super) fn target(&self, control: &SharedControl) -> Target {
        let target = Target::new(self.address.as_str(), control.clone(), &self.types);
        target.with_v2(self.v2).with_node(self.node.clone())
    }

    /// Returns whether the server speaks a variant.
    pub(super) fn speaks(&self, variant: Variant) -> bool {
        let named = |name: &str| self.features.contains(name);
        named(variant_name(variant)) || !(named("sotw") || named("delta"))
    }

    /// Removes what an earlier run left, which is no concern of this one. A control that cannot clear has nothing left.
    pub(super) fn clear(&self, target: &Target) {
        if self.has_control {
            _ = target.apply(&[Op::Clear]);
        }
    }
}

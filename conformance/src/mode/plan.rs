//! The plan of a run with a server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::message::Variant;
use crate::net::{SharedControl, Target};
use crate::report::{Glob, Implementation, variant_name};
use crate::run::Op;

/// The cases to run, and the server to run them against.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The address of the server.
    pub address: String,
    /// The description of the server in the report.
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
    /// How long to wait for a message that must come, if the user sets it.
    pub patience: Option<Duration>,
    /// Whether the server uses version 2 of the transport API.
    pub v2: bool,
    /// The node id of all streams, if the user sets it.
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

    /// Returns whether the server supports a variant.
    pub(super) fn speaks(&self, variant: Variant) -> bool {
        let named = |name: &str| self.features.contains(name);
        named(variant_name(variant)) || !(named("sotw") || named("delta"))
    }

    /// Removes the resources that an earlier run left, because they do not belong to this run. A control that cannot
    /// clear has nothing left.
    pub(super) fn clear(&self, target: &Target) {
        if self.has_control {
            _ = target.apply(&[Op::Clear]);
        }
    }
}

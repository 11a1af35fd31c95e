//! The features of a server (`server_features`), and their meaning for the transport.

use alloc::vec::Vec;
use core::time::Duration;

use serde_json::Value;
use xds_machine::client::{Config, DataErrors};

use super::json::array;
use crate::faults::Walk;

/// The rules for data errors: those of gRFC A53, or those of gRFC A88 (R-BOOT-18).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Era {
    /// A resource that is deleted is removed, unless the server has `ignore_resource_deletion`. This is what gRPC does
    /// by default today.
    #[default]
    A53,
    /// A resource that is deleted stays in use, unless the server has `fail_on_data_errors`, by which a resource that
    /// is rejected is dropped as well. This is what gRPC does with `GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING`.
    A88,
}

/// The features of a server that have a meaning (R-BOOT-17).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Features {
    /// `ignore_resource_deletion` (gRFC A53).
    pub ignore_resource_deletion: bool,
    /// `fail_on_data_errors` (gRFC A88).
    pub fail_on_data_errors: bool,
    /// `resource_timer_is_transient_error` (gRFC A88).
    pub resource_timer_is_transient_error: bool,
    /// `trusted_xds_server` (gRFC A81): for the decoders'
    /// [`Context::trusted`](crate::resources::Context::trusted).
    pub trusted_xds_server: bool,
}

/// The time-out of a resource whose timer is a transient error (gRFC A88).
const TRANSIENT_TIMEOUT: Duration = Duration::from_secs(30);

impl Features {
    /// Reads the features. Entries of other names, and of other types, are ignored (R-BOOT-16).
    pub(super) fn read(walk: &mut Walk, value: &Value) -> Option<Self> {
        let mut features = Self::default();
        for entry in array(walk, value)?.iter().filter_map(Value::as_str) {
            if let Some((_, feature)) = features.each_mut().into_iter().find(|(name, _)| *name == entry) {
                *feature = true;
            }
        }
        Some(features)
    }

    fn each_mut(&mut self) -> [(&'static str, &mut bool); 4] {
        [
            ("ignore_resource_deletion", &mut self.ignore_resource_deletion),
            ("fail_on_data_errors", &mut self.fail_on_data_errors),
            ("resource_timer_is_transient_error", &mut self.resource_timer_is_transient_error),
            ("trusted_xds_server", &mut self.trusted_xds_server),
        ]
    }

    /// Returns the names of the features that are set.
    pub fn names(mut self) -> Vec<&'static str> {
        self.each_mut().into_iter().filter_map(|(name, set)| set.then_some(name)).collect()
    }

    /// Returns how a client treats resources that the server deletes or reports errors of.
    pub fn data_errors(self, era: Era) -> DataErrors {
        match era {
            Era::A53 if self.ignore_resource_deletion => DataErrors::Keep,
            Era::A53 => DataErrors::Delete,
            Era::A88 if self.fail_on_data_errors => DataErrors::Drop,
            Era::A88 => DataErrors::Keep,
        }
    }

    /// Applies the features to the configuration of the server's client.
    pub(super) fn apply(self, config: Config, era: Era) -> Config {
        let config = config.with_data_errors(self.data_errors(era));
        if era == Era::A88 && self.resource_timer_is_transient_error {
            config.with_transient_timeout().with_existence_timeout(Some(TRANSIENT_TIMEOUT))
        } else {
            config
        }
    }
}

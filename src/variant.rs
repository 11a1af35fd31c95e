//! The two variants of the protocol, as type parameters of the machines.

/// The state-of-the-world variant: a request lists all subscribed names, and responses of some types list all existing
/// resources (xds_protocol.rst, "Four Variants").
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Sotw;

/// The incremental variant: requests and responses carry changes (xds_protocol.rst, "Incremental xDS").
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Delta;

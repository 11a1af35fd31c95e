//! Measures the whole program over real connections: a control plane beside a bare server, which sends the same shared
//! bytes over the same HTTP/2 and parses nothing. Each server is a process of its own, so that the load is not counted.

mod bare;
mod behind_tonic;
mod beside;
mod figures;
mod frames;
mod generator;
mod ours;
mod process;
mod programs;
mod receive;
mod serve;
mod wire;

pub use self::beside::beside;
pub use self::figures::{e1, e2, e3, e4, e5, e6, e7};
pub use self::programs::{e8, e9};
pub use self::receive::receive;
pub use self::serve::{obey, serve};

/// The variant of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Variant {
    Delta,
    Sotw,
}

impl Variant {
    /// Returns the path of the aggregated method.
    fn path(self) -> &'static str {
        match self {
            Self::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
            Self::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Sotw => "sotw",
        }
    }
}

//! The resources, the same for all peers, and the floors: the time that prost takes for a response of all resources.

pub use benches::data::{body, clusters, name};
use benches::data::{cache, delta_response, sotw_response};
use benches::floor::{DeltaResponse, Encode, SotwResponse};

use crate::clock;
use crate::server::Variant;

/// The type that all clients request.
pub const TYPE_URL: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// Returns the time to encode a response of `n` resources.
pub fn encode_all(n: usize, variant: Variant) -> f64 {
    match variant {
        Variant::Delta => {
            clock::floor(Encode::<DeltaResponse>::new(delta_response(&cache(&clusters(), n), &clusters())))
        }
        Variant::Sotw => clock::floor(Encode::<SotwResponse>::new(sotw_response(&cache(&clusters(), n), &clusters()))),
    }
}

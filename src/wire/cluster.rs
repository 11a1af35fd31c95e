//! The only resource content that the server reads: the endpoints that a cluster needs.

use crate::fields::{self, Fields, Value};

/// `Cluster.eds_cluster_config.service_name`.
const EDS_CLUSTER_CONFIG: u32 = 3;
const SERVICE_NAME: u32 = 2;

/// Returns the name of an encoded cluster's endpoints, if the cluster sets one; otherwise the cluster's own name
/// applies.
pub(crate) fn endpoints_of(cluster: &[u8]) -> Option<&str> {
    let mut service_name = "";
    for field in Fields::new(cluster) {
        if let (EDS_CLUSTER_CONFIG, Value::Bytes(config)) = field.ok()? {
            service_name = fields::string(config, SERVICE_NAME).ok()?;
        }
    }
    Some(service_name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoints_of_a_cluster_are_its_service_name() {
        assert_eq!(endpoints_of(b"\x0a\x02c1\x1a\x04\x12\x02e1"), Some("e1"));
        assert_eq!(endpoints_of(b"\x0a\x02c1\x1a\x00"), None);
        assert_eq!(endpoints_of(b"\x0a\x02c1"), None);
        assert_eq!(endpoints_of(b"no protobuf"), None);
    }
}

//! The group that a node names.

use std::collections::BTreeMap;

use prost::Message;
use xds_machine::message::Node;

use crate::control_plane::arguments::GroupBy;

/// The fields of `envoy.config.core.v3.Node` that the machine leaves encoded.
#[derive(Clone, PartialEq, Message)]
struct Rest {
    #[prost(message, optional, tag = "3")]
    metadata: Option<Struct>,
}

/// `google.protobuf.Struct`.
#[derive(Clone, PartialEq, Message)]
struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: BTreeMap<String, Value>,
}

/// `google.protobuf.Value`, of which only strings count.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, optional, tag = "3")]
    string: Option<String>,
}

impl GroupBy {
    /// Returns the group that a node names, if it can be the name of a sub-folder. No path is made of it: it is
    /// compared with the names of the sub-folders.
    pub fn group(&self, node: &Node) -> Option<String> {
        let name = match self {
            Self::Cluster => node.cluster.clone(),
            Self::Id => node.id.clone(),
            Self::Metadata(key) => Rest::decode(node.rest.clone()).ok()?.metadata?.fields.remove(key)?.string?,
        };
        let can_be_one = !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && !name.contains(['/', '\0']);
        can_be_one.then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_read_from_the_cluster_id_or_metadata_of_the_node() {
        let value = |string: Option<&str>| Value { string: string.map(Into::into) };
        let fields = [("tier".into(), value(Some("edge"))), ("number".into(), value(None))].into();
        let rest = Rest { metadata: Some(Struct { fields }) }.encode_to_vec();
        let node = Node::new("n1").with_cluster("blue").with_rest(rest);
        let group = |by: &str| by.parse::<GroupBy>().expect(by).group(&node);
        assert_eq!(group("cluster").as_deref(), Some("blue"));
        assert_eq!(group("id").as_deref(), Some("n1"));
        assert_eq!(group("metadata.tier").as_deref(), Some("edge"));
        assert_eq!(group("metadata.number"), None, "no string");
        assert_eq!(group("metadata.other"), None, "absent");
    }

    #[test]
    fn a_name_that_cannot_be_a_sub_folder_is_no_group() {
        for name in ["", ".", "..", ".git", "a/b", "../a", "a\0", &"n".repeat(256)] {
            assert_eq!(GroupBy::Id.group(&Node::new(name)), None, "{name:?}");
        }
        let garbage = Node::new("n").with_rest(&b"\xff"[..]);
        assert_eq!(GroupBy::Metadata("k".into()).group(&garbage), None);
    }
}

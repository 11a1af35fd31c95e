//! Compares the trimmed `resources.proto` with the full xDS API.

use std::collections::BTreeSet;
use std::path::Path;

use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use super::resource::FULL;

/// The full names of the trimmed messages; nested ones follow their parents.
const MESSAGES: [(&str, &str); 27] = [
    ("Any", "google.protobuf.Any"),
    ("UInt32Value", "google.protobuf.UInt32Value"),
    ("BoolValue", "google.protobuf.BoolValue"),
    ("ConfigSource", "envoy.config.core.v3.ConfigSource"),
    ("TypedExtensionConfig", "envoy.config.core.v3.TypedExtensionConfig"),
    ("Address", "envoy.config.core.v3.Address"),
    ("SocketAddress", "envoy.config.core.v3.SocketAddress"),
    ("Listener", "envoy.config.listener.v3.Listener"),
    ("ApiListener", "envoy.config.listener.v3.ApiListener"),
    ("FilterChain", "envoy.config.listener.v3.FilterChain"),
    ("Filter", "envoy.config.listener.v3.Filter"),
    ("HttpConnectionManager", "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
    ("Rds", "envoy.extensions.filters.network.http_connection_manager.v3.Rds"),
    ("RouteConfiguration", "envoy.config.route.v3.RouteConfiguration"),
    ("ClusterSpecifierPlugin", "envoy.config.route.v3.ClusterSpecifierPlugin"),
    ("VirtualHost", "envoy.config.route.v3.VirtualHost"),
    ("Route", "envoy.config.route.v3.Route"),
    ("RouteMatch", "envoy.config.route.v3.RouteMatch"),
    ("RegexMatcher", "envoy.type.matcher.v3.RegexMatcher"),
    ("RouteAction", "envoy.config.route.v3.RouteAction"),
    ("WeightedCluster", "envoy.config.route.v3.WeightedCluster"),
    ("Cluster", "envoy.config.cluster.v3.Cluster"),
    ("AggregateConfig", "envoy.extensions.clusters.aggregate.v3.ClusterConfig"),
    ("ClusterLoadAssignment", "envoy.config.endpoint.v3.ClusterLoadAssignment"),
    ("FractionalPercent", "envoy.type.v3.FractionalPercent"),
    ("Locality", "envoy.config.core.v3.Locality"),
    ("LocalityLbEndpoints", "envoy.config.endpoint.v3.LocalityLbEndpoints"),
];

/// The messages that only the fields of other messages lead to.
const MORE: [(&str, &str); 2] =
    [("LbEndpoint", "envoy.config.endpoint.v3.LbEndpoint"), ("Endpoint", "envoy.config.endpoint.v3.Endpoint")];

/// The one message that the descriptors lack: `xds/type/v3/typed_struct.proto` has its `type_url` in field 1.
const NOT_THERE: &str = "xds_machine_grpc.TypedStruct";

fn trimmed() -> DescriptorPool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let set = protox::compile([folder.join("resources.proto")], [&folder]).expect("a proto file");
    DescriptorPool::from_file_descriptor_set(set).expect("descriptors")
}

#[test]
fn the_trimmed_messages_are_wire_compatible() {
    let (trimmed, mut wrong) = (trimmed(), Vec::new());
    let mut pairs: Vec<(MessageDescriptor, MessageDescriptor)> = Vec::new();
    for (name, full) in MESSAGES.into_iter().chain(MORE) {
        let name = format!("xds_machine_grpc.{name}");
        let one = trimmed.get_message_by_name(&name).unwrap_or_else(|| panic!("no {name}"));
        pairs.push((one, FULL.get_message_by_name(full).unwrap_or_else(|| panic!("no {full}"))));
    }
    let listed: BTreeSet<String> = pairs.iter().map(|(one, _)| one.full_name().to_owned()).collect();
    let mut all: BTreeSet<String> =
        trimmed.files().flat_map(|f| f.messages().map(|m| m.full_name().to_owned()).collect::<Vec<_>>()).collect();
    all.retain(|name| name != NOT_THERE);
    assert_eq!(listed, all, "messages that nobody compares");
    while let Some((one, full)) = pairs.pop() {
        for field in one.fields() {
            let at = field.full_name().to_owned();
            let Some(other) = full.get_field(field.number()) else {
                wrong.push(format!("{at}: no field {} there", field.number()));
                continue;
            };
            wrong.extend(differs(&field, &other).map(|how| format!("{at}: {how}")));
        }
        // The last member of a oneof counts, so the trimmed message has to know all members.
        for group in one.oneofs() {
            let here: BTreeSet<u32> = group.fields().map(|field| field.number()).collect();
            let there = full.oneofs().find(|other| other.name() == group.name());
            let there: BTreeSet<u32> =
                there.into_iter().flat_map(|o| o.fields().map(|f| f.number()).collect::<Vec<_>>()).collect();
            if here != there {
                wrong.push(format!("{}: members {here:?}, there {there:?}", group.full_name()));
            }
        }
        for child in one.child_messages() {
            let other = full.child_messages().find(|other| other.name() == child.name());
            pairs.push((child.clone(), other.unwrap_or_else(|| panic!("no {} there", child.full_name()))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn differs(here: &FieldDescriptor, there: &FieldDescriptor) -> Option<String> {
    let opaque = here.kind() == Kind::Bytes && matches!(there.kind(), Kind::Message(_));
    let same = match (here.kind(), there.kind()) {
        (Kind::Int32, Kind::Enum(_)) => true,
        (Kind::Message(one), Kind::Message(other)) => is_pair(&one, &other),
        (one, other) => one == other || opaque,
    };
    let list = |field: &FieldDescriptor| field.cardinality() == Cardinality::Repeated;
    let group = |field: &FieldDescriptor| field.containing_oneof().map(|group| group.name().to_owned());
    if here.name() != there.name() {
        Some(format!("{} there", there.name()))
    } else if !same {
        Some(format!("{:?}, and {:?} there", here.kind(), there.kind()))
    } else if list(here) != list(there) || group(here) != group(there) {
        Some("single here and a list there, or of a oneof".into())
    } else {
        None
    }
}

fn is_pair(one: &MessageDescriptor, other: &MessageDescriptor) -> bool {
    let listed = MESSAGES.iter().chain(&MORE).any(|(name, full)| one.name() == *name && other.full_name() == *full);
    listed || (one.parent_message().is_some() && one.name() == other.name())
}

//! Encodes resources: from canonical JSON by the descriptors of the xDS API, and by hand where JSON has no form.

use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Value as Field};
use serde_json::{Value, json};

use super::case::{Action, Address, Assignment, Case, Change, Cluster, ClusterOf, Dns, End, Host, Kind, Listener};
use super::case::{ListenerOf, Locality, Match, Resource, Route, Routes};

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(xds_api::FILE_DESCRIPTOR_SET).expect("a descriptor set"));

const TYPE: &str = "type.googleapis.com/";
const HTTP: &str = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const GARBAGE: &[u8] = &[0xff, 0xff];

/// Returns the prefix of a call's path, and of the path of its route.
pub fn prefix(number: usize) -> String {
    format!("/r{number}/")
}

pub fn path(number: usize) -> String {
    format!("/r{number}/m")
}

/// Returns the case as `grpc_oracle.py` reads it.
pub fn line(case: &Case, id: &str, ports: &[u16], patience: f64) -> String {
    let change = |change: &Change| match change {
        Change::Put(resource) | Change::Extra(resource) => {
            let body = BASE64_STANDARD.encode(resource.encode(id, ports));
            json!([resource.kind().short(), resource.name(id), body, matches!(change, Change::Extra(_))])
        }
        Change::Gone(kind, name) => json!([kind.short(), if name.is_empty() { id } else { name }, null, false]),
    };
    let steps: Vec<Value> = case
        .steps
        .iter()
        .map(|step| json!({"changes": step.changes.iter().map(change).collect::<Vec<_>>(), "wait": step.wait}))
        .collect();
    let paths: Vec<String> = (0..case.calls()).map(path).collect();
    let authority = if case.authority.is_empty() { id } else { &case.authority };
    json!({"id": id, "authority": authority, "quiet": 0.35 * patience, "slow": 0.6 * patience, "paths": paths, "steps": steps})
        .to_string()
}

impl Kind {
    fn message(self) -> &'static str {
        match self {
            Self::Listener => "envoy.config.listener.v3.Listener",
            Self::Routes => "envoy.config.route.v3.RouteConfiguration",
            Self::Cluster => "envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "envoy.config.endpoint.v3.ClusterLoadAssignment",
        }
    }

    pub fn type_url(self) -> String {
        format!("{TYPE}{}", self.message())
    }
}

impl Resource {
    pub fn encode(&self, target: &str, ports: &[u16]) -> Vec<u8> {
        let name = self.name(target);
        let broken = [&[0x0a, name.len() as u8], name.as_bytes(), GARBAGE].concat(); // a name, and no more
        let (mut value, garbage) = match self {
            Self::L(Listener { of: ListenerOf::Broken, .. }) => return broken,
            Self::R(Routes { broken: true, .. }) | Self::E(Assignment { broken: true, .. }) => return broken,
            Self::C(Cluster { of: ClusterOf::Broken, .. }) => return broken,
            Self::L(of) => {
                (listener(of), matches!(of.of, ListenerOf::Garbage).then_some(["api_listener", "api_listener"]))
            }
            Self::R(of) => (routes(of), None),
            Self::C(of) => (
                cluster(of, ports),
                matches!(of.of, ClusterOf::AggregateGarbage).then_some(["cluster_type", "typed_config"]),
            ),
            Self::E(of) => (assignment(of, ports), None),
        };
        let key = if matches!(self, Self::E(_)) { "clusterName" } else { "name" };
        value[key] = name.into();
        let mut message = message(self.kind().message(), value);
        if let Some(path) = garbage {
            inside(&mut message, path).set_field_by_name("value", Field::Bytes(GARBAGE.into()));
        }
        if matches!(self, Self::L(Listener { of: ListenerOf::TypedStruct, .. })) {
            typed_struct(inside(&mut message, ["api_listener", "api_listener"]));
        }
        if matches!(self, Self::L(listener) if listener.abort) {
            add_fault(inside(&mut message, ["api_listener", "api_listener"]));
        }
        message.encode_to_vec()
    }
}

fn inside<'a>(message: &'a mut DynamicMessage, [outer, inner]: [&str; 2]) -> &'a mut DynamicMessage {
    let any = message.get_field_by_name_mut(outer).and_then(Field::as_message_mut);
    any.and_then(|inside| inside.get_field_by_name_mut(inner)).and_then(Field::as_message_mut).expect("both are there")
}

/// Turns an `Any` into one of a `TypedStruct`, a type that the descriptors lack.
fn typed_struct(any: &mut DynamicMessage) {
    let url = format!("{TYPE}{HTTP}");
    let value = [&[0x0a, url.len() as u8], url.as_bytes(), &[0x12, 0]].concat();
    any.set_field_by_name("type_url", Field::String(format!("{TYPE}xds.type.v3.TypedStruct")));
    any.set_field_by_name("value", Field::Bytes(value.into()));
}

/// Configures the filter `fault` of a connection manager, which aborts every call with a status that is its own.
fn add_fault(any: &mut DynamicMessage) {
    // HTTPFault { abort: { grpc_status: ABORTED, percentage: 100 } }
    const FAULT: &[u8] = &[0x12, 6, 0x28, 10, 0x1a, 2, 8, 100];
    let bytes = any.get_field_by_name("value").and_then(|value| value.as_bytes().cloned()).expect("an Any");
    let descriptor = POOL.get_message_by_name(HTTP).expect("a message of the API");
    let mut manager = DynamicMessage::decode(descriptor, bytes).expect("a connection manager");
    let filters = manager.get_field_by_name_mut("http_filters").and_then(Field::as_list_mut).expect("filters");
    let filter = filters[0].as_message_mut().expect("a filter");
    let config = filter.get_field_by_name_mut("typed_config").and_then(Field::as_message_mut).expect("an Any");
    let url = format!("{TYPE}envoy.extensions.filters.http.fault.v3.HTTPFault");
    config.set_field_by_name("type_url", Field::String(url));
    config.set_field_by_name("value", Field::Bytes(FAULT.into()));
    any.set_field_by_name("value", Field::Bytes(manager.encode_to_vec().into()));
}

fn message(name: &str, value: Value) -> DynamicMessage {
    let descriptor = POOL.get_message_by_name(name).expect("a message of the API");
    DynamicMessage::deserialize(descriptor, &value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

fn any(name: &str, mut value: Value) -> Value {
    value["@type"] = format!("{TYPE}{name}").into();
    value
}

fn ads() -> Value {
    json!({"ads": {}})
}

fn listener(of: &Listener) -> Value {
    let mut filters = vec![json!({
        "name": "router", "typedConfig": any("envoy.extensions.filters.http.router.v3.Router", json!({})),
    })];
    if of.abort {
        filters.insert(0, json!({"name": "fault"})); // its config is of a type that the descriptors lack
    }
    let api = |mut manager: Value| {
        manager["httpFilters"] = filters.clone().into();
        json!({"apiListener": {"apiListener": any(HTTP, manager)}})
    };
    let rds = |name: &str, source: Value| api(json!({"rds": {"routeConfigName": name, "configSource": source}}));
    let address = json!({"socketAddress": {"address": "127.0.0.1", "portValue": 1}});
    match &of.of {
        ListenerOf::Rds(name) => rds(name, ads()),
        ListenerOf::RdsSelf(name) => rds(name, json!({"self": {}})),
        ListenerOf::RdsPath(name) => rds(name, json!({"pathConfigSource": {"path": "/x"}})),
        ListenerOf::RdsApi(name) => rds(name, json!({"apiConfigSource": {"apiType": "GRPC"}})),
        ListenerOf::RdsNoSource(name) => api(json!({"rds": {"routeConfigName": name}})),
        ListenerOf::RdsNoName => rds("", ads()),
        ListenerOf::Inline(inside) => {
            let mut value = routes(inside);
            value["name"] = inside.name.clone().into();
            api(json!({"routeConfig": value}))
        }
        ListenerOf::Both(name) => {
            let mut value = rds(name, ads());
            value["address"] = address;
            value
        }
        ListenerOf::Socket => {
            let manager = any(
                HTTP,
                json!({
                    "rds": {"routeConfigName": "r", "configSource": ads()}, "httpFilters": filters,
                }),
            );
            json!({"address": address, "defaultFilterChain": {"filters": [{"name": "http", "typedConfig": manager}]}})
        }
        ListenerOf::Neither | ListenerOf::Broken => json!({}),
        ListenerOf::NotHttp => {
            json!({"apiListener": {"apiListener": any("envoy.extensions.filters.http.router.v3.Router", json!({}))}})
        }
        ListenerOf::NoRoutes | ListenerOf::Garbage | ListenerOf::TypedStruct => api(json!({})),
        ListenerOf::Scoped => {
            let scope = json!({"name": "s", "scopeKeyBuilder": {"fragments": []}, "rdsConfigSource": ads()});
            api(json!({"scopedRoutes": scope}))
        }
    }
}

fn routes(of: &Routes) -> Value {
    let plugin = |plugin: &super::case::Plugin| {
        let nobodys = any("envoy.extensions.filters.http.router.v3.Router", json!({}));
        json!({"extension": {"name": plugin.name, "typedConfig": nobodys}, "isOptional": plugin.optional})
    };
    let host = |(number, host): (usize, &Host)| {
        let routes: Vec<Value> = host.routes.iter().enumerate().map(|(number, of)| route(number, of)).collect();
        json!({"name": format!("h{number}"), "domains": host.domains, "routes": routes})
    };
    json!({
        "virtualHosts": of.hosts.iter().enumerate().map(host).collect::<Vec<_>>(),
        "clusterSpecifierPlugins": of.plugins.iter().map(plugin).collect::<Vec<_>>(),
    })
}

fn route(number: usize, route: &Route) -> Value {
    let at = match &route.at {
        Match::Prefix => json!({"prefix": prefix(number)}),
        Match::Path => json!({"path": path(number)}),
        Match::Query => json!({"prefix": prefix(number), "queryParameters": [{"name": "q", "presentMatch": true}]}),
        Match::Absent => Value::Null,
        Match::Empty => json!({}),
        Match::Connect => json!({"connectMatcher": {}}),
        Match::Separated => json!({"pathSeparatedPrefix": "/r0"}),
        Match::OddPrefix(text) => json!({"prefix": text}),
        Match::OddPath(text) => json!({"path": text}),
    };
    let weighted = |(name, weight): &(String, Option<u32>)| json!({"name": name, "weight": weight});
    let mut value = match &route.to {
        Action::To(cluster) => json!({"route": {"cluster": cluster}}),
        Action::Weighted(clusters) => {
            json!({"route": {"weightedClusters": {"clusters": clusters.iter().map(weighted).collect::<Vec<_>>()}}})
        }
        Action::Plugin(name) => json!({"route": {"clusterSpecifierPlugin": name}}),
        Action::Header => json!({"route": {"clusterHeader": "x-cluster"}}),
        Action::InlinePlugin => {
            let nobodys = any("envoy.extensions.filters.http.router.v3.Router", json!({}));
            json!({"route": {"inlineClusterSpecifierPlugin": {"extension": {"name": "p", "typedConfig": nobodys}}}})
        }
        Action::Unset => json!({"route": {}}),
        Action::Redirect => json!({"redirect": {}}),
        Action::Direct => json!({"directResponse": {"status": 200}}),
        Action::NonForwarding => json!({"nonForwardingAction": {}}),
        Action::Nothing => json!({}),
    };
    value["match"] = at;
    value
}

fn cluster(of: &Cluster, ports: &[u16]) -> Value {
    let eds = |service: &str| json!({"type": "EDS", "edsClusterConfig": {"edsConfig": ads(), "serviceName": service}});
    let aggregate = |name: &str, children: &[String]| {
        let config = any("envoy.extensions.clusters.aggregate.v3.ClusterConfig", json!({"clusters": children}));
        json!({"clusterType": {"name": name, "typedConfig": config}})
    };
    let with = |mut value: Value, key: &str, to: Value| {
        value[key] = to;
        value
    };
    const NAME: &str = "envoy.clusters.aggregate";
    match &of.of {
        ClusterOf::Eds(service) => eds(service.as_deref().unwrap_or_default()),
        ClusterOf::EdsSelf => json!({"type": "EDS", "edsClusterConfig": {"edsConfig": {"self": {}}}}),
        ClusterOf::EdsPath => json!({"type": "EDS", "edsClusterConfig": {"edsConfig": {"path": "/x"}}}),
        ClusterOf::EdsNoSource => json!({"type": "EDS", "edsClusterConfig": {}}),
        ClusterOf::EdsNoConfig => json!({"type": "EDS"}),
        ClusterOf::Static => json!({"type": "STATIC"}),
        ClusterOf::StrictDns => json!({"type": "STRICT_DNS"}),
        ClusterOf::OriginalDst => json!({"type": "ORIGINAL_DST"}),
        ClusterOf::NoKind | ClusterOf::Broken => json!({}),
        ClusterOf::UnknownKind => {
            let config = any("envoy.extensions.filters.http.router.v3.Router", json!({}));
            json!({"clusterType": {"name": "x", "typedConfig": config}})
        }
        ClusterOf::Dns(dns) => logical_dns(*dns, ports),
        ClusterOf::Aggregate(children) => aggregate(NAME, children),
        ClusterOf::AggregateNamed(children) => aggregate("another", children),
        ClusterOf::AggregateProvided(children) => {
            with(aggregate(NAME, children), "lbPolicy", "CLUSTER_PROVIDED".into())
        }
        ClusterOf::AggregateGarbage => aggregate(NAME, &["x".to_owned()]),
        ClusterOf::LeastRequest => with(eds(""), "lbPolicy", "LEAST_REQUEST".into()),
        ClusterOf::LrsSelf => with(eds(""), "lrsServer", json!({"self": {}})),
        ClusterOf::LrsAds => with(eds(""), "lrsServer", ads()),
    }
}

fn logical_dns(dns: Dns, ports: &[u16]) -> Value {
    let end = |address: Value| json!({"endpoint": {"address": address}});
    let socket = |address: &str, port: u16| end(json!({"socketAddress": {"address": address, "portValue": port}}));
    let good = socket("127.0.0.1", ports[0]);
    let locality = |ends: &[Value]| json!({"lbEndpoints": ends});
    let localities = match dns {
        Dns::Backend(number) => vec![locality(&[socket("127.0.0.1", ports[usize::from(number)])])],
        Dns::NoAssignment => return json!({"type": "LOGICAL_DNS"}),
        Dns::NoLocality => vec![],
        Dns::TwoLocalities => vec![locality(std::slice::from_ref(&good)), locality(&[good])],
        Dns::NoEndpoint => vec![locality(&[])],
        Dns::TwoEndpoints => vec![locality(&[good.clone(), good])],
        Dns::Pipe => vec![locality(&[end(json!({"pipe": {"path": "/x"}}))])],
        Dns::Resolver => {
            let address = json!({"address": "127.0.0.1", "portValue": 1, "resolverName": "r"});
            vec![locality(&[end(json!({"socketAddress": address}))])]
        }
        Dns::NoHost => vec![locality(&[socket("", 1)])],
        Dns::NoPort => vec![locality(&[end(json!({"socketAddress": {"address": "127.0.0.1"}}))])],
        Dns::PortZero => vec![locality(&[socket("127.0.0.1", 0)])],
    };
    json!({"type": "LOGICAL_DNS", "loadAssignment": {"endpoints": localities}})
}

fn assignment(of: &Assignment, ports: &[u16]) -> Value {
    let drop = |drop: &super::case::Drop| {
        let amount = drop.amount.map(|(numerator, of)| json!({"numerator": numerator, "denominator": of}));
        json!({"category": drop.category, "dropPercentage": amount})
    };
    let mut value = json!({
        "endpoints": of.at.iter().map(|of| locality(of, ports)).collect::<Vec<_>>(),
        "policy": {"dropOverloads": of.drops.iter().map(drop).collect::<Vec<_>>()},
    });
    if of.overprovisioned {
        value["policy"]["overprovisioningFactor"] = 200.into();
    }
    value
}

fn locality(of: &Locality, ports: &[u16]) -> Value {
    let mut value = json!({
        "locality": of.id.map(|id| json!({"region": if id == 0 { String::new() } else { format!("r{id}") }})),
        "loadBalancingWeight": of.weight,
        "priority": of.priority,
        "lbEndpoints": of.ends.iter().map(|of| end(of, ports)).collect::<Vec<_>>(),
    });
    if of.leds {
        value["ledsClusterLocalityConfig"] = json!({"ledsConfig": ads(), "ledsCollectionName": "xdstp://known/x/*"});
        value.as_object_mut().map(|fields| fields.remove("lbEndpoints"));
    }
    value
}

fn end(of: &End, ports: &[u16]) -> Value {
    let mut value = json!({"healthStatus": of.health, "loadBalancingWeight": of.weight});
    if of.to == Address::Named {
        value["endpointName"] = "x".into();
        return value;
    }
    let more: Vec<Value> = of.more.iter().map(|of| json!({"address": address(of, ports)})).collect();
    value["endpoint"] = json!({"address": address(&of.to, ports), "additionalAddresses": more});
    value
}

fn address(of: &Address, ports: &[u16]) -> Value {
    let socket = |address: &str, port: u32| json!({"socketAddress": {"address": address, "portValue": port}});
    match of {
        Address::Backend(number) => socket("127.0.0.1", ports[usize::from(*number)].into()),
        Address::Dead(number) => socket(&format!("127.0.0.{}", u32::from(*number) + 2), 1),
        Address::Ip(text) => socket(text, 1),
        Address::Port(port) => socket("127.0.0.1", *port),
        Address::Host => socket("localhost", 1),
        Address::Pipe => json!({"pipe": {"path": "/x"}}),
        Address::None | Address::Named => Value::Null,
    }
}

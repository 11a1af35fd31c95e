//! ClusterLoadAssignments: R-EDS-01 to R-EDS-19.

use std::num::NonZeroU32;

use serde_json::{Value, json};
use xds_machine::message;
use xds_machine_grpc::endpoints::{Assignment, Drop, Endpoint, Health, Locality, Priority};
use xds_machine_grpc::links::Links;
use xds_machine_grpc::resources::decode_endpoints;

use super::resource::Decoder;

const ENDPOINTS: Decoder<Assignment> =
    Decoder { message: "envoy.config.endpoint.v3.ClusterLoadAssignment", decode: decode_endpoints };

fn socket(ip: &str, port: u32) -> Value {
    json!({"socketAddress": {"address": ip, "portValue": port}})
}

fn endpoint(ip: &str) -> Value {
    json!({"endpoint": {"address": socket(ip, 80)}})
}

fn locality(region: &str, weight: u32, priority: u32, endpoints: Value) -> Value {
    json!({
        "locality": {"region": region}, "loadBalancingWeight": weight, "priority": priority, "lbEndpoints": endpoints,
    })
}

fn all(localities: Value) -> Value {
    json!({"clusterName": "r", "endpoints": localities})
}

/// One locality with these endpoints.
fn one(endpoints: Value) -> Value {
    all(json!([locality("a", 1, 0, endpoints)]))
}

fn endpoints(json: Value) -> Vec<Endpoint> {
    let mut priorities = ENDPOINTS.value(one(json)).priorities;
    priorities.remove(0).localities.remove(0).endpoints
}

/// The faults of one locality with these endpoints.
fn faults(json: Value) -> String {
    ENDPOINTS.faults(one(json)).replace("endpoints[0].lb_endpoints", "*")
}

/// The regions and weights of the localities, by priority.
fn shape(json: Value) -> Vec<Vec<(String, u32)>> {
    let of = |priority: Priority| {
        priority.localities.into_iter().map(|locality| (locality.name.region, locality.weight.get())).collect()
    };
    ENDPOINTS.value(json).priorities.into_iter().map(of).collect()
}

/// R-EDS-01: An assignment without endpoints is legal; R-CHAIN-31: its links name the lack.
#[test]
fn an_assignment_without_endpoints_is_valid() {
    let lack = |json: Value| ENDPOINTS.decode(json).expect("valid").links();
    assert_eq!(ENDPOINTS.value(json!({})), Assignment::default());
    assert_eq!(lack(json!({})), Links::Endpoints(Some("contains no localities".into())));
    let empty = all(json!([
        locality("a", 1, 0, json!([])),
        locality("b", 1, 0, json!([endpoint("::1")])),
        locality("c", 1, 1, json!([])),
    ]));
    assert_eq!(lack(empty), Links::Endpoints(None), "some are there");
    let empty = all(json!([locality("a", 1, 0, json!([])), locality("c", 1, 1, json!([]))]));
    let text = "contains empty localities: [{region=\"a\", zone=\"\", sub_zone=\"\"}; {region=\"c\", zone=\"\", sub_zone=\"\"}]";
    assert_eq!(lack(empty), Links::Endpoints(Some(text.into())));
    assert_eq!(lack(one(json!([endpoint("::1")]))), Links::Endpoints(None));
}

/// R-EDS-02: A locality without weight is skipped before anything else in it is looked at.
#[test]
fn a_locality_without_weight_is_skipped() {
    let bad = json!([{"loadBalancingWeight": 0}]);
    let skipped = json!([
        {"lbEndpoints": bad}, {"loadBalancingWeight": 0, "lbEndpoints": bad, "priority": 7}, locality("a", 2, 0, json!([])),
    ]);
    assert_eq!(shape(all(skipped)), [[("a".into(), 2)]]);
}

/// R-EDS-03: The locality is required, and its names may be empty.
#[test]
fn an_entry_requires_a_locality_whose_parts_may_be_empty() {
    let none = all(json!([{"loadBalancingWeight": 1}]));
    assert_eq!(ENDPOINTS.faults(none), "[field:endpoints[0].locality error:field not present]");
    assert_eq!(shape(all(json!([{"loadBalancingWeight": 1, "locality": {}}]))), [[(String::new(), 1)]]);
}

/// R-EDS-04: A locality is in a priority at most once; it may be in another priority too.
#[test]
fn a_duplicate_locality_in_a_priority_is_a_fault() {
    let in_two = all(json!([locality("a", 1, 0, json!([])), locality("a", 2, 1, json!([]))]));
    assert_eq!(shape(in_two), [[("a".into(), 1)], [("a".into(), 2)]]);
    let twice = all(json!([locality("a", 1, 0, json!([])), locality("a", 2, 0, json!([]))]));
    assert_eq!(ENDPOINTS.faults(twice), "[field:endpoints[1] error:duplicate locality in priority 0]");
    let parts = |part: &str| json!({"locality": {part: "a"}, "loadBalancingWeight": 1});
    let all = ENDPOINTS.value(all(json!([parts("region"), parts("zone"), parts("subZone")])));
    let names = all.priorities[0].localities.iter().map(|locality| locality.name.clone());
    let name = |region: &str, zone: &str, sub_zone: &str| message::Locality {
        region: region.into(),
        zone: zone.into(),
        sub_zone: sub_zone.into(),
    };
    assert!(names.eq([name("a", "", ""), name("", "a", ""), name("", "", "a")]));
}

/// R-EDS-05: Priorities have no gaps, over the entries that remain, in any order. GB-12: no memory is allocated by a
/// number of a server.
#[test]
fn gb_12_priorities_have_no_gaps() {
    let with = |priorities: &[u32]| {
        let localities = priorities.iter().enumerate();
        let each = localities.map(|(at, priority)| locality(&at.to_string(), 1, *priority, json!([])));
        all(each.collect())
    };
    assert_eq!(shape(with(&[2, 0, 1])), [[("1".into(), 1)], [("2".into(), 1)], [("0".into(), 1)]]);
    let missing = |expected: u32, found: u32| {
        format!("[field:endpoints error:priority {expected} is missing before priority {found}]")
    };
    assert_eq!(ENDPOINTS.faults(with(&[1])), missing(0, 1));
    assert_eq!(ENDPOINTS.faults(with(&[0, 2, 4])), missing(1, 2));
    assert_eq!(ENDPOINTS.faults(with(&[0, u32::MAX])), missing(1, u32::MAX));
    let skipped = all(json!([locality("a", 0, 0, json!([])), locality("b", 1, 1, json!([]))]));
    assert_eq!(ENDPOINTS.faults(skipped), missing(0, 1), "an entry without weight does not count");
}

/// R-EDS-06: The sum of the weights of a priority's localities has at most 32 bits. (GB-13)
#[test]
fn gb_13_the_sum_of_locality_weights_is_limited_to_32_bits() {
    let most = all(json!([locality("a", u32::MAX - 1, 0, json!([])), locality("b", 1, 0, json!([]))]));
    assert_eq!(shape(most).len(), 1);
    let apart = all(json!([locality("a", u32::MAX, 0, json!([])), locality("b", u32::MAX, 1, json!([]))]));
    assert_eq!(shape(apart).len(), 2);
    let over = all(json!([
        locality("a", u32::MAX, 0, json!([])),
        locality("b", 1, 1, json!([])),
        locality("c", u32::MAX, 1, json!([])),
    ]));
    let expected = "[field:endpoints error:sum of locality weights for priority 1 exceeds uint32 max]";
    assert_eq!(ENDPOINTS.faults(over), expected);
}

/// R-EDS-07: The weights of endpoints may add up to more than 32 bits.
#[test]
fn the_sum_of_endpoint_weights_may_exceed_32_bits() {
    let mut two = json!([endpoint("::1"), endpoint("::2")]);
    two[0]["loadBalancingWeight"] = json!(u32::MAX);
    two[1]["loadBalancingWeight"] = json!(u32::MAX);
    let weights: u64 = endpoints(two).iter().map(|endpoint| u64::from(endpoint.weight.get())).sum();
    assert_eq!(weights, 2 * u64::from(u32::MAX));
}

/// R-EDS-08: A weight of 0 is a fault, and a missing weight is 1. (GB-13)
#[test]
fn gb_13_an_endpoint_weight_of_zero_is_a_fault() {
    let mut zero = json!([endpoint("::1")]);
    zero[0]["loadBalancingWeight"] = json!(0);
    assert_eq!(faults(zero), "[field:*[0].load_balancing_weight error:must be greater than 0]");
    assert_eq!(endpoints(json!([endpoint("::1")]))[0].weight, NonZeroU32::MIN);
}

/// R-EDS-09: Unknown and healthy endpoints may be used, and draining ones are kept; others are left out.
#[test]
fn only_unknown_healthy_and_draining_endpoints_are_kept() {
    let with = |health: &str, ip: &str| {
        let mut endpoint = endpoint(ip);
        endpoint["healthStatus"] = json!(health);
        endpoint
    };
    let all = json!([
        with("UNKNOWN", "::1"),
        with("HEALTHY", "::2"),
        with("DRAINING", "::3"),
        with("UNHEALTHY", "::4"),
        with("TIMEOUT", "::5"),
        with("DEGRADED", "::6"),
    ]);
    let kept = endpoints(all).into_iter().map(|endpoint| (endpoint.address.to_string(), endpoint.health));
    let expected = [("[::1]:80", Health::Unknown), ("[::2]:80", Health::Healthy), ("[::3]:80", Health::Draining)];
    assert!(kept.eq(expected.map(|(address, health)| (address.to_owned(), health))));
}

/// R-EDS-10: An endpoint that is left out has no faults: weight, address, duplicate.
#[test]
fn an_unhealthy_endpoint_is_not_validated() {
    let all = json!([
        endpoint("::1"),
        {"healthStatus": "UNHEALTHY", "loadBalancingWeight": 0, "endpoint": {"address": socket("::1", 80)}},
        {"healthStatus": "UNHEALTHY", "endpoint": {"address": socket("host", 70000)}},
        {"healthStatus": "UNHEALTHY"},
    ]);
    assert_eq!(endpoints(all).len(), 1);
}

/// R-EDS-11: An endpoint is required; a name alone is not enough.
#[test]
fn an_endpoint_name_without_an_endpoint_is_a_fault() {
    for entry in [json!({}), json!({"endpointName": "x"})] {
        assert_eq!(faults(json!([entry])), "[field:*[0].endpoint error:field not present]");
    }
}

/// R-EDS-12: An address is an IP address and a port of 16 bits, which may be 0. (GB-13)
#[test]
fn gb_13_an_address_is_an_ip_address() {
    let address = |address: Value| json!([{"endpoint": {"address": address}}]);
    let at = "field:*[0].endpoint.address";
    assert_eq!(faults(json!([{"endpoint": {}}])), format!("[{at} error:field not present]"));
    for other in [json!({}), json!({"pipe": {"path": "x"}}), json!({"envoyInternalAddress": {}})] {
        assert_eq!(faults(address(other)), format!("[{at}.socket_address error:field not present]"));
    }
    for ip in ["", "host", "1.2.3", "1.2.3.4:5", "[::1]", "01.2.3.4"] {
        let expected = format!("[{at}.socket_address.address error:{ip:?} is no IP address]");
        assert_eq!(faults(address(socket(ip, 80))), expected);
    }
    let both = format!(
        "[{at}.socket_address.address error:\"h\" is no IP address; {at}.socket_address.port_value error:invalid port: 65536]"
    );
    assert_eq!(faults(address(socket("h", 65536))), both);
    for port in [0, 65535] {
        assert_eq!(endpoints(address(socket("1.2.3.4", port)))[0].address.to_string(), format!("1.2.3.4:{port}"));
    }
    let unset = json!({"socketAddress": {"address": "::1"}});
    assert_eq!(endpoints(address(unset))[0].address.port(), 0);
}

/// R-EDS-13: An address is in the resource at most once, in whatever spelling, additional addresses included. (GB-13)
#[test]
fn gb_13_addresses_are_unique() {
    let duplicate = "error:duplicate endpoint address \"[::1]:80\"";
    let twice = json!([endpoint("::1"), endpoint("0:0:0:0:0:0:0:1")]);
    assert_eq!(faults(twice), format!("[field:*[1].endpoint.address {duplicate}]"));
    let apart =
        all(json!([locality("a", 1, 0, json!([endpoint("::1")])), locality("b", 1, 1, json!([endpoint("::1")])),]));
    let expected = format!("[field:endpoints[1].lb_endpoints[0].endpoint.address {duplicate}]");
    assert_eq!(ENDPOINTS.faults(apart), expected);
    let mut additional = json!([endpoint("::2"), endpoint("::1")]);
    additional[0]["endpoint"]["additionalAddresses"] = json!([{"address": socket("::1", 80)}]);
    assert_eq!(faults(additional), format!("[field:*[1].endpoint.address {duplicate}]"));
    let mut own = json!([endpoint("::1")]);
    own[0]["endpoint"]["additionalAddresses"] = json!([{"address": socket("::1", 80)}]);
    assert_eq!(faults(own), format!("[field:*[0].endpoint.additional_addresses[0].address {duplicate}]"));
    let mut ports = json!([endpoint("::1"), endpoint("::1")]);
    ports[1]["endpoint"]["address"] = socket("::1", 81);
    assert_eq!(endpoints(ports).len(), 2, "another port is another address");
}

/// R-EDS-14: An additional address is validated like the first.
#[test]
fn additional_addresses_are_validated() {
    let with = |additional: Value| {
        let mut all = json!([endpoint("::1")]);
        all[0]["endpoint"]["additionalAddresses"] = additional;
        all
    };
    let two = endpoints(with(json!([{"address": socket("::2", 1)}, {"address": socket("1.1.1.1", 2)}])));
    assert_eq!(two[0].additional, ["[::2]:1".parse().unwrap(), "1.1.1.1:2".parse().unwrap()]);
    let at = "field:*[0].endpoint.additional_addresses";
    assert_eq!(
        faults(with(json!([{}, {"address": socket("h", 1)}]))),
        format!(
            "[{at}[0].address error:field not present; {at}[1].address.socket_address.address error:\"h\" is no IP address]"
        )
    );
}

/// R-EDS-15: A locality without usable endpoints is kept; a locality with LEDS is such a locality.
#[test]
fn a_locality_without_endpoints_is_kept() {
    let mut leds = locality("b", 3, 0, json!([]));
    leds["ledsClusterLocalityConfig"] = json!({"ledsCollectionName": "x"});
    let all = all(json!([locality("a", 2, 0, json!([{"healthStatus": "UNHEALTHY"}])), leds]));
    assert_eq!(shape(all), [[("a".into(), 2), ("b".into(), 3)]]);
}

fn drops(json: Value) -> Value {
    json!({"policy": {"dropOverloads": json, "overprovisioningFactor": 7}})
}

/// R-EDS-16: A drop has a category, and a percentage with a denominator that is known.
#[test]
fn a_drop_requires_a_category_and_a_percentage() {
    let at = "field:policy.drop_overloads";
    let faults = |json: Value| ENDPOINTS.faults(drops(json));
    assert_eq!(
        faults(json!([{"category": "a"}, {"dropPercentage": {}}])),
        format!("[{at}[0].drop_percentage error:field not present; {at}[1].category error:empty drop category name]")
    );
    assert_eq!(
        faults(json!([{"category": "a", "dropPercentage": {"numerator": 1, "denominator": 3}}])),
        format!("[{at}[0].drop_percentage.denominator error:unknown denominator type]")
    );
}

/// R-EDS-17: A share is at most 100 %. GB-06: large numbers do not wrap around. R-EDS-18: The overprovisioning factor
/// is ignored.
#[test]
fn gb_06_drop_percentages_are_capped_and_do_not_wrap() {
    let share = |numerator: u32, denominator: &str| {
        let share = json!({"numerator": numerator, "denominator": denominator});
        let value = ENDPOINTS.value(drops(json!([{"category": "a", "dropPercentage": share}])));
        let [Drop { category, per_million }] = &value.drops[..] else { panic!("one") };
        assert_eq!(category, "a");
        *per_million
    };
    assert_eq!([share(0, "HUNDRED"), share(1, "HUNDRED"), share(100, "HUNDRED")], [0, 10_000, 1_000_000]);
    assert_eq!([share(1, "TEN_THOUSAND"), share(1, "MILLION")], [100, 1]);
    assert_eq!([share(200, "HUNDRED"), share(10_001, "TEN_THOUSAND"), share(1_000_001, "MILLION")], [1_000_000; 3]);
    assert_eq!([share(429_497, "HUNDRED"), share(42_949_673, "TEN_THOUSAND")], [1_000_000; 2]);
    assert_eq!(share(u32::MAX, "HUNDRED"), 1_000_000);
}

/// R-EDS-19: The complete value: priorities by number, localities and endpoints in the order of the resource.
#[test]
fn an_assignment_is_sorted_by_priority() {
    let value = ENDPOINTS.value(all(json!([
        locality("b", 2, 1, json!([endpoint("::3"), endpoint("::2")])),
        locality("a", 1, 0, json!([])),
    ])));
    let name = |region: &str| message::Locality { region: region.into(), ..message::Locality::default() };
    let endpoint = |ip: &str| Endpoint {
        address: ip.parse().unwrap(),
        additional: vec![],
        weight: NonZeroU32::MIN,
        health: Health::Unknown,
    };
    let weight = |weight| NonZeroU32::new(weight).unwrap();
    let a = Locality { name: name("a"), weight: weight(1), endpoints: vec![] };
    let b = Locality { name: name("b"), weight: weight(2), endpoints: ["[::3]:80", "[::2]:80"].map(endpoint).into() };
    let priorities = [a, b].map(|locality| Priority { localities: vec![locality] }).into();
    assert_eq!(value, Assignment { priorities, drops: vec![] });
}

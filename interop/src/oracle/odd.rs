//! Odd resources, one by one: those that a control plane can get wrong, and those that look wrong and are right.

use fastrand::Rng;

use super::case::{Action, Address, Assignment, Cluster, ClusterOf, Dns, End, Host, Listener, ListenerOf, Locality};
use super::case::{Match, Resource, Route, Routes};
use super::generate::{self, assignment, drop, eds, end, listener, locality, plugin, routes, to, weighted};

/// The place of an odd resource in its case.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Place {
    /// In place of the valid one.
    Instead,
    /// Beside the valid one, though the client does not request the name.
    Extra,
    /// A cluster that is below an aggregate.
    Aggregate,
    /// A cluster whose name is an `xdstp:` one.
    Xdstp,
}

/// The name of [`Place::Xdstp`].
pub const XDSTP: &str = "xdstp://known/envoy.config.cluster.v3.Cluster/c";

/// The name of [`Place::Extra`].
pub const UNASKED: &str = "unasked";

/// Returns one odd resource, by its number modulo their count.
pub fn resource(number: usize, rng: &mut Rng) -> (Place, Resource) {
    let mut all: Vec<(Place, Resource)> = Vec::new();
    all.extend(listeners().into_iter().map(|of| (Place::Instead, listener(of))));
    all.extend(all_routes().into_iter().map(|of| (Place::Instead, Resource::R(of))));
    let cluster = |of| Resource::C(Cluster { name: "c".into(), of });
    all.extend(
        clusters().into_iter().map(|of| (if rng.u8(..4) > 0 { Place::Instead } else { Place::Aggregate }, cluster(of))),
    );
    all.extend(assignments(rng).into_iter().map(|of| (Place::Instead, Resource::E(of))));
    for of in [ClusterOf::Eds(None), ClusterOf::Eds(Some("c".into()))] {
        all.push((Place::Xdstp, Resource::C(Cluster { name: XDSTP.into(), of })));
    }
    let unasked = |of| Resource::C(Cluster { name: UNASKED.into(), of });
    let name = || Some(UNASKED.to_owned());
    all.push((Place::Extra, unasked(ClusterOf::Static)));
    all.push((Place::Extra, unasked(ClusterOf::Eds(None))));
    all.push((Place::Extra, Resource::L(Listener { name: name(), of: ListenerOf::Neither, abort: false })));
    all.push((Place::Extra, Resource::E(Assignment { at: vec![bad_locality()], ..assignment(UNASKED, 0) })));
    all.swap_remove(number % all.len())
}

/// Returns the clusters that routes name besides the one that every case has, with their endpoints.
pub fn named(of: &Routes) -> Vec<Resource> {
    let actions = of.hosts.iter().flat_map(|host| &host.routes).map(|route| &route.to);
    let mut names: Vec<&str> = Vec::new();
    for action in actions {
        match action {
            Action::To(name) => names.push(name),
            Action::Weighted(clusters) => names.extend(clusters.iter().map(|(name, _)| name.as_str())),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty() && *name != "c");
    names.sort_unstable();
    names.dedup();
    names.iter().zip(2..).flat_map(|(name, backend)| [eds(name), Resource::E(assignment(name, backend))]).collect()
}

/// Returns other endpoints, which show that the last update counts.
pub fn backend(number: u8) -> Option<super::case::Change> {
    Some(super::case::Change::Put(Resource::E(assignment("c", number))))
}

fn listeners() -> Vec<ListenerOf> {
    let r = || "r".to_owned();
    vec![
        ListenerOf::RdsSelf(r()),
        ListenerOf::RdsPath(r()),
        ListenerOf::RdsApi(r()),
        ListenerOf::RdsNoSource(r()),
        ListenerOf::RdsNoName,
        ListenerOf::Both(r()),
        ListenerOf::Socket,
        ListenerOf::Neither,
        ListenerOf::NotHttp,
        ListenerOf::TypedStruct,
        ListenerOf::Garbage,
        ListenerOf::NoRoutes,
        ListenerOf::Scoped,
        ListenerOf::Broken,
    ]
}

fn all_routes() -> Vec<Routes> {
    let of = |list: Vec<Route>| routes("r", list);
    let action = |to: Action| of(vec![Route { at: Match::Prefix, to }, generate::to("d")]);
    let at = |at: Match| of(vec![Route { at, to: Action::To("d".into()) }, to("c")]);
    let host = |domains: &[&str], cluster: &str| Host {
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        routes: vec![to(cluster)],
    };
    let hosts = |hosts: Vec<Host>| Routes { name: "r".into(), hosts, ..Routes::default() };
    let with = |plugins: Vec<_>, name: &str| Routes { plugins, ..action(Action::Plugin(name.into())) };
    let one = Some(1);
    let mut all = vec![
        Routes { broken: true, ..hosts(vec![]) },
        hosts(vec![host(&["*"], "c"), Host { domains: vec!["x".into()], routes: vec![to("")] }]),
        hosts(vec![host(&["*"], "c"), Host { domains: vec!["".into()], routes: vec![] }]),
        hosts(vec![host(&["*", "a*b"], "c")]),
        hosts(vec![host(&["*"], "c"), host(&["*x*"], "d")]),
        hosts(vec![host(&["**"], "c")]),
        hosts(vec![host(&[], "c")]),
        hosts(vec![host(&["*"], "c"), host(&[], "d")]),
        hosts(vec![host(&["*"], "c"), host(&["*"], "d")]),
        hosts(vec![]),
        hosts(vec![host(&["nobody"], "c")]),
        of(vec![]),
        at(Match::Path),
        at(Match::Query),
        at(Match::Absent),
        at(Match::Empty),
        at(Match::Connect),
        at(Match::Separated),
        // Other oddities of the route do not count: the route is ignored first (R-RTE-09).
        of(vec![Route { at: Match::Query, to: Action::To(String::new()) }, to("c")]),
        of(vec![Route { at: Match::Query, to: weighted(&[("d", Some(0))]) }, to("c")]),
        Routes { plugins: vec![], ..action(Action::Plugin("unknown".into())) },
        with(vec![plugin("p", false)], "p"),
        with(vec![plugin("p", true)], "p"),
        with(vec![plugin("p", true), plugin("p", true)], "p"),
        with(vec![plugin("p", true)], "unknown"),
        Routes { plugins: vec![plugin("p", false)], ..of(vec![to("c")]) },
        Routes { plugins: vec![plugin("", true)], ..of(vec![to("c")]) },
    ];
    all.extend(
        [
            Action::Header,
            Action::InlinePlugin,
            Action::Unset,
            Action::Redirect,
            Action::Direct,
            Action::NonForwarding,
            Action::Nothing,
            Action::To(String::new()),
            weighted(&[("c", one), ("d", Some(3))]),
            weighted(&[("c", Some(0)), ("d", one)]),
            weighted(&[("c", Some(0)), ("d", Some(0))]),
            weighted(&[]),
            weighted(&[("c", Some(u32::MAX)), ("d", one)]),
            weighted(&[("c", Some(u32::MAX))]),
            weighted(&[("c", one), ("", one)]),
            weighted(&[("c", one), ("", Some(0))]),
            weighted(&[("c", one), ("c", one)]),
            weighted(&[("c", one), ("d", None)]),
            weighted(&[("c", None)]),
        ]
        .map(action),
    );
    for prefix in ["r", "/r//x", "//", "/a/b/", "/a/b/c"] {
        all.push(at(Match::OddPrefix(prefix.into())));
    }
    for path in ["", "r", "/", "/r", "/r/", "//m", "/a/b/c"] {
        all.push(at(Match::OddPath(path.into())));
    }
    all
}

fn clusters() -> Vec<ClusterOf> {
    let children = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut all = vec![
        ClusterOf::EdsSelf,
        ClusterOf::EdsPath,
        ClusterOf::EdsNoSource,
        ClusterOf::EdsNoConfig,
        ClusterOf::Static,
        ClusterOf::StrictDns,
        ClusterOf::OriginalDst,
        ClusterOf::NoKind,
        ClusterOf::UnknownKind,
        ClusterOf::AggregateGarbage,
        ClusterOf::LeastRequest,
        ClusterOf::LrsSelf,
        ClusterOf::LrsAds,
        ClusterOf::Broken,
    ];
    let dns = [
        Dns::Backend(3),
        Dns::NoAssignment,
        Dns::NoLocality,
        Dns::TwoLocalities,
        Dns::NoEndpoint,
        Dns::TwoEndpoints,
        Dns::Pipe,
        Dns::Resolver,
        Dns::NoHost,
        Dns::NoPort,
        Dns::PortZero,
    ];
    all.extend(dns.map(ClusterOf::Dns));
    all.extend([
        ClusterOf::Aggregate(vec![]),
        ClusterOf::Aggregate(children(&["spare", "spare"])),
        ClusterOf::Aggregate(children(&["c"])),
        ClusterOf::AggregateNamed(children(&["spare"])),
        ClusterOf::AggregateProvided(children(&["spare"])),
    ]);
    all
}

fn bad_locality() -> Locality {
    locality(1, 0, vec![End { weight: Some(0), ..end(Address::Backend(0)) }])
}

fn assignments(rng: &mut Rng) -> Vec<Assignment> {
    let to = |number: u8| end(Address::Backend(number));
    let of = |at: Vec<Locality>| Assignment { name: "c".into(), at, ..Assignment::default() };
    let good = |id: u8, priority: u32| locality(id, priority, vec![to(id)]);
    let weight = |weight: Option<u32>, of: Locality| Locality { weight, ..of };
    let odd = |address: Address| of(vec![locality(1, 0, vec![to(1), end(address)])]);
    let ip = |text: &str| end(Address::Ip(text.into()));
    let ends = |ends: Vec<End>| of(vec![locality(1, 0, ends)]);
    let drops = |category: &str, amount| Assignment { drops: vec![drop(category, amount)], ..assignment("c", 1) };
    let sick = |number: u32, of: End| End { health: number, ..of };
    let mut all = vec![
        of(vec![]),
        of(vec![weight(Some(0), bad_locality()), good(1, 0)]),
        of(vec![weight(None, bad_locality()), good(1, 0)]),
        of(vec![weight(None, Locality { id: None, ..good(2, 0) }), good(1, 0)]),
        of(vec![weight(Some(0), good(2, 0)), good(1, 1)]), // a gap in the remaining priorities
        of(vec![weight(None, good(2, 7)), good(1, 0)]),
        of(vec![weight(None, good(1, 0))]),
        of(vec![Locality { id: None, ..good(1, 0) }]),
        of(vec![good(0, 0)]),
        of(vec![good(1, 0), Locality { ends: vec![to(2)], ..good(1, 0) }]),
        of(vec![good(1, 0), Locality { ends: vec![to(2)], ..good(1, 1) }]),
        of(vec![good(1, 1), good(2, 0)]),
        of(vec![good(1, 0), good(2, 2)]),
        of(vec![good(1, 1)]),
        of(vec![good(1, 0), good(2, u32::MAX)]),
        of(vec![good(1, 0), good(2, 1 << 24)]),
        of(vec![good(1, 0), good(2, 1), good(3, 2), good(4, 3)]),
        of(vec![weight(Some(u32::MAX), good(1, 0)), good(2, 0)]),
        of(vec![weight(Some(u32::MAX), good(1, 0)), good(2, 1)]),
        ends(vec![End { weight: Some(u32::MAX), ..to(1) }, End { weight: Some(9), ..to(2) }]),
        ends(vec![End { weight: Some(0), ..to(1) }, to(2)]),
        ends(vec![End { weight: Some(7), ..to(1) }, to(2)]),
        ends(vec![sick(2, to(1)), to(2)]),
        ends(vec![sick(4, to(1)), sick(5, to(2)), sick(1, to(3))]),
        ends(vec![sick(3, to(1)), to(2)]),
        ends(vec![sick(3, to(1))]),
        ends(vec![sick(2, to(1))]),
        ends(vec![sick(99, to(1)), to(2)]),
        ends(vec![sick(2, end(Address::Host)), to(2)]),
        ends(vec![sick(2, End { weight: Some(0), ..to(1) }), to(2)]),
        ends(vec![sick(2, to(2)), to(2)]),
        ends(vec![sick(4, end(Address::Named)), to(2)]),
        ends(vec![]),
        of(vec![locality(1, 0, vec![]), good(2, 1)]),
        of(vec![locality(1, 0, vec![]), good(2, 0)]),
        of(vec![Locality { leds: true, ..locality(1, 0, vec![]) }]),
        of(vec![Locality { leds: true, ..locality(1, 0, vec![]) }, good(2, 0)]),
        of(vec![Locality { leds: true, ..locality(1, 0, vec![]) }, good(2, 1)]),
        odd(Address::Named),
        odd(Address::Host),
        odd(Address::Pipe),
        odd(Address::None),
        odd(Address::Port(70_000)),
        odd(Address::Port(65_536)),
        odd(Address::Port(0)),
        odd(Address::Ip("127.0.0.01".into())),
        odd(Address::Ip("[::1]".into())),
        odd(Address::Ip("fe80::1%1".into())),
        odd(Address::Ip(String::new())),
        ends(vec![to(1), to(1)]),
        of(vec![good(1, 0), Locality { ends: vec![to(1)], ..good(2, 1) }]),
        ends(vec![to(1), ip("::1"), ip("0:0:0:0:0:0:0:1")]),
        ends(vec![to(1), ip("::1"), ip("::2")]),
        ends(vec![to(1), ip("FE80::A"), ip("fe80::a")]),
        ends(vec![to(1), ip("::ffff:127.0.0.9"), end(Address::Dead(7))]),
        ends(vec![End { more: vec![Address::Dead(1)], ..to(1) }]),
        ends(vec![End { more: vec![Address::Backend(1)], ..to(1) }]),
        ends(vec![End { more: vec![Address::Host], ..to(1) }]),
        ends(vec![End { more: vec![Address::None], ..to(1) }]),
        ends(vec![End { more: vec![Address::Dead(1)], ..to(1) }, End { more: vec![Address::Dead(1)], ..to(2) }]),
        ends(vec![End { more: vec![Address::Backend(2)], ..to(1) }, to(2)]),
        drops("", Some((1, 0))),
        drops("d", None),
        drops("d", Some((1, 7))),
        drops("d", Some((100, 0))),
        drops("d", Some((200, 0))),
        drops("d", Some((0, 0))),
        drops("d", Some((10_000, 1))),
        drops("d", Some((1_000_000, 2))),
        drops("d", Some((u32::MAX, 2))),
        drops("d", Some((429_497, 0))),
        drops("d", Some((42_949_673, 1))),
        Assignment { drops: vec![drop("d", Some((0, 0))), drop("e", Some((300, 0)))], ..assignment("c", 1) },
        Assignment { overprovisioned: true, ..assignment("c", 1) },
        Assignment { broken: true, ..of(vec![]) },
    ];
    // Two faults at once, or a fault in the second of two.
    let spare = rng.u8(1..4);
    all.push(of(vec![good(spare, 0), bad_locality()]));
    all.push(of(vec![bad_locality(), Locality { id: None, ..good(spare, 3) }]));
    all
}

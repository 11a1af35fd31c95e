//! Random cases: single odd resources, graphs of clusters, conversations, and scripts in which C-core behaves
//! differently.

use fastrand::Rng;

use super::case::{
    Action, Address, Assignment, Case, Change, Cluster, ClusterOf, Dns, Drop, End, Host, Kind, Listener,
};
use super::case::{ListenerOf, Locality, Match, Plugin, Resource, Route, Routes, Step};
use super::odd;

/// The number of backends of the oracle.
pub const BACKENDS: u8 = 6;

/// Returns the case of a number: the same case for the same number.
pub fn case(seed: u64) -> Case {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let rng = &mut rng;
    // Every second case has one odd resource, each in its turn.
    if seed.is_multiple_of(2) {
        return single(rng, seed / 2);
    }
    match rng.u32(..100) {
        0..25 => domains(rng),
        25..57 => graph(rng),
        57..93 => conversation(rng, true),
        93..97 => renamed(rng),
        97 => held_back(rng),
        98 => never(rng),
        _ => crash(rng),
    }
}

pub fn listener(of: ListenerOf) -> Resource {
    Resource::L(Listener { name: None, of, abort: false })
}

pub fn to(cluster: &str) -> Route {
    Route { at: Match::Prefix, to: Action::To(cluster.into()) }
}

pub fn routes(name: &str, routes: Vec<Route>) -> Routes {
    let host = Host { domains: vec!["*".into()], routes };
    Routes { name: name.into(), hosts: vec![host], ..Routes::default() }
}

pub fn eds(name: &str) -> Resource {
    Resource::C(Cluster { name: name.into(), of: ClusterOf::Eds(None) })
}

pub fn end(address: Address) -> End {
    End { to: address, weight: None, health: 0, more: vec![] }
}

pub fn locality(id: u8, priority: u32, ends: Vec<End>) -> Locality {
    Locality { id: Some(id), weight: Some(1), priority, ends, leds: false }
}

pub fn assignment(name: &str, backend: u8) -> Assignment {
    let at = vec![locality(1, 0, vec![end(Address::Backend(backend))])];
    Assignment { name: name.into(), at, ..Assignment::default() }
}

/// Returns a listener, a route, a cluster and its endpoints.
pub fn plain() -> [Resource; 4] {
    [
        listener(ListenerOf::Rds("r".into())),
        Resource::R(routes("r", vec![to("c")])),
        eds("c"),
        Resource::E(assignment("c", 0)),
    ]
}

fn put(resources: impl IntoIterator<Item = Resource>) -> Step {
    Step { changes: resources.into_iter().map(Change::Put).collect(), wait: false }
}

fn of(steps: Vec<Step>) -> Case {
    Case { authority: String::new(), steps }
}

/// Returns a case with one odd resource among valid ones: from the start, or after a valid one, which may be sent
/// again.
fn single(rng: &mut Rng, number: u64) -> Case {
    let (place, odd) = odd::resource(number as usize, rng);
    let mut first = plain();
    let mut others = Vec::new();
    if let Resource::R(routes) = &odd {
        others.extend(odd::named(routes));
    }
    let case = match rng.u8(..4) {
        _ if place == odd::Place::Extra => {
            let mut step = put(first);
            step.changes.push(Change::Extra(odd));
            of(vec![step])
        }
        _ if place == odd::Place::Xdstp => {
            first[1] = Resource::R(routes("r", vec![to(odd::XDSTP)]));
            of(vec![put(first.into_iter().chain([odd]))])
        }
        0 => {
            let mut again = vec![Change::Put(first[odd.kind() as usize].clone())];
            let place = odd.kind() as usize;
            first[place] = odd;
            let mut steps = vec![put(first.into_iter().chain(others))];
            if rng.bool() {
                again.extend(odd::backend(1));
                steps.push(Step { changes: again, wait: false });
            }
            of(steps)
        }
        1 if odd.kind() != Kind::Listener => {
            // The routes are inside the listener.
            let (routes, rest) = match odd {
                Resource::R(routes) if !routes.broken => (routes, None),
                odd => (routes("", vec![to("c")]), Some(odd)),
            };
            let name = if rng.bool() { String::new() } else { routes.name.clone() };
            first[0] = listener(ListenerOf::Inline(Routes { name, ..routes }));
            if let Some(odd) = rest {
                let place = odd.kind() as usize;
                first[place] = odd;
            }
            of(vec![put(first.into_iter().chain(others))])
        }
        _ => {
            let mut steps = vec![put(first.into_iter().chain(others))];
            steps.push(put([odd]));
            if rng.bool() {
                steps.push(put([Resource::E(assignment("c", 1))]));
            }
            of(steps)
        }
    };
    if place == odd::Place::Aggregate { with_aggregate(case) } else { case }
}

/// Makes an aggregate refer to the odd cluster of a case, with another child beside it.
fn with_aggregate(mut case: Case) -> Case {
    let over = ClusterOf::Aggregate(vec!["c".into(), "spare".into()]);
    let more = [
        Resource::R(routes("r", vec![to("a")])),
        Resource::C(Cluster { name: "a".into(), of: over }),
        eds("spare"),
        Resource::E(assignment("spare", 4)),
    ];
    case.steps[0].changes.extend(more.map(Change::Put));
    case
}

/// Returns a case of several hosts with random domains, one cluster each.
fn domains(rng: &mut Rng) -> Case {
    const AUTHORITIES: [&str; 6] = ["foo.example", "Foo.Example", "foo.example:80", "a.b.c", "x", "foo.example.org"];
    const DOMAINS: [&str; 19] = [
        "*",
        "foo.example",
        "FOO.example",
        "*.example",
        "*example",
        "foo.*",
        "foo*",
        "*.EXAMPLE",
        "foo.example:80",
        "*:80",
        "a.b.c",
        "*.c",
        "*b.c",
        "a.*",
        "a.b.*",
        "x",
        "*x",
        "x*",
        "*.org",
    ];
    let count = rng.usize(1..5);
    let host = |number: usize, rng: &mut Rng| {
        let domains = (0..rng.usize(1..4)).map(|_| DOMAINS[rng.usize(..DOMAINS.len())].to_owned()).collect();
        Host { domains, routes: vec![to(&format!("c{number}"))] }
    };
    let hosts = (0..count).map(|number| host(number, rng)).collect();
    let routes = Routes { name: "r".into(), hosts, ..Routes::default() };
    let mut step = put([listener(ListenerOf::Rds("r".into())), Resource::R(routes)]);
    for number in 0..count {
        let name = format!("c{number}");
        step.changes.extend([eds(&name), Resource::E(assignment(&name, number as u8))].map(Change::Put));
    }
    Case { authority: AUTHORITIES[rng.usize(..AUTHORITIES.len())].into(), steps: vec![step] }
}

const CLUSTERS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const SERVICES: [&str; 4] = ["s", "t", "u", "v"];

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

fn picks(rng: &mut Rng, from: &[&str], most: usize) -> Vec<String> {
    (0..rng.usize(1..=most)).map(|_| pick(rng, from).to_owned()).collect()
}

/// Returns a cluster of a random graph: its name determines its kind, so that updates do not change the kind (GB-04).
fn cluster(rng: &mut Rng, name: &str) -> Resource {
    let of = match (name, rng.u8(..12)) {
        (_, 0) => [ClusterOf::Static, ClusterOf::EdsNoConfig, ClusterOf::Broken][rng.usize(..3)].clone(),
        ("a" | "e" | "g", _) => ClusterOf::Aggregate(picks(rng, &CLUSTERS, 3)),
        ("f", 1..5) => ClusterOf::Dns(Dns::Backend(rng.u8(..BACKENDS))),
        ("b" | "c", 1..7) => ClusterOf::Eds(Some(pick(rng, &SERVICES).into())),
        _ => ClusterOf::Eds(None),
    };
    Resource::C(Cluster { name: name.into(), of })
}

/// Returns endpoints in one or two priorities, where the first may be dead.
fn endpoints(rng: &mut Rng, name: &str) -> Resource {
    let backend = |rng: &mut Rng| Address::Backend(rng.u8(..BACKENDS));
    let first = if rng.u8(..5) == 0 { Address::Dead(rng.u8(..8)) } else { backend(rng) };
    let mut at = vec![locality(1, 0, vec![end(first.clone())])];
    let second = backend(rng);
    match rng.u8(..12) {
        0 => at.clear(),
        1 => at[0].ends.clear(),
        2 => at[0].priority = 1, // a gap
        3..6 if second != first => at.push(locality(2, 1, vec![end(second)])),
        6 if second != first => at[0].ends.push(end(second)),
        _ => {}
    }
    Resource::E(Assignment { name: name.into(), at, ..Assignment::default() })
}

fn some_routes(rng: &mut Rng, name: &str) -> Resource {
    let mut list: Vec<Route> = (0..rng.usize(1..4)).map(|_| to(pick(rng, &CLUSTERS))).collect();
    if rng.u8(..5) == 0 {
        let names = picks(rng, &CLUSTERS, 3);
        list[0].to = Action::Weighted(names.into_iter().map(|name| (name, Some(rng.u32(..3)))).collect());
    }
    Resource::R(routes(name, list))
}

fn whole(rng: &mut Rng, all: bool) -> Step {
    let mut step = put([listener(ListenerOf::Rds("r".into())), some_routes(rng, "r")]);
    for name in CLUSTERS {
        if all || rng.u8(..8) > 0 {
            step.changes.push(Change::Put(cluster(rng, name)));
        }
    }
    for name in CLUSTERS.into_iter().chain(SERVICES) {
        if all || rng.u8(..8) > 0 {
            step.changes.push(Change::Put(endpoints(rng, name)));
        }
    }
    rng.shuffle(&mut step.changes);
    step
}

/// Returns a random graph of clusters, complete from the start.
fn graph(rng: &mut Rng) -> Case {
    of(vec![whole(rng, true)])
}

/// Returns a random graph in which resources may be missing, and a script of changes.
fn conversation(rng: &mut Rng, gone: bool) -> Case {
    let all = rng.bool();
    let mut steps = vec![whole(rng, all)];
    for _ in 0..rng.usize(2..5) {
        let changes = (0..rng.usize(1..4)).map(|_| change(rng, gone)).collect();
        steps.push(Step { changes, wait: false });
    }
    of(steps)
}

fn change(rng: &mut Rng, gone: bool) -> Change {
    let any: Vec<&str> = CLUSTERS.into_iter().chain(SERVICES).collect();
    match rng.u8(..20) {
        0 if gone => Change::Gone(Kind::Listener, String::new()),
        1..4 if gone => Change::Gone(Kind::Cluster, pick(rng, &CLUSTERS).into()),
        4..9 => Change::Put(cluster_of(rng)),
        9..13 => Change::Put(some_routes(rng, "r")),
        13 => Change::Put(listener(ListenerOf::Rds("r".into()))),
        14 => Change::Put(listener(ListenerOf::Socket)),
        15 => {
            let Resource::R(inside) = some_routes(rng, "") else { unreachable!("routes") };
            Change::Put(listener(ListenerOf::Inline(inside)))
        }
        _ => {
            let name = pick(rng, &any);
            Change::Put(endpoints(rng, name))
        }
    }
}

fn cluster_of(rng: &mut Rng) -> Resource {
    let name = pick(rng, &CLUSTERS);
    cluster(rng, name)
}

/// Returns a case in which the routes of a listener get another name, and arrive later, or never (R-CHAIN-22).
fn renamed(rng: &mut Rng) -> Case {
    let mut steps = vec![put(plain())];
    let new = Resource::L(Listener { name: None, of: ListenerOf::Rds("q".into()), abort: rng.u8(..4) > 0 });
    steps.push(put([new]));
    if rng.u8(..4) > 0 {
        steps.push(put([Resource::E(assignment("c", 1))]));
    }
    if rng.bool() {
        let cluster = if rng.bool() { "c" } else { "d" };
        steps.push(put([Resource::R(routes("q", vec![to(cluster)]))]));
        if rng.bool() {
            steps.push(put([eds("d"), Resource::E(assignment("d", 2))]));
        }
    }
    of(steps)
}

/// Returns a case in which a cluster of the routes in use changes to need a cluster that does not exist; then the
/// routes no longer use the first cluster (R-CHAIN-47).
fn held_back(rng: &mut Rng) -> Case {
    let over = |name: &str, child: &str| {
        Resource::C(Cluster { name: name.into(), of: ClusterOf::Aggregate(vec![child.into()]) })
    };
    let inline = listener(ListenerOf::Inline(routes("", vec![to("d")])));
    let more = [eds("d"), Resource::E(assignment("d", 2))];
    let top = [over("a", "c"), Resource::R(routes("r", vec![to("a")]))];
    let mut steps = vec![put(plain().into_iter().chain(more).chain(top)), put([over("a", "nobody")]), put([inline])];
    if rng.bool() {
        steps.push(put([Resource::E(assignment("d", 3))]));
    }
    of(steps)
}

/// Returns a case in which a resource never arrives, and its timer runs out.
fn never(rng: &mut Rng) -> Case {
    let mut case = conversation(rng, false);
    case.steps.truncate(2);
    let missing = case.steps[0].changes.len() - rng.usize(0..3).min(case.steps[0].changes.len() - 1);
    case.steps[0].changes.truncate(missing);
    case.steps[0].wait = true;
    case
}

/// Returns a case in which a cluster becomes an aggregate, or ceases to be one (GB-04).
fn crash(rng: &mut Rng) -> Case {
    let over = || Resource::C(Cluster { name: "c".into(), of: ClusterOf::Aggregate(vec!["d".into()]) });
    let dns = Resource::C(Cluster { name: "c".into(), of: ClusterOf::Dns(Dns::Backend(2)) });
    let more = || [eds("d"), Resource::E(assignment("d", 3))];
    let mut first = put(plain().into_iter().chain(more()));
    let next = match rng.u8(..3) {
        0 => over(),
        1 => {
            first.changes[2] = Change::Put(dns);
            over()
        }
        _ => {
            first.changes[2] = Change::Put(over());
            eds("c")
        }
    };
    of(vec![first, put([next])])
}

/// Returns a weighted action; this and the functions below make parts of odd resources.
pub fn weighted(clusters: &[(&str, Option<u32>)]) -> Action {
    Action::Weighted(clusters.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect())
}

pub fn plugin(name: &str, optional: bool) -> Plugin {
    Plugin { name: name.into(), optional }
}

pub fn drop(category: &str, amount: Option<(u32, u32)>) -> Drop {
    Drop { category: category.into(), amount }
}

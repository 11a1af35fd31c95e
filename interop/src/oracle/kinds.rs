//! The kinds of resources in a case, by the rule that each is for: they show what a run has covered, and explain
//! differences.

use std::collections::BTreeSet;

use super::case::{
    Action, Case, Change, Cluster, ClusterOf, Dns, Listener, ListenerOf, Match, Resource, Route, Routes,
};
use super::endpoint_kinds;

pub type Kinds = BTreeSet<&'static str>;

/// Every kind that a run has to have.
pub const ALL: [&str; 120] = [
    "R-LIS-01 both",
    "R-LIS-01 neither",
    "R-CHAIN-18 socket",
    "R-LIS-02 not HTTP",
    "R-LIS-02 TypedStruct",
    "R-LIS-02 garbage",
    "R-LIS-03 no routes",
    "R-LIS-03 scoped",
    "R-LIS-04 self",
    "R-LIS-04 path",
    "R-LIS-04 api",
    "R-LIS-04 none",
    "R-LIS-05 no name",
    "R-LIS-06 inline",
    "R-LIS-06 inline without a name",
    "R-LIS-12 unasked",
    "listener broken",
    "R-CHAIN-17 listener gone",
    "R-CHAIN-22 renamed",
    "R-RTE-01 several hosts",
    "R-RTE-02 empty domain",
    "R-RTE-02 star inside",
    "R-RTE-02 two stars",
    "R-RTE-02 no domains",
    "R-RTE-03 nothing",
    "R-RTE-03 suffix",
    "R-RTE-03 prefix",
    "R-RTE-03 exact",
    "R-RTE-04 case",
    "R-RTE-05 port",
    "R-RTE-06 duplicate",
    "R-RTE-06 no hosts",
    "R-RTE-07 no match",
    "R-RTE-07 no path",
    "R-RTE-07 connect",
    "R-RTE-07 separated",
    "R-RTE-08 no routes",
    "R-RTE-09 query",
    "R-RTE-10 odd prefix",
    "R-RTE-10 odd path",
    "R-RTE-11 header",
    "R-RTE-11 inline plugin",
    "R-RTE-11 unset",
    "R-RTE-12 redirect",
    "R-RTE-12 direct",
    "R-RTE-12 non-forwarding",
    "R-RTE-12 nothing",
    "R-RTE-13 no cluster",
    "R-RTE-14 weighted",
    "R-RTE-14 zero",
    "R-RTE-14 all zero",
    "R-RTE-14 overflow",
    "R-RTE-14 no name",
    "R-RTE-14 twice",
    "R-RTE-14 unset",
    "R-RTE-15 duplicate",
    "R-RTE-15 required",
    "R-RTE-15 optional",
    "R-RTE-15 unknown",
    "routes broken",
    "R-CLU-01 static",
    "R-CLU-01 strict DNS",
    "R-CLU-01 original",
    "R-CLU-01 none",
    "R-CLU-01 unknown",
    "R-CLU-02 self",
    "R-CLU-02 path",
    "R-CLU-02 no source",
    "R-CLU-02 no config",
    "R-CLU-03 xdstp",
    "R-CLU-04 DNS",
    "R-CLU-04 no assignment",
    "R-CLU-04 no locality",
    "R-CLU-04 two localities",
    "R-CLU-04 no endpoint",
    "R-CLU-04 two endpoints",
    "R-CLU-04 pipe",
    "R-CLU-04 resolver",
    "R-CLU-04 no host",
    "R-CLU-04 no port",
    "R-CLU-04 port 0",
    "R-CLU-05 another name",
    "R-CLU-06 no children",
    "R-CLU-06 twice",
    "aggregate garbage",
    "R-CHAIN-43 provided",
    "R-CLU-07 least request",
    "R-CLU-10 self",
    "R-CLU-10 ads",
    "cluster broken",
    "R-CHAIN-28 cluster gone",
    "R-CHAIN-36 aggregate",
    "R-CHAIN-44 kind",
    "R-EDS-01 empty",
    "R-EDS-02 weight 0",
    "R-EDS-02 no weight",
    "R-EDS-03 no locality",
    "R-EDS-04 twice",
    "R-EDS-05 gap",
    "R-EDS-05 huge",
    "R-EDS-06 overflow",
    "R-EDS-07 overflow",
    "R-EDS-08 weight 0",
    "R-EDS-09 unhealthy",
    "R-EDS-09 draining",
    "R-EDS-10 unhealthy and odd",
    "R-EDS-11 named",
    "R-EDS-12 host",
    "R-EDS-12 pipe",
    "R-EDS-12 none",
    "R-EDS-12 port",
    "R-EDS-12 odd IP",
    "R-EDS-13 twice",
    "R-EDS-13 spelling",
    "R-EDS-14 additional",
    "R-EDS-15 unreachable",
    "R-EDS-15 LEDS",
    "R-EDS-16 no category",
    "R-EDS-16 no amount",
    "R-EDS-17 all",
];

/// Further kinds, of which a few are enough, because each costs a process or 15 s, or a difference needs its own name.
pub const RARE: [&str; 6] = [
    "GB-04 crash",
    "R-CHAIN-27 never",
    "R-EDS-16 denominator",
    "R-EDS-17 wrap",
    "R-EDS-18 overprovisioned",
    "endpoints broken",
];

impl Case {
    pub fn kinds(&self) -> Kinds {
        let mut kinds = Kinds::new();
        for change in self.steps.iter().flat_map(|step| &step.changes) {
            match change {
                Change::Extra(_) => _ = kinds.insert("R-LIS-12 unasked"),
                Change::Gone(super::case::Kind::Listener, _) => _ = kinds.insert("R-CHAIN-17 listener gone"),
                Change::Gone(super::case::Kind::Cluster, _) => _ = kinds.insert("R-CHAIN-28 cluster gone"),
                _ => {}
            }
            match change.resource() {
                Some(Resource::L(of)) => listener(of, &mut kinds),
                Some(Resource::R(of)) => routes(of, &self.authority, &mut kinds),
                Some(Resource::C(of)) => cluster(of, &mut kinds),
                Some(Resource::E(of)) => endpoint_kinds::collect(of, &mut kinds),
                None => {}
            }
        }
        if self.steps.iter().any(|step| step.wait) {
            kinds.insert("R-CHAIN-27 never");
        }
        self.changes_of_kind(&mut kinds);
        kinds
    }

    /// Returns whether C-core can crash: a cluster becomes an aggregate, or ceases to be one (GB-04).
    pub fn may_crash(&self) -> bool {
        self.kinds().contains("GB-04 crash")
    }

    fn changes_of_kind(&self, kinds: &mut Kinds) {
        let clusters: Vec<&Cluster> = self
            .resources()
            .filter_map(|of| match of {
                Resource::C(cluster) => Some(cluster),
                _ => None,
            })
            .collect();
        for (place, one) in clusters.iter().enumerate() {
            for other in clusters[place + 1..].iter().filter(|other| other.name == one.name) {
                let (a, b) = (one.of.group(), other.of.group());
                if a != b && !a.is_empty() && !b.is_empty() {
                    let crash = a == "aggregate" || b == "aggregate";
                    kinds.insert(if crash { "GB-04 crash" } else { "R-CHAIN-44 kind" });
                }
            }
        }
        let renamed = |of: &Resource| match of {
            Resource::L(Listener { of: ListenerOf::Rds(name), .. }) => Some(name.clone()),
            _ => None,
        };
        if self.resources().filter_map(renamed).collect::<BTreeSet<_>>().len() > 1 {
            kinds.insert("R-CHAIN-22 renamed");
        }
    }
}

impl ClusterOf {
    /// Returns the kind of a valid cluster.
    fn group(&self) -> &'static str {
        match self {
            Self::Eds(_) | Self::EdsSelf | Self::LeastRequest | Self::LrsSelf => "eds",
            Self::Dns(Dns::Backend(_) | Dns::PortZero) => "dns",
            Self::Aggregate(_) | Self::AggregateNamed(_) | Self::AggregateProvided(_) => "aggregate",
            _ => "",
        }
    }

    /// Returns the children of an aggregate.
    pub fn children(&self) -> &[String] {
        match self {
            Self::Aggregate(children) | Self::AggregateNamed(children) | Self::AggregateProvided(children) => children,
            _ => &[],
        }
    }
}

fn listener(of: &Listener, kinds: &mut Kinds) {
    let kind = match &of.of {
        ListenerOf::Rds(_) => return,
        ListenerOf::RdsSelf(_) => "R-LIS-04 self",
        ListenerOf::RdsPath(_) => "R-LIS-04 path",
        ListenerOf::RdsApi(_) => "R-LIS-04 api",
        ListenerOf::RdsNoSource(_) => "R-LIS-04 none",
        ListenerOf::RdsNoName => "R-LIS-05 no name",
        ListenerOf::Inline(inside) => {
            routes(inside, "", kinds);
            if inside.name.is_empty() { "R-LIS-06 inline without a name" } else { "R-LIS-06 inline" }
        }
        ListenerOf::Both(_) => "R-LIS-01 both",
        ListenerOf::Socket => "R-CHAIN-18 socket",
        ListenerOf::Neither => "R-LIS-01 neither",
        ListenerOf::NotHttp => "R-LIS-02 not HTTP",
        ListenerOf::TypedStruct => "R-LIS-02 TypedStruct",
        ListenerOf::Garbage => "R-LIS-02 garbage",
        ListenerOf::NoRoutes => "R-LIS-03 no routes",
        ListenerOf::Scoped => "R-LIS-03 scoped",
        ListenerOf::Broken => "listener broken",
    };
    kinds.insert(kind);
}

fn routes(of: &Routes, authority: &str, kinds: &mut Kinds) {
    let mut put = |is: bool, kind: &'static str| {
        if is {
            kinds.insert(kind);
        }
    };
    put(of.broken, "routes broken");
    put(of.hosts.is_empty() && !of.broken, "R-RTE-06 no hosts");
    put(of.hosts.len() > 1, "R-RTE-01 several hosts");
    let domains: Vec<&str> = of.hosts.iter().flat_map(|host| &host.domains).map(String::as_str).collect();
    put(domains.iter().any(|domain| domain.is_empty()), "R-RTE-02 empty domain");
    put(domains.iter().any(|domain| domain.trim_matches('*').contains('*')), "R-RTE-02 star inside");
    let stars = |domain: &&str| domain.len() > 1 && domain.starts_with('*') && domain.ends_with('*');
    put(domains.iter().any(stars), "R-RTE-02 two stars");
    let is_whole = |domain: &&str| domain.contains('*') && domain.replace('*', "").eq_ignore_ascii_case(authority);
    put(!authority.is_empty() && domains.iter().any(is_whole), "R-RTE-03 nothing");
    put(of.hosts.iter().any(|host| host.domains.is_empty()), "R-RTE-02 no domains");
    put(domains.iter().any(|domain| domain.len() > 1 && domain.starts_with('*')), "R-RTE-03 suffix");
    put(domains.iter().any(|domain| domain.len() > 1 && domain.ends_with('*')), "R-RTE-03 prefix");
    put(domains.iter().any(|domain| !domain.contains('*') && !domain.is_empty()), "R-RTE-03 exact");
    put(domains.iter().any(|domain| domain.chars().any(char::is_uppercase)), "R-RTE-04 case");
    put(authority.contains(':'), "R-RTE-05 port");
    put(domains.iter().collect::<BTreeSet<_>>().len() < domains.len(), "R-RTE-06 duplicate");
    put(of.hosts.iter().any(|host| host.routes.is_empty()), "R-RTE-08 no routes");
    let names: BTreeSet<_> = of.plugins.iter().map(|plugin| &plugin.name).collect();
    put(names.len() < of.plugins.len(), "R-RTE-15 duplicate");
    put(of.plugins.iter().any(|plugin| !plugin.optional), "R-RTE-15 required");
    put(of.plugins.iter().any(|plugin| plugin.optional), "R-RTE-15 optional");
    of.hosts.iter().flat_map(|host| &host.routes).for_each(|one| route(one, of, kinds));
}

fn route(of: &Route, within: &Routes, kinds: &mut Kinds) {
    match &of.at {
        Match::Prefix | Match::Path => None,
        Match::Query => Some("R-RTE-09 query"),
        Match::Absent => Some("R-RTE-07 no match"),
        Match::Empty => Some("R-RTE-07 no path"),
        Match::Connect => Some("R-RTE-07 connect"),
        Match::Separated => Some("R-RTE-07 separated"),
        Match::OddPrefix(_) => Some("R-RTE-10 odd prefix"),
        Match::OddPath(_) => Some("R-RTE-10 odd path"),
    }
    .map(|kind| kinds.insert(kind));
    let mut put = |is: bool, kind: &'static str| {
        if is {
            kinds.insert(kind);
        }
    };
    match &of.to {
        Action::To(name) => put(name.is_empty(), "R-RTE-13 no cluster"),
        Action::Weighted(clusters) => {
            put(true, "R-RTE-14 weighted");
            put(clusters.iter().any(|(_, weight)| *weight == Some(0)), "R-RTE-14 zero");
            put(clusters.iter().all(|(_, weight)| *weight == Some(0)), "R-RTE-14 all zero");
            let sum: u64 = clusters.iter().filter_map(|(_, weight)| *weight).map(u64::from).sum();
            put(sum > u32::MAX.into(), "R-RTE-14 overflow");
            put(clusters.iter().any(|(name, _)| name.is_empty()), "R-RTE-14 no name");
            put(
                clusters.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() < clusters.len(),
                "R-RTE-14 twice",
            );
            put(clusters.iter().any(|(_, weight)| weight.is_none()), "R-RTE-14 unset");
        }
        Action::Plugin(name) => {
            put(!within.plugins.iter().any(|plugin| plugin.name == *name), "R-RTE-15 unknown");
        }
        Action::Header => put(true, "R-RTE-11 header"),
        Action::InlinePlugin => put(true, "R-RTE-11 inline plugin"),
        Action::Unset => put(true, "R-RTE-11 unset"),
        Action::Redirect => put(true, "R-RTE-12 redirect"),
        Action::Direct => put(true, "R-RTE-12 direct"),
        Action::NonForwarding => put(true, "R-RTE-12 non-forwarding"),
        Action::Nothing => put(true, "R-RTE-12 nothing"),
    }
}

fn cluster(of: &Cluster, kinds: &mut Kinds) {
    if of.name.starts_with("xdstp:") {
        kinds.insert("R-CLU-03 xdstp");
    }
    let children = of.of.children();
    if children.iter().collect::<BTreeSet<_>>().len() < children.len() {
        kinds.insert("R-CLU-06 twice");
    }
    kinds.insert(match &of.of {
        ClusterOf::Eds(_) => return,
        ClusterOf::EdsSelf => "R-CLU-02 self",
        ClusterOf::EdsPath => "R-CLU-02 path",
        ClusterOf::EdsNoSource => "R-CLU-02 no source",
        ClusterOf::EdsNoConfig => "R-CLU-02 no config",
        ClusterOf::Static => "R-CLU-01 static",
        ClusterOf::StrictDns => "R-CLU-01 strict DNS",
        ClusterOf::OriginalDst => "R-CLU-01 original",
        ClusterOf::NoKind => "R-CLU-01 none",
        ClusterOf::UnknownKind => "R-CLU-01 unknown",
        ClusterOf::Dns(Dns::Backend(_)) => "R-CLU-04 DNS",
        ClusterOf::Dns(Dns::NoAssignment) => "R-CLU-04 no assignment",
        ClusterOf::Dns(Dns::NoLocality) => "R-CLU-04 no locality",
        ClusterOf::Dns(Dns::TwoLocalities) => "R-CLU-04 two localities",
        ClusterOf::Dns(Dns::NoEndpoint) => "R-CLU-04 no endpoint",
        ClusterOf::Dns(Dns::TwoEndpoints) => "R-CLU-04 two endpoints",
        ClusterOf::Dns(Dns::Pipe) => "R-CLU-04 pipe",
        ClusterOf::Dns(Dns::Resolver) => "R-CLU-04 resolver",
        ClusterOf::Dns(Dns::NoHost) => "R-CLU-04 no host",
        ClusterOf::Dns(Dns::NoPort) => "R-CLU-04 no port",
        ClusterOf::Dns(Dns::PortZero) => "R-CLU-04 port 0",
        ClusterOf::Aggregate(children) if children.is_empty() => "R-CLU-06 no children",
        ClusterOf::Aggregate(_) => "R-CHAIN-36 aggregate",
        ClusterOf::AggregateNamed(_) => "R-CLU-05 another name",
        ClusterOf::AggregateProvided(_) => "R-CHAIN-43 provided",
        ClusterOf::AggregateGarbage => "aggregate garbage",
        ClusterOf::LeastRequest => "R-CLU-07 least request",
        ClusterOf::LrsSelf => "R-CLU-10 self",
        ClusterOf::LrsAds => "R-CLU-10 ads",
        ClusterOf::Broken => "cluster broken",
    });
}

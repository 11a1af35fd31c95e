//! The naive chain: the rules again, as sets and recursion over everything, without regard to cost. The fast chain is
//! compared with the naive one, and the model has to find each [`Bug`] that is seeded in the naive one.

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::watch::News;
use xds_machine_grpc::chain::{Linked, Target};
use xds_machine_grpc::domains::best_host;
use xds_machine_grpc::links::{ClusterLinks, HostPort, Links, ListenerLinks, RouteSource, VirtualHost};

/// A defect that an implementation shipped (the catalogue of bugs, GB).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Bug {
    /// GB-01: a cluster that two roots reach is a leaf of the first root only.
    LeavesShared,
    /// GB-02: a configuration has a new Listener with the routes of the last one.
    Tears,
    /// GB-03: a child in error fails its aggregate, and is left out.
    ChildFailsAggregate,
    /// GB-14: errors are dropped.
    DropsErrors,
    /// GB-14: the clusters of all virtual hosts are watched.
    AllHosts,
    /// GB-15: late news of the old routes is taken for news of the new ones.
    TakesLateRoutes,
    /// R-CHAIN-33: an ambient error takes the place of the data.
    NotesAreErrors,
    /// R-CHAIN-33: a note stays after its error has ended.
    NotesStay,
}

/// A reported configuration: the values of the Listener and the routes, and each cluster as a text.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Shown {
    pub(crate) values: String,
    pub(crate) clusters: BTreeMap<Name, String>,
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let clusters: Vec<_> = self.clusters.iter().map(|(name, text)| format!("{name}:{text}")).collect();
        write!(f, "{{{} {}}}", self.values, clusters.join(", "))
    }
}

type Name = String;
type Text = Result<String, String>;

/// The values of the Listener and of the routes, the virtual hosts, and the resource that has these.
type Hosts<'a> = (String, &'a [VirtualHost], Target);

/// The naive chain. Contents are texts, as stories show them.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Naive {
    held: BTreeMap<Target, Result<(Links, String), String>>,
    notes: BTreeMap<Target, String>,
    resolved: BTreeMap<HostPort, Text>,
    dynamic: BTreeMap<Name, usize>,
    routes: Option<Name>,
    selected: Vec<Name>,
    used: Vec<Name>,
    bug: Option<Bug>,
}

impl Naive {
    pub(crate) fn new(bug: Option<Bug>) -> Self {
        Self { bug, ..Self::default() }
    }

    // Inputs.

    /// Takes news about a target that is watched.
    pub(crate) fn news(&mut self, target: &Target, news: &News<Linked<String>>) {
        let of_another_type = |links: &Links| {
            !matches!(
                (target, links),
                (Target::Listener(_), Links::Listener(_))
                    | (Target::Routes(_), Links::Routes(_))
                    | (Target::Cluster(_), Links::Cluster(_))
                    | (Target::Endpoints(_), Links::Endpoints(_))
            )
        };
        match news {
            News::Changed(Ok(view)) => {
                let held = if of_another_type(&view.links) {
                    Err(format!("the decoder gave the links of another type: {:?}", view.links))
                } else {
                    Ok(((*view.links).clone(), view.value.clone()))
                };
                self.held.insert(target.clone(), held);
                self.notes.remove(target);
            }
            News::Changed(Err(_)) if self.bug == Some(Bug::DropsErrors) => {}
            News::Changed(Err(status)) => {
                self.held.insert(target.clone(), Err(status.message.clone()));
                self.notes.remove(target);
            }
            News::Ambient(Some(status)) if self.bug == Some(Bug::NotesAreErrors) => {
                self.held.insert(target.clone(), Err(status.message.clone()));
            }
            News::Ambient(None) if self.bug == Some(Bug::NotesStay) => {}
            News::Ambient(note) => {
                if let (Some(status), Some(Ok(_))) = (note, self.held.get(target)) {
                    self.notes.insert(target.clone(), format!("{target}: {}", status.message));
                } else {
                    self.notes.remove(target);
                }
            }
            _ => {}
        }
        if let Some(source) = self.source() {
            self.routes = match source {
                RouteSource::Rds(name) => Some(name.to_string()),
                RouteSource::Inline(_) => None,
            };
        }
        if let Ok(Some((_, host))) = self.host() {
            self.selected = names(&host.clusters);
            if self.bug == Some(Bug::AllHosts) {
                if let Ok(Some(hosts)) = self.hosts() {
                    self.selected = hosts.1.iter().flat_map(|host| names(&host.clusters)).collect();
                }
            }
        }
    }

    pub(crate) fn resolved(&mut self, host: &HostPort, addresses: Text) {
        if !(addresses.is_err() && matches!(self.resolved.get(host), Some(Ok(_)))) {
            self.resolved.insert(host.clone(), addresses);
        }
    }

    pub(crate) fn subscribe(&mut self, cluster: &str) {
        *self.dynamic.entry(cluster.into()).or_default() += 1;
    }

    pub(crate) fn release(&mut self, cluster: &str) {
        let count = self.dynamic.get_mut(cluster).expect("subscribed");
        *count -= 1;
        if *count == 0 {
            self.dynamic.remove(cluster);
        }
    }

    /// Records that the driver ended a watch.
    pub(crate) fn unwatched(&mut self, target: &Target) {
        self.held.remove(target);
        self.notes.remove(target);
        if let Target::Dns(host) = target {
            self.resolved.remove(host);
        }
    }

    /// Records that the driver received the configuration.
    pub(crate) fn told(&mut self) {
        if let Ok(Some((_, host))) = self.host() {
            self.used = names(&host.clusters);
        }
    }

    /// Takes late news, about a target that is no longer watched.
    pub(crate) fn late(&mut self, target: &Target, news: &News<Linked<String>>) {
        if let (Some(Bug::TakesLateRoutes), Target::Routes(_), Some(name)) = (self.bug, target, self.routes.clone()) {
            self.news(&Target::Routes(name.as_str().into()), news);
        }
    }

    /// Returns the clusters that the virtual host names, if there is one now.
    pub(crate) fn roots(&self) -> Vec<Name> {
        self.host().ok().flatten().map(|(_, host)| names(&host.clusters)).unwrap_or_default()
    }

    /// Returns the children of an aggregate that are leaves.
    pub(crate) fn leaves_of(&self, name: &str) -> Vec<Name> {
        let is_leaf = |child: &Name| self.below(child).is_some();
        self.children(name).into_iter().filter(is_leaf).collect()
    }

    /// Returns the chain without its dynamic references.
    pub(crate) fn without_references(mut self) -> Self {
        self.dynamic.clear();
        self
    }

    // Outputs.

    pub(crate) fn wanted(&self) -> BTreeSet<Target> {
        let mut wanted = BTreeSet::from([Target::Listener("l".into())]);
        wanted.extend(self.routes.iter().map(|name| Target::Routes(name.as_str().into())));
        let roots = self.selected.iter().chain(&self.used).chain(self.dynamic.keys());
        for cluster in self.reach(roots.cloned().collect()) {
            wanted.insert(Target::Cluster(cluster.as_str().into()));
            wanted.extend(self.below(&cluster));
        }
        wanted
    }

    /// Returns the configuration or the failure; `None` while something is awaited.
    pub(crate) fn config(&self) -> Option<Result<Shown, String>> {
        let (values, host) = match self.host() {
            Ok(Some(found)) => found,
            Ok(None) => return None,
            Err(failure) => return Some(Err(failure)),
        };
        let fixed = self.reach(names(&host.clusters).into_iter().collect());
        if fixed.iter().any(|cluster| self.is_missing(cluster)) {
            return None;
        }
        let whole =
            |root: &&Name| !self.reach(BTreeSet::from([(*root).clone()])).iter().any(|name| self.is_missing(name));
        let roots = names(&host.clusters).into_iter().chain(self.dynamic.keys().filter(whole).cloned());
        let reached = self.reach(roots.collect());
        let mut shared = BTreeSet::new();
        let mut clusters = BTreeMap::new();
        for name in &reached {
            let failed = matches!(self.held.get(&Target::Cluster(name.as_str().into())), Some(Err(_)));
            if failed
                && self.bug == Some(Bug::ChildFailsAggregate)
                && !host.clusters.iter().any(|root| root == name.as_str())
            {
                continue;
            }
            clusters.insert(name.clone(), self.entry(name, &reached, &mut shared));
        }
        Some(Ok(Shown { values, clusters }))
    }

    // The rules.

    fn links(&self, target: &Target) -> Option<&Links> {
        self.held.get(target)?.as_ref().ok().map(|(links, _)| links)
    }

    fn cluster(&self, name: &str) -> Option<&ClusterLinks> {
        match self.links(&Target::Cluster(name.into()))? {
            Links::Cluster(links) => Some(links),
            _ => None,
        }
    }

    fn source(&self) -> Option<&RouteSource> {
        match self.links(&Target::Listener("l".into()))? {
            Links::Listener(ListenerLinks::Api(source)) => Some(source),
            _ => None,
        }
    }

    fn hosts(&self) -> Result<Option<Hosts<'_>>, String> {
        let listener = Target::Listener("l".into());
        let value = match self.held.get(&listener) {
            None => return Ok(None),
            Some(Err(why)) => return Err(format!("{listener}: {why}")),
            Some(Ok((_, value))) => value,
        };
        let name = match self.source() {
            None => return Err(format!("{listener}: not an API listener")),
            Some(RouteSource::Inline(hosts)) => return Ok(Some((format!("{value} inline"), hosts, listener))),
            Some(RouteSource::Rds(name)) => name,
        };
        let mut routes = Target::Routes(name.clone());
        if self.bug == Some(Bug::Tears) && !self.held.contains_key(&routes) {
            let other = self.held.keys().find(|target| matches!(target, Target::Routes(_)));
            routes = other.unwrap_or(&routes).clone();
        }
        match self.held.get(&routes) {
            None => Ok(None),
            Some(Err(why)) => Err(format!("{routes}: {why}")),
            Some(Ok((Links::Routes(hosts), text))) => Ok(Some((format!("{value} {text}"), hosts, routes))),
            Some(Ok(_)) => unreachable!("links of another type are an error"),
        }
    }

    fn host(&self) -> Result<Option<(String, &VirtualHost)>, String> {
        let Some((values, hosts, of)) = self.hosts()? else { return Ok(None) };
        match best_host(hosts, "host") {
            Some(index) => Ok(Some((values, &hosts[index]))),
            None => Err(format!("{of}: could not find VirtualHost for host in RouteConfiguration")),
        }
    }

    fn children(&self, name: &str) -> Vec<Name> {
        match self.cluster(name) {
            Some(ClusterLinks::Aggregate(children)) => names(children),
            _ => vec![],
        }
    }

    fn below(&self, name: &str) -> Option<Target> {
        match self.cluster(name)? {
            ClusterLinks::Eds(name) => Some(Target::Endpoints(name.clone())),
            ClusterLinks::Dns(host) => Some(Target::Dns(host.clone())),
            ClusterLinks::Aggregate(_) => None,
        }
    }

    fn is_missing(&self, name: &str) -> bool {
        let is_missing = |target: &Target| match target {
            Target::Dns(host) => !self.resolved.contains_key(host),
            target => !self.held.contains_key(target),
        };
        is_missing(&Target::Cluster(name.into())) || self.below(name).as_ref().is_some_and(is_missing)
    }

    /// Returns all clusters that are reached in fewer than 16 steps.
    fn reach(&self, roots: BTreeSet<Name>) -> BTreeSet<Name> {
        let mut reached = roots;
        for _ in 1..16 {
            let more: Vec<Name> = reached.iter().flat_map(|name| self.children(name)).collect();
            reached.extend(more);
        }
        reached
    }

    fn entry(&self, name: &str, reached: &BTreeSet<Name>, shared: &mut BTreeSet<Name>) -> String {
        let target = Target::Cluster(name.into());
        let status = self.held.get(&target).and_then(|held| held.as_ref().err());
        if let Some(why) = status {
            return format!("!{target}: {why}");
        }
        let note = |target: &Target| self.notes.get(target).cloned().unwrap_or_default();
        let routes = self.routes.iter().map(|name| Target::Routes(name.as_str().into()));
        let above = [Target::Listener("l".into())].into_iter().chain(routes).chain([target]);
        let mut notes: Vec<String> = above.map(|target| note(&target)).collect();
        let text = match self.cluster(name) {
            Some(ClusterLinks::Aggregate(_)) => {
                let mut own = BTreeSet::from([name.to_string()]);
                let seen = if self.bug == Some(Bug::LeavesShared) { shared } else { &mut own };
                seen.insert(name.to_string());
                return match self.leaves(name, 1, reached, seen) {
                    Ok(leaves) if leaves.is_empty() => {
                        format!("!aggregate cluster dependency graph for {name} has no leaf clusters")
                    }
                    Ok(leaves) => format!("[{}]", leaves.join(", ")),
                    Err(()) => format!("!aggregate cluster graph of {name} exceeds max depth"),
                };
            }
            Some(ClusterLinks::Dns(host)) => match self.resolved.get(host) {
                Some(Ok(addresses)) => addresses.clone(),
                Some(Err(why)) => {
                    notes.push(format!("DNS resolution failed for {}:{}: {why}", host.host, host.port));
                    "[]".into()
                }
                None => unreachable!("{name} is not resolved"),
            },
            Some(ClusterLinks::Eds(service)) => {
                let target = Target::Endpoints(service.clone());
                match self.held.get(&target) {
                    Some(Ok((links, text))) => {
                        notes.push(note(&target));
                        if let Links::Endpoints(Some(lacks)) = links {
                            notes.push(format!("{target}: {lacks}"));
                        }
                        text.clone()
                    }
                    Some(Err(why)) => {
                        notes.push(format!("{target}: {why}"));
                        String::new()
                    }
                    None => unreachable!("{name} is not resolved"),
                }
            }
            None => unreachable!("{name} is not resolved"),
        };
        if self.bug == Some(Bug::LeavesShared) {
            shared.insert(name.into());
        }
        notes.retain(|note| !note.is_empty());
        if notes.is_empty() { text } else { format!("{text}({})", notes.join("; ")) }
    }

    fn leaves(
        &self,
        name: &str,
        depth: usize,
        reached: &BTreeSet<Name>,
        seen: &mut BTreeSet<Name>,
    ) -> Result<Vec<Name>, ()> {
        let mut leaves = Vec::new();
        for child in self.children(name) {
            if depth == 16 || !reached.contains(&child) {
                return Err(());
            }
            if !seen.insert(child.clone()) {
                continue;
            }
            match self.cluster(&child) {
                Some(ClusterLinks::Aggregate(_)) => leaves.extend(self.leaves(&child, depth + 1, reached, seen)?),
                Some(_) => leaves.push(child),
                None if self.bug == Some(Bug::ChildFailsAggregate) => return Ok(vec![]),
                None => {}
            }
        }
        Ok(leaves)
    }
}

fn names(names: &[xds_machine::ResourceName]) -> Vec<Name> {
    names.iter().map(ToString::to_string).collect()
}

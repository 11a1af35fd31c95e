//! The subject of the exploration: the chain, or the naive chain with a bug.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use xds_machine::watch::News;
use xds_machine_grpc::chain::{Chain, Children, ClusterRef, Config, Linked, Target, Want};
use xds_machine_grpc::links::HostPort;

use super::naive::{Bug, Naive, Shown};

pub(super) type Told = Result<Shown, String>;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Subject {
    Chain(Box<Chain<String>>),
    Naive { naive: Box<Naive>, asked: BTreeSet<Target>, told: Option<Told> },
}

/// An event that the driver carries out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Event {
    Watch(Target),
    Unwatch(Target),
    Told(Told),
}

impl Subject {
    pub(super) fn chain() -> Self {
        Self::Chain(Box::new(Chain::new("l", "host")))
    }

    pub(super) fn naive(bug: Option<Bug>) -> Self {
        Self::Naive { naive: Box::new(Naive::new(bug)), asked: BTreeSet::new(), told: None }
    }

    pub(super) fn watched(&self) -> BTreeSet<Target> {
        match self {
            Self::Chain(chain) => chain.watched().cloned().collect(),
            Self::Naive { asked, .. } => asked.clone(),
        }
    }

    pub(super) fn told(&self) -> Option<Told> {
        match self {
            Self::Chain(chain) => chain.told().map(show),
            Self::Naive { told, .. } => told.clone(),
        }
    }

    pub(super) fn news(&mut self, target: &Target, news: News<Linked<String>>) {
        match self {
            Self::Chain(chain) => chain.handle_news(target, news),
            Self::Naive { naive, asked, .. } if asked.contains(target) => naive.news(target, &news),
            Self::Naive { naive, .. } => naive.late(target, &news),
        }
    }

    pub(super) fn resolved(&mut self, host: &HostPort, addresses: Result<Vec<SocketAddr>, String>) {
        match self {
            Self::Chain(chain) => chain.handle_resolved(host, addresses),
            Self::Naive { naive, .. } => naive.resolved(host, addresses.map(|all| format!("{all:?}"))),
        }
    }

    pub(super) fn subscribe(&mut self, cluster: &str) -> Option<ClusterRef> {
        match self {
            Self::Chain(chain) => Some(chain.subscribe(cluster)),
            Self::Naive { naive, .. } => {
                naive.subscribe(cluster);
                None
            }
        }
    }

    pub(super) fn release(&mut self, cluster: &str, reference: Option<&ClusterRef>) {
        match (self, reference) {
            (Self::Chain(chain), Some(reference)) => chain.release(reference),
            (Self::Naive { naive, .. }, _) => naive.release(cluster),
            (Self::Chain(_), None) => unreachable!("it was subscribed to"),
        }
    }

    /// Does what a driver does after an update.
    pub(super) fn settle(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        match self {
            Self::Chain(chain) => loop {
                while let Some(want) = chain.poll_want() {
                    events.push(match want {
                        Want::Watch(target) => Event::Watch(target),
                        Want::Unwatch(target) => Event::Unwatch(target),
                    });
                }
                let scratch = chain.config();
                let told = chain.poll_config();
                if scratch.is_some() {
                    assert_eq!(chain.told(), scratch.as_ref(), "what is remembered is what follows from scratch");
                }
                let Some(told) = told else { return events };
                events.push(Event::Told(show(&told)));
            },
            Self::Naive { naive, asked, told } => loop {
                let wanted = naive.wanted();
                events.extend(wanted.difference(asked).cloned().map(Event::Watch));
                for target in asked.difference(&wanted) {
                    naive.unwatched(target);
                    events.push(Event::Unwatch(target.clone()));
                }
                *asked = wanted;
                match naive.config() {
                    Some(config) if told.as_ref() != Some(&config) => {
                        naive.told();
                        events.push(Event::Told(config.clone()));
                        *told = Some(config);
                    }
                    _ => return events,
                }
            },
        }
    }
}

fn show(told: &Result<Config<String>, xds_machine_grpc::chain::Failure>) -> Told {
    let config = told.as_ref().map_err(ToString::to_string)?;
    let routes = config.routes.as_ref().map_or("inline", |(_, value)| value);
    let clusters = config.clusters.iter().map(|(name, entry)| {
        let text = match entry.as_ref().map(|cluster| &cluster.children) {
            Ok(Children::Leaves(leaves)) => format!("{leaves:?}").replace('"', ""),
            Ok(children @ Children::Endpoints { value, .. }) => with(value.clone().unwrap_or_default(), children),
            Ok(children @ Children::Resolved { addresses, .. }) => with(format!("{addresses:?}"), children),
            Err(failure) => format!("!{failure}"),
        };
        (name.to_string(), text)
    });
    Ok(Shown { values: format!("{} {routes}", config.listener), clusters: clusters.collect() })
}

fn with(text: String, children: &Children<String>) -> String {
    let remark = children.remark();
    if remark.is_empty() { text } else { format!("{text}({remark})") }
}

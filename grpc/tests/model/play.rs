//! Any bytes as a conversation with a chain: many clusters, shared names, cycles, notes, references, late news. The
//! naive chain is the oracle after each step of the driver.

use std::collections::BTreeMap;

use xds_machine::watch::News;
use xds_machine::{Code, ResourceName, Status};
use xds_machine_grpc::chain::{ClusterRef, Linked, Target};
use xds_machine_grpc::links::{ClusterLinks, HostPort, Links, ListenerLinks, RouteSource, VirtualHost};

use super::subject::{Event, Subject};

/// Plays a conversation; panics if it finds a fault.
pub(crate) fn play(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let mut world =
        World { chain: Subject::chain(), truth: Subject::naive(None), references: BTreeMap::new(), count: 0 };
    world.settle();
    while let (Some(what), Some(which), Some(how)) = (bytes.next(), bytes.next(), bytes.next()) {
        world.step(what, which, how);
    }
    world.settle();
}

struct World {
    chain: Subject,
    truth: Subject,
    references: BTreeMap<u8, ClusterRef>,
    /// The number of steps, which makes the values of each step new.
    count: usize,
}

fn cluster(number: u8) -> ResourceName {
    format!("c{}", number % 8).as_str().into()
}

fn dns(number: u8) -> HostPort {
    HostPort { host: format!("x{}", number % 2), port: 1 }
}

/// Returns the clusters whose bits are set, and the first of them once more at the end.
fn clusters(bits: u8) -> Vec<ResourceName> {
    let all: Vec<_> = (0..8).filter(|bit| bits & 1 << bit != 0).map(cluster).collect();
    let first = all.first().cloned();
    all.into_iter().chain(first).collect()
}

fn hosts(bits: u8) -> Vec<VirtualHost> {
    let host = |name: &str, clusters| VirtualHost { name: name.into(), domains: vec![name.into()], clusters };
    match bits {
        0 => vec![],
        1 => vec![host("other", clusters(255))],
        bits => vec![host("other", clusters(!bits)), host("host", clusters(bits))],
    }
}

/// Makes the links of a target; `None` is an error.
fn links(target: &Target, how: u8) -> Option<Links> {
    let rds = |how: u8| RouteSource::Rds(format!("r{}", how % 3).as_str().into());
    Some(match target {
        _ if how == 255 => return None,
        _ if how == 254 => Links::Endpoints(Some("lacks".into())), // of another type, mostly
        Target::Listener(_) if how < 128 => Links::Listener(ListenerLinks::Api(rds(how))),
        Target::Listener(_) if how < 240 => Links::Listener(ListenerLinks::Api(RouteSource::Inline(hosts(how - 128)))),
        Target::Listener(_) => Links::Listener(ListenerLinks::Socket { address: None, routes: vec![rds(how)] }),
        Target::Routes(_) => Links::Routes(hosts(how)),
        Target::Cluster(_) if how < 80 => Links::Cluster(ClusterLinks::Eds(format!("e{}", how % 4).as_str().into())),
        Target::Cluster(_) if how < 100 => Links::Cluster(ClusterLinks::Dns(dns(how))),
        Target::Cluster(_) => Links::Cluster(ClusterLinks::Aggregate(clusters(how.rotate_left(3)))),
        Target::Endpoints(_) | Target::Dns(_) => Links::Endpoints((how % 3 == 0).then(|| "lacks".into())),
    })
}

impl World {
    fn step(&mut self, what: u8, which: u8, how: u8) {
        self.count += 1;
        let watched: Vec<Target> = self.chain.watched().into_iter().collect();
        let target = watched[usize::from(which) % watched.len()].clone();
        match what % 8 {
            0..=3 => self.give(&target, how),
            4 => {
                let note = (how % 3 != 0).then(|| Status::new(Code::Unavailable, format!("note {}", how % 3)));
                self.tell(&target, News::Ambient(note));
            }
            5 => self.subscribe(which % 4),
            6 => self.release(which % 4),
            _ => self.settle(),
        }
        if what & 128 != 0 {
            // Late news, or news of routes that were never watched, must have no effect.
            let target = Target::Routes(format!("r{}", which % 3).as_str().into());
            if !self.chain.watched().contains(&target) {
                self.chain.news(&target, self.news(&target, how));
            }
        }
        if what & 64 != 0 {
            self.settle();
        }
    }

    fn give(&mut self, target: &Target, how: u8) {
        match target {
            Target::Dns(host) => {
                let port = u16::try_from(self.count % 1000).expect("small");
                let result = if how < 200 { Ok(vec![([1, 1, 1, 1], port).into()]) } else { Err(format!("why {how}")) };
                self.chain.resolved(host, result.clone());
                self.truth.resolved(host, result);
            }
            target => self.tell(target, self.news(target, how)),
        }
    }

    fn news(&self, target: &Target, how: u8) -> News<Linked<String>> {
        let gone = Status::new(Code::NotFound, format!("gone {}", how % 2));
        let value = format!("v{}", self.count);
        News::Changed(links(target, how).map(|links| Linked::new(links, value)).ok_or(gone))
    }

    fn tell(&mut self, target: &Target, news: News<Linked<String>>) {
        self.chain.news(target, news.clone());
        self.truth.news(target, news);
    }

    fn subscribe(&mut self, number: u8) {
        if !self.references.contains_key(&number) {
            let reference = self.chain.subscribe(cluster(number).as_str()).expect("a chain");
            self.truth.subscribe(cluster(number).as_str());
            self.references.insert(number, reference);
        }
    }

    fn release(&mut self, number: u8) {
        if let Some(reference) = self.references.remove(&number) {
            let name = cluster(number);
            self.chain.release(name.as_str(), Some(&reference));
            self.truth.release(name.as_str(), None);
            self.chain.release(name.as_str(), Some(&reference)); // which has no effect
        }
    }

    fn settle(&mut self) {
        let events = self.chain.settle();
        self.truth.settle();
        for (at, event) in events.iter().enumerate() {
            if let Event::Watch(target) = event {
                assert!(!events[..at].contains(&Event::Unwatch(target.clone())), "{target} is dropped and made again");
            }
        }
        assert_eq!(self.chain.watched(), self.truth.watched(), "what is watched");
        assert_eq!(self.chain.told(), self.truth.told(), "what is told");
    }
}

//! The chain: stories, each a conversation between a chain and its watches, written as text.

mod aggregates;
mod clusters;
mod listeners;
#[allow(dead_code, reason = "the model uses the rest")]
pub(crate) mod naive;
mod references;
mod values;
mod virtual_hosts;

use std::net::SocketAddr;

use naive::Naive;
use xds_machine::watch::News;
use xds_machine::{Code, Status};
use xds_machine_grpc::chain::{Chain, Children, ClusterRef, Config, Failure, Linked, Target, Want};
use xds_machine_grpc::links::{ClusterLinks, HostPort, Links, ListenerLinks, RouteSource, VirtualHost};

/// A chain, and the driver's side of it. Each call returns what the driver does after it: `+CDS a` begins a watch,
/// `-CDS a` ends one, `{..}` is a configuration and `!..` a failure in its place.
///
/// After each call the chain is compared with the naive one.
struct Story {
    chain: Chain<String>,
    naive: Naive,
    is_shut_down: bool,
}

fn story() -> (Story, String) {
    let mut story = Story { chain: Chain::new("l", "host"), naive: Naive::new(None), is_shut_down: false };
    let first = story.settle();
    (story, first)
}

/// Begins a story whose Listener and routes lead to these clusters.
fn routed(clusters: &[&str]) -> Story {
    let (mut story, _) = story();
    story.rds("r");
    story.routes("r", clusters);
    story
}

fn host(clusters: &[&str]) -> VirtualHost {
    let clusters = clusters.iter().map(|&name| name.into()).collect();
    VirtualHost { name: "host".into(), domains: vec!["host".into()], clusters }
}

fn listener() -> Target {
    Target::Listener("l".into())
}

fn routes(name: &str) -> Target {
    Target::Routes(name.into())
}

fn cluster(name: &str) -> Target {
    Target::Cluster(name.into())
}

fn endpoints(name: &str) -> Target {
    Target::Endpoints(name.into())
}

fn dns(host: &str) -> HostPort {
    HostPort { host: host.into(), port: 80 }
}

fn gone(why: &str) -> Status {
    Status::new(Code::NotFound, why)
}

impl Story {
    fn rds(&mut self, name: &str) -> String {
        self.put(&listener(), Links::Listener(ListenerLinks::Api(RouteSource::Rds(name.into()))), "l")
    }

    fn inline(&mut self, clusters: &[&str]) -> String {
        self.put(&listener(), Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![host(clusters)]))), "l")
    }

    fn routes(&mut self, name: &str, clusters: &[&str]) -> String {
        self.put(&routes(name), Links::Routes(vec![host(clusters)]), name)
    }

    fn eds(&mut self, name: &str, service: &str) -> String {
        self.put(&cluster(name), Links::Cluster(ClusterLinks::Eds(service.into())), name)
    }

    fn dns(&mut self, name: &str, host: &str) -> String {
        self.put(&cluster(name), Links::Cluster(ClusterLinks::Dns(dns(host))), name)
    }

    fn aggregate(&mut self, name: &str, children: &[&str]) -> String {
        let children = children.iter().map(|&name| name.into()).collect();
        self.put(&cluster(name), Links::Cluster(ClusterLinks::Aggregate(children)), name)
    }

    fn endpoints(&mut self, name: &str, value: &str) -> String {
        self.put(&endpoints(name), Links::Endpoints(None), value)
    }

    fn put(&mut self, target: &Target, links: Links, value: &str) -> String {
        self.tell(target, News::Changed(Ok(Linked::new(links, value.to_string()))));
        self.settle()
    }

    fn fail(&mut self, target: &Target, why: &str) -> String {
        self.tell(target, News::Changed(Err(gone(why))));
        self.settle()
    }

    fn ambient(&mut self, target: &Target, why: Option<&str>) -> String {
        self.tell(target, News::Ambient(why.map(gone)));
        self.settle()
    }

    fn resolved(&mut self, host: &str, addresses: Result<&[&str], &str>) -> String {
        let addresses = addresses.map(|all| all.iter().map(|one| one.parse().expect("an address")).collect());
        let addresses = addresses.map_err(ToString::to_string);
        if self.chain.watched().any(|watched| *watched == Target::Dns(dns(host))) {
            let text = addresses.clone().map(|all: Vec<SocketAddr>| format!("{all:?}"));
            self.naive.resolved(&dns(host), text);
        }
        self.chain.handle_resolved(&dns(host), addresses);
        self.settle()
    }

    /// Passes news to the chain, and polls nothing.
    fn tell(&mut self, target: &Target, news: News<Linked<String>>) {
        if self.chain.watched().any(|watched| watched == target) {
            self.naive.news(target, &news);
        }
        self.chain.handle_news(target, news);
    }

    fn subscribe(&mut self, cluster: &str) -> ClusterRef {
        self.naive.subscribe(cluster);
        self.chain.subscribe(cluster)
    }

    fn release(&mut self, reference: &ClusterRef) {
        self.naive.release(reference.cluster().as_str());
        self.chain.release(reference);
    }

    /// Polls as a driver does, and compares with what follows from scratch.
    fn settle(&mut self) -> String {
        let mut done = Vec::new();
        loop {
            while let Some(want) = self.chain.poll_want() {
                let (sign, target) = match &want {
                    Want::Watch(target) => ('+', target),
                    Want::Unwatch(target) => ('-', target),
                };
                if sign == '-' {
                    self.naive.unwatched(target);
                }
                done.push(format!("{sign}{}", target.to_string().replace(" resource", "").replace(" name", "")));
            }
            let scratch = self.chain.config();
            let outcome = self.chain.poll_config();
            let naive = self.naive.config();
            if self.is_checked() {
                let scratch = scratch.as_ref().map(|outcome| outcome.as_ref().map(show).map_err(ToString::to_string));
                let naive = naive.map(|outcome| outcome.map(|shown| shown.to_string()));
                assert_eq!(naive, scratch, "the naive chain and the chain");
            }
            match &scratch {
                Some(_) => {
                    assert_eq!(self.chain.told(), scratch.as_ref(), "what is told, and what follows from scratch")
                }
                None => assert_eq!(outcome, None, "nothing is complete"),
            }
            match outcome {
                Some(Ok(config)) => {
                    self.naive.told();
                    done.push(show(&config));
                }
                Some(Err(failure)) => done.push(format!("!{failure}")),
                None => break,
            }
        }
        let mut wanted = self.chain.wanted();
        wanted.sort();
        assert!(self.chain.watched().eq(&wanted), "what is wanted is watched: {wanted:?}");
        if self.is_checked() {
            assert!(self.naive.wanted().iter().eq(&wanted), "the naive chain and the chain");
        }
        done.join(" ")
    }

    /// Returns whether the naive chain can be compared: it knows no shutdown, and is not for thousands of clusters.
    fn is_checked(&self) -> bool {
        !self.is_shut_down && self.chain.watched().count() < 50
    }

    fn shut_down(&mut self) -> String {
        self.is_shut_down = true;
        self.chain.shut_down();
        self.settle()
    }
}

fn show(config: &Config<String>) -> String {
    let routes = config.routes.as_ref().map_or("inline".to_string(), |(_, value)| value.clone());
    let show = |entry: Result<String, &Failure>| entry.unwrap_or_else(|failure| format!("!{failure}"));
    let clusters = config.clusters.iter().map(|(name, entry)| {
        format!("{name}:{}", show(entry.as_ref().map(|cluster| show_children(&cluster.children))))
    });
    format!("{{{} {routes} {}}}", config.listener, clusters.collect::<Vec<_>>().join(", "))
}

fn show_children(children: &Children<String>) -> String {
    let with = |text: String| {
        let remark = children.remark();
        if remark.is_empty() { text } else { format!("{text}({remark})") }
    };
    match children {
        Children::Endpoints { value, .. } => with(value.clone().unwrap_or_default()),
        Children::Resolved { addresses, .. } => with(format!("{addresses:?}")),
        Children::Leaves(leaves) => format!("{leaves:?}").replace('"', ""),
    }
}

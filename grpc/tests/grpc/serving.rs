//! The chain of a server: stories.

use std::net::SocketAddr;

use xds_machine::watch::News;
use xds_machine::{Code, Status};
use xds_machine_grpc::chain::{Linked, Target, Want};
use xds_machine_grpc::links::{Links, ListenerLinks, RouteSource, VirtualHost};
use xds_machine_grpc::serving::{ServerChain, Serving};

const HERE: &str = "1.2.3.4:50051";

/// A server's chain. Each call returns what the driver does after it: `+r` and `-r` watch, `l{r:v}` serves, `!..` does
/// not.
struct Story(ServerChain<String>);

fn story() -> Story {
    let mut story = Story(ServerChain::new("l", address(HERE)));
    assert_eq!(story.settle(), "+l", "R-SRV-01");
    story
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

impl Story {
    fn listener(&mut self, value: &str, routes: &[&str]) -> String {
        self.listener_at(value, Some(address(HERE)), routes)
    }

    fn listener_at(&mut self, value: &str, address: Option<SocketAddr>, routes: &[&str]) -> String {
        let mut routes: Vec<_> = routes.iter().map(|&name| RouteSource::Rds(name.into())).collect();
        let inline = VirtualHost { name: "v".into(), domains: vec![], clusters: vec!["not looked at".into()] };
        routes.push(RouteSource::Inline(vec![inline]));
        let links = Links::Listener(ListenerLinks::Socket { address, routes });
        self.news(&Target::Listener("l".into()), Ok(Linked::new(links, value.to_string())))
    }

    fn routes(&mut self, name: &str, value: Result<&str, &str>) -> String {
        let linked = value.map(|value| Linked::new(Links::Routes(vec![]), value.to_string()));
        self.news(&Target::Routes(name.into()), linked)
    }

    fn news(&mut self, target: &Target, content: Result<Linked<String>, &str>) -> String {
        let content = content.map_err(|why| Status::new(Code::NotFound, why));
        self.0.handle_news(target, News::Changed(content));
        self.settle()
    }

    fn settle(&mut self) -> String {
        let mut done = Vec::new();
        loop {
            while let Some(want) = self.0.poll_want() {
                let (sign, target) = match &want {
                    Want::Watch(target) => ('+', target),
                    Want::Unwatch(target) => ('-', target),
                };
                done.push(format!("{sign}{}", target.resource().expect("no DNS").1));
            }
            match self.0.poll_serving() {
                None => break,
                Some(Serving::NotServing(failure)) => done.push(format!("!{failure}")),
                Some(Serving::Serves { listener, routes }) => {
                    let routes = routes.iter().map(|(name, value)| match value {
                        Ok(value) => format!("{name}:{value}"),
                        Err(failure) => format!("{name}:!{failure}"),
                    });
                    done.push(format!("{listener}{{{}}}", routes.collect::<Vec<_>>().join(", ")));
                }
            }
        }
        done.join(" ")
    }
}

#[test]
fn a_server_waits_for_all_routes_of_its_filter_chains() {
    // R-SRV-02, R-SRV-03
    let mut s = story();
    assert_eq!(s.0.waits_for(), [Target::Listener("l".into())]);
    assert_eq!(s.listener("l1", &["r1", "r2", "r1"]), "+r1 +r2");
    assert_eq!(s.routes("r1", Ok("1")), "");
    assert_eq!(s.0.waits_for(), [Target::Routes("r2".into())]);
    assert_eq!(s.routes("r2", Ok("2")), "l1{r1:1, r2:2}");
    assert_eq!(s.listener("l2", &["r3"]), "+r3", "the old Listener serves meanwhile");
    assert_eq!(s.routes("r2", Ok("3")), "l1{r1:1, r2:3}");
    assert_eq!(s.routes("r3", Ok("4")), "l2{r3:4} -r1 -r2", "R-SRV-08");
    assert_eq!(s.routes("r2", Ok("late")), "");
    assert_eq!(s.listener("l3", &[]), "l3{} -r3");
}

#[test]
fn a_server_serves_with_routes_in_error() {
    // R-SRV-04
    let mut s = story();
    s.listener("l", &["r"]);
    assert_eq!(s.routes("r", Err("gone")), "l{r:!RDS resource r: gone}");
    assert_eq!(s.routes("r", Ok("1")), "l{r:1}");
}

#[test]
fn a_missing_or_mismatched_listener_does_not_serve() {
    // R-SRV-05
    let mut s = story();
    s.listener("l", &["r"]);
    assert_eq!(s.routes("r", Ok("1")), "l{r:1}");
    assert_eq!(s.news(&Target::Listener("l".into()), Err("gone")), "!LDS resource l: gone");
    assert_eq!(s.listener("l", &["r"]), "l{r:1}", "nothing is asked for again");
    let text = "!LDS resource l: its address is 1.2.3.4:1, and the server listens on 1.2.3.4:50051";
    assert_eq!(s.listener_at("l", Some(address("1.2.3.4:1")), &["r"]), text);
    let text = "!LDS resource l: it has no IP address, and the server listens on 1.2.3.4:50051";
    assert_eq!(s.listener_at("l", None, &["r"]), text);
    assert_eq!(s.listener("l", &["r2"]), "+r2", "it does not serve before the new routes come");
    assert_eq!(s.routes("r", Ok("2")), "");
    assert_eq!(s.routes("r2", Ok("3")), "l{r2:3} -r");
    let links = Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![])));
    let api = s.news(&Target::Listener("l".into()), Ok(Linked::new(links, String::new())));
    assert_eq!(api, "!LDS resource l: not a server's listener");
}

#[test]
fn an_equal_listener_and_a_rejected_one_are_no_change() {
    // R-SRV-06, R-SRV-07
    let mut s = story();
    s.listener("l", &[]);
    assert_eq!(s.listener("l", &[]), "");
    s.0.handle_news(&Target::Listener("l".into()), News::Ambient(Some(Status::new(Code::InvalidArgument, "bad"))));
    assert_eq!(s.settle(), "");
}

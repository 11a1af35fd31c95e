//! Chains and their configurations as values: large ones, equal ones, and their hashes.

use std::hash::{DefaultHasher, Hash, Hasher};

use xds_machine::watch::News;
use xds_machine_grpc::chain::{Chain, Linked, Want};
use xds_machine_grpc::links::{ClusterLinks, Links, ListenerLinks, RouteSource};

use super::{cluster, endpoints, gone, host, listener, routed};

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn equal_chains_have_equal_hashes_and_different_chains_differ() {
    let make = |value: &str| {
        let mut s = routed(&["a"]);
        s.eds("a", "e");
        s.endpoints("e", value);
        s.chain
    };
    let (one, same, other) = (make("1"), make("1"), make("2"));
    assert!(one == same && one == one.clone() && one != other);
    assert!(hash(&one) == hash(&same) && hash(&one) != hash(&other));
    let clusters = |chain: &Chain<String>| chain.config().expect("complete").expect("usable").clusters;
    assert_eq!(hash(&clusters(&one)), hash(&clusters(&same)));
    assert_ne!(hash(&clusters(&one)), hash(&clusters(&other)));
}

/// R-CHAIN-33: Beside an error there is no note.
#[test]
fn an_ambient_error_beside_an_error_does_not_change_the_chain() {
    let mut s = routed(&["a", "b"]);
    s.eds("a", "e");
    s.fail(&cluster("b"), "gone");
    s.fail(&endpoints("e"), "gone");
    let before = s.chain.clone();
    for target in [cluster("b"), endpoints("e")] {
        s.chain.handle_news(&target, News::Ambient(Some(gone("away"))));
    }
    assert!(s.chain == before);
}

#[test]
fn clusters_that_arrive_together_watch_shared_endpoints_once() {
    // R-CHAIN-07
    let mut s = routed(&["a", "b"]);
    for name in ["a", "b"] {
        let links = Links::Cluster(ClusterLinks::Eds("e".into()));
        s.tell(&cluster(name), News::Changed(Ok(Linked::new(links, name.into()))));
    }
    assert_eq!(s.settle(), "+EDS e");
}

/// The tree of clusters has one level for 16 entries, two for 256, three for 4096.
#[test]
fn each_entry_of_a_map_of_any_size_is_found_and_replaced() {
    for count in [0, 1, 16, 17, 256, 257, 4096, 4097] {
        let name = |number: usize| format!("c{number:04}");
        let names: Vec<String> = (0..count).map(name).collect();
        let mut chain = Chain::new("l", "host");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        while let Some(Want::Watch(target)) = chain.poll_want() {
            let links = match target.resource().expect("no DNS").1.as_str() {
                "l" => Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![host(&names)]))),
                name if target == cluster(name) => Links::Cluster(ClusterLinks::Eds(name.into())),
                _ => Links::Endpoints(None),
            };
            chain.handle_news(&target, News::Changed(Ok(Linked::new(links, 0))));
        }
        let config = chain.poll_config().expect("complete").expect("usable");
        assert_eq!((config.clusters.len(), config.clusters.is_empty()), (count, count == 0));
        assert!(config.clusters.iter().map(|(name, _)| name.as_str()).eq(names.iter().copied()));
        let edges = |number: &usize| number % 16 < 2 || number % 16 == 15;
        for number in (0..count).filter(edges).step_by(if count > 300 { 101 } else { 1 }) {
            let value = News::Changed(Ok(Linked::new(Links::Endpoints(None), number + 1)));
            chain.handle_news(&endpoints(&name(number)), value);
            let told = chain.poll_config().expect("new").expect("usable");
            let scratch = chain.config().expect("complete").expect("usable");
            assert!(told == scratch, "{number} of {count}");
            assert!(
                told.clusters.get(&name(number).as_str().into()) != config.clusters.get(&name(number).as_str().into())
            );
        }
        assert_eq!(chain.poll_want(), None);
        chain.handle_news(&listener(), News::Changed(Err(gone("gone"))));
        assert!(chain.poll_config().expect("new").is_err());
    }
}

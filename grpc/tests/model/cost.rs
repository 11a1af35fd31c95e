//! The cost of one change of endpoints among many clusters: counted, and measured for people.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use xds_machine::watch::News;
use xds_machine_grpc::chain::{Chain, Failure, Linked, Target, Want};
use xds_machine_grpc::links::{ClusterLinks, Links, ListenerLinks, RouteSource, VirtualHost};
use xds_machine_grpc::resources::{Context, decode_endpoints};

thread_local!(static TOUCHED: Cell<usize> = const { Cell::new(0) });

/// A value that counts how often one is cloned or compared.
#[derive(Debug, Eq)]
struct Counted(usize);

fn touch() {
    TOUCHED.set(TOUCHED.get() + 1);
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        touch();
        Self(self.0)
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        touch();
        self.0 == other.0
    }
}

fn value<T>(links: Links, value: T) -> News<Linked<T>> {
    News::Changed(Ok(Linked::new(links, value)))
}

/// Makes a chain with a configuration of this many clusters.
fn chain<T: Clone + Eq>(clusters: usize, make: impl Fn(usize) -> T) -> Chain<T> {
    let mut chain = Chain::new("l", "host");
    let clusters = (0..clusters).map(|number| format!("c{number}").as_str().into()).collect();
    let host = VirtualHost { name: "v".into(), domains: vec!["*".into()], clusters };
    while let Some(want) = chain.poll_want() {
        let Want::Watch(target) = want else { panic!("{want:?}") };
        let news = match &target {
            Target::Listener(_) => {
                value(Links::Listener(ListenerLinks::Api(RouteSource::Inline(vec![host.clone()]))), make(0))
            }
            Target::Cluster(name) => value(Links::Cluster(ClusterLinks::Eds(name.clone())), make(0)),
            _ => value(Links::Endpoints(None), make(0)),
        };
        chain.handle_news(&target, news);
    }
    chain.poll_config().expect("complete").expect("usable");
    chain
}

fn change<T: Clone + Eq>(chain: &mut Chain<T>, to: T) {
    chain.handle_news(&Target::Endpoints("c7".into()), value(Links::Endpoints(None), to));
    assert_eq!(chain.poll_want(), None);
    chain.poll_config().expect("new").expect("usable");
}

/// Clusters that arrive one by one, with the driver polling after each, take no time that grows with their square.
#[test]
fn ten_thousand_clusters_arriving_one_by_one_take_no_quadratic_time() {
    drop(chain(10_000, |number| number)); // a minute, if each were a walk
}

/// The number of values that are touched grows with the depth of the tree of clusters, and not with their number.
#[test]
fn a_change_of_endpoints_costs_the_same_among_many_clusters() {
    let touched = |clusters| {
        let mut chain = chain(clusters, Counted);
        change(&mut chain, Counted(1));
        let before = TOUCHED.get();
        change(&mut chain, Counted(2));
        TOUCHED.get() - before
    };
    let (few, many) = (touched(16), touched(10_000));
    assert!(many <= few + 2, "{many} values are touched among 10,000 clusters, and {few} among 16");
}

/// The same for a cluster whose links stay, and for a reference to a cluster that the routes name.
#[test]
fn updates_and_references_without_new_links_cost_the_same_among_many_clusters() {
    let touched = |clusters| {
        let mut chain = chain(clusters, Counted);
        let mut count = |change: &mut dyn FnMut(&mut Chain<Counted>)| {
            let before = TOUCHED.get();
            change(&mut chain);
            TOUCHED.get() - before
        };
        let of_cluster = count(&mut |chain| {
            let links = Links::Cluster(ClusterLinks::Eds("c7".into()));
            chain.handle_news(&Target::Cluster("c7".into()), value(links, Counted(9)));
            assert_eq!(chain.poll_want(), None);
            chain.poll_config().expect("new").expect("usable");
        });
        let of_reference = count(&mut |chain| {
            let references = [chain.subscribe("c7"), chain.subscribe("c7")];
            references.iter().for_each(|reference| chain.release(reference));
            assert_eq!((chain.poll_want(), chain.poll_config().is_some()), (None, false));
        });
        (of_cluster, of_reference)
    };
    let (few, many) = (touched(16), touched(10_000));
    assert!(many.0 <= few.0 + 2 && many.1 <= few.1 + 2, "{many:?} values are touched, and {few:?} among 16");
}

/// Property 12: depth and cycles end, in linear time. Each of 10,000 aggregates is the parent of the next one, and the last
/// one that of the first; each is a root of its own, so that the walk from each goes 16 levels down.
#[test]
fn ten_thousand_aggregates_in_a_ring_take_linear_time() {
    let mut chain = chain(1, |number| number);
    let name = |number: usize| format!("a{}", number % 10_000);
    let references: Vec<_> = (0..10_000).map(|number| chain.subscribe(name(number).as_str())).collect();
    let mut watched = 0;
    while let Some(want) = chain.poll_want() {
        assert!(matches!(want, Want::Watch(Target::Cluster(_))), "{want:?}");
        watched += 1;
    }
    assert_eq!(watched, 10_000);
    for number in 0..10_000 {
        let children = vec![name(number + 1).as_str().into()];
        let links = Links::Cluster(ClusterLinks::Aggregate(children));
        chain.handle_news(&Target::Cluster(name(number).as_str().into()), value(links, number));
    }
    assert_eq!(chain.poll_want(), None);
    let config = chain.poll_config().expect("new").expect("usable");
    let depth = |(_, entry): (_, &Result<_, Failure>)| entry.as_ref().err().map(ToString::to_string);
    let failures: BTreeSet<_> =
        config.clusters.iter().filter_map(depth).map(|text| text.replace(char::is_numeric, "")).collect();
    assert_eq!((config.clusters.len(), failures.len()), (10_001, 1), "{failures:?}");
    references.iter().for_each(|reference| chain.release(reference));
    let unwatched = std::iter::from_fn(|| chain.poll_want()).count();
    assert_eq!(unwatched, 10_000, "the ring holds nothing");
}

/// `cargo test --release -p xds-machine-grpc --test model cost -- --nocapture`
#[test]
fn the_cost_of_a_change_of_endpoints_is_printed() {
    // cluster_name: c7, endpoints: one with a locality, an address and a weight
    let address = b"\x0a\x0d\x0a\x0b\x12\x071.2.3.4\x18\x50";
    let endpoint = [&b"\x0a\x0f"[..], address].concat();
    let locality = [&b"\x0a\x03\x0a\x01r\x12\x11"[..], &endpoint, b"\x1a\x02\x08\x01"].concat();
    let body = Bytes::from([&b"\x0a\x02c7\x12"[..], &[locality.len() as u8], &locality].concat());
    let decode = || decode_endpoints(&"c7".into(), &body, &Context::default()).expect("valid");
    assert_eq!(decode().value().priorities.len(), 1);
    let per = |count: u32, mut run: Box<dyn FnMut(usize)>| {
        let start = Instant::now();
        (0..count).for_each(|at| run(at as usize));
        start.elapsed() / count
    };
    let decoding = per(10_000, Box::new(move |_| drop(std::hint::black_box(decode()))));
    for clusters in [10, 1000, 10_000] {
        let mut chain = chain(clusters, |number| number);
        let changing = per(10_000, Box::new(move |at| change(&mut chain, at + 1)));
        println!("{clusters} clusters: a change {changing:?}, decoding {decoding:?}");
    }
}

//! A group whose resources are loaded one by one, by a control plane that has just started.

use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::Channel;
use xds_machine::message::{Node, delta};
use xds_machine::poll::{Reply, answer};
use xds_machine::server::{Cache, Config};
use xds_machine::{Delta, Nonce, Sotw, TypeUrl, type_url};
use xds_machine_driver::server::Store;
use xds_machine_tonic::server::{ControlPlane, Group};

use crate::support::{Peer, clusters, connect, endpoints, resource, sotw_request};

const WINDOW: u32 = 65_535;

async fn serve() -> (Group, ControlPlane, Channel) {
    let group = Group::new("all");
    let plane = ControlPlane::new(group.clone());
    let channel = connect(plane.service(), WINDOW).await;
    (group, plane, channel)
}

fn insert(type_url: TypeUrl, name: &'static str) -> impl FnOnce(&mut Cache) -> bool {
    move |cache| cache.insert(&type_url, resource(name, "one"))
}

async fn is_silent<T>(next: impl Future<Output = T>) {
    assert!(timeout(Duration::from_secs(60), next).await.is_err(), "nothing is said of a type that is not known");
}

fn names(response: &delta::Response) -> Vec<String> {
    let mut names: Vec<_> = response.resources.iter().map(|resource| resource.name.to_string()).collect();
    names.sort();
    names
}

/// USERS, V3: clients that have a, b and c from before the restart drop none of them while they are loaded.
#[tokio::test(start_paused = true)]
async fn delta_clients_keep_what_is_not_loaded_yet() {
    for names_by in [&["*"][..], &["a", "b", "c", "d"]] {
        let (group, _plane, channel) = serve().await;
        let mut peer = Peer::<Delta>::ads(&channel).await;
        let claims = ["a", "b", "c", "d"].map(|name| (name, "0")).into();
        let subscribe = names_by.iter().map(|&name| name.into()).collect();
        let node = Some(Node::new("n").into());
        let first = delta::Request::new(type_url::CLUSTER);
        peer.send(delta::Request { node, subscribe, initial_versions: claims, ..first }).await;
        for name in ["a", "b", "c"] {
            let (is_new, _) = group.update(insert(clusters(), name));
            assert!(is_new);
            is_silent(peer.message()).await;
        }
        group.update(|cache| cache.set_known(&clusters()));
        let (mut got, mut removed) = (Vec::new(), Vec::new());
        while removed.is_empty() {
            let response = peer.next().await;
            got.extend(names(&response));
            removed.extend(response.removed.iter().map(ToString::to_string));
            peer.ack(&response).await;
        }
        assert_eq!((got, removed), (["a", "b", "c"].map(String::from).to_vec(), vec!["d".into()]), "{names_by:?}");
        is_silent(peer.message()).await;
        // From now on an absent name is absent.
        group.update(|cache| cache.remove(&clusters(), "a"));
        assert_eq!(peer.next().await.removed, ["a"]);
    }
}

/// A list of a full-state type that lacks what is not loaded yet would remove it; a partial type waits as well.
#[tokio::test(start_paused = true)]
async fn sotw_clients_are_sent_no_partial_list() {
    for (type_url, asked) in [(clusters(), &[][..]), (clusters(), &["a", "b"]), (endpoints(), &["a", "b"])] {
        let (group, _plane, channel) = serve().await;
        let mut peer = Peer::<Sotw>::ads(&channel).await;
        peer.send(sotw_request(type_url.as_str(), asked, &Nonce::default())).await;
        group.update(insert(type_url.clone(), "a"));
        is_silent(peer.message()).await;
        group.replace(&type_url, ["a", "b"].map(|name| resource(name, "one")));
        let response = peer.next().await;
        assert_eq!((response.type_url.as_str(), response.resources.len()), (type_url.as_str(), 2));
    }
}

/// The same for polls (REST) and for the config status of clients.
#[tokio::test(start_paused = true)]
async fn a_type_that_is_loading_is_unknown_to_polls_and_never_sent() {
    let (group, plane, channel) = serve().await;
    let peer = Peer::<Delta>::ads(&channel).await;
    peer.subscribe(Node::new("n"), type_url::CLUSTER, &["a", "b"]).await;
    let poll = |names: &[&str]| {
        let request = sotw_request(type_url::CLUSTER, names, &Nonce::default());
        group.with(|cache| answer(cache, &Config::ads(), request))
    };
    assert_eq!(poll(&[]), Reply::Unknown, "never touched");
    group.update(insert(clusters(), "a"));
    for names in [&[][..], &["a"], &["b"]] {
        assert_eq!(poll(names), Reply::Unknown, "{names:?}");
    }
    while plane.streams().first().is_none_or(|stream| stream.group().is_none()) {
        tokio::task::yield_now().await;
    }
    let stream = plane.streams().remove(0);
    is_silent(std::future::pending::<()>()).await;
    assert!(stream.types().iter().all(|of| of.accepted.is_none()), "{:?}", stream.types());
    group.update(|cache| cache.set_known(&clusters()));
    assert!(matches!(poll(&["b"]), Reply::Response(response) if response.resource_count() == 0));
}

/// Whatever is said of names, the type is unknown until it is said that this is all; and never again after that.
#[test]
fn only_a_replacement_or_a_statement_makes_a_type_known() {
    use xds_machine::server::Source;
    use xds_machine::{Code, Status};
    let status = || Status::new(Code::Unavailable, "no");
    let changes: [&dyn Fn(&mut Cache); 5] = [
        &|_| {},
        &|cache| _ = cache.insert(&clusters(), resource("a", "one")),
        &|cache| _ = cache.set_unknown(&clusters(), "a"),
        &|cache| _ = cache.set_error(&clusters(), "a", status()),
        &|cache| {
            cache.insert(&clusters(), resource("a", "one"));
            cache.remove(&clusters(), "a");
        },
    ];
    let known: fn(&mut Cache) = |cache| cache.set_known(&clusters());
    let replaced: fn(&mut Cache) = |cache| cache.replace(&clusters(), []);
    for change in changes {
        for make in [known, replaced] {
            let mut cache = Cache::loading(1).with_seed(7).with_page(1);
            change(&mut cache);
            assert!(!cache.is_known(&clusters()));
            let before = cache.revision();
            make(&mut cache);
            assert!(cache.is_known(&clusters()) && cache.revision() > before, "streams have to look again");
            change(&mut cache);
            assert!(cache.is_known(&clusters()));
            assert!(!cache.is_known(&endpoints()), "another type");
            assert_eq!(cache.check_invariants(), Ok(()));
        }
    }
}

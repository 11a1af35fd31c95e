//! A large answer in portions, at full size.

use std::collections::BTreeMap;

use xds_machine::message::delta;
use xds_machine::server::{Cache, Config, Resource, ResponseLimit, Server, StreamId};
use xds_machine::{Delta, Instant, Nonce, TypeUrl, type_url};

const NOW: Instant = Instant::EPOCH;

/// Acknowledges until no response follows. Returns the sizes of the responses.
fn drain(
    server: &mut Server<Delta>,
    cache: &mut Cache,
    has: &mut BTreeMap<String, String>,
    mut meanwhile: impl FnMut(usize, &mut Cache),
) -> Vec<(usize, usize)> {
    let mut sizes = Vec::new();
    while let Some(response) = server.poll_transmit(NOW, cache) {
        let mut bytes = Vec::new();
        response.encode(&mut bytes);
        assert_eq!(bytes.len(), response.encoded_len());
        sizes.push((response.resources().count() + response.removed().len(), bytes.len()));
        for resource in response.resources() {
            has.insert(resource.name().to_string(), resource.version().to_string());
        }
        for name in response.removed() {
            has.remove(name.as_str());
        }
        let nonce = response.nonce().clone();
        meanwhile(sizes.len(), cache);
        server.handle_request(NOW, answer(nonce)).expect("an ACK");
        while server.poll_action().is_some() {}
        assert_eq!(server.check_invariants(), Ok(()));
    }
    sizes
}

fn answer(nonce: Nonce) -> delta::Request {
    delta::Request { nonce, ..delta::Request::new(clusters()) }
}

fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

fn resource(number: usize, content: u8) -> Resource {
    Resource::new(format!("cluster-{number}"), vec![content; 100])
}

fn store(count: usize) -> Cache {
    let mut cache = Cache::new(1);
    for number in 0..count {
        cache.insert(&clusters(), resource(number, 0));
    }
    cache
}

fn there(cache: &Cache) -> BTreeMap<String, String> {
    let pair = |resource: &Resource| (resource.name().to_string(), resource.version().to_string());
    cache.resources(&clusters()).map(pair).collect()
}

#[test]
fn a_hundred_thousand_resources_go_in_a_hundred_portions() {
    let mut cache = store(100_000);
    cache.publish::<Delta>();
    let response_limit = ResponseLimit { resources: 1000, ..ResponseLimit::default() };
    let mut server = Server::<Delta>::new(Config::ads().with_response_limit(response_limit), StreamId(1));
    server.handle_request(NOW, delta::Request::new(clusters())).expect("a request");
    let mut has = BTreeMap::new();
    let sizes = drain(&mut server, &mut cache, &mut has, |_, _| {});
    assert_eq!(has, there(&cache));
    assert_eq!(sizes.iter().map(|&(count, _)| count).collect::<Vec<_>>(), [1000; 100]);
}

#[test]
fn changes_during_an_answer_in_portions_reach_the_client() {
    for published in [false, true] {
        let mut cache = store(5000);
        if published {
            cache.publish::<Delta>();
        }
        let response_limit = ResponseLimit { resources: 300, bytes: 32 << 10 };
        let mut server = Server::<Delta>::new(Config::ads().with_response_limit(response_limit), StreamId(1));
        server.handle_request(NOW, delta::Request::new(clusters())).expect("a request");
        // Changes in early and late pages alike, new names, and names that are removed and inserted again.
        let change = |round: usize, cache: &mut Cache| {
            if round <= 40 {
                for step in 0..20 {
                    let number = (round * 977 + step * 331) % 6000;
                    match (round + step) % 3 {
                        0 => _ = cache.remove(&clusters(), format!("cluster-{number}")),
                        content => _ = cache.insert(&clusters(), resource(number, content as u8)),
                    }
                }
            }
        };
        let mut has = BTreeMap::new();
        let sizes = drain(&mut server, &mut cache, &mut has, change);
        assert_eq!(has, there(&cache));
        assert!(sizes.iter().all(|&(count, bytes)| count <= 300 && bytes <= 32 << 10), "{sizes:?}");
        // The bytes are the limit: 5000 resources of about 150 bytes, and those that changed.
        assert!(sizes.len() < 60, "{} portions", sizes.len());
    }
}

#[test]
fn changes_and_removals_go_in_portions_too() {
    let mut cache = store(20_000);
    let response_limit = ResponseLimit { resources: 1000, ..ResponseLimit::default() };
    let mut server = Server::<Delta>::new(Config::ads().with_response_limit(response_limit), StreamId(1));
    server.handle_request(NOW, delta::Request::new(clusters())).expect("a request");
    let mut has = BTreeMap::new();
    drain(&mut server, &mut cache, &mut has, |_, _| {});
    for number in 0..20_000 {
        match number % 4 {
            0 => _ = cache.remove(&clusters(), format!("cluster-{number}")),
            _ => _ = cache.insert(&clusters(), resource(number, 1)),
        }
    }
    let sizes = drain(&mut server, &mut cache, &mut has, |_, _| {});
    assert_eq!(has, there(&cache));
    assert_eq!(sizes.len(), 20, "{sizes:?}");
}

/// The size limit counts the bytes of the complete message, and portions are filled.
#[test]
fn the_byte_limit_counts_the_complete_message() {
    let mut cache = store(200);
    let config = Config::ads()
        .with_control_plane("c".repeat(300))
        .with_response_limit(ResponseLimit { bytes: 2000, ..ResponseLimit::default() });
    let mut server = Server::<Delta>::new(config, StreamId(1));
    server.handle_request(NOW, delta::Request::new(clusters())).expect("a request");
    let mut has = BTreeMap::new();
    let mut full = |cache: &mut Cache, least: usize| {
        let sizes = drain(&mut server, cache, &mut has, |_, _| {});
        assert_eq!(has, there(cache));
        let (_, all_but_last) = sizes.split_last().expect("portions");
        assert!(all_but_last.iter().all(|&(_, bytes)| (least..=2000).contains(&bytes)), "{sizes:?}");
        sizes.len()
    };
    assert!(full(&mut cache, 1700) > 10);
    (0..200).for_each(|number| _ = cache.remove(&clusters(), format!("cluster-{number}")));
    assert!(full(&mut cache, 1400) > 1);
}

/// A resource subscribed by name during an answer in portions is sent once, though the rest of its page is sent whole.
#[test]
fn a_resource_subscribed_by_name_during_portions_is_sent_once() {
    let response_limit = ResponseLimit { resources: 128, ..ResponseLimit::default() };
    let (cache, mut server) =
        (store(130), Server::<Delta>::new(Config::ads().with_response_limit(response_limit), StreamId(1)));
    server.handle_request(NOW, delta::Request::new(clusters())).expect("a request");
    let first = server.poll_transmit(NOW, &cache).expect("a page");
    assert_eq!((first.resources().count(), first.resource_count()), (128, 128));
    let request = delta::Request { subscribe: vec!["cluster-129".into()], ..answer(first.nonce().clone()) };
    server.handle_request(NOW, request).expect("an ACK");
    let second = server.poll_transmit(NOW, &cache).expect("the rest");
    let names: Vec<_> = second.resources().map(|resource| resource.name().as_str()).collect();
    assert_eq!(names, ["cluster-129", "cluster-128"]);
}

/// All bytes around the resources count.
#[test]
fn the_byte_limit_counts_the_response_envelope() {
    let type_url = TypeUrl::from("t");
    let mut cache = Cache::new(1);
    for number in 0..10 {
        cache.insert(&type_url, resource(number, 0));
    }
    let response_limit = ResponseLimit { bytes: 500, ..ResponseLimit::default() };
    let mut server = Server::<Delta>::new(Config::ads().with_response_limit(response_limit), StreamId(1));
    let request = delta::Request { subscribe: vec!["*".into()], ..delta::Request::new(type_url) };
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &cache).expect("a portion");
    assert_eq!((response.resources().count(), response.encoded_len()), (2, 322));
    assert_eq!(response.resource_count(), 2);
}

/// A stream whose portions have room for five, with resources that change before each answer. Returns the numbers
/// of the responses in which the client is sent what it waits for.
fn rounds_until(
    subscribe: &[&str],
    mut prepare: impl FnMut(&mut Cache, &mut delta::Request),
    mut meanwhile: impl FnMut(usize, &mut Cache, &mut delta::Request),
    is_there: impl Fn(&BTreeMap<String, String>) -> bool,
) -> usize {
    let mut cache = Cache::new(1).with_page(4);
    (0..5).for_each(|number| _ = cache.insert(&clusters(), Resource::new(format!("a-hot-{number}"), "0")));
    (0..40).for_each(|number| _ = cache.insert(&clusters(), Resource::new(format!("cold-{number:02}"), "0")));
    let response_limit = ResponseLimit { resources: 5, ..ResponseLimit::default() };
    let mut server = Server::<Delta>::new(Config::ads().with_response_limit(response_limit), StreamId(1));
    let subscribe = subscribe.iter().map(|&name| name.into()).collect();
    server.handle_request(NOW, delta::Request { subscribe, ..delta::Request::new(clusters()) }).expect("a request");
    let mut has = BTreeMap::new();
    drain(&mut server, &mut cache, &mut has, |_, _| {});
    let mut request = delta::Request::new(clusters());
    prepare(&mut cache, &mut request);
    for round in 1..=100 {
        meanwhile(round, &mut cache, &mut request);
        server
            .handle_request(NOW, core::mem::replace(&mut request, delta::Request::new(clusters())))
            .expect("a request");
        while server.poll_action().is_some() {}
        assert_eq!(server.check_invariants(), Ok(()));
        let Some(response) = server.poll_transmit(NOW, &cache) else { panic!("round {round}: nothing is sent") };
        assert!(response.resources().count() + response.removed().len() <= 5);
        for resource in response.resources() {
            has.insert(resource.name().to_string(), resource.version().to_string());
        }
        response.removed().iter().for_each(|name| _ = has.remove(name.as_str()));
        if is_there(&has) {
            return round;
        }
        request.nonce = response.nonce().clone();
    }
    panic!("hunger: {has:?}");
}

fn change_hot(round: usize, cache: &mut Cache, _: &mut delta::Request) {
    (0..5)
        .for_each(|number| _ = cache.insert(&clusters(), Resource::new(format!("a-hot-{number}"), round.to_string())));
}

/// As many resources as fit in a portion change before each response: everything else has its turn all the same.
#[test]
fn hot_resources_keep_nothing_from_its_turn() {
    let remove = |cache: &mut Cache, _: &mut delta::Request| _ = cache.remove(&clusters(), "cold-07");
    let change =
        |cache: &mut Cache, _: &mut delta::Request| _ = cache.insert(&clusters(), Resource::new("cold-07", "new"));
    let ask = |_: &mut Cache, request: &mut delta::Request| request.subscribe.push("cold-30".into());
    let is_removed = |has: &BTreeMap<String, String>| !has.contains_key("cold-07");
    let old = Resource::new("cold-07", "0").version().to_string();
    let is_changed = |has: &BTreeMap<String, String>| has["cold-07"] != old;
    let has_all = |has: &BTreeMap<String, String>| has.len() == 45;
    assert_eq!(rounds_until(&["*"], remove, change_hot, is_removed), 2, "a removal, and hot changes");
    assert_eq!(rounds_until(&["*"], change, change_hot, is_changed), 1, "a change, and hot changes");
    let hot: Vec<String> = (0..5).map(|number| format!("a-hot-{number}")).collect();
    let hot: Vec<&str> = hot.iter().map(String::as_str).collect();
    let has_new = |has: &BTreeMap<String, String>| has.contains_key("cold-30");
    assert_eq!(rounds_until(&hot, ask, change_hot, has_new), 1, "an answer, and hot changes");
    let ask_for_all = |_: &mut Cache, request: &mut delta::Request| request.subscribe.push("*".into());
    assert_eq!(rounds_until(&hot, ask_for_all, change_hot, has_all), 9, "pages, and hot changes");
}

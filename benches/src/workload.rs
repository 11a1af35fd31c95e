//! The workloads: F1 to F12 of the cost model, and H1, the worst that a client may send.

use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

use bytes::Bytes;
use prost::Message;
use xds_machine::client::{self, Action, Client};
use xds_machine::message::{Node, delta, sotw};
use xds_machine::server::{self, Cache, Resource, Server, Source, StreamId};
use xds_machine::{Delta, Instant, Nonce, ResourceName, Sotw, TypeUrl, Version, WILDCARD, type_url};

use crate::{alloc, floor};

const NOW: Instant = Instant::EPOCH;

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub workload: &'static str,
    pub n: usize,
    pub s: usize,
    pub changed: usize,
    pub ns: f64,
    /// Memory, or the size of what is encoded; zero where it says nothing.
    pub bytes: f64,
    pub allocs: f64,
    pub floor_ns: f64,
    /// Of the time to the floor's; of bytes to the limit's base where memory is measured.
    pub ratio: f64,
}

impl Row {
    fn new(workload: &'static str, n: usize, s: usize, changed: usize) -> Self {
        Self { workload, n, s, changed, ..Self::default() }
    }

    fn timed(mut self, ns: f64, floor_ns: f64) -> Self {
        (self.ns, self.floor_ns, self.ratio) = (ns, floor_ns, ns / floor_ns);
        self
    }

    pub fn json(&self) -> String {
        let Self { workload, n, s, changed, ns, bytes, allocs, floor_ns, ratio } = self;
        format!(
            "{{\"workload\":\"{workload}\",\"n\":{n},\"s\":{s},\"changed\":{changed},\"ns\":{ns:.0},\"bytes\":{bytes:.1},\
             \"allocs\":{allocs:.1},\"floor_ns\":{floor_ns:.0},\"ratio\":{ratio:.7}}}"
        )
    }
}

/// The median time of some runs; each `prepare`s untimed.
pub fn median<T, R>(runs: usize, mut prepare: impl FnMut() -> T, mut work: impl FnMut(T) -> R) -> f64 {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let input = prepare();
            let start = Clock::now();
            let output = work(input);
            let time = start.elapsed();
            drop(black_box(output));
            time
        })
        .collect();
    times.sort();
    times[runs / 2].as_nanos() as f64
}

// The data.

pub fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

pub fn endpoints() -> TypeUrl {
    type_url::ENDPOINT.into()
}

pub fn name(i: usize) -> String {
    format!("cluster-{i:07}")
}

/// An encoded resource of 128 bytes.
pub fn body(name: &str, round: u8) -> Bytes {
    let mut body = vec![0x0a, name.len() as u8];
    body.extend_from_slice(name.as_bytes());
    body.push(0x7a); // field 15: padding
    body.push((126 - name.len() - 2) as u8);
    body.resize(128, round);
    body.into()
}

pub fn resource(i: usize, round: u8) -> Resource {
    let name = name(i);
    let body = body(&name, round);
    Resource::new(name, body)
}

pub fn cache(type_url: &TypeUrl, n: usize) -> Cache {
    let mut cache = Cache::new(1);
    (0..n).for_each(|i| _ = cache.insert(type_url, resource(i, 0)));
    cache
}

/// The floors' messages, of what is in a cache.
pub fn delta_response(cache: &Cache, type_url: &TypeUrl) -> floor::DeltaResponse {
    let resources = cache.resources(type_url).map(|resource| floor::Resource {
        version: resource.version().to_string(),
        resource: Some(floor::Any { type_url: type_url.to_string(), value: resource.body().clone() }),
        name: resource.name().to_string(),
    });
    floor::DeltaResponse {
        system_version_info: cache.version(type_url).to_string(),
        resources: resources.collect(),
        type_url: type_url.to_string(),
        nonce: "1.1".into(),
        removed_resources: Vec::new(),
    }
}

pub fn sotw_response(cache: &Cache, type_url: &TypeUrl) -> floor::SotwResponse {
    let any = |resource: &Resource| floor::Any { type_url: type_url.to_string(), value: resource.body().clone() };
    floor::SotwResponse {
        version_info: cache.version(type_url).to_string(),
        resources: cache.resources(type_url).map(any).collect(),
        type_url: type_url.to_string(),
        nonce: "1.1".into(),
    }
}

/// Encoding with prost into a buffer that is warm and large enough.
pub fn floor_encode(message: &impl Message) -> f64 {
    let mut buffer = Vec::with_capacity(message.encoded_len());
    median(
        9,
        || (),
        |()| {
            buffer.clear();
            message.encode(&mut buffer).expect("a vector grows");
            black_box(buffer.len())
        },
    )
}

fn floor_decode<M: Message + Default>(message: &M) -> f64 {
    let bytes = Bytes::from(message.encode_to_vec());
    median(9, || bytes.clone(), |bytes| M::decode(bytes).expect("what was encoded"))
}

// The server's side.

/// What a driver does with the machines' messages, for either variant.
pub trait Wire: server::Variant<Request = <Self as Wire>::Message> {
    type Message: Clone;
    fn subscribe(type_url: &TypeUrl, names: &[&str]) -> Self::Message;
    fn ack(type_url: &TypeUrl, names: &[ResourceName], nonce: Nonce) -> Self::Message;
    /// One name more, the last of these.
    fn more(type_url: &TypeUrl, names: &[ResourceName], nonce: Nonce) -> Self::Message;
}

impl Wire for Delta {
    type Message = delta::Request;

    fn subscribe(type_url: &TypeUrl, names: &[&str]) -> delta::Request {
        let subscribe = names.iter().map(|&name| name.into()).collect();
        delta::Request { subscribe, ..delta::Request::new(type_url.clone()) }
    }

    fn ack(type_url: &TypeUrl, _: &[ResourceName], nonce: Nonce) -> delta::Request {
        delta::Request { nonce, ..delta::Request::new(type_url.clone()) }
    }

    fn more(type_url: &TypeUrl, names: &[ResourceName], _: Nonce) -> delta::Request {
        Self::subscribe(type_url, &[names[names.len() - 1].as_str()])
    }
}

impl Wire for Sotw {
    type Message = sotw::Request;

    fn subscribe(type_url: &TypeUrl, names: &[&str]) -> sotw::Request {
        let names = names.iter().map(|&name| name.into()).collect();
        sotw::Request { names, ..sotw::Request::new(type_url.clone()) }
    }

    fn ack(type_url: &TypeUrl, names: &[ResourceName], nonce: Nonce) -> sotw::Request {
        sotw::Request { names: names.to_vec(), nonce, ..sotw::Request::new(type_url.clone()) }
    }

    fn more(type_url: &TypeUrl, names: &[ResourceName], nonce: Nonce) -> sotw::Request {
        Self::ack(type_url, names, nonce)
    }
}

/// A stream that is subscribed and up to date.
pub fn stream<V: Wire>(
    config: &server::Config,
    id: u64,
    cache: &Cache,
    requests: &[V::Message],
    names: &[ResourceName],
) -> Server<V> {
    let mut server = Server::<V>::new(config.clone(), StreamId(id));
    for request in requests {
        server.handle_request(NOW, request.clone()).expect("a good request");
        settle(&mut server, cache, names);
    }
    server
}

/// Answers whatever there is.
fn settle<V: Wire>(server: &mut Server<V>, cache: &Cache, names: &[ResourceName]) {
    while server.poll_action().is_some() {}
    while let Some(response) = server.poll_transmit(NOW, cache) {
        let ack = V::ack(response.type_url(), names, response.nonce().clone());
        server.handle_request(NOW, ack).expect("a good request");
        while server.poll_action().is_some() {}
    }
}

/// From the change until the stream has its encoded response, and its answer is processed.
fn push<V: Wire>(server: &mut Server<V>, cache: &Cache, type_url: &TypeUrl, names: &[ResourceName]) -> (usize, Nonce) {
    let response = server.poll_transmit(NOW, cache).expect("something new");
    let bytes: usize = response.chunks().map(|chunk| black_box(chunk).len()).sum();
    let nonce = response.nonce().clone();
    server.handle_request(NOW, V::ack(type_url, names, nonce.clone())).expect("a good request");
    while server.poll_action().is_some() {}
    assert!(server.poll_transmit(NOW, cache).is_none());
    (bytes, nonce)
}

/// F1, F2: one of N changes, S wildcard streams.
pub fn one_change(workload: &'static str, n: usize, s: usize, floor_ns: f64) -> Row {
    let types = clusters();
    let mut cache = cache(&types, n);
    let subscribe = [Delta::subscribe(&types, &[])];
    let config = server::Config::ads();
    let mut streams: Vec<_> = (0..s).map(|id| stream::<Delta>(&config, id as u64, &cache, &subscribe, &[])).collect();
    let mut round = 0;
    let (before, mut bytes) = (alloc::allocations(), 0);
    let runs = if s == 1 { 201 } else { 9 };
    let ns = median(
        runs,
        || {
            round += 1;
            resource(n / 2, round)
        },
        |changed| {
            cache.insert(&types, changed);
            bytes = streams.iter_mut().map(|stream| push(stream, &cache, &types, &[]).0).sum();
        },
    );
    let allocs = (alloc::allocations() - before) as f64 / (runs * s) as f64;
    Row { bytes: bytes as f64, allocs, ..Row::new(workload, n, s, 1).timed(ns, floor_ns) }
}

/// F3: the memory of an idle stream with wildcards on two types.
pub fn idle_memory(n: usize, s: usize) -> Row {
    let mut cache = cache(&clusters(), n);
    cache.insert(&endpoints(), resource(0, 0));
    cache.publish::<Delta>();
    let subscribe = [Delta::subscribe(&clusters(), &[]), Delta::subscribe(&endpoints(), &[WILDCARD])];
    let config = server::Config::ads();
    let before = alloc::live();
    let streams: Vec<Server<Delta>> =
        (0..s).map(|id| stream::<Delta>(&config, id as u64, &cache, &subscribe, &[])).collect();
    let bytes = (alloc::live() - before) as f64 / s as f64;
    drop(streams);
    Row { bytes, ratio: bytes / 1024.0, ..Row::new("F3", n, s, 0) }
}

/// F4: the memory of a stream for each of its names.
pub fn names_memory(names: usize) -> Row {
    let cache = cache(&endpoints(), names);
    let wanted: Vec<String> = (0..names).map(name).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let subscribe = [Delta::subscribe(&endpoints(), &wanted)];
    let before = alloc::live();
    let server = stream::<Delta>(&server::Config::ads(), 1, &cache, &subscribe, &[]);
    let bytes = (alloc::live() - before) as f64 / names as f64;
    drop(server);
    Row { bytes, ratio: bytes / 32.0, ..Row::new("F4", names, 1, 0) }
}

/// F5: the first sync of everything: what the first stream costs, and each further one.
pub fn first_sync(n: usize) -> [Row; 2] {
    let types = clusters();
    let mut cache = cache(&types, n);
    let floor_ns = floor_encode(&delta_response(&cache, &types));
    let subscribe = Delta::subscribe(&types, &[]);
    let config = server::Config::ads();
    let sync = |id: u64, cache: &Cache| {
        let mut server = Server::<Delta>::new(config.clone(), StreamId(id));
        server.handle_request(NOW, subscribe.clone()).expect("a good request");
        let response = server.poll_transmit(NOW, cache).expect("everything");
        response.chunks().map(|chunk| black_box(chunk).len()).sum::<usize>()
    };
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..9 {
        // Nothing is encoded, and the memory of the last round is free: as warm as the floor's buffer.
        cache = Cache::new(1);
        (0..n).for_each(|i| _ = cache.insert(&types, resource(i, 0)));
        let start = Clock::now();
        cache.publish::<Delta>();
        bytes = sync(1, &cache);
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    let first = Row { bytes: bytes as f64, ..Row::new("F5 first", n, 1, 0).timed(times[times.len() / 2], floor_ns) };
    let further = median(101, || (), |()| sync(2, &cache));
    [first, Row { bytes: bytes as f64, ..Row::new("F5 further", n, 1, 0).timed(further, floor_ns) }]
}

/// F6: a reconnect at which everything is current.
pub fn reconnect(n: usize) -> Row {
    let types = clusters();
    let mut cache = cache(&types, n);
    cache.publish::<Delta>();
    let versions = || cache.resources(&types).map(|resource| (resource.name(), resource.version()));
    let floor = floor::DeltaRequest {
        type_url: types.to_string(),
        initial_resource_versions: versions().map(|(name, version)| (name.to_string(), version.to_string())).collect(),
        ..floor::DeltaRequest::default()
    };
    let floor_ns = floor_decode(&floor);
    let mut request = Delta::subscribe(&types, &[]);
    // As decoded: with strings of their own.
    request.initial_versions =
        versions().map(|(name, version)| (ResourceName::from(name.as_str()), version.clone())).collect();
    let ns = median(
        9,
        || request.clone(),
        |request| {
            let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(1));
            server.handle_request(NOW, request).expect("a good request");
            let response = server.poll_transmit(NOW, &cache).expect("the empty answer");
            assert_eq!(response.resources().count(), 0);
            server
        },
    );
    Row::new("F6", n, 1, 0).timed(ns, floor_ns)
}

/// F7: SotW, one of N clusters changes, S streams: the first, and each further one.
pub fn full_state(n: usize, s: usize) -> [Row; 2] {
    let types = clusters();
    let mut cache = cache(&types, n);
    cache.publish::<Sotw>();
    let floor_ns = floor_encode(&sotw_response(&cache, &types));
    let subscribe = [Sotw::subscribe(&types, &[])];
    let config = server::Config::ads();
    let mut streams: Vec<_> = (0..s).map(|id| stream::<Sotw>(&config, id as u64, &cache, &subscribe, &[])).collect();
    let (mut first, mut further) = (Vec::new(), Vec::new());
    for round in 1..16 {
        let changed = resource(n / 2, round);
        let start = Clock::now();
        cache.insert(&types, changed);
        cache.publish::<Sotw>();
        push(&mut streams[0], &cache, &types, &[]);
        first.push(start.elapsed().as_nanos() as f64);
        let start = Clock::now();
        streams[1..].iter_mut().for_each(|stream| _ = push(stream, &cache, &types, &[]));
        further.push(start.elapsed().as_nanos() as f64 / (s - 1) as f64);
    }
    first.sort_by(f64::total_cmp);
    further.sort_by(f64::total_cmp);
    [
        Row::new("F7 first", n, s, 1).timed(first[first.len() / 2], floor_ns),
        Row::new("F7 further", n, s, 1).timed(further[further.len() / 2], floor_ns),
    ]
}

/// F8: many names on one stream: one more, and one that changes. The floor is the decoding of a request with all names.
pub fn named<V: Wire>(workload: [&'static str; 2], names: usize) -> [Row; 2] {
    const MORE: usize = 101;
    let types = endpoints();
    let mut cache = cache(&types, names + MORE);
    let all: Vec<String> = (0..names + MORE).map(name).collect();
    let all_names: Vec<ResourceName> = all.iter().map(|name| name.as_str().into()).collect();
    let first: Vec<&str> = all[..names].iter().map(String::as_str).collect();
    let mut server =
        stream::<V>(&server::Config::ads(), 1, &cache, &[V::subscribe(&types, &first)], &all_names[..names]);
    let floor_ns = floor_decode(&floor::SotwRequest {
        resource_names: all[..names].to_vec(),
        type_url: types.to_string(),
        response_nonce: "1.1".into(),
        ..floor::SotwRequest::default()
    });
    // As decoded: names are strings of their own.
    let decoded = |names: &[ResourceName]| names.iter().map(|name| name.as_str().into()).collect::<Vec<_>>();
    let (mut round, mut nonce) = (0, Nonce::default());
    let mut timed = |more: bool| {
        let mut times = Vec::new();
        for extra in 1..MORE {
            let held = decoded(&all_names[..if more { names + extra } else { names }]);
            let request = V::more(&types, &held, nonce.clone());
            round = (round + 1) % 200;
            let changed = resource(names / 2, round);
            let start = Clock::now();
            if more {
                server.handle_request(NOW, request).expect("a good request");
                while server.poll_action().is_some() {}
            } else {
                cache.insert(&types, changed);
            }
            nonce = push(&mut server, &cache, &types, &held).1;
            times.push(start.elapsed().as_nanos() as f64);
        }
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let change = timed(false);
    let more = timed(true);
    [
        Row::new(workload[0], names, 1, 1).timed(more, floor_ns),
        Row::new(workload[1], names, 1, 1).timed(change, floor_ns),
    ]
}

// The client's side.

/// F9: a SotW response of everything with one change: until Apply, verdict and ACK, on top of its decoding.
pub fn client_full_state(n: usize) -> [Row; 2] {
    let types = clusters();
    let mut cache = cache(&types, n);
    let mut encode = |round: u8| {
        cache.insert(&types, resource(n / 2, round));
        let floor = floor::SotwResponse { nonce: round.to_string(), ..sotw_response(&cache, &types) };
        Bytes::from(floor.encode_to_vec())
    };
    let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")));
    client.subscribe(&types, [WILDCARD.into()]).expect("a good name");
    client.handle_open(NOW);
    while client.poll_transmit().is_some() {}
    let mut take = |response: sotw::Response| {
        client.handle_response(NOW, response).expect("a good response");
        let Some(Action::Apply(update)) = client.poll_action() else { panic!("an update") };
        assert_eq!(update.resources().len(), n);
        client.handle_verdict(NOW, update.accept()).expect("the update is out");
        client.poll_transmit().expect("the answer")
    };
    let decode = |bytes: Bytes| xds_machine::proto::sotw::decode_response(bytes).expect("a response");
    take(decode(encode(0)));
    let floor_ns = median(9, || encode(1), |bytes| floor::SotwResponse::decode(bytes).expect("a response"));
    let mut round = 1;
    let mut next = || {
        round += 1;
        encode(round)
    };
    let decoded = median(9, &mut next, decode);
    // The buffer is the transport's: giving it back to the system is not the machine's work.
    let mut kept = Vec::new();
    let prepare = || {
        kept.push(next());
        decode(kept[kept.len() - 1].clone())
    };
    let ns = median(9, prepare, take);
    [Row::new("F9", n, 1, 1).timed(ns, floor_ns), Row::new("F9 decode", n, 1, 1).timed(decoded, floor_ns)]
}

/// F10: names are subscribed to one by one, then one poll.
pub fn subscribe_one_by_one(names: usize) -> Row {
    let types = endpoints();
    let all: Vec<ResourceName> = (0..names).map(|i| name(i).into()).collect();
    let floor_ns = floor_encode(&floor::SotwRequest {
        resource_names: all.iter().map(ToString::to_string).collect(),
        type_url: types.to_string(),
        ..floor::SotwRequest::default()
    });
    let ns = median(
        21,
        || {
            let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")));
            client.handle_open(NOW);
            client
        },
        |mut client| {
            for name in &all {
                client.subscribe(&types, [name.clone()]).expect("a good name");
            }
            let transmit = client.poll_transmit().expect("a request");
            assert_eq!(transmit.request.names.len(), names);
            assert!(client.poll_transmit().is_none());
            (client, transmit)
        },
    );
    Row::new("F10", names, 1, 0).timed(ns, floor_ns)
}

/// F11: what costs nothing: nothing to say, a stale request with no new name, a time-out that is not due.
pub fn nothing(names: usize) -> [Row; 3] {
    let types = endpoints();
    let cache = cache(&types, names);
    let all: Vec<String> = (0..names).map(name).collect();
    let list: Vec<&str> = all.iter().map(String::as_str).collect();
    let held: Vec<ResourceName> = list.iter().map(|&name| name.into()).collect();
    let mut server = stream::<Sotw>(&server::Config::ads(), 1, &cache, &[Sotw::subscribe(&types, &list)], &held);
    let measure = |workload, work: &mut dyn FnMut()| {
        work();
        let (before, start) = (alloc::allocations(), Clock::now());
        (0..1000).for_each(|_| work());
        let ns = start.elapsed().as_nanos() as f64 / 1000.0;
        let allocs = (alloc::allocations() - before) as f64 / 1000.0;
        Row { ns, allocs, ..Row::new(workload, names, 1, 0) }
    };
    let poll = measure("F11 poll", &mut || assert!(server.poll_transmit(NOW, &cache).is_none()));
    let timeout = measure("F11 timeout", &mut || server.handle_timeout(NOW));
    // As many stale requests as a client may send in a row; a response is out, so that they are stale.
    let mut cache = cache;
    cache.insert(&types, resource(0, 1));
    server.poll_transmit(NOW, &cache).expect("a change");
    let requests: Vec<sotw::Request> = (0..99).map(|_| Sotw::ack(&types, &held, "stale".into())).collect();
    let (before, start) = (alloc::allocations(), Clock::now());
    let live = alloc::live();
    let mut kept = 0;
    for request in requests {
        let names = request.names.capacity() * size_of::<ResourceName>();
        server.handle_request(NOW, request).expect("a good request");
        kept += names;
        while server.poll_action().is_some() {}
    }
    let ns = start.elapsed().as_nanos() as f64 / 99.0;
    let allocs = (alloc::allocations() - before) as f64 / 99.0;
    let grown = alloc::live() as f64 + kept as f64 - live as f64;
    [poll, timeout, Row { ns, allocs, bytes: grown, ..Row::new("F11 stale", names, 1, 0) }]
}

/// F12: the memory of the store, and apart from it that of what is encoded.
pub fn store_memory(n: usize) -> [Row; 2] {
    let types = clusters();
    let resources: usize = (0..n).map(|i| name(i).len() + 128).sum();
    let before = alloc::live();
    let mut cache = cache(&types, n);
    let bytes = (alloc::live() - before) as f64;
    cache.publish::<Delta>();
    cache.publish::<Sotw>();
    let published = (alloc::live() - before) as f64 - bytes;
    let wire = sotw_response(&cache, &types).encoded_len() + delta_response(&cache, &types).encoded_len();
    [
        Row { bytes, ratio: bytes / resources as f64, ..Row::new("F12", n, 0, 0) },
        Row { bytes: published, ratio: published / wire as f64, ..Row::new("F12 published", n, 0, 0) },
    ]
}

// Hostile input.

/// H1: the worst requests that a client may send, of 2 MiB and of 4 MiB. The ratio is the time of the second to that of the
/// first: 2 where the work is linear.
pub fn worst_requests() -> Vec<Row> {
    const NAMES: usize = 100_000;
    let types = endpoints();
    // The same length, and in no good order.
    let names = |from: usize, count: usize| {
        (from..from + count).rev().map(|i| format!("{:032}", i * 7919 % 1_000_003).as_str().into()).collect::<Vec<_>>()
    };
    let sotw =
        |from: usize, count: usize| sotw::Request { names: names(from, count), ..sotw::Request::new(types.clone()) };
    let delta =
        |subscribe, unsubscribe| delta::Request { subscribe, unsubscribe, ..delta::Request::new(types.clone()) };
    let claim = |count| {
        let versions = names(0, count).into_iter().map(|name| (name, Version::from("1"))).collect();
        delta::Request { initial_versions: versions, ..delta(names(0, 1), Vec::new()) }
    };
    let mut rows = Vec::new();
    let mut add = |workload, times: [f64; 2]| {
        let [half, all] = [NAMES / 2, NAMES].map(|n| Row::new(workload, n, 1, 0));
        rows.push(Row { ns: times[0], ..half });
        rows.push(Row { ns: times[1], floor_ns: times[0], ratio: times[1] / times[0], ..all });
    };
    let counts = [NAMES / 2, NAMES];
    add("H1 sotw, new names", counts.map(|count| time_of::<Sotw>(None, || sotw(0, count))));
    add("H1 sotw, other names", counts.map(|count| time_of::<Sotw>(Some(&sotw(0, count)), || sotw(NAMES, count))));
    add("H1 delta, new names", counts.map(|count| time_of::<Delta>(None, || delta(names(0, count), Vec::new()))));
    add("H1 delta, claims", counts.map(|count| time_of::<Delta>(None, || claim(count))));
    // As many names as there may be, and those that come and go are others.
    let full = delta(names(0, NAMES), Vec::new());
    let come_and_go = |count: usize| delta(names(NAMES, count / 2), names(NAMES, count / 2));
    add("H1 delta, come and go", counts.map(|count| time_of::<Delta>(Some(&full), || come_and_go(count))));
    rows
}

/// The time that a server takes for a request, on a stream on which there was another before.
fn time_of<V: Wire>(before: Option<&V::Message>, request: impl Fn() -> V::Message) -> f64 {
    median(
        5,
        || {
            let mut server = Server::<V>::new(server::Config::ads(), StreamId(1));
            if let Some(before) = before {
                server.handle_request(NOW, before.clone()).expect("a good request");
                while server.poll_action().is_some() {}
            }
            (server, request())
        },
        |(mut server, request)| {
            server.handle_request(NOW, request).expect("a good request");
            server
        },
    )
}

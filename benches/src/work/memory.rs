//! Memory: F3, F4 and F12.

use prost::Message;
use xds_machine::server::{self, Server};
use xds_machine::{Delta, Sotw, WILDCARD};

use crate::alloc;
use crate::data::{cache, clusters, delta_response, endpoints, name, resource, sotw_response};
use crate::measure::Row;
use crate::stream::{Wire, stream, streams};

/// F3: an idle stream with wildcards on two types.
pub fn idle_stream(n: usize, s: usize) -> Row {
    let mut cache = cache(&clusters(), n);
    cache.insert(&endpoints(), resource(0, 0));
    cache.publish::<Delta>();
    let subscribe = [Delta::subscribe(&clusters(), &[]), Delta::subscribe(&endpoints(), &[WILDCARD])];
    let (before, start) = (alloc::live(), crate::measure::clock());
    let streams: Vec<Server<Delta>> = streams(s, &cache, &subscribe);
    let ns = (crate::measure::clock() - start) as f64 / s as f64;
    let bytes = (alloc::live() - before) as f64 / s as f64;
    drop(streams);
    Row { bytes, ns, ratio: bytes / 1024.0, ..Row::new("F3", n, s, 0) }
}

/// F4: each name of a stream.
pub fn names(names: usize) -> Row {
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

/// F12: the store, and separately its cached encodings.
pub fn store(n: usize) -> [Row; 2] {
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

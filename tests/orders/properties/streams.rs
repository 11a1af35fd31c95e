//! Two streams of one store, with clients that follow no rules.

use std::collections::BTreeMap;

use xds_machine::server::{Cache, Config, Resource, Server, StreamId};
use xds_machine::{Instant, Nonce, TypeUrl};

use xds_machine_testing::hostile::{Hostile, Input};

const NOW: Instant = Instant::EPOCH;

/// Checks that each stream sends the same messages with the other stream as alone.
pub(super) fn check<V: Hostile>(data: &[u8]) {
    let both = play::<V>(data, [true, true]);
    assert_eq!(both[0], play::<V>(data, [true, false])[0], "the first stream");
    assert_eq!(both[1], play::<V>(data, [false, true])[1], "the second stream");
}

/// Plays the bytes; bytes for absent streams are skipped.
fn play<V: Hostile>(data: &[u8], there: [bool; 2]) -> [Vec<String>; 2] {
    let mut input = Input(data);
    let mut cache = Cache::new(1);
    let mut servers = [1, 2].map(|id| Server::<V>::new(Config::ads(), StreamId(id)));
    let mut nonces: [BTreeMap<TypeUrl, Nonce>; 2] = Default::default();
    let mut said: [Vec<String>; 2] = Default::default();
    while !input.is_empty() {
        let which = input.below(2);
        let server = &mut servers[which];
        match input.below(8) {
            0 | 1 => {
                let (type_url, name, content) = (input.type_url(), input.name(), input.byte());
                cache.insert(&type_url, Resource::new(name, vec![content]));
            }
            2 => _ = cache.remove(&input.type_url(), input.name().as_str()),
            3 => cache.publish::<V>(),
            4 | 5 => {
                let request = V::any_request(&mut input, |input, type_url| match input.below(4) {
                    0 => input.word().into(),
                    _ => nonces[which].get(type_url).cloned().unwrap_or_default(),
                });
                if there[which] {
                    said[which].push(format!("{:?}", server.handle_request(NOW, request)));
                }
            }
            _ if there[which] => {
                if let Some(response) = server.poll_transmit(NOW, &cache) {
                    nonces[which].insert(response.type_url().clone(), response.nonce().clone());
                    said[which].push(format!("{:?}", response.chunks().flatten().collect::<Vec<u8>>()));
                }
                said[which].extend(std::iter::from_fn(|| server.poll_action()).map(|action| format!("{action:?}")));
            }
            _ => {}
        }
    }
    said
}

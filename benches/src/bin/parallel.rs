//! Many streams on several threads over one store, as in a driver: the server needs nothing but a lock.
//!
//! Streams are independent of each other, so each belongs to one thread, the only one to touch it. They share the
//! store, which `poll_transmit` only reads: many threads read at once, and a change of the store waits until none does.
//! A thread holds the lock for one stream at a time, so that a change waits for one stream and not for thousands; it
//! releases the lock before anything is written to a network, because a response keeps its resources alive itself.
//!
//! `parallel [N [S]]` measures with one thread and with two: from a change until every stream has its encoded response
//! and every ACK is processed. The time is the processor time of the busiest thread, so other load on the machine does
//! not count.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use benches::data::{NOW, cache, clusters, resource};
use benches::measure::{Row, clock, median};
use benches::stream::{Wire, streams};
use xds_machine::server::{Cache, Server};
use xds_machine::{Delta, TypeUrl};

const CHANGES: usize = 25;

/// A thread of a driver: its streams, and the notifications about changes of the store.
struct Worker {
    store: Arc<RwLock<Cache>>,
    streams: Vec<Server<Delta>>,
    news: Receiver<()>,
    /// Reports the time that each change took.
    done: Sender<u64>,
}

impl Worker {
    fn work(mut self) {
        let types = clusters();
        // A driver would merge notifications that arrive meanwhile into one round; here there are none.
        while self.news.recv().is_ok() {
            let start = clock();
            self.streams.iter_mut().for_each(|stream| serve(&self.store, stream, &types));
            if self.done.send(clock() - start).is_err() {
                return;
            }
        }
    }
}

/// Sends a stream its pending responses.
fn serve(store: &RwLock<Cache>, stream: &mut Server<Delta>, types: &TypeUrl) {
    loop {
        let response = stream.poll_transmit(NOW, &*store.read().unwrap_or_else(PoisonError::into_inner));
        let Some(response) = response else { return };
        response.chunks().for_each(|chunk| _ = black_box(chunk)); // to the network
        // The ACK, as if it came from there:
        let ack = Delta::ack(types, &[], response.nonce().clone());
        stream.handle_request(NOW, ack).expect("a good request");
        while stream.poll_action().is_some() {}
    }
}

/// Returns the time that the busiest thread needs for a change.
fn measure(n: usize, s: usize, threads: usize) -> f64 {
    let types = clusters();
    let mut cache = cache(&types, n);
    cache.publish::<Delta>();
    let mut all = streams::<Delta>(s, &cache, &[Delta::subscribe(&types, &[])]);
    let store = Arc::new(RwLock::new(cache));
    let (done, reports) = channel();
    let mut busiest = Vec::new();
    thread::scope(|scope| {
        let mut bells = Vec::new();
        for left in (1..=threads).rev() {
            let (bell, news) = channel();
            bells.push(bell);
            let streams = all.split_off(all.len() - all.len() / left);
            let worker = Worker { store: store.clone(), streams, news, done: done.clone() };
            scope.spawn(|| worker.work());
        }
        for round in 0..CHANGES {
            let changed = resource(n / 2, round as u8 + 1);
            store.write().unwrap_or_else(PoisonError::into_inner).insert(&types, changed);
            bells.iter().for_each(|bell| bell.send(()).expect("the threads listen"));
            busiest.push(reports.iter().take(threads).max().unwrap_or_default() as f64);
        }
    });
    median(&mut busiest)
}

fn main() {
    let mut sizes = std::env::args().skip(1).map(|size| size.parse().expect("a number"));
    let (n, s) = (sizes.next().unwrap_or(100_000), sizes.next().unwrap_or(10_000));
    let one = measure(n, s, 1);
    for (workload, threads) in [("parallel 1", 1), ("parallel 2", 2)] {
        let ns = measure(n, s, threads);
        let row = Row { ns, floor_ns: one, ratio: ns / one, ..Row::new(workload, n, s, 1) };
        println!("{}", row.json());
    }
}

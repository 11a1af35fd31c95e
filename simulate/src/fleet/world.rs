//! Proxies that lose their streams and reconnect, event by event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use xds_machine::client::Backoff;
use xds_machine_testing::random::Random;

use super::costs::{Fleet, Job};

/// Microseconds since the beginning.
type Time = u64;

/// The time until a proxy notices a loss, and the time of a handshake.
const ROUND_TRIP: Time = 2_000;

#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    /// A replica ends its streams and is gone.
    Down(usize),
    /// A replica has read its resources and takes streams.
    Up(usize),
    /// A proxy tries a replica at random.
    Attempt(usize),
    /// A replica, in this life, has served a proxy.
    Served(usize, usize, u32),
}

struct Replica {
    is_up: bool,
    life: u32,
    /// When each core, and each direction of the network, is free.
    cores: Vec<Time>,
    network: [Time; 2],
    streams: usize,
}

/// The results of a run.
#[derive(Default)]
pub struct Outcome {
    /// The moments at which a proxy was served, in seconds.
    pub served: Vec<f64>,
    /// The time from the loss of a stream until the proxy is served again, in seconds.
    pub away: Vec<f64>,
    /// The streams of each replica, at regular times.
    pub streams: Vec<(f64, Vec<usize>)>,
    /// Seconds of a core, of all replicas, in each second.
    pub processor: Vec<f64>,
    pub received: f64,
    pub sent: f64,
    /// Attempts that found no replica.
    pub refused: usize,
}

pub struct World<'a> {
    fleet: &'a Fleet,
    job: Job,
    random: Random,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    replicas: Vec<Replica>,
    /// For each proxy its replica, the time when its last stream was lost, and its backoff.
    proxies: Vec<(Option<usize>, Time, Backoff)>,
    outcome: Outcome,
}

impl<'a> World<'a> {
    /// Creates a world at rest: every proxy is served, evenly.
    pub fn new(fleet: &'a Fleet, job: Job, seed: u64) -> Self {
        let replica = |number| Replica {
            is_up: true,
            life: 0,
            cores: vec![0; fleet.cores],
            network: [0; 2],
            streams: (0..fleet.proxies).filter(|proxy| proxy % fleet.replicas == number).count(),
        };
        Self {
            fleet,
            job,
            random: Random(seed),
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            replicas: (0..fleet.replicas).map(replica).collect(),
            proxies: (0..fleet.proxies).map(|proxy| (Some(proxy % fleet.replicas), 0, Backoff::envoy())).collect(),
            outcome: Outcome::default(),
        }
    }

    /// Takes a replica away for some seconds.
    pub fn restart(&mut self, replica: usize, at: f64, away: f64) {
        self.push(micros(at), Event::Down(replica));
        self.push(micros(at + away), Event::Up(replica));
    }

    /// Runs until nothing is left to do.
    pub fn run(mut self) -> Outcome {
        let mut next = 0;
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            while next <= at {
                self.sample(next);
                next += 250_000;
            }
            self.now = at;
            match event {
                Event::Down(replica) => self.down(replica),
                Event::Up(replica) => self.replicas[replica].is_up = true,
                Event::Attempt(proxy) => self.attempt(proxy),
                Event::Served(proxy, replica, life) => self.served(proxy, replica, life),
            }
        }
        self.sample(self.now);
        self.outcome
    }

    fn sample(&mut self, at: Time) {
        let streams = self.replicas.iter().map(|replica| replica.streams).collect();
        self.outcome.streams.push((seconds(at), streams));
    }

    fn push(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn down(&mut self, replica: usize) {
        let (now, cores) = (self.now, self.fleet.cores);
        let old = &mut self.replicas[replica];
        *old = Replica { is_up: false, life: old.life + 1, cores: vec![now; cores], network: [now; 2], streams: 0 };
        for proxy in 0..self.proxies.len() {
            if self.proxies[proxy].0 == Some(replica) {
                self.proxies[proxy].0 = None;
                self.proxies[proxy].1 = now;
                self.again(proxy);
            }
        }
    }

    fn again(&mut self, proxy: usize) {
        let delay = self.proxies[proxy].2.next_delay(self.random.next());
        self.push(self.now + ROUND_TRIP + delay.as_micros() as Time, Event::Attempt(proxy));
    }

    fn attempt(&mut self, proxy: usize) {
        let number = self.random.below(self.fleet.replicas);
        let replica = &mut self.replicas[number];
        if !replica.is_up {
            self.outcome.refused += 1;
            return self.again(proxy);
        }
        replica.streams += 1;
        self.proxies[proxy].0 = Some(number);
        let done = replica.work(self.now + ROUND_TRIP, self.job, self.fleet.network, &mut self.outcome);
        let life = replica.life;
        self.push(done, Event::Served(proxy, number, life));
    }

    fn served(&mut self, proxy: usize, replica: usize, life: u32) {
        if self.replicas[replica].life != life {
            return; // the replica went before
        }
        let (_, lost, backoff) = &mut self.proxies[proxy];
        backoff.reset();
        self.outcome.served.push(seconds(self.now));
        self.outcome.away.push(seconds(self.now - *lost));
    }
}

impl Replica {
    /// Does a job on the first core that is free. Bytes are received before it, and sent after it.
    fn work(&mut self, now: Time, job: Job, network: f64, outcome: &mut Outcome) -> Time {
        outcome.received += job.received;
        outcome.sent += job.sent;
        self.network[0] = self.network[0].max(now) + micros(job.received / network);
        let core = self.cores.iter_mut().min().expect("a replica has cores");
        let begin = self.network[0].max(*core);
        *core = begin + micros(job.processor);
        let second = seconds(begin) as usize;
        if outcome.processor.len() <= second {
            outcome.processor.resize(second + 1, 0.0);
        }
        outcome.processor[second] += job.processor;
        self.network[1] = self.network[1].max(*core) + micros(job.sent / network);
        self.network[1]
    }
}

fn micros(seconds: f64) -> Time {
    (seconds * 1e6).round() as Time
}

fn seconds(time: Time) -> f64 {
    time as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::costs::{COME_BACK, FLEET};
    use super::*;

    const SMALL: Fleet = Fleet { proxies: 1000, replicas: 4, ..FLEET };

    #[test]
    fn every_proxy_of_a_restarted_replica_reconnects_once() {
        let mut world = World::new(&SMALL, COME_BACK, 1);
        world.restart(2, 1.0, 5.0);
        let outcome = world.run();
        assert_eq!(outcome.served.len(), 250);
        assert!(outcome.refused > 0, "a proxy may meet the replica that is away");
        let (_, last) = outcome.streams.last().expect("samples");
        assert_eq!(last.iter().sum::<usize>(), 1000);
        assert!((outcome.received - 250.0 * COME_BACK.received).abs() < 1.0);
    }

    #[test]
    fn a_wave_takes_as_long_as_the_slowest_of_cores_and_network() {
        let cores = |job: Job| {
            let mut world = World::new(&SMALL, job, 1);
            (0..4).for_each(|replica| world.restart(replica, 0.0, 0.001));
            let outcome = world.run();
            assert_eq!(outcome.served.len(), 1000);
            outcome.served.into_iter().fold(0.0, f64::max)
        };
        let bound = |streams: f64, each: f64| streams * each;
        let slow = cores(Job { processor: 0.1, received: 0.0, sent: 0.0 });
        assert!(slow >= bound(250.0, 0.1) / 4.0 && slow < bound(350.0, 0.1) / 4.0 + 1.0, "{slow}");
        let large = cores(Job { processor: 0.0, received: 0.0, sent: 50e6 });
        assert!(large >= bound(250.0, 0.04) && large < bound(350.0, 0.04) + 1.0, "{large}");
    }
}

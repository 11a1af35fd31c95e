//! The measured costs of one stream, and the size of the fleet.

/// A fleet. Each proxy sees the resources of one group.
pub struct Fleet {
    pub proxies: usize,
    pub replicas: usize,
    pub groups: usize,
    pub resources: usize,
    /// The cores of a replica.
    pub cores: usize,
    /// The bytes that a replica sends, or receives, in a second.
    pub network: f64,
}

pub const FLEET: Fleet =
    Fleet { proxies: 100_000, replicas: 10, groups: 100, resources: 1_000_000, cores: 4, network: 10e9 / 8.0 };

/// The cost of one event of a stream, for a replica.
#[derive(Clone, Copy)]
pub struct Job {
    /// Seconds of a core.
    pub processor: f64,
    /// Bytes received.
    pub received: f64,
    /// Bytes sent.
    pub sent: f64,
}

// The figures are those of benches/README.md, for streams of 10,000 resources of 218 bytes over connections of their
// own, without TLS. Each stream of this fleet has as many resources.

/// The resources of a stream in the measurements.
const MEASURED: f64 = 10_000.0;

/// A client that holds all resources reconnects, and the server sends no resources (E6).
pub const COME_BACK: Job = Job { processor: 2.9e-3, received: 430e3, sent: 200.0 };

/// The server sends all resources to a client that holds none, or uses SotW (a first sync).
pub const EVERYTHING: Job = Job { processor: 0.77e-3, received: 500.0, sent: 2.18e6 };

/// The server sends one changed resource, and the client accepts it (a change).
pub const CHANGE: Job = Job { processor: 19e-6, received: 150.0, sent: 450.0 };

/// The resident bytes of an idle stream with its connection (E5).
pub const IDLE: f64 = 23.6 * 1024.0;

/// Reading one key from etcd as JSON, in seconds of the one core that does so, and the resident bytes for each: those
/// of `control_plane --etcd --group-by cluster` with 1,000,000 small clusters in 100 groups.
pub const READ: f64 = 14e-6;
pub const KEPT: f64 = 1400.0;

impl Fleet {
    pub fn per_group(&self) -> usize {
        self.resources / self.groups
    }

    /// Returns the time in which a replica reads all keys.
    pub fn load(&self) -> f64 {
        self.resources as f64 * READ
    }

    /// Returns the resident bytes of a replica with so many streams.
    pub fn memory(&self, streams: usize) -> f64 {
        streams as f64 * IDLE + self.resources as f64 * KEPT
    }

    /// Scales a measured cost to the resources of a stream of this fleet.
    pub fn scaled(&self, job: Job) -> Job {
        let scale = self.per_group() as f64 / MEASURED;
        Job { processor: job.processor * scale, received: job.received * scale, sent: job.sent * scale }
    }
}

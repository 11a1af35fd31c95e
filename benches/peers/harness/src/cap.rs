//! How much memory a peer may have. (How much time, its parent decides, and ends it.)

use rustix::process::{Resource, Rlimit, setrlimit};

/// In this variable the parent names the cap, in bytes.
pub const BYTES: &str = "PEERS_BYTES";

/// Caps this process. An allocation beyond it ends the process.
pub fn memory() {
    let Some(bytes) = std::env::var(BYTES).ok().and_then(|bytes| bytes.parse().ok()) else { return };
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::As, limit).expect("a lower limit than before");
}

/// The most memory this process has had, in bytes.
pub fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.parse::<u64>().ok()).unwrap_or_default() << 10
}

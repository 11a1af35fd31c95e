//! Limits the memory and time of a peer: the kernel ends a peer beyond them.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Caps this process as its parent requests: its bytes (an allocation beyond them ends the process), and its seconds on
/// a processor. (Its parent also ends a process that only waits.)
pub fn cap() {
    for (variable, resource) in [("PEERS_BYTES", Resource::As), ("PEERS_SECONDS", Resource::Cpu)] {
        if let Some(most) = std::env::var(variable).ok().and_then(|most| most.parse().ok()) {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
                .expect("a lower limit than before");
        }
    }
}

/// Returns the most memory that this process has had, in bytes.
pub fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.parse::<u64>().ok()).unwrap_or_default() << 10
}

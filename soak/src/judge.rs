//! The judgement on what was measured.

/// What the system and the metrics say of a control plane without clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reading {
    /// Resident memory in KiB.
    pub resident: u64,
    pub threads: u64,
    /// Open files.
    pub files: u64,
    /// Open streams, as the metrics count them.
    pub streams: u64,
}

/// The growth of resident memory that is no leak: a tenth, and 6 MiB. The first wave has as many streams at a time as
/// the load, so the heap has its size before; what is freed stays in the allocator's arenas, and how the streams of the
/// moment lie in these differs from wave to wave. A leak grows with the streams that ever were, of which there are
/// thousands: 2 KiB a stream, less than the state of one, is beyond it.
pub fn allowed(before: u64) -> u64 {
    before + before / 10 + 6 * 1024
}

/// Returns what did not come back to where it was.
pub fn leaks(before: &Reading, after: &Reading) -> Vec<String> {
    let mut leaks = Vec::new();
    let limit = allowed(before.resident);
    if after.resident > limit {
        let (before, after) = (before.resident, after.resident);
        leaks.push(format!("resident memory is {after} KiB, {before} KiB before the load, limit {limit} KiB"));
    }
    for (what, before, after) in [("open files", before.files, after.files), ("threads", before.threads, after.threads)]
    {
        if after > before {
            leaks.push(format!("{after} {what}, {before} before the load"));
        }
    }
    if after.streams > 0 {
        leaks.push(format!("xds_streams counts {} streams, and all clients have left", after.streams));
    }
    leaks
}

/// How far a client may be behind the changes. The next change is made when half of the clients have the last one, so
/// a client that is further behind than this had no turn while half of the others had that many.
pub const ROUNDS_BEHIND: u64 = 20;

/// Returns an error if a client is too far behind, given the round that each client has.
pub fn starved(round: u64, seen: &[u64]) -> Option<String> {
    let behind: Vec<usize> = (0..seen.len()).filter(|at| round.saturating_sub(seen[*at]) > ROUNDS_BEHIND).collect();
    let first = *behind.first()?;
    Some(format!(
        "change {round}: {} of {} clients are more than {ROUNDS_BEHIND} changes behind, client {first} is at {}",
        behind.len(),
        seen.len(),
        seen[first]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Reading = Reading { resident: 40_000, threads: 5, files: 20, streams: 0 };

    #[test]
    fn a_reading_within_the_limits_is_no_leak() {
        assert_eq!(leaks(&BEFORE, &BEFORE), [""; 0]);
        let less = Reading { resident: 30_000, threads: 4, files: 19, ..BEFORE };
        assert_eq!(leaks(&BEFORE, &less), [""; 0]);
        let more = Reading { resident: 40_000 + 4_000 + 6_144, ..BEFORE };
        assert_eq!(leaks(&BEFORE, &more), [""; 0]);
    }

    #[test]
    fn each_leak_is_named() {
        let after = Reading { resident: 50_145, threads: 6, files: 21, streams: 3 };
        let expected = [
            "resident memory is 50145 KiB, 40000 KiB before the load, limit 50144 KiB",
            "21 open files, 20 before the load",
            "6 threads, 5 before the load",
            "xds_streams counts 3 streams, and all clients have left",
        ];
        assert_eq!(leaks(&BEFORE, &after), expected);
    }

    #[test]
    fn a_starved_client_is_detected() {
        assert_eq!(starved(30, &[30, 10, 31]), None);
        let expected = "change 31: 1 of 3 clients are more than 20 changes behind, client 1 is at 10";
        assert_eq!(starved(31, &[31, 10, 30]).as_deref(), Some(expected));
    }
}

//! The differences that the rules choose, each with the conditions that identify it. A difference that is not seen any
//! more fails the run.

use super::answer::{Call, NAMELESS};
use super::case::{Case, Kind};
use super::compare::{Difference, Part, is_one_of};

pub struct Known {
    /// The rule that chooses, and the number of C-core's bug, if there is one.
    pub rule: &'static str,
    pub what: &'static str,
    /// The kind of resource that a case needs to have for this difference; empty for any case.
    kind: &'static str,
    explains: fn(&Part, &Difference) -> bool,
    /// Whether a run may lack the difference, because only random scripts lead to it.
    pub is_rare: bool,
}

pub static ALL: [Known; 18] = [
    Known {
        rule: "R-CHAIN-20",
        what: "C-core neither adds nor ends a watch while the target has an error",
        kind: "",
        explains: |part, difference| {
            difference.is_failed
                && match part {
                    Part::Names { kind, .. } | Part::Verdict { kind, .. } => *kind > Kind::Routes,
                    _ => false,
                }
        },
        is_rare: false,
    },
    Known {
        rule: "R-CHAIN-20",
        what: "C-core ends watches when the target's error ends, and waits for what it asks for anew",
        kind: "",
        explains: |part, difference| {
            difference.was_failed
                && match part {
                    Part::Call { core: Call::Target, .. } => difference.lacks,
                    // A resource that is requested anew is rejected once more.
                    Part::Verdict { kind, core_rejects: true, .. } => *kind > Kind::Routes,
                    _ => false,
                }
        },
        is_rare: true,
    },
    Known {
        rule: "R-RTE-03",
        what: "C-core's wildcards have to match something",
        kind: "R-RTE-03 nothing",
        explains: |part, _| {
            matches!(part, Part::Names { kind: Kind::Cluster | Kind::Endpoints, .. } | Part::Call { .. })
        },
        is_rare: false,
    },
    Known {
        rule: "R-EDS-12",
        what: "C-core takes an IP address in brackets, or with a zone",
        kind: "R-EDS-12 odd IP",
        explains: ours_rejects,
        is_rare: false,
    },
    Known {
        rule: "transport",
        what: "C-core takes what it can't read the name of in a full response for the end of the resource",
        kind: "cluster broken",
        explains: nameless,
        is_rare: false,
    },
    Known {
        rule: "transport",
        what: "C-core takes what it can't read the name of in a full response for the end of the listener",
        kind: "listener broken",
        explains: nameless,
        is_rare: false,
    },
    Known {
        rule: "R-CHAIN-47",
        what: "C-core waits for what only the clusters of the last configuration need",
        kind: "",
        explains: waits_for_the_old,
        is_rare: false,
    },
    Known {
        rule: "R-CHAIN-22 (GB-02)",
        what: "C-core pairs a new listener with the routes of the old one",
        kind: "R-CHAIN-22 renamed",
        explains: |part, _| matches!(part, Part::Call { core: Call::Aborted | Call::Ok(_), .. }),
        is_rare: false,
    },
    Known {
        rule: "R-CHAIN-37 (GB-01)",
        what: "C-core gives a leaf of two roots to the first of them only",
        kind: "R-CHAIN-36 aggregate",
        explains: |part, _| matches!(part, Part::Call { core, as_core, .. } if is_one_of(core, as_core)),
        is_rare: false,
    },
    Known {
        rule: "R-CHAIN-43 (GB-09)",
        what: "C-core rejects the aggregate that Envoy requires",
        kind: "R-CHAIN-43 provided",
        explains: core_rejects,
        is_rare: false,
    },
    Known {
        rule: "R-CHAIN-44 (GB-04)",
        what: "C-core crashes when a cluster becomes an aggregate or ceases to be one",
        kind: "GB-04 crash",
        explains: |part, _| matches!(part, Part::Crash),
        is_rare: false,
    },
    Known {
        rule: "R-LIS-05 (GB-05)",
        what: "C-core waits for ever for routes without a name",
        kind: "R-LIS-05 no name",
        explains: |part, _| {
            matches!(part, Part::Verdict { core_rejects: false, .. } | Part::Call { .. } | Part::Names { .. })
        },
        is_rare: false,
    },
    Known {
        rule: "R-LIS-12",
        what: "C-core judges resources that nobody asked for",
        kind: "R-LIS-12 unasked",
        explains: core_rejects,
        is_rare: false,
    },
    Known {
        rule: "R-RTE-10",
        what: "C-core ignores routes for paths that no method has (prefixes)",
        kind: "R-RTE-10 odd prefix",
        explains: |part, _| {
            matches!(part, Part::Names { kind: Kind::Cluster | Kind::Endpoints, .. } | Part::Call { .. })
        },
        is_rare: false,
    },
    Known {
        rule: "R-RTE-10",
        what: "C-core ignores routes for paths that no method has (whole paths)",
        kind: "R-RTE-10 odd path",
        explains: |part, _| {
            matches!(part, Part::Names { kind: Kind::Cluster | Kind::Endpoints, .. } | Part::Call { .. })
        },
        is_rare: false,
    },
    Known {
        rule: "R-RTE-14",
        what: "C-core rejects a weighted cluster without a weight",
        kind: "R-RTE-14 unset",
        explains: core_rejects,
        is_rare: false,
    },
    Known {
        rule: "R-CLU-07",
        what: "C-core knows no LEAST_REQUEST; the policy is the data path's",
        kind: "R-CLU-07 least request",
        explains: core_rejects,
        is_rare: false,
    },
    Known {
        rule: "R-EDS-17 (GB-06)",
        what: "C-core drops a small part where all calls are to be dropped",
        kind: "R-EDS-17 wrap",
        explains: |part, _| matches!(part, Part::Call { core: Call::Ok(_), ours, .. } if ours.contains(&Call::Dropped)),
        is_rare: false,
    },
];

/// Checks for the consequences of a name that C-core can't read. Either client may have requested a resource that it no
/// longer needs in the end, and without a name the rejection does not show that it is of that resource.
fn nameless(part: &Part, _: &Difference) -> bool {
    match part {
        Part::Verdict { name, .. } => name == NAMELESS,
        Part::Names { .. } | Part::Call { .. } => true,
        Part::Crash => false,
    }
}

/// Checks whether C-core requests a cluster that the server does not have, while our client has all clusters that it
/// requests; or whether C-core did so in the step before, and still waits for that cluster, whichever client needs it
/// by now.
fn waits_for_the_old(part: &Part, difference: &Difference) -> bool {
    let is_served = |name: &String| difference.served.contains(&(Kind::Cluster, name.clone()));
    let waits = difference.parts.iter().any(|part| match part {
        Part::Names { kind: Kind::Cluster, core, ours } => {
            let begins = ours.iter().all(is_served) && core.difference(ours).any(|name| !is_served(name));
            begins || difference.awaited.iter().any(|name| core.contains(name) && !is_served(name))
        }
        _ => false,
    });
    waits && matches!(part, Part::Names { .. } | Part::Call { .. })
}

/// Checks whether C-core accepts a resource that the rules reject, with the consequences of that.
fn ours_rejects(part: &Part, _: &Difference) -> bool {
    match part {
        Part::Verdict { core_rejects, .. } => !core_rejects,
        Part::Names { .. } | Part::Call { .. } => true,
        Part::Crash => false,
    }
}

/// Checks whether C-core rejects a resource that the rules accept, with the consequences of that.
fn core_rejects(part: &Part, _: &Difference) -> bool {
    match part {
        Part::Verdict { core_rejects, .. } => *core_rejects,
        Part::Names { .. } | Part::Call { .. } => true,
        Part::Crash => false,
    }
}

impl Known {
    /// Returns the known difference that explains each part of a difference.
    pub fn of(case: &Case, difference: &Difference) -> Option<Vec<&'static Self>> {
        let kinds = case.kinds();
        let explains = |known: &&Self, part: &Part| {
            (known.kind.is_empty() || kinds.contains(known.kind)) && (known.explains)(part, difference)
        };
        difference.parts.iter().map(|part| ALL.iter().find(|known| explains(known, part))).collect()
    }
}

//! The crates that are mutated.

/// A crate, and the tests that its mutants face.
pub struct Subject {
    pub package: &'static str,
    /// The folder of the sources.
    pub sources: &'static str,
    /// The beginning of the paths of the files that are mutated.
    pub mutated: &'static str,
    /// The name of the copy that has the mutants.
    pub tree: &'static str,
    /// Test programs with one module per kind of test.
    pub programs: &'static [&'static str],
    /// The tests of the programs that a mutant faces, by parts of their names; empty: one module after the other.
    pub stages: &'static [&'static str],
    /// Whether there is a model check.
    pub model: bool,
    /// The tests that a mutant faces for which the crate is rebuilt: those that build and run quickly.
    pub quick: (&'static str, &'static [&'static str]),
}

/// The crate of the machines.
pub const MACHINES: Subject = Subject {
    package: "xds-machine",
    sources: "src",
    mutated: "src/",
    tree: "tree",
    programs: &["machines", "worlds"],
    stages: &[],
    model: true,
    quick: ("machines", &["scripts::", "wire::"]),
};

/// The crate of gRPC's layers.
pub const GRPC: Subject = Subject {
    package: "xds-machine-grpc",
    sources: "grpc/src",
    mutated: "grpc/src/",
    tree: "tree-grpc",
    programs: &["grpc", "model"],
    stages: &[],
    model: false,
    quick: ("grpc", &[]),
};

/// The referee of the conformance kit, and the tests in memory that take seconds at most: none has a socket.
pub const KIT: Subject = Subject {
    package: "xds-conformance",
    sources: "conformance/src",
    mutated: "conformance/src/referee/",
    tree: "tree-kit",
    programs: &["kit"],
    stages: &[
        "referee::",
        "model::",
        "cases::every_case",
        "field_bugs::with_each_bug",
        "invented::",
        "short_walks::short_walks_find",
        "short_walks::short_walks_report",
        "client_walks::",
    ],
    model: false,
    quick: ("kit", &["referee::"]),
};

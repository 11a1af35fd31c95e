//! The crates that are mutated.

/// A crate, and the tests that its mutants face.
pub struct Subject {
    pub package: &'static str,
    /// The folder of the sources.
    pub sources: &'static str,
    /// The name of the copy that has the mutants.
    pub tree: &'static str,
    /// Test programs with one module per kind of test.
    pub programs: &'static [&'static str],
    /// Whether there is a model check.
    pub model: bool,
    /// The tests that a mutant faces for which the crate is rebuilt: those that build and run quickly.
    pub quick: (&'static str, &'static [&'static str]),
}

/// The crate of the machines.
pub const MACHINES: Subject = Subject {
    package: "xds-machine",
    sources: "src",
    tree: "tree",
    programs: &["machines", "worlds"],
    model: true,
    quick: ("machines", &["scripts::", "wire::"]),
};

/// The crate of gRPC's layers.
pub const GRPC: Subject = Subject {
    package: "xds-machine-grpc",
    sources: "grpc/src",
    tree: "tree-grpc",
    programs: &["grpc", "model"],
    model: false,
    quick: ("grpc", &[]),
};

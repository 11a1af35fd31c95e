//! The choices that the specification leaves open to a server.

/// The choices that the specification leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    /// Delta: each resource has a response of its own.
    pub(crate) split: bool,
    /// SotW: a response of a partial type has all wanted resources, too.
    pub(crate) whole: bool,
    /// An empty response is sent when there are no resources to send.
    pub(crate) empty: bool,
    /// SotW: stale requests are dropped, names and all.
    pub(crate) drops_stale: bool,
    /// Delta: claimed resources are sent all the same.
    pub(crate) resends_claimed: bool,
    /// SotW: a growing list is answered with all wanted resources.
    pub(crate) answers_all: bool,
    /// SotW: each resource of a partial type has a response of its own.
    pub(crate) parts: bool,
    /// A change waits for the answer to the response before.
    pub(crate) waits: bool,
    /// Nonces are counted by type.
    pub(crate) own_nonces: bool,
    /// SotW: no two responses have the same version.
    pub(crate) fresh_versions: bool,
}

/// Returns all combinations of the first six choices, and a few unusual ones.
pub(crate) fn styles() -> impl Iterator<Item = Style> {
    let parts = Style { parts: true, ..Style::default() };
    let waits = Style { waits: true, ..Style::default() };
    let own_nonces = Style { own_nonces: true, ..Style::default() };
    let fresh_versions = Style { fresh_versions: true, ..Style::default() };
    let all =
        Style { parts: true, waits: true, own_nonces: true, fresh_versions: true, split: true, ..Style::default() };
    (0..64).map(usual).chain([parts, waits, own_nonces, fresh_versions, all])
}

fn usual(bits: u32) -> Style {
    {
        let bit = |at: u32| bits >> at & 1 == 1;
        Style {
            split: bit(0),
            whole: bit(1),
            empty: bit(2),
            drops_stale: bit(3),
            resends_claimed: bit(4),
            answers_all: bit(5),
            ..Style::default()
        }
    }
}

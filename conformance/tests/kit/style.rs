//! The choices that the specification leaves open to a server.

/// The choices that the specification leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    /// Delta: each resource has a response of its own.
    pub(crate) split: bool,
    /// SotW: a response of a partial type has everything that is wanted, too.
    pub(crate) whole: bool,
    /// Nothing is said by an empty response.
    pub(crate) empty: bool,
    /// SotW: stale requests are dropped, names and all.
    pub(crate) drops_stale: bool,
    /// Delta: claimed resources are sent all the same.
    pub(crate) resends_claimed: bool,
    /// SotW: a growing list is answered with everything that is wanted.
    pub(crate) answers_all: bool,
}

/// All combinations.
pub(crate) fn styles() -> impl Iterator<Item = Style> {
    (0..64).map(|bits| {
        let bit = |at: u32| bits >> at & 1 == 1;
        Style {
            split: bit(0),
            whole: bit(1),
            empty: bit(2),
            drops_stale: bit(3),
            resends_claimed: bit(4),
            answers_all: bit(5),
        }
    })
}

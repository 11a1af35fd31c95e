//! The choices that the specification leaves open to a client.

/// The choices that the specification leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientStyle {
    /// The wildcard has no name, as long as no name was requested.
    pub(crate) legacy: bool,
    /// A new stream claims nothing, and everything is sent again.
    pub(crate) claims_nothing: bool,
    /// The node is in every request.
    pub(crate) node_always: bool,
    /// The good resources of a bad response are used, and held from then on.
    pub(crate) partial: bool,
    /// A stream on which nothing is wanted any more is ended.
    pub(crate) ends: bool,
    /// Delta: all names are requested again when one is new.
    pub(crate) repeats: bool,
    /// A response with clusters is answered once endpoints have come, as by a client that warms clusters.
    pub(crate) warms: bool,
}

/// Returns all combinations.
pub(crate) fn client_styles() -> impl Iterator<Item = ClientStyle> {
    (0..64).map(|bits| {
        let bit = |at: u32| bits >> at & 1 == 1;
        ClientStyle {
            legacy: bit(0),
            claims_nothing: bit(1),
            node_always: bit(2),
            partial: bit(3),
            ends: bit(4),
            repeats: bit(5),
            warms: false,
        }
    })
}

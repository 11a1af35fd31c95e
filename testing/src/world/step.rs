//! The alphabet.

/// What can happen. `c` is a client and its stream, `t` a type, `n` a name, each by its number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Step {
    // The protocol: what drivers do without being asked.
    /// A stream comes up.
    Open {
        /// The number of the client.
        c: usize,
    },
    /// The client hands a request to the transport.
    ClientSends {
        /// The number of the client.
        c: usize,
    },
    /// The transport has taken what the client handed over.
    Sent {
        /// The number of the client.
        c: usize,
    },
    /// A request arrives.
    ServerReads {
        /// The number of the client.
        c: usize,
    },
    /// The server is asked for a response, and hands one to the transport if there is one.
    ServerSends {
        /// The number of the client.
        c: usize,
    },
    /// A response arrives.
    ClientReads {
        /// The number of the client.
        c: usize,
    },
    /// The application accepts an update.
    Accept {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
    },
    /// The application lets go a type that it held back.
    Resume {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
    },
    /// Time passes until the next thing is due.
    Tick,

    // The environment: what happens to the protocol. Each kind has a budget.
    /// The stream breaks; what is on the wire is lost.
    Cut {
        /// The number of the client.
        c: usize,
    },
    /// The application rejects all of an update.
    Reject {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
    },
    /// The application rejects one resource of an update and accepts the others.
    RejectOne {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application wants a name.
    Subscribe {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application wants a name no longer.
    Unsubscribe {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application asks again for what it wants.
    Refetch {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application holds back what there is to say of a type.
    Pause {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
    },
    /// The application loses what it has of a resource.
    Forget {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// A resource is put into the store, with another content than it had.
    Put {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The store removes a resource.
    Delete {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The store can't give a resource, and says why.
    Fail {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The store does not know any more whether a resource exists.
    Doubt {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The store has all there is of a type.
    Know {
        /// The number of the type.
        t: usize,
    },
    /// Time passes until the next thing due, which is a heartbeat or the end of a TTL, whatever else is under way.
    Beat,
    /// A part of the shortest TTL passes, or less if something is due before, whatever else is under way.
    Pass,
}

impl Step {
    /// The client that a step is about, if it is about one.
    pub fn client(self) -> Option<usize> {
        match self {
            Self::Open { c }
            | Self::ClientSends { c }
            | Self::Sent { c }
            | Self::ServerReads { c }
            | Self::ServerSends { c }
            | Self::ClientReads { c }
            | Self::Cut { c }
            | Self::Accept { c, .. }
            | Self::Pause { c, .. }
            | Self::Resume { c, .. }
            | Self::Reject { c, .. }
            | Self::RejectOne { c, .. }
            | Self::Subscribe { c, .. }
            | Self::Unsubscribe { c, .. }
            | Self::Refetch { c, .. }
            | Self::Forget { c, .. } => Some(c),
            Self::Tick | Self::Beat | Self::Pass => None,
            Self::Put { .. } | Self::Delete { .. } | Self::Fail { .. } | Self::Doubt { .. } | Self::Know { .. } => None,
        }
    }

    /// Whether the protocol takes this step by itself.
    pub fn is_protocol(self) -> bool {
        use Step::{Accept, ClientReads, ClientSends, Open, Resume, Sent, ServerReads, ServerSends, Tick};
        matches!(
            self,
            Open { .. }
                | ClientSends { .. }
                | Sent { .. }
                | ServerReads { .. }
                | ServerSends { .. }
                | ClientReads { .. }
                | Accept { .. }
                | Resume { .. }
                | Tick
        )
    }
}

/// How often each kind of environment step may happen.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Budget {
    /// How often a stream breaks.
    pub cuts: u8,
    /// How often an update is rejected, whole or in part.
    pub rejects: u8,
    /// How often a name is subscribed to.
    pub subscribes: u8,
    /// How often a name is unsubscribed.
    pub unsubscribes: u8,
    /// How often a name is asked for again.
    pub refetches: u8,
    /// How often what a client has to say is held back.
    pub pauses: u8,
    /// How often the application loses a resource.
    pub forgets: u8,
    /// How often a resource is put, or changed.
    pub puts: u8,
    /// How often a resource is removed.
    pub deletes: u8,
    /// How often the store can't give a resource.
    pub fails: u8,
    /// Doubts, and that a type becomes known.
    pub doubts: u8,
    /// How often a heartbeat or the end of a TTL comes.
    pub beats: u8,
    /// How often a while passes though something is under way.
    pub passes: u8,
}

impl Budget {
    /// Sets how often a stream breaks.
    pub const fn cuts(self, cuts: u8) -> Self {
        Self { cuts, ..self }
    }

    /// Sets how often an update is rejected, whole or in part.
    pub const fn rejects(self, rejects: u8) -> Self {
        Self { rejects, ..self }
    }

    /// Sets how often a name is asked for again.
    pub const fn refetches(self, refetches: u8) -> Self {
        Self { refetches, ..self }
    }

    /// Sets how often what a client has to say is held back.
    pub const fn pauses(self, pauses: u8) -> Self {
        Self { pauses, ..self }
    }

    /// Sets how often the application loses a resource.
    pub const fn forgets(self, forgets: u8) -> Self {
        Self { forgets, ..self }
    }

    /// Subscriptions and unsubscriptions.
    pub const fn wishes(self, subscribes: u8, unsubscribes: u8) -> Self {
        Self { subscribes, unsubscribes, ..self }
    }

    /// Sets how often the store can't give a resource.
    pub const fn fails(self, fails: u8) -> Self {
        Self { fails, ..self }
    }

    /// Sets how often a heartbeat or the end of a TTL comes.
    pub const fn beats(self, beats: u8) -> Self {
        Self { beats, ..self }
    }

    /// Sets how often the store does not know any more whether a resource exists.
    pub const fn doubts(self, doubts: u8) -> Self {
        Self { doubts, ..self }
    }

    /// Sets how often a while passes though something is under way.
    pub const fn passes(self, passes: u8) -> Self {
        Self { passes, ..self }
    }

    /// Puts and deletions.
    pub const fn changes(self, puts: u8, deletes: u8) -> Self {
        Self { puts, deletes, ..self }
    }

    /// As much as anybody could want of everything.
    pub const PLENTY: Self = Self {
        cuts: 99,
        rejects: 99,
        subscribes: 99,
        unsubscribes: 99,
        refetches: 99,
        pauses: 99,
        forgets: 99,
        puts: 99,
        deletes: 99,
        fails: 99,
        doubts: 99,
        beats: 99,
        passes: 99,
    };

    /// Nothing.
    pub const NONE: Self = Self {
        cuts: 0,
        rejects: 0,
        subscribes: 0,
        unsubscribes: 0,
        refetches: 0,
        pauses: 0,
        forgets: 0,
        puts: 0,
        deletes: 0,
        fails: 0,
        doubts: 0,
        beats: 0,
        passes: 0,
    };
}

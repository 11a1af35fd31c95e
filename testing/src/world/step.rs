//! The alphabet.

/// What can happen. `c` is a client and its stream, `t` a type, `n` a name, each by its number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Step {
    // The protocol: what drivers do without being asked.
    /// A stream comes up.
    Open {
        c: usize,
    },
    /// The client hands a request to the transport.
    ClientSends {
        c: usize,
    },
    /// The transport has taken what the client handed over.
    Sent {
        c: usize,
    },
    /// A request arrives.
    ServerReads {
        c: usize,
    },
    /// The server is asked for a response, and hands one to the transport if there is one.
    ServerSends {
        c: usize,
    },
    /// A response arrives.
    ClientReads {
        c: usize,
    },
    /// The application accepts an update.
    Accept {
        c: usize,
        t: usize,
    },
    /// The application lets go a type that it held back.
    Resume {
        c: usize,
        t: usize,
    },
    /// Time passes until the next thing is due.
    Tick,

    // The environment: what happens to the protocol. Each kind has a budget.
    /// The stream breaks; what is on the wire is lost.
    Cut {
        c: usize,
    },
    /// The application rejects all of an update.
    Reject {
        c: usize,
        t: usize,
    },
    /// The application rejects one resource of an update and accepts the others.
    RejectOne {
        c: usize,
        t: usize,
        n: usize,
    },
    Subscribe {
        c: usize,
        t: usize,
        n: usize,
    },
    Unsubscribe {
        c: usize,
        t: usize,
        n: usize,
    },
    /// The application asks again for what it wants.
    Refetch {
        c: usize,
        t: usize,
        n: usize,
    },
    /// The application holds back what there is to say of a type.
    Pause {
        c: usize,
        t: usize,
    },
    /// The application loses what it has of a resource.
    Forget {
        c: usize,
        t: usize,
        n: usize,
    },
    /// A resource is put into the store, with another content than it had.
    Put {
        t: usize,
        n: usize,
    },
    Delete {
        t: usize,
        n: usize,
    },
    /// The store can't give a resource, and says why.
    Fail {
        t: usize,
        n: usize,
    },
    /// The store does not know any more whether a resource exists.
    Doubt {
        t: usize,
        n: usize,
    },
    /// The store has all there is of a type.
    Know {
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
    pub cuts: u8,
    pub rejects: u8,
    pub subscribes: u8,
    pub unsubscribes: u8,
    pub refetches: u8,
    pub pauses: u8,
    pub forgets: u8,
    pub puts: u8,
    pub deletes: u8,
    pub fails: u8,
    /// Doubts, and that a type becomes known.
    pub doubts: u8,
    pub beats: u8,
    pub passes: u8,
}

impl Budget {
    pub const fn cuts(self, cuts: u8) -> Self {
        Self { cuts, ..self }
    }

    pub const fn rejects(self, rejects: u8) -> Self {
        Self { rejects, ..self }
    }

    pub const fn refetches(self, refetches: u8) -> Self {
        Self { refetches, ..self }
    }

    pub const fn pauses(self, pauses: u8) -> Self {
        Self { pauses, ..self }
    }

    pub const fn forgets(self, forgets: u8) -> Self {
        Self { forgets, ..self }
    }

    /// Subscriptions and unsubscriptions.
    pub const fn wishes(self, subscribes: u8, unsubscribes: u8) -> Self {
        Self { subscribes, unsubscribes, ..self }
    }

    pub const fn fails(self, fails: u8) -> Self {
        Self { fails, ..self }
    }

    pub const fn beats(self, beats: u8) -> Self {
        Self { beats, ..self }
    }

    pub const fn doubts(self, doubts: u8) -> Self {
        Self { doubts, ..self }
    }

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

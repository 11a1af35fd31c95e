//! The alphabet.

/// A step. `c` is a client and its stream, `t` a type, `n` a name, each by its number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Step {
    // The protocol: steps that drivers take without the environment.
    /// A stream opens.
    Open {
        /// The number of the client.
        c: usize,
    },
    /// The client hands a request to the transport.
    ClientSends {
        /// The number of the client.
        c: usize,
    },
    /// The transport has taken the client's request.
    Sent {
        /// The number of the client.
        c: usize,
    },
    /// A request arrives.
    ServerReads {
        /// The number of the client.
        c: usize,
    },
    /// The server is polled for a response, and passes one to the transport if there is one.
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
    /// The application resumes a paused type.
    Resume {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
    },
    /// Time passes until the next deadline.
    Tick,

    // The environment: events that affect the protocol. Each kind has a budget.
    /// The stream breaks; messages on the wire are lost.
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
    /// The application subscribes to a name.
    Subscribe {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application unsubscribes from a name.
    Unsubscribe {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application requests a subscribed name again.
    Refetch {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The application pauses a type.
    Pause {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
    },
    /// The application falls silent on a type: it gives no verdict any more.
    Silence {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
    },
    /// The application loses a held resource.
    Forget {
        /// The number of the client.
        c: usize,
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The store gets new content for a resource.
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
    /// The store has an error for a resource.
    Fail {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The store no longer knows whether a resource exists.
    Doubt {
        /// The number of the type.
        t: usize,
        /// The number of the name.
        n: usize,
    },
    /// The store has all resources of a type.
    Know {
        /// The number of the type.
        t: usize,
    },
    /// Time passes until the next heartbeat or expiry, regardless of messages in flight.
    Beat,
    /// Time passes until the next deadline while nothing is left but verdicts: the applications are slow.
    Wait,
    /// A part of the shortest TTL passes, or the time until the next deadline if that is shorter, regardless of
    /// messages in flight.
    Pass,
}

impl Step {
    /// Returns the client that a step concerns, if any.
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
            | Self::Silence { c, .. }
            | Self::Forget { c, .. } => Some(c),
            Self::Tick | Self::Beat | Self::Wait | Self::Pass => None,
            Self::Put { .. } | Self::Delete { .. } | Self::Fail { .. } | Self::Doubt { .. } | Self::Know { .. } => None,
        }
    }

    /// Returns whether this is a protocol step.
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

/// The number of times each kind of environment step may happen.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Budget {
    /// The number of broken streams.
    pub cuts: u8,
    /// The number of rejected updates, completely or in part.
    pub rejects: u8,
    /// The number of subscriptions.
    pub subscribes: u8,
    /// The number of unsubscriptions.
    pub unsubscribes: u8,
    /// The number of refetches.
    pub refetches: u8,
    /// The number of pauses.
    pub pauses: u8,
    /// The number of types on which an application falls silent.
    pub silences: u8,
    /// The number of resources that the application loses.
    pub forgets: u8,
    /// The number of new or changed resources.
    pub puts: u8,
    /// The number of removed resources.
    pub deletes: u8,
    /// The number of errors of the store.
    pub fails: u8,
    /// The number of doubts, and of types that become known.
    pub doubts: u8,
    /// The number of heartbeats and expiries.
    pub beats: u8,
    /// The number of times that a while passes with messages in flight.
    pub passes: u8,
    /// The seconds that pass while nothing is left but verdicts.
    pub seconds: u16,
}

impl Budget {
    /// Sets the number of broken streams.
    pub const fn cuts(self, cuts: u8) -> Self {
        Self { cuts, ..self }
    }

    /// Sets the number of rejected updates, completely or in part.
    pub const fn rejects(self, rejects: u8) -> Self {
        Self { rejects, ..self }
    }

    /// Sets the number of refetches.
    pub const fn refetches(self, refetches: u8) -> Self {
        Self { refetches, ..self }
    }

    /// Sets the number of pauses.
    pub const fn pauses(self, pauses: u8) -> Self {
        Self { pauses, ..self }
    }

    /// Sets the number of resources that the application loses.
    pub const fn forgets(self, forgets: u8) -> Self {
        Self { forgets, ..self }
    }

    /// Sets the number of types on which an application falls silent.
    pub const fn silences(self, silences: u8) -> Self {
        Self { silences, ..self }
    }

    /// Sets the numbers of subscriptions and unsubscriptions.
    pub const fn wishes(self, subscribes: u8, unsubscribes: u8) -> Self {
        Self { subscribes, unsubscribes, ..self }
    }

    /// Sets the number of errors of the store.
    pub const fn fails(self, fails: u8) -> Self {
        Self { fails, ..self }
    }

    /// Sets the number of heartbeats and expiries.
    pub const fn beats(self, beats: u8) -> Self {
        Self { beats, ..self }
    }

    /// Sets the number of times the store no longer knows whether a resource exists.
    pub const fn doubts(self, doubts: u8) -> Self {
        Self { doubts, ..self }
    }

    /// Sets the number of times that a while passes with messages in flight.
    pub const fn passes(self, passes: u8) -> Self {
        Self { passes, ..self }
    }

    /// Sets the seconds that pass while nothing is left but verdicts.
    pub const fn seconds(self, seconds: u16) -> Self {
        Self { seconds, ..self }
    }

    /// Sets the numbers of puts and deletions.
    pub const fn changes(self, puts: u8, deletes: u8) -> Self {
        Self { puts, deletes, ..self }
    }

    /// As many of each kind as any walk needs.
    pub const PLENTY: Self = Self {
        cuts: 99,
        rejects: 99,
        subscribes: 99,
        unsubscribes: 99,
        refetches: 99,
        pauses: 99,
        silences: 0,
        forgets: 99,
        puts: 99,
        deletes: 99,
        fails: 99,
        doubts: 99,
        beats: 99,
        passes: 99,
        seconds: 0,
    };

    /// No events of the environment.
    pub const NONE: Self = Self {
        cuts: 0,
        rejects: 0,
        subscribes: 0,
        unsubscribes: 0,
        refetches: 0,
        pauses: 0,
        silences: 0,
        forgets: 0,
        puts: 0,
        deletes: 0,
        fails: 0,
        doubts: 0,
        beats: 0,
        passes: 0,
        seconds: 0,
    };
}

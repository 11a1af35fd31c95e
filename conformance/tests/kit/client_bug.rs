//! The bugs that clients of the field had or have, each a switch of [`PlainClient`](crate::plain_client::PlainClient).

/// A bug, named by what the client does.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ClientBug {
    /// a new stream begins with an empty list for a type of which nothing is wanted.
    EmptyListOnNewStream,
    /// SotW: the version is forgotten on a new stream.
    VersionForgotten,
    /// the nonce of the old stream is sent on the new.
    OldNonceOnNewStream,
    /// an answer that waited is sent on the next stream.
    AnswersOnNewStream,
    /// SotW: the nonce of a type is forgotten with its last name.
    NonceForgottenWithNames,
    /// a type is forgotten with its last name; a response in flight is not answered.
    TypeForgottenWithNames,
    /// a client that unsubscribes from a name and subscribes again at once sends nothing, has dropped the
    /// resource, and waits for it.
    ComesBackSilent,
    /// the timer of a resource runs on though the resource has come.
    TimerForWhatCame,
    /// on a new stream there is a timer for a resource that is held.
    TimerForHeld,
    /// there is a timer only for names in the first request of a stream.
    TimerOfFirstRequestOnly,
    /// the third response of a type on a stream is not read, nor is any later one of the type.
    StopsReading,
    /// This project's client until its eighth response waited: nothing is read while eight responses of a type wait for
    /// their answers.
    FullStopsReading,
    /// an empty name ends the client.
    EmptyNameEnds,
    /// an empty response is rejected.
    EmptyRejected,
    /// SotW: a response of an older version is not read.
    OlderVersionNotRead,
    /// delta: the version of a resource that the wildcard brought is not updated.
    WildcardVersionKept,
    /// R-25, Z6: a resource that was rejected counts as held.
    RejectedCounts,
    /// delta: a new stream lists all names that the wildcard brought.
    WildcardListsNames,
    /// a resource that came unrequested is asked for.
    UnaskedAskedFor,
    /// a name that was unsubscribed from is asked for on the next stream.
    LeftAskedForAgain,
    /// a client that unsubscribes from a name and subscribes again is not subscribed any more.
    ComesBackUnsaid,
    /// a response that has a name twice is accepted.
    DuplicatesAccepted,
    /// a type whose last response was rejected is not asked for on the next stream.
    RejectedNotAskedAgain,
    /// a resource that is asked for beside the wildcard is not applied.
    OnDemandNotTaken,
    /// each name on demand ends the subscription to the one before.
    LastOnDemandOnly,
    /// delta: a resource that was unsubscribed from is claimed on the next stream.
    LeftClaimed,
    /// delta: a new stream claims nothing, and resources that are gone stay.
    ClaimsNothing,
    /// once a stream has ended, there is no other.
    NeverComesBack,
    /// D-01: a name takes the place of the wildcard.
    NamesReplaceWildcard,
    /// D-01: the unsubscription from the last name is not sent.
    LastNameUnsaid,
    /// R-43, D-01: the old content of a resource that is rejected is dropped, too.
    RejectionDropsOld,
    /// D-01: a resource that a response of a partial type lacks counts as removed.
    AbsentIsMissing,
    /// D-01: a resource in a wrapper is rejected.
    WrapperRejected,
    /// D-01: an `Any` of another type is accepted.
    AnyTypeNotCompared,
    /// grpc-js: a resource that does not come counts as missing only after 30 s.
    TimerTooLong,
    /// D-02: a NACK has the code 0.
    CodeZero,
    /// D-02: a response of a type that was not asked for has an ACK.
    UnknownTypeAcked,
    /// orion: a response of a type that was not asked for ends the stream.
    UnknownTypeEnds,
    /// D-04: a response of a type that was not asked for is the last that is read.
    DeafAfterUnknownType,
    /// D-02: names that were added later are not in the first request of the next stream.
    LateNamesForgotten,
    /// ztunnel, junction: the next stream opens at once.
    NoBackoff,
    /// junction: delta: a resource that was removed is still claimed.
    RemovedClaimed,
    /// quilkin: delta: later requests have `initial_resource_versions`, too.
    ClaimsLater,
    /// D-05, Envoy: the ACK of a good response has the error of a bad response before.
    ErrorWithAck,
    /// grpc-js: each request after a NACK repeats its error.
    ErrorRepeated,
    /// D-03: SotW: after a NACK, a request that changes the names has the nonce that was accepted last.
    NonceAcceptedLast,
    /// SotW: a request has only the names that are new.
    NewNamesOnly,
    /// A resource that a full-state response lacks, or that is removed, stays.
    GoneStays,
    /// A resource that expires stays.
    ExpiredStays,
    /// A NACK has the version that is rejected.
    NackHasNewVersion,
    /// A name that was unsubscribed from counts as missing when its timer ends.
    TimerAfterLeaving,
    /// Any response of a type stops the timers of all its names.
    AnyResponseStopsTimers,
    /// A resource that comes without a TTL keeps the one that it had.
    TtlStays,
    /// A heartbeat is rejected.
    BeatRejected,
    /// Delta: a resource that the wildcard brought is claimed after the unsubscription from the wildcard.
    WildcardLeftClaimed,
    /// Delta: the removal of a resource ends its subscription.
    RemovedUnsubscribed,
    /// The second of two bad responses is not answered.
    SecondNackSilent,
    /// A resource that the wildcard brought, and that is gone, stays.
    GoneStaysUnderWildcard,
    /// SotW: a NACK has the version that was accepted first.
    NackHasFirstVersion,
    /// A rejected response ends the subscription to the names in it.
    RejectionUnsubscribes,
    /// The node is in the first request of the first stream alone.
    NodeOnce,
}

//! The bugs that servers of the field had or have, each a switch of [`Plain`](crate::plain::Plain).

/// A bug, named by what the server does.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Bug {
    /// Every response has the same nonce.
    OneNonce,
    /// Every response, and every resource, has the same version.
    OneVersion,
    /// The first resource of a response is in it twice.
    SaysTwice,
    /// The content is of another type than the response.
    OtherAnyType,
    /// The first request of each type needs a node.
    NodeForEachType,
    /// A type that nobody knows ends the stream.
    UnknownTypeEnds,
    /// A NACK is answered by the same response.
    ResendsRejected,
    /// SotW: a stale request is answered by the response before.
    AnswersStale,
    /// SotW: an ACK is an ACK, and its names are not read.
    AckNamesIgnored,
    /// SotW: a NACK is a NACK, and its names are not read.
    NackNamesIgnored,
    /// SotW: a second request under one nonce is not read.
    SecondRequestIgnored,
    /// SotW: `*` is a name like others.
    StarIsAName,
    /// SotW: an empty list is the wildcard, at any time.
    EmptyMeansAll,
    /// SotW: nothing is sent to a client that claims any version.
    TrustsAnyVersion,
    /// SotW: nothing is sent to a client that claims the current version.
    TrustsTheVersion,
    /// SotW: a name that was left is still subscribed to.
    NeverForgets,
    /// SotW: a name that comes back is not sent again.
    ComesBackSilent,
    /// SotW: a deletion is pushed with the next change.
    SilentDeletion,
    /// SotW: a stream that has left all names gets an empty response at the next change: a choice, no bug.
    EmptyAfterLeaving,
    /// A name that did not exist is forgotten.
    ForgetsMissing,
    /// Delta: a name that is removed is no longer subscribed to.
    RemovalUnsubscribes,
    /// Delta: that a name never existed is not told.
    MissingNotTold,
    /// Delta: that a name does not exist is told once.
    MissingToldOnce,
    /// Delta: a name that is subscribed to already is not sent again.
    KnownNotSentAgain,
    /// Delta: a removal that crosses an unanswered response is lost.
    RemovalLostBeforeAck,
    /// Delta: a name that is left within a wildcard is not told of.
    LeftInWildcardSilent,
    /// Delta: to leave the last name begins the wildcard.
    LastNameIsWildcard,
    /// Delta: to leave the wildcard changes nothing.
    WildcardForEver,
    /// Delta: a request with a stale nonce is not read.
    DropsStale,
    /// Delta: a request without a nonce is not read before the ACK.
    DropsWithoutNonce,
    /// Delta: to unsubscribe from what is not subscribed to ends the stream.
    PhantomEnds,
    /// Delta: to unsubscribe is answered by the resource.
    AnswersUnsubscribe,
    /// Delta: a change sends everything.
    SendsAllOnChange,
    /// Delta: a resource that a client of the wildcard claims, and that is gone, is not told.
    ClaimedGoneNotTold,
    /// Delta: to leave the wildcard leaves all names.
    LeavingWildcardLeavesAll,
    /// Delta: what comes into being under a wildcard is not sent.
    WildcardIsASnapshot,
    /// Delta: the removal of what a client claims, and was not sent on the stream, is not told.
    ClaimedNeverRemoved,
    /// Changes are sent on the stream that opened last.
    NewestStreamOnly,
    /// A content that was sent once is not sent again.
    OldContentNotSent,
    /// Delta: a change that crosses an unanswered response is lost.
    ChangeLostBeforeAck,
    /// Delta: a client of the wildcard that claims anything is not sent what is new.
    ResumeSkipsNew,
    /// Delta: a client of the wildcard that claims a resource is not sent it, whatever the version.
    ResumeSkipsChanged,
    /// After a NACK nothing of the type is sent before the next ACK.
    NackStopsType,
    /// A removal after a NACK is not told.
    RemovalLostAfterNack,
    /// SotW: the names of a list that lacks what was there before are not read.
    ShrinksNotRead,
    /// Delta: a subscription and an unsubscription in one request: the second is not read.
    HalfRead,
    /// Endpoints are not sent again when their cluster changes.
    NoWarming,
    /// Endpoints are sent before the clusters that name them.
    EndpointsFirst,
}

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
    /// An unknown type ends the stream.
    UnknownTypeEnds,
    /// A NACK is answered by the same response.
    ResendsRejected,
    /// SotW: a stale request is answered by the response before.
    AnswersStale,
    /// SotW: the names of an ACK are not read.
    AckNamesIgnored,
    /// SotW: the names of a NACK are not read.
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
    /// SotW: a name that was unsubscribed from is still subscribed to.
    NeverForgets,
    /// SotW: the resource of a name that is subscribed to again is not sent again.
    ComesBackSilent,
    /// SotW: a deletion is pushed with the next change.
    SilentDeletion,
    /// SotW: a stream that has unsubscribed from all names gets an empty response at the next change: a choice, no bug.
    EmptyAfterLeaving,
    /// The subscription to a name that did not exist is forgotten.
    ForgetsMissing,
    /// Delta: a name that is removed is no longer subscribed to.
    RemovalUnsubscribes,
    /// Delta: the server does not report that a name never existed.
    MissingNotTold,
    /// Delta: the server reports only once that a name does not exist.
    MissingToldOnce,
    /// Delta: a name that is subscribed to already is not sent again.
    KnownNotSentAgain,
    /// Delta: a removal that crosses an unanswered response is lost.
    RemovalLostBeforeAck,
    /// Delta: an unsubscription from a name within a wildcard is not answered.
    LeftInWildcardSilent,
    /// Delta: the unsubscription from the last name begins the wildcard.
    LastNameIsWildcard,
    /// Delta: the unsubscription from the wildcard changes nothing.
    WildcardForEver,
    /// Delta: a request with a stale nonce is not read.
    DropsStale,
    /// Delta: a request without a nonce is not read before the ACK.
    DropsWithoutNonce,
    /// Delta: the unsubscription from a name that is not subscribed to ends the stream.
    PhantomEnds,
    /// Delta: an unsubscription is answered by the resource.
    AnswersUnsubscribe,
    /// Delta: after a change, all wanted resources are sent.
    SendsAllOnChange,
    /// Delta: the removal of a resource that a client of the wildcard claims in its first request is not sent.
    ClaimedGoneNotTold,
    /// Delta: the unsubscription from the wildcard ends the subscriptions to all names.
    LeavingWildcardLeavesAll,
    /// A resource that is created under a wildcard is not sent.
    WildcardIsASnapshot,
    /// Delta: the removal of a resource that a client claims, and that was not sent on the stream, is not sent.
    ClaimedNeverRemoved,
    /// Changes are sent on the stream that opened last.
    NewestStreamOnly,
    /// A content that was sent once is not sent again.
    OldContentNotSent,
    /// Delta: a change that crosses an unanswered response is lost.
    ChangeLostBeforeAck,
    /// Delta: new resources are not sent to a client of the wildcard that claims any resource.
    ResumeSkipsNew,
    /// Delta: a resource that a client of the wildcard claims is not sent, whatever the version.
    ResumeSkipsChanged,
    /// After a NACK nothing of the type is sent before the next ACK.
    NackStopsType,
    /// A removal after a NACK is not sent.
    RemovalLostAfterNack,
    /// SotW: a list that lacks a name of the list before is not read.
    ShrinksNotRead,
    /// Delta: the unsubscription in a request that also has a subscription is not read.
    HalfRead,
    /// Endpoints are not sent again when their cluster changes.
    NoWarming,
    /// Endpoints are sent before the clusters that name them.
    EndpointsFirst,
}

//! The rules of the referee, each with the sentence that it enforces.

/// The strength of a requirement of the specification.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// The text leaves the choice open: it is reported, and never a failure.
    May,
    /// "should", "expected", "recommended".
    Should,
    /// "must", "will", "is an error".
    Must,
}

impl Level {
    /// Returns the level as reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::May => "MAY",
            Self::Should => "SHOULD",
            Self::Must => "MUST",
        }
    }

    /// Returns the level of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::May, Self::Should, Self::Must].into_iter().find(|level| level.name() == name)
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident $id:literal $spec:literal $level:ident $sentence:literal)+) => {
        /// A rule of the referee.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum Rule {
            $($(#[$doc])* $name,)+
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the id, as in `walk/needless`.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)+
                }
            }

            /// Returns the id of the sentence in the catalogue of the specification.
            pub fn spec_id(self) -> &'static str {
                match self {
                    $(Self::$name => $spec,)+
                }
            }

            /// Returns the level of the requirement.
            pub fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)+
                }
            }

            /// Returns the sentence of the specification (xds_protocol.rst, unless it says `discovery.proto`).
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $sentence,)+
                }
            }
        }
    };
}

rules! {
    /// A response has no nonce.
    Nonce "nonce" "BASIC-06" Must "All server responses will contain a nonce"
    /// A nonce is given twice on one stream.
    NonceAgain "nonce-again" "BASIC-08" Must "This allows servers to determine which response a given request is associated with"
    /// A response is of a type that was not asked for on this stream.
    TypeNotAsked "type-not-asked" "ADS-02" Must "each resource type is treated as a separate logical stream within the aggregated stream"
    /// The content is of another type than the response.
    AnyType "any-type" "RESPONSE-02" Must "discovery.proto: Type URL for resources. [..] Must be consistent with the type_url in the 'resources' repeated Any (if non-empty)."
    /// A response has a name twice.
    Twice "twice" "TWICE-01" Must "It is an error for a server to send a single response that contains the same resource name twice."
    /// A response has no version.
    NoVersion "no-version" "VERSION-03" Must "Every xDS resource type has a version string that indicates the version for that resource type."
    /// Different content under one version.
    Version "version" "VERSION-02" Must "Whenever one resource of that type changes, the version is changed."
    /// A heartbeat has another version than the resource.
    BeatVersion "beat-version" "TTL-08" Must "a response can be sent that provides a Resource with the resource unset and version matching the most recently sent version can be used to update the TTL"
    /// A resource of a delta response has no name.
    NoName "no-name" "RESOURCE-01" Must "The resource name will be returned in the name field in the resource of a DeltaDiscoveryResponse."
    /// A resource that the server cannot have, or content that the resource did not have.
    Content "content" "NAMES-04" Must "The management server must supply the requested resources if they exist."
    /// A response of a full-state type lacks a resource that did not change.
    FullState "full-state" "GROUP-03" Must "it must resend all 100 of them, even the 99 that were not modified"
    /// A response for which there was no reason.
    Needless "needless" "UPDATE-01" Should "The management server should only send updates to the Envoy client when the resources in the DiscoveryResponse have changed."
    /// A resource that the client is not subscribed to.
    Unwanted "unwanted" "NAMES-07" Should "If the list of resource names becomes empty, that means that the client is no longer interested in any resources of the specified type."
    /// A newly requested resource is not sent.
    Owed "owed" "NAMES-06" Must "When the client sends a new request that changes the set of resources being requested, the server must resend any newly requested resources"
    /// A delta subscription is not answered at all.
    Unanswered "unanswered" "NONE-01" Must "When a resource subscribed to by a client does not exist, the server will send a DeltaDiscoveryResponse message that contains that resource's name in the removed_resources field."
    /// A name that was unsubscribed under a wildcard is not mentioned.
    UnsubscribedInWildcard "unsubscribed-in-wildcard" "ALIAS-09" Must "the server must send a response that includes the specific resource in either the removed_resources field (if it is not included in the wildcard) or in the resources field (if it is included in the wildcard)"
    /// A change of a wanted resource is not sent.
    NotSent "not-sent" "ABSENT-06" Must "Management servers must remember the set of resources being requested by the client, and if one of those resources springs into existence later, the server must send an update to the client informing it of the new resource."
    /// A legal request, or a change of the world, ended the stream.
    StreamEnded "stream-ended" "NAMES-04" Must "The management server must supply the requested resources if they exist."
    /// The removal of a wanted resource is not sent.
    NotRemoved "not-removed" "DELETE-01" Must "the server signals the client that a resource should be deleted via the removed_resources field of the response"

    // Of clients.
    /// The first request of a stream has no node, or a later one has another.
    Node "node" "BASIC-10" Must "Only the first request on a stream is guaranteed to carry the node identifier."
    /// The first request of a type has a nonce.
    FirstRequest "first-request" "BASIC-09" Must "Note that the nonce is valid only in the context of an individual xDS stream; it does not survive stream restarts."
    /// An error without a response that it could belong to.
    ErrorWithoutResponse "error-without-response" "ACK-04" Must "NACK signifies unsuccessful configuration and is indicated by the presence of the error_detail field."
    /// A nonce that the server did not give.
    NonceUnknown "nonce-unknown" "BASIC-07" Must "all subsequent requests from the client must set the response_nonce field to the most recent nonce received from the server on that stream"
    /// A nonce of another type.
    NonceOfOtherType "nonce-of-other-type" "ADS-02" Must "each resource type is treated as a separate logical stream within the aggregated stream"
    /// A nonce of an earlier stream.
    NonceOfOtherStream "nonce-of-other-stream" "BASIC-09" Must "Note that the nonce is valid only in the context of an individual xDS stream; it does not survive stream restarts."
    /// An error is repeated for a response that has its answer: discovery.proto lets a client report that its previous
    /// response failed, so that the level is not stronger than SHOULD.
    ErrorAgain "error-again" "ACK-04" Should "NACK signifies unsuccessful configuration and is indicated by the presence of the error_detail field."
    /// A response with nothing wrong is rejected.
    GoodRejected "good-rejected" "ACK-03" Must "ACK signifies successful configuration update"
    /// A response that cannot be used is accepted.
    BadAccepted "bad-accepted" "ACK-04" Must "NACK signifies unsuccessful configuration and is indicated by the presence of the error_detail field."
    /// The error of a NACK has no code, no message, or one of 8 KiB or more.
    NackCode "nack-code" "REQUEST-09" Should "The error_detail provides the exact error message populated in the message field."
    /// Names that the client does not want.
    NamesUnwanted "names-unwanted" "NAMES-03" Must "requests must specify the set of resource names that the client is interested in"
    /// A client claims a resource that it cannot hold.
    Claims "claims" "DREQUEST-02" Must "discovery.proto: [..] informing the server of the resources (and their versions) that the client already possesses, using the initial_resource_versions field."
    /// A client claims resources at the wrong time.
    ClaimsLater "claims-later" "DREQUEST-11" Must "discovery.proto: It will not be populated: [..] In any message after the first in a stream for a given type_url."
    /// A nonce that is older than one that the client has answered.
    NonceLatest "nonce-latest" "BASIC-07" Must "all subsequent requests from the client must set the response_nonce field to the most recent nonce received from the server on that stream"
    /// A delta response is answered twice.
    AnsweredTwice "answered-twice" "DELTA-03" Must "In the delta xDS wire protocol, the nonce field is required and used to pair a DeltaDiscoveryResponse to a DeltaDiscoveryRequest ACK or NACK."
    /// An ACK has the version of another response.
    AckVersion "ack-version" "ACK-03" Must "ACK signifies successful configuration update and contains the version_info from the DiscoveryResponse."
    /// The client has ended, or does not open its next stream.
    Gone "gone" "BASIC-05" Must "After processing the DiscoveryResponse, Envoy will send a new request on the stream"
    /// A version that the client cannot use.
    NackVersion "nack-version" "ACK-05" Must "The version_info indicates the most recent version that the client is using"
    /// A response without ACK and NACK.
    NotAnswered "not-answered" "ACK-01" Should "The xDS client should ACK or NACK every DiscoveryResponse received from the management server."
    /// The names are not those that are wanted.
    Names "names" "NAMES-03" Must "requests must specify the set of resource names that the client is interested in"
}

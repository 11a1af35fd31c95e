//! Stories: the fixed cases as text, one conversation each. The README beside the cases describes the format.

mod parse;
mod words;
mod write;

use std::time::Duration;

use crate::message::Variant;
use crate::referee::Level;

pub use self::parse::ParseError;
pub(crate) use self::parse::story;
pub(crate) use self::words::{Words, duration, number};

/// A case: its header, and the steps of the conversation. A story for clients has steps of another type.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Story<S = Step> {
    /// The id, as in `server/sotw/names-grow`.
    pub id: String,
    /// The level of the requirement.
    pub level: Level,
    /// The id of the sentence in the catalogue of the specification.
    pub rule: String,
    /// The sentence of the specification.
    pub sentence: String,
    /// The variants that the story is for.
    pub variants: Vec<Variant>,
    /// The types that `T` stands for, one run each.
    pub types: Vec<String>,
    /// The features that the peer must have named.
    pub features: Vec<String>,
    /// Whether the stream is of the one type `T`, and not aggregated.
    pub single: bool,
    /// Whether the answer of a control is enough proof that the server has taken a change: the case is about the first
    /// answer of a server, without which there is no witness.
    pub trusts: bool,
    /// The steps, each with its line in the file.
    pub steps: Vec<(usize, S)>,
}

/// A step of a story.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Changes of the server's resources: taken at once if `batch`, otherwise one after the other.
    World {
        /// The changes.
        changes: Vec<Change>,
        /// Whether the changes are one operation.
        batch: bool,
    },
    /// The server ends and starts again, with the state that it has kept (feature `restart`).
    Restart,
    /// All further steps are about this stream, which opens with its first request.
    Stream(usize),
    /// The kit cancels the stream.
    Cut,
    /// The kit sends a request.
    Send(Send),
    /// The kit sends these bytes as a message.
    Bytes(Vec<u8>),
    /// The kit answers every response that has come on the stream: with ACKs, or with NACKs.
    Answer {
        /// Whether the responses are rejected.
        nack: bool,
    },
    /// The kit answers the next response of a type, if one has come; later ones are not read yet.
    AnswerOne {
        /// The type.
        type_name: String,
        /// Whether the response is rejected.
        nack: bool,
    },
    /// The kit listens until nothing is owed on the stream, or nothing comes.
    Hear,
    /// Responses with these parts must come, in any grouping.
    Must(Expected),
    /// Responses with these parts must come while another resource changes: a response that has that resource is
    /// answered when the resource has its next content.
    MustBeside {
        /// The parts.
        expected: Expected,
        /// The type of the resource that changes.
        type_name: String,
        /// The name of the resource that changes.
        name: String,
    },
    /// A response with exactly these resources must come.
    Exactly(Expected),
    /// No response of the type, or none with these parts, may come.
    MustNot(Expected),
    /// The kit reports whether responses with these parts come.
    Maybe(Expected),
    /// The first responses of these types must come in this order.
    Order(Vec<String>),
    /// The stream must still be open.
    Lives,
    /// The kit reports whether the server ended the stream.
    MayClose,
    /// The kit answers every response, and then nothing may be owed.
    Rest,
    /// Time passes.
    Wait(Duration),
}

/// A change of a resource of the server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// The type.
    pub type_name: String,
    /// The name.
    pub name: String,
    /// What happens to the resource.
    pub to: To,
}

/// What happens to a resource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum To {
    /// The resource is created or replaced.
    Put {
        /// The revision of the content.
        revision: u64,
        /// The time to live (feature `ttl`).
        ttl: Option<Duration>,
        /// Another name (feature `alias`).
        alias: Option<String>,
    },
    /// The resource is removed.
    Delete,
    /// The resource gets an error with this code (feature `error`).
    Error(i32),
    /// The server does not know any more whether the resource exists (feature `unknown`).
    Unknown,
}

/// A request of a story.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Send {
    /// The type; empty leaves the field out.
    pub type_name: String,
    /// SotW: the list. Delta: the names to subscribe to.
    pub names: Vec<String>,
    /// The number of further names, which don't exist.
    pub fill: usize,
    /// Delta: the names to unsubscribe from.
    pub unsubscribe: Vec<String>,
    /// Delta: `initial_resource_versions`.
    pub initial: Vec<(String, Text)>,
    /// What the request answers.
    pub answers: Answers,
    /// `version_info`, if not the usual one.
    pub version: Option<Text>,
    /// `response_nonce`, if not the usual one.
    pub nonce: Option<Text>,
    /// What the first request of a type claims from the stream of this number before the last cut.
    pub resume: Resume,
    /// Whether an error is added, whatever the request answers.
    pub error: bool,
    /// Whether the node is left out though the request is the first of its stream.
    pub nodeless: bool,
    /// Features of the client, on the first request of a stream.
    pub client_features: Vec<String>,
}

/// What a client claims to have from an earlier stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Resume {
    /// Nothing.
    #[default]
    No,
    /// The versions that it accepted last.
    Last,
    /// The versions that it accepted first.
    Older,
}

/// What a request answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Answers {
    /// Nothing: a spontaneous request.
    #[default]
    Nothing,
    /// ACK of the response that was read last, or of a bound one.
    Ack(Option<String>),
    /// NACK of the response that was read last, or of a bound one.
    Nack(Option<String>),
}

/// A version or nonce.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Text {
    /// This text.
    Literal(String),
    /// The version or nonce of the response that is bound to this variable.
    Of(String),
}

/// The parts of responses that a step looks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expected {
    /// The type.
    pub type_name: String,
    /// The resources: name, and revision where it matters.
    pub resources: Vec<(String, Option<u64>)>,
    /// Whether the step has a list of resources, even an empty one.
    pub has_list: bool,
    /// The removed names (delta).
    pub removed: Vec<String>,
    /// Names that a response mentions in any form: as a resource, as removed, or as an error.
    pub either: Vec<String>,
    /// Names with an error.
    pub errors: Vec<String>,
    /// The forms that the resources must have: `wrapped`, `bare`, `ttl`, `beat`.
    pub forms: Vec<Form>,
    /// The variable that the responses are bound to.
    pub bind: Option<String>,
}

/// The form of a resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// In a wrapper.
    Wrapped,
    /// Not in a wrapper.
    Bare,
    /// With a TTL.
    Ttl,
    /// Without content.
    Beat,
}

impl Expected {
    /// Returns whether any response of the type fits the step.
    pub fn is_any(&self) -> bool {
        !self.has_list && self.removed.is_empty() && self.either.is_empty() && self.errors.is_empty()
    }
}

impl<S: Clone> Story<S> {
    /// Makes the story of a walk: steps that the referee judges, and nothing else.
    pub fn of_walk(variant: Variant, steps: &[S]) -> Self {
        Self {
            id: "walk/all".into(),
            level: Level::Must,
            rule: String::new(),
            sentence: String::new(),
            variants: vec![variant],
            types: Vec::new(),
            features: Vec::new(),
            single: false,
            trusts: false,
            steps: steps.iter().cloned().map(|step| (0, step)).collect(),
        }
    }
}

impl Story {
    /// Reads a story of one variant: lines for the other are left out.
    ///
    /// # Errors
    ///
    /// The error names the line, and what is wrong in it.
    pub fn parse(text: &str, variant: Variant) -> Result<Self, ParseError> {
        parse::story(text, variant, parse::step)
    }

    /// Returns the variants that the header of a story names.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn variants(text: &str) -> Result<Vec<Variant>, ParseError> {
        parse::variants(text)
    }

    /// Returns whether the story changes the server's resources, and so needs a control.
    pub fn needs_control(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::World { .. }))
    }

    /// Returns whether the story puts resources only at its beginning, and changes none: then the resources that a
    /// server already has are enough.
    pub fn only_reads(&self) -> bool {
        let is_plain = |change: &Change| matches!(change.to, To::Put { ttl: None, alias: None, .. });
        let is_given = |step: &Step| match step {
            Step::World { changes, batch: false } => changes.iter().all(is_plain),
            _ => false,
        };
        let mut steps = self.steps.iter().map(|(_, step)| step).skip_while(|step| is_given(step));
        !steps.any(|step| matches!(step, Step::World { .. } | Step::MustBeside { .. }))
    }

    /// Returns whether the story restarts the server, and so ends the streams of all other stories.
    pub fn restarts(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::Restart))
    }

    /// Returns whether the story changes several types at once.
    pub fn needs_batch(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::World { batch: true, .. }))
    }

    /// Returns whether the story sees all resources of a type, and so must not run beside others: a name is `*`, or the
    /// first request has no names.
    pub fn is_wildcard(&self) -> bool {
        let mut sends = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Send(send) => Some(send),
            _ => None,
        });
        let first = sends.clone().next();
        let names_none = |send: &Send| send.names.is_empty() && send.unsubscribe.is_empty();
        first.is_some_and(names_none) || sends.any(|send| send.names.iter().any(|name| name == "*"))
    }
}

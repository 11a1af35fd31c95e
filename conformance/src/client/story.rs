//! Stories for clients: the fixed cases as text. The README beside the cases describes the format.

use std::time::Duration;

use super::peer::End;
use crate::message::Variant;
use crate::story::{self, ParseError, Story, Words, duration, number};

/// A case for clients.
pub type ClientStory = Story<Step>;

/// A step of a story for clients.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// The client is told to subscribe to names, or to unsubscribe.
    Want {
        /// The type.
        type_name: String,
        /// The names to subscribe to.
        add: Vec<String>,
        /// The names to unsubscribe from.
        remove: Vec<String>,
    },
    /// The kit sends a response.
    Send(Send),
    /// The kit sends these bytes as a message, on the stream of the type.
    Bytes {
        /// The type.
        type_name: String,
        /// The message.
        bytes: Vec<u8>,
    },
    /// Requests with these parts must come.
    Must(Wish),
    /// No request of the type, or none with these parts, may come.
    MustNot(Wish),
    /// The kit reports whether such requests come.
    Maybe(Wish),
    /// The client must be subscribed to exactly these names, once it is quiet.
    Names {
        /// The type.
        type_name: String,
        /// All names.
        names: Vec<String>,
    },
    /// The first request of the stream claims what the client holds: exactly these resources, or nothing; a client that
    /// claims nothing must drop the resources that are gone.
    Claims {
        /// The type.
        type_name: String,
        /// Each name with the response that it came in.
        held: Vec<(String, String)>,
    },
    /// What the client reports to have applied or removed.
    Apply(Applied),
    /// The client reports that a resource does not exist.
    Missing {
        /// The type.
        type_name: String,
        /// The name.
        name: String,
        /// When the report must come, from the request on; `None`: it must not come.
        within: Option<(Duration, Duration)>,
    },
    /// All streams end.
    Cut(End),
    /// All open streams end: the next request is the first of its stream.
    Fresh,
    /// The client answers a barrier, and so has read all responses before.
    Barrier,
    /// The node of the client must claim one of these features, or the case does not apply to the client.
    Declares(Vec<String>),
    /// The client must not have ended a stream.
    Lives,
    /// Time passes.
    Wait(Duration),
    /// The kit ends each stream as soon as it opens, this many times: the client must not open the next one at once.
    Backoff(usize),
}

/// A response of a story.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Send {
    /// The type.
    pub type_name: String,
    /// The resources.
    pub items: Vec<Item>,
    /// The number of further resources, which the client has not asked for.
    pub fill: usize,
    /// Delta: the removed names.
    pub removed: Vec<String>,
    /// Whether SotW resources are wrapped.
    pub wrapped: bool,
    /// The time to live of all resources.
    pub ttl: Option<Duration>,
    /// The nonce, if not the next one.
    pub nonce: Option<String>,
    /// The version, if not the next one.
    pub version: Option<String>,
    /// Whether the client may accept or reject the response.
    pub open: bool,
    /// Whether the response is sent only to a client that has asked anew for one of its resources since the last
    /// `want`.
    pub if_asked: bool,
    /// The type in each `Any`, if it is not that of the response.
    pub any_type: Option<String>,
    /// The variable that the response is bound to.
    pub bind: Option<String>,
}

/// A resource of a response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Item {
    /// The name.
    pub name: String,
    /// The content.
    pub content: Content,
}

/// The content of a resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// A resource with this revision.
    Revision(u64),
    /// Bytes that cannot be decoded.
    Bad,
    /// None: a heartbeat.
    Beat,
}

/// The parts of requests that a step looks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wish {
    /// The type.
    pub type_name: String,
    /// SotW: the list, exactly.
    pub names: Option<Vec<String>>,
    /// The names that are subscribed to: in SotW among the list.
    pub add: Vec<String>,
    /// Delta: the names that are unsubscribed from. SotW: names that the list lacks.
    pub remove: Vec<String>,
    /// The response that is accepted.
    pub ack: Option<String>,
    /// The response that is rejected.
    pub nack: Option<String>,
    /// The response that is answered either way.
    pub answer: Option<String>,
    /// SotW: the version of this response, or none (`""`).
    pub version: Option<String>,
    /// No nonce.
    pub no_nonce: bool,
    /// The first request of its type on a stream.
    pub first: bool,
    /// An error.
    pub error: bool,
    /// No error.
    pub no_error: bool,
}

/// What a client reports to have done.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Applied {
    /// The type.
    pub type_name: String,
    /// The names that are applied.
    pub names: Vec<String>,
    /// The names that are removed.
    pub removed: Vec<String>,
    /// Whether the report must come, must not come, or is only noted.
    pub how: How,
}

/// What a step demands of a report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum How {
    /// The report must come.
    #[default]
    Must,
    /// The report must not come before the next rest.
    MustNot,
    /// The report must not have come by now, if the client makes such reports at all.
    NotYet,
    /// The kit notes whether the report comes.
    Maybe,
}

/// Reads a story of one variant.
///
/// # Errors
///
/// The error names the line, and what is wrong in it.
pub fn parse(text: &str, variant: Variant) -> Result<ClientStory, ParseError> {
    story::story(text, variant, |line, _| step(line))
}

/// Writes a step of a walk as a line of a story. Steps that only fixed cases have are not written.
pub fn write_step(step: &Step) -> Option<String> {
    Some(match step {
        Step::Want { type_name, add, remove } => {
            let remove = remove.iter().map(|name| format!(" -{name}"));
            let names: String = remove.chain(add.iter().map(|name| format!(" +{name}"))).collect();
            format!("want {type_name}{names}")
        }
        Step::Send(send) => {
            let item = |item: &Item| match item.content {
                Content::Revision(revision) => format!("{}@{revision}", item.name),
                Content::Bad => format!("{}!", item.name),
                Content::Beat => format!("{}^", item.name),
            };
            let items: Vec<String> = send.items.iter().map(item).collect();
            let removed =
                if send.removed.is_empty() { String::new() } else { format!(" rm[{}]", send.removed.join(",")) };
            format!("S> {} {{{}}}{removed}", send.type_name, items.join(","))
        }
        Step::Cut(End::Unavailable) => "cut".into(),
        Step::Cut(End::Ok) => "cut ok".into(),
        Step::Cut(End::Reset) => "cut reset".into(),
        Step::Cut(End::Connection) => "cut connection".into(),
        Step::Barrier => "barrier".into(),
        _ => return None,
    })
}

impl ClientStory {
    /// Returns the features that the steps need: `wildcard`, `names`.
    pub fn induced(&self) -> Vec<&'static str> {
        let wants = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Want { add, .. } => Some(add),
            _ => None,
        });
        let all: Vec<&String> = wants.flatten().collect();
        let has = |wildcard| all.iter().any(|name| (*name == "*") == wildcard);
        [("wildcard", has(true)), ("names", has(false))]
            .into_iter()
            .filter(|(_, has)| *has)
            .map(|(name, _)| name)
            .collect()
    }

    /// Returns whether the story waits so long that all such stories wait at the same time.
    pub fn is_long(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::Wait(time) if *time >= LONG))
    }

    /// Returns whether the story ends streams.
    pub fn ends_streams(&self) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::Cut(_) | Step::Fresh | Step::Backoff(_)))
    }
}

/// The length in bytes of a nonce that is longer than any server needs.
const LONG_NONCE: usize = 5_000;
/// The shortest wait that stories share.
pub const LONG: Duration = Duration::from_secs(15);

fn own(names: Option<Vec<&str>>) -> Vec<String> {
    names.unwrap_or_default().into_iter().map(str::to_owned).collect()
}

fn type_name(words: &mut Words<'_>) -> Result<String, String> {
    Ok(words.take("a type")?.trim_matches('"').to_owned())
}

fn variable(word: &str) -> Result<String, String> {
    word.strip_prefix('$').map(str::to_owned).ok_or_else(|| format!("{word:?} is no $NAME"))
}

fn literal(word: &str) -> Result<String, String> {
    let inside = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    inside.map(str::to_owned).ok_or_else(|| format!("{word:?} is no quoted text"))
}

fn step(line: &str) -> Result<Step, String> {
    let mut words = Words::new(line)?;
    let step = match words.take("a step")? {
        "want" => {
            let type_name = type_name(&mut words)?;
            let (mut add, mut remove) = (Vec::new(), Vec::new());
            while let Some(word) = words.take_if(|word| word.starts_with(['+', '-'])) {
                let (sign, name) = word.split_at(1);
                if sign == "+" { &mut add } else { &mut remove }.push(name.to_owned());
            }
            Step::Want { type_name, add, remove }
        }
        "S>" => return send(words).map(Step::Send),
        "bytes" => {
            let type_name = type_name(&mut words)?;
            let hex = words.take("hexadecimal digits")?;
            let byte = |at: usize| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
            Step::Bytes { type_name, bytes: bytes.ok_or_else(|| format!("{hex:?} are no bytes"))? }
        }
        "C~" => return wish(words).map(Step::Must),
        "C!" => return wish(words).map(Step::MustNot),
        "C?" => return wish(words).map(Step::Maybe),
        "names" => {
            let type_name = type_name(&mut words)?;
            Step::Names { type_name, names: own(Some(words.take_list("[", ']').ok_or("a list is missing")?)) }
        }
        "claims" => {
            let type_name = type_name(&mut words)?;
            let held = words.take_list("{", '}').ok_or("a list is missing")?.into_iter().map(|word| {
                let (name, of) = word.split_once(':').ok_or_else(|| format!("{word:?} is no NAME:$NAME"))?;
                Ok((name.to_owned(), variable(of)?))
            });
            Step::Claims { type_name, held: held.collect::<Result<_, String>>()? }
        }
        "apply" => return applied(words, How::Must),
        "apply!" => return applied(words, How::MustNot),
        "still" => return applied(words, How::NotYet),
        "lives" => Step::Lives,
        "apply?" => return applied(words, How::Maybe),
        "missing" => {
            let (type_name, name) = (type_name(&mut words)?, words.take("a name")?.to_owned());
            let range = words.take_if(|word| word.contains("..")).unwrap_or("0s..3s");
            let (from, to) = range.split_once("..").ok_or("a range is missing")?;
            Step::Missing { type_name, name, within: Some((duration(from)?, duration(to)?)) }
        }
        "missing!" => {
            Step::Missing { type_name: type_name(&mut words)?, name: words.take("a name")?.to_owned(), within: None }
        }
        "cut" => Step::Cut(match words.take_if(|_| true) {
            None => End::Unavailable,
            Some("ok") => End::Ok,
            Some("reset") => End::Reset,
            Some("connection") => End::Connection,
            Some(word) => return Err(format!("{word:?} is no end")),
        }),
        "fresh" => Step::Fresh,
        "barrier" => Step::Barrier,
        "declares" => return Ok(Step::Declares(words.rest().into_iter().map(str::to_owned).collect())),
        "wait" => Step::Wait(duration(words.take("a duration")?)?),
        "backoff" => Step::Backoff(number(words.take("a number")?)?),
        word => return Err(format!("{word:?} is no step")),
    };
    words.end()?;
    Ok(step)
}

/// Reads `T {a@1,b!,c^} rm[d] wrapped ttl=1s n="" v="" any="TYPE" open fill=10 $1`.
fn send(mut words: Words<'_>) -> Result<Send, String> {
    let mut send = Send { type_name: type_name(&mut words)?, ..Send::default() };
    for word in words.take_list("{", '}').unwrap_or_default() {
        let (name, content) = match (word.strip_suffix('!'), word.strip_suffix('^'), word.split_once('@')) {
            (Some(name), ..) => (name, Content::Bad),
            (_, Some(name), _) => (name, Content::Beat),
            (.., Some((name, revision))) => (name, Content::Revision(number(revision)?)),
            _ => return Err(format!("{word:?} has no content: NAME@REVISION, NAME! or NAME^")),
        };
        send.items.push(Item { name: name.to_owned(), content });
    }
    send.removed = own(words.take_list("rm[", ']'));
    send.wrapped = words.take_flag("wrapped");
    send.open = words.take_flag("open");
    send.if_asked = words.take_flag("if-asked");
    send.ttl = words.take_value("ttl").map(duration).transpose()?;
    send.fill = words.take_value("fill").map(number).transpose()?.unwrap_or(0);
    send.nonce = match words.take_value("n") {
        Some("long") => Some("n".repeat(LONG_NONCE)),
        word => word.map(literal).transpose()?,
    };
    send.version = words.take_value("v").map(literal).transpose()?;
    send.any_type = words.take_value("any").map(literal).transpose()?;
    send.bind = words.take_if(|word| word.starts_with('$')).map(|word| word[1..].to_owned());
    words.end()?;
    Ok(send)
}

/// Reads `T [a,b] +a -b ack=$1 nack=$1 answer=$1 v=$1 v="" n="" first error clean`.
fn wish(mut words: Words<'_>) -> Result<Wish, String> {
    let mut wish = Wish { type_name: type_name(&mut words)?, ..Wish::default() };
    wish.names = words.take_list("[", ']').map(|names| own(Some(names)));
    wish.ack = words.take_value("ack").map(variable).transpose()?;
    wish.nack = words.take_value("nack").map(variable).transpose()?;
    wish.answer = words.take_value("answer").map(variable).transpose()?;
    wish.version = match words.take_value("v") {
        Some("\"\"") => Some(String::new()),
        word => word.map(variable).transpose()?,
    };
    wish.no_nonce = words.take_value("n").is_some_and(|word| word == "\"\"");
    wish.first = words.take_flag("first");
    wish.error = words.take_flag("error");
    wish.no_error = words.take_flag("clean");
    while let Some(word) = words.take_if(|word| word.starts_with(['+', '-'])) {
        let (sign, name) = word.split_at(1);
        if sign == "+" { &mut wish.add } else { &mut wish.remove }.push(name.to_owned());
    }
    words.end()?;
    Ok(wish)
}

fn applied(mut words: Words<'_>, how: How) -> Result<Step, String> {
    let type_name = type_name(&mut words)?;
    let names = own(words.take_list("{", '}'));
    let removed = own(words.take_list("rm[", ']'));
    words.end()?;
    Ok(Step::Apply(Applied { type_name, names, removed, how }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_steps_are_parsed() {
        let Ok(Step::Send(send)) = step("S> T {a@1,b!,c^} rm[d] wrapped ttl=1s n=\"\" open $1") else {
            panic!("a step")
        };
        let contents: Vec<Content> = send.items.iter().map(|item| item.content).collect();
        assert_eq!(contents, [Content::Revision(1), Content::Bad, Content::Beat]);
        assert_eq!((send.removed.as_slice(), send.nonce.as_deref()), (["d".to_owned()].as_slice(), Some("")));
        let Ok(Step::Must(wish)) = step("C~ T [a,*] +b -c ack=$1 v=\"\" n=\"\" first clean") else { panic!("a step") };
        assert_eq!(wish.names, Some(vec!["a".into(), "*".into()]));
        assert_eq!((wish.ack.as_deref(), wish.version.as_deref(), wish.no_nonce), (Some("1"), Some(""), true));
    }

    #[test]
    fn a_parsed_step_is_written_back_unchanged() {
        for line in ["want T -a +a +*", "S> cds {a@1,b!,c^} rm[d]", "S> eds {}", "cut", "cut connection", "barrier"] {
            assert_eq!(step(line).ok().as_ref().and_then(write_step).as_deref(), Some(line));
        }
        assert_eq!(write_step(&Step::Lives), None);
    }

    #[test]
    fn parse_errors_quote_the_invalid_word() {
        assert_eq!(step("S> T {a}"), Err("\"a\" has no content: NAME@REVISION, NAME! or NAME^".into()));
        assert_eq!(step("cut hard"), Err("\"hard\" is no end".into()));
        assert_eq!(step("C~ T ack=1"), Err("\"1\" is no $NAME".into()));
        assert_eq!(step("jump"), Err("\"jump\" is no step".into()));
    }
}

//! Reads a story.

use std::fmt;

use super::words::{Words, duration, number, text};
use super::{Answers, Change, Expected, Form, Resume, Send, Step, Story, To};
use crate::message::Variant;
use crate::referee::Level;

/// A line that is no part of a story.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParseError {
    /// The number of the line, from 1; 0 is the whole story.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { f.write_str(&self.what) } else { write!(f, "line {}: {}", self.line, self.what) }
    }
}

impl std::error::Error for ParseError {}

/// Reads a story with steps of this kind.
pub(crate) fn story<S>(
    source: &str,
    variant: Variant,
    step: impl Fn(&str, Variant) -> Result<S, String>,
) -> Result<Story<S>, ParseError> {
    let mut header = Header::default();
    let mut steps = Vec::new();
    for (at, line) in source.lines().enumerate() {
        let error = |what| ParseError { line: at + 1, what };
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if header.read(line).map_err(error)? {
            if steps.is_empty() {
                continue;
            }
            return Err(error("the header comes before the steps".into()));
        }
        if let Some(line) = of_variant(line, variant) {
            steps.push((at + 1, step(line, variant).map_err(error)?));
        }
    }
    header.finish(steps).map_err(|what| ParseError { line: 0, what })
}

pub(super) fn variants(source: &str) -> Result<Vec<Variant>, ParseError> {
    let line = source.lines().enumerate().find_map(|(at, line)| Some((at + 1, line.strip_prefix("variants ")?)));
    let (line, words) = line.ok_or(ParseError { line: 0, what: "the variants are missing".into() })?;
    words.split_whitespace().map(variant_named).collect::<Result<_, _>>().map_err(|what| ParseError { line, what })
}

#[derive(Default)]
struct Header {
    id: Option<String>,
    level: Option<Level>,
    rule: Option<String>,
    sentence: Option<String>,
    variants: Vec<Variant>,
    types: Vec<String>,
    features: Vec<String>,
    single: bool,
    trusts: bool,
}

impl Header {
    /// Reads a line of the header; returns whether it was one.
    fn read(&mut self, line: &str) -> Result<bool, String> {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let words = || value.split_whitespace();
        match key {
            "case" => self.id = Some(value.into()),
            "level" => {
                self.level = Some(Level::named(value).ok_or_else(|| format!("{value:?} is no level"))?);
            }
            "rule" => self.rule = Some(value.into()),
            "sentence" => self.sentence = Some(value.into()),
            "variants" => self.variants = words().map(variant_named).collect::<Result<_, _>>()?,
            "types" => self.types = words().map(Into::into).collect(),
            "need" => self.features = words().map(Into::into).collect(),
            "single" => self.single = true,
            "trusts" => self.trusts = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish<S>(self, steps: Vec<(usize, S)>) -> Result<Story<S>, String> {
        let types = if self.types.is_empty() { vec!["cds".into(), "eds".into()] } else { self.types };
        if self.variants.is_empty() {
            return Err("the variants are missing".into());
        }
        Ok(Story {
            id: self.id.ok_or("the case is missing")?,
            level: self.level.ok_or("the level is missing")?,
            rule: self.rule.ok_or("the rule is missing")?,
            sentence: self.sentence.ok_or("the sentence is missing")?,
            variants: self.variants,
            types,
            features: self.features,
            single: self.single,
            trusts: self.trusts,
            steps,
        })
    }
}

/// Reads the name of a variant.
fn variant_named(word: &str) -> Result<Variant, String> {
    match word {
        "sotw" => Ok(Variant::Sotw),
        "delta" => Ok(Variant::Delta),
        _ => Err(format!("{word:?} is no variant")),
    }
}

/// Returns the line without its variant, or `None` if the line is for the other variant.
fn of_variant(line: &str, variant: Variant) -> Option<&str> {
    let (mine, other) = match variant {
        Variant::Sotw => ("sotw ", "delta "),
        Variant::Delta => ("delta ", "sotw "),
    };
    if line.starts_with(other) { None } else { Some(line.strip_prefix(mine).unwrap_or(line)) }
}

pub(super) fn step(line: &str, variant: Variant) -> Result<Step, String> {
    let mut words = Words::new(line)?;
    let step = match words.take("a step")? {
        "world" => return world(words),
        "stream" => Step::Stream(number(words.take("the number of the stream")?)?),
        "cut" => Step::Cut,
        "C>" => return send(words, variant).map(Step::Send),
        "bytes" => {
            let hex = words.take("hexadecimal digits")?;
            let byte = |at: usize| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
            Step::Bytes(bytes.ok_or_else(|| format!("{hex:?} are no bytes"))?)
        }
        verb @ ("ack" | "nack") => {
            let nack = verb == "nack";
            match words.take_if(|_| true) {
                None => Step::Answer { nack },
                Some(word) => Step::AnswerOne { type_name: word.trim_matches('"').to_owned(), nack },
            }
        }
        "hear" => Step::Hear,
        "S~" => return must(words),
        "S=" => return expected(words).map(Step::Exactly),
        "S!" => return expected(words).map(Step::MustNot),
        "S?" => return expected(words).map(Step::Maybe),
        "order" => return Ok(Step::Order(words.rest().into_iter().map(Into::into).collect())),
        "lives" => Step::Lives,
        "closed?" => Step::MayClose,
        "rest" => Step::Rest,
        "wait" => Step::Wait(duration(words.take("a duration")?)?),
        word => return Err(format!("{word:?} is no step")),
    };
    words.end()?;
    Ok(step)
}

/// Reads `world put T a 1`, `world delete T a`, `world error T a 7`, `world unknown T a`, `world puts T a 2..9`,
/// `world batch "put T a 1" "delete T b"`, `world restart`.
fn world(mut words: Words<'_>) -> Result<Step, String> {
    if words.take_flag("restart") {
        return words.end().map(|()| Step::Restart);
    }
    let batch = words.take_flag("batch");
    if !batch {
        return Ok(Step::World { changes: changes(words)?, batch });
    }
    let mut all = Vec::new();
    for word in words.rest() {
        let inside = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
        all.extend(changes(Words::new(inside.ok_or_else(|| format!("{word:?} is no quoted change"))?)?)?);
    }
    if all.is_empty() { Err("a batch has changes".into()) } else { Ok(Step::World { changes: all, batch }) }
}

/// Reads a type: `T`, a short name, or a quoted URL.
fn type_name(words: &mut Words<'_>) -> Result<String, String> {
    Ok(words.take("a type")?.trim_matches('"').to_owned())
}

fn changes(mut words: Words<'_>) -> Result<Vec<Change>, String> {
    let verb = words.take("put, puts, delete, unknown or error")?;
    let (type_name, name) = (type_name(&mut words)?, words.take("a name")?.to_owned());
    let change = |to| Change { type_name: type_name.clone(), name: name.clone(), to };
    let put = |revision| change(To::Put { revision, ttl: None, alias: None });
    let changes = match verb {
        "put" => {
            let revision = number(words.take("a revision")?)?;
            let ttl = words.take_value("ttl").map(duration).transpose()?;
            let alias = words.take_value("alias").map(Into::into);
            vec![change(To::Put { revision, ttl, alias })]
        }
        "puts" => {
            let range = words.take("a range")?;
            let (from, to) = range.split_once("..").ok_or_else(|| format!("{range:?} is no range"))?;
            (number(from)?..=number(to)?).map(put).collect()
        }
        "delete" => vec![change(To::Delete)],
        "unknown" => vec![change(To::Unknown)],
        "error" => vec![change(To::Error(number(words.take("a code")?)?))],
        _ => return Err(format!("{verb:?} is no change")),
    };
    words.end()?;
    Ok(changes)
}

fn send(mut words: Words<'_>, variant: Variant) -> Result<Send, String> {
    let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut send = Send::default();
    if !words.take_flag("untyped") {
        send.type_name = type_name(&mut words)?;
    }
    send.fill = words.take_value("fill").map(number).transpose()?.unwrap_or(0);
    send.version = words.take_value("v").map(text).transpose()?;
    send.nonce = words.take_value("n").map(text).transpose()?;
    send.nodeless = words.take_flag("nodeless");
    send.resume = match words.take_value("resume") {
        None if words.take_flag("resume") => Resume::Last,
        None => Resume::No,
        Some("older") => Resume::Older,
        Some(word) => return Err(format!("{word:?} is not \"older\"")),
    };
    send.error = words.take_flag("error");
    send.client_features = words.take_list("features[", ']').map(own).unwrap_or_default();
    let variable =
        |word: &str| word.strip_prefix('$').map(str::to_owned).ok_or_else(|| format!("{word:?} is no $NAME"));
    if let Some(word) = words.take_value("ack") {
        send.answers = Answers::Ack(Some(variable(word)?));
    } else if let Some(word) = words.take_value("nack") {
        send.answers = Answers::Nack(Some(variable(word)?));
    } else if words.take_flag("ack") {
        send.answers = Answers::Ack(None);
    } else if words.take_flag("nack") {
        send.answers = Answers::Nack(None);
    }
    match variant {
        Variant::Sotw => send.names = own(words.take_list("[", ']').ok_or("a SotW request has a list")?),
        Variant::Delta => {
            for version in words.take_list("irv{", '}').unwrap_or_default() {
                let (name, version) =
                    version.split_once(':').ok_or_else(|| format!("{version:?} is no NAME:VERSION"))?;
                send.initial.push((name.into(), text(version)?));
            }
            while let Some(word) = words.take_if(|word| word.starts_with(['+', '-'])) {
                let (sign, name) = word.split_at(1);
                if sign == "+" { &mut send.names } else { &mut send.unsubscribe }.push(name.into());
            }
        }
    }
    words.end()?;
    Ok(send)
}

/// Reads the parts that must come, and `beside T a` after them.
fn must(mut words: Words<'_>) -> Result<Step, String> {
    let expected = parts(&mut words)?;
    let step = if words.take_flag("beside") {
        Step::MustBeside { expected, type_name: type_name(&mut words)?, name: words.take("a name")?.to_owned() }
    } else {
        Step::Must(expected)
    };
    words.end()?;
    Ok(step)
}

fn expected(mut words: Words<'_>) -> Result<Expected, String> {
    let expected = parts(&mut words)?;
    words.end()?;
    Ok(expected)
}

/// Reads `T {a@1,b} rm[c] either[d] err[e] wrapped $1`.
fn parts(words: &mut Words<'_>) -> Result<Expected, String> {
    let mut expected = Expected { type_name: type_name(words)?, ..Expected::default() };
    let own = |names: Option<Vec<&str>>| names.unwrap_or_default().into_iter().map(str::to_owned).collect::<Vec<_>>();
    if let Some(list) = words.take_list("{", '}') {
        expected.has_list = true;
        for word in list {
            let (name, revision) = word.split_once('@').map_or((word, None), |(name, number)| (name, Some(number)));
            expected.resources.push((name.into(), revision.map(number).transpose()?));
        }
    }
    expected.removed = own(words.take_list("rm[", ']'));
    expected.either = own(words.take_list("either[", ']'));
    expected.errors = own(words.take_list("err[", ']'));
    for (word, form) in [("wrapped", Form::Wrapped), ("bare", Form::Bare), ("ttl", Form::Ttl), ("beat", Form::Beat)] {
        expected.forms.extend(words.take_flag(word).then_some(form));
    }
    expected.bind = words.take_if(|word| word.starts_with('$')).map(|word| word[1..].to_owned());
    Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "case server/x\nlevel MUST\nrule R-01\nsentence s\nvariants sotw delta\n";

    fn fault(steps: &str) -> String {
        let of =
            |variant| story(&format!("{HEADER}{steps}"), variant, step).map(|_| ()).map_err(|error| error.to_string());
        of(Variant::Sotw).expect_err("a fault")
    }

    #[test]
    fn a_story_is_parsed() {
        let text = format!("{HEADER}types eds\nneed ttl\n# a comment\nworld put T a 1\nsotw C> T [a,*] ack=$1 # so\n");
        let story = story(&text, Variant::Sotw, step).expect("a story");
        assert_eq!((story.id.as_str(), story.level, story.types.len()), ("server/x", Level::Must, 1));
        assert_eq!(story.steps[1].0, 10);
        let Step::Send(send) = &story.steps[1].1 else { panic!("a request") };
        assert_eq!(
            (send.names.as_slice(), &send.answers),
            (["a".to_owned(), "*".to_owned()].as_slice(), &Answers::Ack(Some("1".into())))
        );
    }

    #[test]
    fn lines_of_the_other_variant_are_left_out() {
        let text = format!("{HEADER}sotw C> T [a]\ndelta C> T +a\nack\n");
        for variant in [Variant::Sotw, Variant::Delta] {
            assert_eq!(story(&text, variant, step).expect("a story").steps.len(), 2);
        }
    }

    #[test]
    fn a_parsed_story_is_written_back_unchanged() {
        let sotw = "world put cds a 1\nworld batch \"put eds a 2 alias=b\" \"delete cds a\"\nstream 2\n\
                    C> cds [a,*] ack resume\nC> untyped [] nack=$1\nack cds\nnack\ncut\nhear\nrest\n";
        let delta = "C> cds irv{a:$1} +a +* -b nack\nC> cds +a resume=older\nworld restart\n";
        for (variant, name, steps) in [(Variant::Sotw, "sotw", sotw), (Variant::Delta, "delta", delta)] {
            let header = "case walk/x\nlevel MUST\nrule R-01\nsentence s\n";
            let text = format!("{header}variants {name}\nsingle\ntypes cds\n\n{steps}");
            assert_eq!(story(&text, variant, step).expect("a story").write(variant), text);
        }
    }

    #[test]
    fn parse_errors_name_the_line() {
        assert_eq!(fault("jump"), "line 6: \"jump\" is no step");
        assert_eq!(fault("C> T"), "line 6: a SotW request has a list");
        assert_eq!(fault("C> T [a"), "line 6: a quote or a bracket is not closed");
        assert_eq!(fault("S~ T {a@x}"), "line 6: \"x\" is no number");
        assert_eq!(fault("S~ T {a} b"), "line 6: \"b\" has no meaning here");
        assert_eq!(fault("ack\nlevel MUST"), "line 7: the header comes before the steps");
        assert_eq!(fault("world put T a"), "line 6: a revision is missing");
        assert_eq!(fault("world batch"), "line 6: a batch has changes");
        assert_eq!(fault("bytes 0g"), "line 6: \"0g\" are no bytes");
        assert_eq!(fault("wait 3"), "line 6: \"3\" is no duration");
        assert_eq!(fault("C> T [a] v=1"), "line 6: \"1\" is neither $NAME nor a quoted text");
        let no_level = story("case x\nsentence s\nvariants sotw\n", Variant::Sotw, step).expect_err("no level");
        assert_eq!(no_level.to_string(), "the level is missing");
    }
}

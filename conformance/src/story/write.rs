//! Writes the steps of a story in the form in which they are read.

use std::fmt::{self, Display, Formatter};

use super::{Answers, Change, Resume, Send, Step, Story, Text, To};
use crate::message::Variant;

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { type_name, name, to } = self;
        match to {
            To::Put { revision, ttl, alias } => {
                write!(f, "put {type_name} {name} {revision}")?;
                ttl.map_or(Ok(()), |ttl| write!(f, " ttl={}ms", ttl.as_millis()))?;
                alias.as_ref().map_or(Ok(()), |alias| write!(f, " alias={alias}"))
            }
            To::Delete => write!(f, "delete {type_name} {name}"),
            To::Error(code) => write!(f, "error {type_name} {name} {code}"),
            To::Unknown => write!(f, "unknown {type_name} {name}"),
        }
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => write!(f, "{text:?}"),
            Self::Of(variable) => write!(f, "${variable}"),
        }
    }
}

/// Writes a request of one variant.
fn write_send(send: &Send, variant: Variant, f: &mut impl fmt::Write) -> fmt::Result {
    write!(f, "C> {}", if send.type_name.is_empty() { "untyped" } else { &send.type_name })?;
    match variant {
        Variant::Sotw => write!(f, " [{}]", send.names.join(","))?,
        Variant::Delta => {
            if !send.initial.is_empty() {
                let initial: Vec<String> = send.initial.iter().map(|(name, text)| format!("{name}:{text}")).collect();
                write!(f, " irv{{{}}}", initial.join(","))?;
            }
            send.names.iter().try_for_each(|name| write!(f, " +{name}"))?;
            send.unsubscribe.iter().try_for_each(|name| write!(f, " -{name}"))?;
        }
    }
    match &send.answers {
        Answers::Nothing => Ok(()),
        Answers::Ack(None) => f.write_str(" ack"),
        Answers::Nack(None) => f.write_str(" nack"),
        Answers::Ack(Some(variable)) => write!(f, " ack=${variable}"),
        Answers::Nack(Some(variable)) => write!(f, " nack=${variable}"),
    }?;
    send.nonce.as_ref().map_or(Ok(()), |nonce| write!(f, " n={nonce}"))?;
    send.version.as_ref().map_or(Ok(()), |version| write!(f, " v={version}"))?;
    f.write_str(match send.resume {
        Resume::No => "",
        Resume::Last => " resume",
        Resume::Older => " resume=older",
    })
}

impl Step {
    /// Writes the step as a line of a story. Steps that only fixed cases have are not written.
    pub fn write(&self, variant: Variant) -> Option<String> {
        Some(match self {
            Self::World { changes, batch: false } => {
                changes.iter().map(|change| format!("world {change}")).collect::<Vec<_>>().join("\n")
            }
            Self::World { changes, batch: true } => {
                let quoted: Vec<String> = changes.iter().map(|change| format!("\"{change}\"")).collect();
                format!("world batch {}", quoted.join(" "))
            }
            Self::Send(send) => {
                let mut line = String::new();
                write_send(send, variant, &mut line).ok()?;
                line
            }
            Self::Answer { nack } => if *nack { "nack" } else { "ack" }.into(),
            Self::AnswerOne { type_name, nack } => format!("{} {type_name}", if *nack { "nack" } else { "ack" }),
            Self::Stream(number) => format!("stream {number}"),
            Self::Cut => "cut".into(),
            Self::Hear => "hear".into(),
            Self::Rest => "rest".into(),
            Self::Restart => "world restart".into(),
            _ => return None,
        })
    }
}

impl Story {
    /// Writes the story of a walk, so that it can be read again.
    pub fn write(&self, variant: Variant) -> String {
        let mut text = format!(
            "case {}\nlevel {}\nrule {}\nsentence {}\nvariants {}\n",
            self.id,
            self.level.name(),
            self.rule,
            self.sentence,
            crate::report::variant_name(variant)
        );
        if self.single {
            text += "single\n";
            text += &format!("types {}\n", self.types.join(" "));
        }
        text.push('\n');
        for line in self.steps.iter().filter_map(|(_, step)| step.write(variant)) {
            text += &line;
            text.push('\n');
        }
        text
    }
}

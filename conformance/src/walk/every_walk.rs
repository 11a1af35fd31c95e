//! Every short walk with a server.
//!
//! A type with a wildcard is walked with one name and the wildcard; a type without a wildcard is walked with two names,
//! of which one exists at first.

use super::run::Source;
use super::short::{Alphabet, Words};
use crate::message::Variant;
use crate::resource;
use crate::story::{Change, Resume, Send, Step, To};

/// The name that exists at first.
const HAS: &str = "a";
/// The name that does not exist at first.
const LACKS: &str = "z";
const STAR: &str = "*";

/// An operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Letter {
    /// SotW: a request with this list.
    List(&'static [&'static str]),
    /// Delta: a request without a name.
    Nothing,
    /// Delta: a subscription.
    Add(&'static str),
    /// Delta: an unsubscription.
    Leave(&'static str),
    /// The next response is accepted, or rejected.
    Answer { nack: bool },
    /// A resource gets another content.
    Put(&'static str),
    /// A resource is removed.
    Delete(&'static str),
    /// The stream ends; the next stream claims the versions that this one accepted.
    Cut,
}

impl Letter {
    fn asks(self) -> bool {
        matches!(self, Self::List(_) | Self::Nothing | Self::Add(_) | Self::Leave(_))
    }

    /// Returns the name whose resource changes.
    fn changed(self) -> Option<&'static str> {
        match self {
            Self::Put(name) | Self::Delete(name) => Some(name),
            _ => None,
        }
    }

    fn has_wildcard(self, full_state: bool) -> bool {
        match self {
            Self::List([]) | Self::Nothing => full_state,
            Self::List(names) => names.contains(&STAR),
            Self::Add(name) | Self::Leave(name) => name == STAR,
            _ => false,
        }
    }

    fn steps(self, type_name: &str, at: usize, steps: &mut Vec<Step>) {
        let send = |names: &[&str], unsubscribe: &[&str]| {
            let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let (names, unsubscribe) = (own(names), own(unsubscribe));
            Step::Send(Send {
                type_name: type_name.into(),
                names,
                unsubscribe,
                resume: Resume::Last,
                ..Send::default()
            })
        };
        let step = match self {
            Self::List(names) => send(names, &[]),
            Self::Nothing => send(&[], &[]),
            Self::Add(name) => send(&[name], &[]),
            Self::Leave(name) => send(&[], &[name]),
            Self::Answer { nack } => {
                steps.push(Step::Hear);
                Step::AnswerOne { type_name: type_name.into(), nack }
            }
            Self::Put(name) => put(type_name, name, 2 + at as u64),
            Self::Delete(name) => change(type_name, name, To::Delete),
            Self::Cut => Step::Cut,
        };
        steps.push(step);
    }
}

fn put(type_name: &str, name: &str, revision: u64) -> Step {
    change(type_name, name, To::Put { revision, ttl: None, alias: None })
}

fn change(type_name: &str, name: &str, to: To) -> Step {
    let changes = vec![Change { type_name: type_name.into(), name: name.into(), to }];
    Step::World { changes, batch: false }
}

/// The operations with one type.
struct Letters {
    variant: Variant,
    wildcard: bool,
    has_control: bool,
}

impl Letters {
    fn all(&self) -> Vec<Letter> {
        let mut all = match (self.variant, self.wildcard) {
            (Variant::Sotw, true) => vec![&[][..], &[STAR], &[HAS], &[STAR, HAS]],
            (Variant::Sotw, false) => vec![&[][..], &[HAS], &[LACKS], &[HAS, LACKS]],
            (Variant::Delta, _) => Vec::new(),
        }
        .into_iter()
        .map(Letter::List)
        .collect::<Vec<_>>();
        if self.variant == Variant::Delta {
            let other = if self.wildcard { STAR } else { LACKS };
            all.extend([
                Letter::Nothing,
                Letter::Add(HAS),
                Letter::Add(other),
                Letter::Leave(HAS),
                Letter::Leave(other),
            ]);
        }
        all.extend([Letter::Answer { nack: false }, Letter::Answer { nack: true }, Letter::Cut]);
        if self.has_control {
            all.extend([Letter::Put(HAS), Letter::Delete(HAS), Letter::Put(LACKS)]);
        }
        all
    }
}

impl Alphabet for Letters {
    type Letter = Letter;

    fn next(&self, so_far: &[Letter]) -> Vec<Letter> {
        let last = so_far.last().copied();
        let is_asked = is_asked(so_far);
        let may_follow = |letter: &Letter| match *letter {
            // An empty first list is the wildcard; for a type without a wildcard, it asks for nothing.
            Letter::List([]) => is_asked || self.wildcard,
            Letter::Nothing => !is_asked && self.wildcard,
            Letter::List(_) | Letter::Add(_) => true,
            Letter::Leave(_) => is_asked,
            // Two answers never follow each other; all responses that are left are accepted at the end.
            Letter::Answer { .. } => is_asked && !matches!(last, Some(Letter::Answer { .. })),
            Letter::Cut => is_asked,
            // Before the first request no stream sees a change. Adjacent changes of two names come in one order only.
            Letter::Put(name) | Letter::Delete(name) => {
                !so_far.is_empty() && last.and_then(Letter::changed).is_none_or(|before| before <= name)
            }
        };
        self.all().into_iter().filter(may_follow).collect()
    }

    /// Returns whether a sequence ends without a request on an open stream, or with an ACK: everything is accepted at
    /// the end anyway, and no stream sees a change after the last stream.
    fn is_idle(letters: &[Letter]) -> bool {
        !is_asked(letters) || letters.last() == Some(&Letter::Answer { nack: false })
    }
}

/// Returns whether the stream that is open in the end has a request.
fn is_asked(letters: &[Letter]) -> bool {
    letters.iter().rev().take_while(|letter| **letter != Letter::Cut).any(|letter| letter.asks())
}

/// Every short walk with a server.
#[derive(Debug)]
pub struct EveryWalk {
    words: Words<Letter>,
    variants: Vec<Variant>,
}

impl EveryWalk {
    /// Makes all walks of up to `longest` operations, of each variant and of each type, given by its short name. The
    /// types in `wildcard` have a wildcard. `has_control` says whether the server's resources can be changed.
    pub fn new(variants: &[Variant], types: &[String], wildcard: &[String], has_control: bool, longest: usize) -> Self {
        let of = |variant: &Variant| {
            let variant = *variant;
            let letters = move |of: &String| {
                let letters = Letters { variant, wildcard: wildcard.contains(of), has_control };
                (variant, of.clone(), letters)
            };
            types.iter().map(letters)
        };
        Self { words: Words::new(variants.iter().flat_map(of), longest), variants: variants.to_vec() }
    }
}

impl Source for EveryWalk {
    type Step = Step;

    fn variants(&self) -> &[Variant] {
        &self.variants
    }

    fn describe(&self) -> String {
        self.words.describe()
    }

    fn number(&self, _: usize) -> usize {
        self.words.len()
    }

    fn round(&self, number: usize) -> usize {
        self.words.round(number)
    }

    fn is_alone(&self, number: usize) -> bool {
        let word = self.words.word(number);
        let full_state = resource::is_full_state(resource::type_url(&word.type_name));
        word.letters.iter().any(|letter| letter.has_wildcard(full_state))
    }

    fn fails(&self, number: usize) {
        self.words.fails(number);
    }

    fn is_needless(&self, number: usize) -> bool {
        self.words.is_needless(number)
    }

    fn story(&self, number: usize, _: usize) -> (Variant, Vec<Step>) {
        let word = self.words.word(number);
        let mut steps = vec![put(&word.type_name, HAS, 1)];
        for (at, letter) in word.letters.iter().enumerate() {
            letter.steps(&word.type_name, at, &mut steps);
        }
        steps.push(Step::Rest);
        (word.variant, steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(variant: Variant, of: &str, wildcard: bool, longest: usize) -> Vec<String> {
        let (types, wild) = ([of.to_owned()], if wildcard { vec![of.to_owned()] } else { Vec::new() });
        let walks = EveryWalk::new(&[variant], &types, &wild, true, longest);
        let story = |number| {
            let (variant, steps) = walks.story(number, 0);
            steps.iter().filter_map(|step| step.write(variant)).collect::<Vec<_>>().join("; ")
        };
        (0..walks.number(0)).map(story).collect()
    }

    #[test]
    fn walks_are_enumerated_once_each_and_shortest_first() {
        let all = written(Variant::Delta, "eds", false, 2);
        let first = "world put eds a 1; C> eds +a resume; rest";
        assert_eq!((all[0].as_str(), all[1].as_str()), (first, "world put eds a 1; C> eds +z resume; rest"));
        assert!(all.contains(&"world put eds a 1; C> eds +a resume; hear; nack eds; rest".to_owned()));
        assert!(all.contains(&"world put eds a 1; C> eds +a resume; world delete eds a; rest".to_owned()));
        let mut once = all.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), all.len());
        // Two sequences begin; each continues in eight ways: two subscriptions, two unsubscriptions, a NACK and three
        // changes.
        assert_eq!(all.len(), 2 + 2 * 8);
    }

    #[test]
    fn walks_of_a_wildcard_type_use_the_wildcard_and_one_name() {
        let all = written(Variant::Sotw, "cds", true, 1);
        let lists = ["C> cds []", "C> cds [*]", "C> cds [a]", "C> cds [*,a]"];
        assert_eq!(all, lists.map(|list| format!("world put cds a 1; {list} resume; rest")));
    }

    #[test]
    fn walks_that_begin_with_a_failed_walk_are_needless() {
        let walks = EveryWalk::new(&[Variant::Delta], &["eds".into()], &[], true, 2);
        walks.fails(1);
        let left: Vec<usize> = (0..walks.number(0)).filter(|number| !walks.is_needless(*number)).collect();
        assert_eq!(left.len(), 1 + 8);
    }
}

//! Every short walk with a client.
//!
//! A walk uses two names, or one name and the wildcard. A response is sent only while a name is wanted, and a response
//! that cannot be used only once the client has come to rest, as in random walks.

use super::run::Source;
use super::short::{Alphabet, Words};
use crate::client::End;
use crate::client::story::{Content, Item, Send, Step};
use crate::message::Variant;

const NAME: &str = "a";
const OTHER: &str = "b";
const STAR: &str = "*";

/// An operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Letter {
    /// The client is told to subscribe, or to unsubscribe.
    Want(&'static str),
    Leave(&'static str),
    /// A response with new content for every name that is wanted.
    Good,
    /// A response with a resource that cannot be used.
    Bad,
    /// SotW: an empty response. Delta: the removal of the first name that is wanted.
    Gone,
    /// All streams end.
    Cut,
}

/// The operations with one type.
struct Letters {
    wildcard: bool,
}

impl Letters {
    fn names(&self) -> [&'static str; 2] {
        if self.wildcard { [STAR, NAME] } else { [NAME, OTHER] }
    }
}

/// Returns the names that are wanted after a sequence.
fn wanted(letters: &[Letter]) -> Vec<&'static str> {
    let mut wanted = Vec::new();
    for letter in letters {
        match letter {
            Letter::Want(name) => wanted.push(*name),
            Letter::Leave(name) => wanted.retain(|other| other != name),
            _ => {}
        }
    }
    wanted
}

impl Alphabet for Letters {
    type Letter = Letter;

    fn next(&self, so_far: &[Letter]) -> Vec<Letter> {
        let wanted = wanted(so_far);
        let names = self.names();
        // The two names are interchangeable: a sequence begins with the first one.
        let new = names.into_iter().filter(|name| !wanted.contains(name));
        let new = new.take(if so_far.is_empty() && !self.wildcard { 1 } else { 2 });
        let mut next: Vec<Letter> = new.map(Letter::Want).collect();
        next.extend(wanted.iter().copied().map(Letter::Leave));
        if !wanted.is_empty() {
            next.extend([Letter::Good, Letter::Bad, Letter::Gone]);
        }
        let is_first = so_far.is_empty() || so_far.last() == Some(&Letter::Cut);
        next.extend((!is_first).then_some(Letter::Cut));
        next
    }

    fn is_idle(_: &[Letter]) -> bool {
        false
    }
}

/// Every short walk with a client.
#[derive(Debug)]
pub struct EveryClientWalk {
    words: Words<Letter>,
    variants: Vec<Variant>,
}

impl EveryClientWalk {
    /// Makes all walks of up to `longest` operations, of each variant and of each type, given by its short name. The
    /// client can subscribe to the wildcard of a type that is among `wildcard`.
    pub fn new(variants: &[Variant], types: &[String], wildcard: &[String], longest: usize) -> Self {
        let of = |variant: &Variant| {
            let variant = *variant;
            let letters = move |of: &String| (variant, of.clone(), Letters { wildcard: wildcard.contains(of) });
            types.iter().map(letters)
        };
        Self { words: Words::new(variants.iter().flat_map(of), longest), variants: variants.to_vec() }
    }
}

impl Source for EveryClientWalk {
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

    /// Returns `false`: each walk has a client of its own.
    fn is_alone(&self, _: usize) -> bool {
        false
    }

    fn fails(&self, number: usize) {
        self.words.fails(number);
    }

    fn is_needless(&self, number: usize) -> bool {
        self.words.is_needless(number)
    }

    fn story(&self, number: usize, _: usize) -> (Variant, Vec<Step>) {
        let word = self.words.word(number);
        let mut steps = Vec::new();
        for (at, letter) in word.letters.iter().enumerate() {
            let want = |add: &[&str], remove: &[&str]| {
                let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
                Step::Want { type_name: word.type_name.clone(), add: own(add), remove: own(remove) }
            };
            let send = |content: Option<Content>| {
                let mut names = wanted(&word.letters[..at]);
                // For the wildcard, the response has the other name.
                names.iter_mut().filter(|name| **name == STAR).for_each(|name| *name = OTHER);
                names.sort_unstable();
                let mut send = Send { type_name: word.type_name.clone(), ..Send::default() };
                match content {
                    Some(content) => {
                        let good =
                            |name: &&str| Item { name: (*name).to_owned(), content: Content::Revision(1 + at as u64) };
                        send.items = names.iter().map(good).collect();
                        send.items[0].content = content;
                    }
                    None if word.variant == Variant::Delta => send.removed = vec![names[0].to_owned()],
                    None => {}
                }
                Step::Send(send)
            };
            match letter {
                Letter::Want(name) => steps.push(want(&[name], &[])),
                Letter::Leave(name) => steps.push(want(&[], &[name])),
                Letter::Good => steps.push(send(Some(Content::Revision(1 + at as u64)))),
                Letter::Bad => steps.extend([Step::Barrier, send(Some(Content::Bad))]),
                Letter::Gone => steps.push(send(None)),
                Letter::Cut => steps.push(Step::Cut(End::Unavailable)),
            }
        }
        steps.push(Step::Barrier);
        (word.variant, steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::story::write_step;

    fn written(variant: Variant, of: &str, wildcard: bool, longest: usize) -> Vec<String> {
        let (types, wild) = ([of.to_owned()], if wildcard { vec![of.to_owned()] } else { Vec::new() });
        let walks = EveryClientWalk::new(&[variant], &types, &wild, longest);
        let story = |number| walks.story(number, 0).1.iter().filter_map(write_step).collect::<Vec<_>>().join("; ");
        (0..walks.number(0)).map(story).collect()
    }

    #[test]
    fn walks_are_enumerated_once_each_and_shortest_first() {
        let all = written(Variant::Delta, "eds", false, 2);
        let after = ["want eds +b", "want eds -a", "S> eds {a@2}", "barrier; S> eds {a!}", "S> eds {} rm[a]", "cut"];
        assert_eq!(all[0], "want eds +a; barrier");
        assert_eq!(all[1..], after.map(|step| format!("want eds +a; {step}; barrier")));
    }

    #[test]
    fn a_response_to_the_wildcard_contains_a_named_resource() {
        let all = written(Variant::Sotw, "cds", true, 2);
        assert_eq!(all[..2], ["want cds +*; barrier", "want cds +a; barrier"]);
        assert!(all.contains(&"want cds +*; S> cds {b@2}; barrier".to_owned()), "{all:?}");
    }
}

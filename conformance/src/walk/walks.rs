//! Random walks with a server: how each story is made.

use fastrand::Rng;

use super::generate::{Shape, generate};
use super::run::Source;
use crate::message::Variant;
use crate::story::Step;

/// One of this many walks uses wildcards, and so must run alone.
const WILDCARDS: usize = 3;

/// Random walks with a server.
#[derive(Clone, Debug)]
pub struct Walks {
    /// The variants, which the walks use in turn.
    pub variants: Vec<Variant>,
    /// The types that the server serves, by their short names: a walk has two of them, if there are two.
    pub types: Vec<String>,
    /// The types that have a wildcard.
    pub wildcard: Vec<String>,
    /// Whether the server's resources can be changed.
    pub has_control: bool,
    /// Whether several changes can be made at once.
    pub has_batches: bool,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Walks {
    /// Returns the shape of a walk.
    fn shape(&self, number: usize, steps: usize) -> Shape {
        let variant = self.variants[number % self.variants.len()];
        let round = number / self.variants.len();
        let mut rng = Rng::with_seed(self.seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let pairs: Vec<Vec<&str>> = [["cds", "eds"], ["cds", "eds"], ["cds", "eds"], ["lds", "rds"]]
            .map(|pair| pair.into_iter().filter(|of| self.types.iter().any(|other| other == of)).collect())
            .into();
        let pair = &pairs[rng.usize(..pairs.len())];
        let types: Vec<String> = match pair[..] {
            [] => self.types.clone(),
            _ => pair.iter().map(|of| (*of).to_owned()).collect(),
        };
        let all = round % WILDCARDS == 0;
        let wildcard = types.iter().filter(|of| all && self.wildcard.contains(of)).cloned().collect();
        let (has_control, has_batches) = (self.has_control, self.has_batches);
        Shape { variant, types, wildcard, has_control, has_batches, streams: 1 + rng.usize(..3), steps }
    }
}

impl Source for Walks {
    type Step = Step;

    fn variants(&self) -> &[Variant] {
        &self.variants
    }

    fn describe(&self) -> String {
        format!("seed {}", self.seed)
    }

    fn is_alone(&self, number: usize) -> bool {
        !self.shape(number, 0).wildcard.is_empty()
    }

    fn story(&self, number: usize, steps: usize) -> (Variant, Vec<Step>) {
        let shape = self.shape(number, steps);
        let mut rng = Rng::with_seed(self.seed.wrapping_add(1 + number as u64));
        (shape.variant, generate(&mut rng, &shape))
    }
}

//! Checks of every order of steps, for machines, servers and watchers: exhaustive searches, properties and regressions.

mod by_letter;
mod canonical;
mod machines_are_values;
mod properties;
mod questions;
mod regressions;
mod seeded_bugs;
mod servers;
mod shared_aliases;
mod watches;

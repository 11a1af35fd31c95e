//! Every order: properties of any sequence of steps, of machines, servers and watchers, and regressions.

mod by_letter;
mod machines_are_values;
mod properties;
mod regressions;
mod seeded_bugs;
mod servers;
mod watches;

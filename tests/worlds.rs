//! The machines among themselves: at random, and what was found; several servers, and watchers, in every order; the defects
//! that the checker must find. The long check has a crate of its own, `model.rs`.

mod checker;
mod hostile;
mod machines_are_values;
mod properties;
mod regressions;
mod seeded_bugs;
mod servers;
mod several;
mod watches;
mod watching;
mod world;

use checker::search;

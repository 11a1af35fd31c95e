//! The harness.

pub mod canonical;
pub mod checker;
pub mod driver;
pub mod duo;
pub mod hostile;
pub mod input;
pub mod letter;
pub mod random;
pub mod replay;
pub mod script;
pub mod search;
pub mod several;
pub mod source;
pub mod variant;
pub mod watching;
pub mod world;

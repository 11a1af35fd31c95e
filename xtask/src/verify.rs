//! Checks that take long.

use crate::run::{Result, cargo, run};

/// Explores the model deeply. `limit` bounds the states of one exploration, and so its memory.
pub fn model_deep(limit: &str) -> Result {
    let arguments = ["test", "--release", "--test", "model", "--", "--ignored", "--nocapture", "deeper"];
    run(cargo(&arguments).env("LIMIT", limit))
}

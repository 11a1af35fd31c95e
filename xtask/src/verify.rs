//! Checks that take long.

use crate::run::{Result, cargo, run};

/// `limit`: of the states of one exploration, lest they outgrow the memory.
pub fn model_deep(limit: &str) -> Result {
    let arguments = ["test", "--release", "--test", "model", "--", "--ignored", "--nocapture", "deeper"];
    run(cargo(&arguments).env("LIMIT", limit))
}

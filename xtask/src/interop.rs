//! Runs the interop package, a program of its own: the other recipes don't wait for what it needs.

use std::env;
use std::error::Error;
use std::process::Command;

pub fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(["run", "--quiet", "--package", "interop", "--"]).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("interop: {status}").into()) }
}

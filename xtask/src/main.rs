//! The project's recipes: `cargo xtask` lists them.

mod fuzz;
mod nostd;
mod protos;
mod run;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask RECIPE

  corpus                   replay the fuzz corpus, with no fuzzer, and build the targets
  fuzz TARGET [SECONDS]    fuzz: world, client, server, wire or variants (needs cargo-fuzz)
  minimise TARGET          make the committed corpus the fewest inputs that reach as much
  nostd                    prove that the library needs no std
  protos                   write src/proto/generated.rs from proto/
  simulate MILLIONS SEED   random steps at full speed; `simulate explain SEED RUN` makes a failure small";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["corpus"] => fuzz::corpus(),
        ["fuzz", target] => fuzz::fuzz(target, "600"),
        ["fuzz", target, seconds] => fuzz::fuzz(target, seconds),
        ["minimise", target] => fuzz::minimise(target),
        ["nostd"] => nostd::check(),
        ["simulate", ..] => {
            run::run(run::cargo(&["run", "--quiet", "--release", "--package", "simulate", "--"]).args(&arguments[1..]))
        }
        ["protos"] => protos::write(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

//! The project's recipes: `cargo xtask` lists them.

mod nostd;
mod protos;
mod run;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask RECIPE

  nostd     prove that the library needs no std
  protos    write src/proto/generated.rs from proto/";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["nostd"] => nostd::check(),
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

//! The project's recipes: `cargo xtask` lists them.

mod ci;
mod fuzz;
mod interop;
mod nostd;
mod protos;
mod run;
mod verify;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask RECIPE

  ci                       all that CI checks besides the tests, but for interop
  corpus                   replay the fuzz corpus, with no fuzzer, and build the targets
  fuzz TARGET [SECONDS]    fuzz: world, client, server, wire or variants (needs cargo-fuzz)
  interop [PART]           real Envoy and real gRPC against control_plane, and xds_client against it (needs python3);
                           PART selects clients and modes by name, such as `envoy ads-delta`
  minimise TARGET          make the committed corpus the fewest inputs that reach as much
  model-deep [LIMIT]       the exhaustive check, further than a test run goes: an hour on two cores
  mutants [ARGUMENTS]      mutation tests (needs cargo-mutants); arguments are its own, such as `-f src/client`
  nostd                    prove that the library needs no std
  protos                   write src/proto/generated.rs from proto/";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => ci::check(),
        ["corpus"] => fuzz::corpus(),
        ["fuzz", target] => fuzz::fuzz(target, "600"),
        ["fuzz", target, seconds] => fuzz::fuzz(target, seconds),
        ["interop"] => interop::run(&[]),
        ["interop", part] => interop::run(&[part]),
        ["minimise", target] => fuzz::minimise(target),
        ["model-deep"] => verify::model_deep("4000000"),
        ["model-deep", limit] => verify::model_deep(limit),
        ["mutants", ref more @ ..] => verify::mutants(more),
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

//! The project's recipes: `cargo xtask` lists them.

mod interop;
mod nostd;
mod protos;
mod run;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask RECIPE

  interop [PART]   real Envoy and real gRPC against control_plane, and xds_client against it (needs python3);
                   PART selects clients and modes by name, such as `envoy ads-delta`
  nostd            prove that the library needs no std
  protos           write src/proto/generated.rs from proto/";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["interop"] => interop::run(&[]),
        ["interop", part] => interop::run(&[part]),
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

//! The project's recipes. `cargo xtask` lists them.

mod bench;
mod ci;
mod circles;
mod docs;
mod fuzz;
mod interop;
mod mutants;
mod nostd;
mod package;
mod plot;
mod protos;
mod run;
mod soak;
mod verify;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask RECIPE

  bench-json [FIGURE ..]   measure F1 to F12, P1, H1, L1, L2, C1 and E1 to E9: a JSON object a line; with --check the limits,
                           and whether they are kept
  ci                       all that CI checks besides the tests, but for interop
  circles                  fail if files of src/ depend on each other in circles, beyond what xtask/circles.txt allows
  corpus                   replay the fuzz corpus, with no fuzzer, and build the targets
  counts [REASON]          fail if a workload takes more instructions than the baseline (needs valgrind); with a reason,
                           make what is counted the baseline
  docs                     fail if the rendered documentation refers to what its readers do not have
  fuzz TARGET [SECONDS]    fuzz: world, client, server, wire, variants, csds, poll or load (needs cargo-fuzz)
  interop [PART]           real Envoy, real gRPC and a real etcd with control_plane, and xds_client against it (needs
                           python3, and etcd or apt-get; with npm, grpc-js as well);
                           PART selects clients and modes by name, such as `envoy ads-delta`
  minimise TARGET          make the committed corpus the fewest inputs that reach as much
  model-deep [LIMIT]       the exhaustive check, further than a test run goes: an hour on two cores
  mutants [ARGUMENTS]      mutation tests (needs cargo-mutants): src/mutants/mod.rs tells the arguments
  nostd                    prove that the library needs no std
  package                  build the packages that may be published, offline, from the files that they hold
  peers [PEER ..]          our machine beside every peer that is a published crate: a JSON object a line (half an hour;
                           --small takes a few minutes); never part of CI
  protos                   write what is generated from the protos, such as src/proto/generated.rs
  scaling                  write the table and the plot of cost against resources and streams (benches/scaling.*)
  simulate MILLIONS SEED   random steps at full speed; `simulate explain SEED RUN` makes a failure small;
                           `simulate fleet` writes what 100,000 proxies cost (simulate/README.md)
  soak [MINUTES] [STREAMS] control_plane under clients that come and go, stall and send garbage, while resources
                           change: nothing may be left of them, and no other client may be held up. By default one
                           minute and 300 streams, for CI; the long one is `soak 30 2000`";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bench-json", ref arguments @ ..] => bench::figures(arguments),
        ["ci"] => ci::check(),
        ["circles"] => circles::check(),
        ["corpus"] => fuzz::corpus(),
        ["counts"] => bench::counts(None),
        ["counts", reason] => bench::counts(Some(reason)),
        ["docs"] => docs::check(),
        ["fuzz", target] => fuzz::fuzz(target, "600"),
        ["fuzz", target, seconds] => fuzz::fuzz(target, seconds),
        ["interop"] => interop::run(&[]),
        ["interop", part] => interop::run(&[part]),
        ["minimise", target] => fuzz::minimise(target),
        ["model-deep"] => verify::model_deep("4000000"),
        ["model-deep", limit] => verify::model_deep(limit),
        ["mutants", ref more @ ..] => mutants::run(more),
        ["nostd"] => nostd::check(),
        ["package"] => package::check(),
        ["simulate", ..] => {
            run::run(run::cargo(&["run", "--quiet", "--release", "--package", "simulate", "--"]).args(&arguments[1..]))
        }
        ["peers", ref arguments @ ..] => bench::peers(arguments),
        ["protos"] => protos::write(),
        ["scaling"] => bench::scaling(),
        ["soak", ref arguments @ ..] => soak::program(arguments),
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

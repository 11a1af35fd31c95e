//! A control plane that serves the resources of a folder or of an etcd: `control_plane --help`.

use std::process::ExitCode;

use examples::control_plane::arguments::Arguments;
use examples::control_plane::log::{Log, diagnostics};
use examples::control_plane::run::run;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::read();
    let (log, _flush_log) = Log::new(arguments.log);
    let _flush_diagnostics = diagnostics();
    match run(arguments, log).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("control_plane: {error}");
            ExitCode::FAILURE
        }
    }
}

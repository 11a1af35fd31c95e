//! A server on a port, for `cargo xtask bench-json beside`: `serve N` prints the port, changes a resource for each line
//! of its input, and ends when the input ends.

use std::error::Error;
use std::process::ExitCode;

use benches::e2e;

/// Serves N resources if the program was started as `serve N`, and does its other work if not.
pub fn serve_or(serve: impl FnOnce(usize) -> Result<(), Box<dyn Error>>, other: impl FnOnce() -> ExitCode) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, n] = &arguments[..] else { return other() };
    let Some(n) = n.parse().ok().filter(|_| command == "serve") else { return other() };
    match serve(n) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the port, and makes a change for each line of input; each change is given its number.
pub fn obey(port: u16, mut change: impl FnMut(u8)) {
    println!("{port}");
    let mut round = 0_u8;
    e2e::obey(|| {
        round = round.wrapping_add(1);
        change(round);
    });
}

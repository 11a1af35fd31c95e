//! A server on a port, for `cargo xtask bench-json beside`: `serve N` prints the port, changes a resource for each line that it
//! reads, and ends with its input.

use std::io::{BufRead as _, Write as _, stdin, stdout};

/// The number of resources, if the program was started as `serve N`.
pub fn resources() -> Option<usize> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, n] = &arguments[..] else { return None };
    (command == "serve").then(|| n.parse().ok()).flatten()
}

/// Prints the port, and makes a change for each line; each change is given its number.
pub fn obey(port: u16, mut change: impl FnMut(u8)) {
    let say = |line: String| {
        let mut out = stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
    };
    if !say(port.to_string()) {
        return;
    }
    let lines = stdin().lock().lines().map_while(Result::ok);
    for (round, _) in (1..=u8::MAX).cycle().zip(lines) {
        change(round);
        if !say("done".into()) {
            return;
        }
    }
}

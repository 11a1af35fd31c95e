//! Conversations in plain text, played against a machine. A script is a story; the README beside the scripts of
//! `xds-machine` describes the format.
//!
//! After each input line, the script lists all output lines of the machine, so that silence is tested too.

mod client;
pub mod notation;
mod server;
mod servers;

use std::path::Path;
use std::{env, fs};

use xds_machine::{Delta, Sotw};

/// A machine that takes input lines and returns output lines.
pub trait Player {
    /// Executes an input line.
    fn play(&mut self, line: &str) -> Result<(), String>;
    /// Returns the pending output lines of the machine.
    fn answers(&mut self) -> Vec<String>;
}

/// Returns whether a line is output of the machine, and not input.
type IsAnswer = fn(&str) -> bool;

/// Plays a script. With the environment variable `BLESS`, rewrites the file if it differs.
///
/// # Errors
///
/// Returns the difference between the script and the machine's output.
pub fn run(path: &Path) -> Result<(), String> {
    let script = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut lines = script.lines();
    let mut actual = Vec::new();
    let header = lines.by_ref().inspect(|&line| actual.push(line.to_string())).find(|line| is_done(line));
    let words: Vec<&str> = header.unwrap_or_default().split_whitespace().collect();
    let (mut player, is_answer): (Box<dyn Player>, IsAnswer) = match words[..] {
        ["server", "sotw", ref options @ ..] => (Box::new(server::new::<Sotw>(options)?), is_servers),
        ["server", "delta", ref options @ ..] => (Box::new(server::new::<Delta>(options)?), is_servers),
        ["client", "sotw", ref options @ ..] => (Box::new(client::new::<Sotw>(options)?), is_clients),
        ["client", "delta", ref options @ ..] => (Box::new(client::new::<Delta>(options)?), is_clients),
        ["servers", policy, "sotw", ref options @ ..] => {
            (Box::new(servers::new::<Sotw>(policy, options)?), is_of_servers)
        }
        ["servers", policy, "delta", ref options @ ..] => {
            (Box::new(servers::new::<Delta>(policy, options)?), is_of_servers)
        }
        _ => return Err("the first line names the machine: `server sotw`, `client delta`, ..".into()),
    };
    for line in lines.filter(|line| !is_answer(line)) {
        actual.push(line.to_string());
        if is_done(line) {
            let command = line.split(" #").next().unwrap_or_default().trim();
            player.play(command).map_err(|error| format!("{line}: {error}"))?;
            actual.extend(player.answers());
        }
    }
    let actual = actual.join("\n") + "\n";
    if actual == script {
        return Ok(());
    }
    if env::var_os("BLESS").is_some() {
        fs::write(path, &actual).map_err(|error| error.to_string())?;
        return Ok(());
    }
    let differs = script.lines().zip(actual.lines()).position(|(expected, actual)| expected != actual);
    let at = differs.unwrap_or_else(|| script.lines().count().min(actual.lines().count()));
    let around = |text: &str| text.lines().take(at + 3).skip(at.saturating_sub(6)).collect::<Vec<_>>().join("\n  ");
    Err(format!("line {}:\n expected\n  {}\n actual\n  {}", at + 1, around(&script), around(&actual)))
}

fn is_done(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

fn is_servers(line: &str) -> bool {
    line.starts_with("S>") || line.starts_with('!')
}

/// Returns whether a line is output of a client of several servers; `C0>` begins a request to server 0.
fn is_of_servers(line: &str) -> bool {
    line.starts_with('!') || line.starts_with('C')
}

fn is_clients(line: &str) -> bool {
    line.starts_with("C>") || line.starts_with('!')
}

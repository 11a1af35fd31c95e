//! The status of clients: `csds.py` asks `control_plane` and `xds_client`, and compares with C-core.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::install::Installed;
use crate::{Line, report};

/// The parts of `csds.py`, each with its scenario.
const ALL: [(&str, &str); 5] = [
    ("compare", "equal dumps, item by item"),
    ("errors", "equal dumps, with errors of resources"),
    ("timers", "equal dumps, of what is kept and what takes too long"),
    ("client", "the service of xds_client"),
    ("view", "the view of control_plane"),
];

pub fn play(installed: &Installed, dir: &Path, lines: &mut Vec<Line>) {
    for (part, scenario) in ALL {
        let peer = if part == "client" || part == "view" { "xds-protos 1.85.0" } else { "gRPC C-core 1.85.1" };
        let result = run(installed, dir, part);
        report(Line { peer, mode: "csds", dialect: "spec", scenario, result }, lines);
    }
}

fn run(installed: &Installed, dir: &Path, part: &str) -> Result<(), String> {
    let mut command = Command::new(&installed.python);
    command.arg(installed.sources.join("csds.py")).arg(part);
    if part == "client" || part == "view" {
        command.arg(installed.programs.join("control_plane"));
    }
    command.arg(installed.programs.join("xds_client")).arg(dir);
    finish(command, dir, part)
}

/// Runs a program to its end. Its output is kept in files; on failure, its standard error is the error.
pub fn finish(mut command: Command, dir: &Path, name: &str) -> Result<(), String> {
    let err = dir.join(format!("{name}.err"));
    let file = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
    command.stdin(Stdio::null()).stdout(file(&dir.join(format!("{name}.out")))?).stderr(file(&err)?);
    let status = command.status().map_err(|error| format!("can't start python: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let said = std::fs::read_to_string(&err).unwrap_or_default();
    Err(format!("{status}: {}", said.trim_end().replace('\n', "; ")))
}

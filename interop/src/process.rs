//! Child processes, which end with this process, even if it is killed.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that is killed when this value is dropped.
pub struct Process(Child);

/// Kills the program when standard input ends, which happens even if this process is killed.
const KEEPER: &str = r#""$@" </dev/null & cat >/dev/null; kill -9 $!; wait"#;

impl Process {
    /// Starts a program; its output goes into files.
    pub fn start(program: &Path, arguments: &[&str], out: &Path, err: &Path) -> Result<Self, String> {
        let run = || -> io::Result<Child> {
            let mut command = Command::new("sh");
            command.args(["-c", KEEPER, "sh"]).arg(program).args(arguments);
            command.stdin(Stdio::piped()).stdout(File::create(out)?).stderr(File::create(err)?).spawn()
        };
        run().map(Self).map_err(|error| format!("can't start {}: {error}", program.display()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

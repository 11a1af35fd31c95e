//! The control plane under test, and its log.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::net;
use crate::process::Process;
use crate::wait::{self, so};

/// A control plane that can be restarted.
pub struct ControlPlane {
    program: PathBuf,
    /// All arguments except the address and the format of the log.
    arguments: Vec<String>,
    dir: PathBuf,
    port: u16,
    life: u32,
    process: Option<Process>,
}

impl ControlPlane {
    pub fn start(program: PathBuf, dialect: &'static str, dir: &Path) -> Result<Self, String> {
        Self::start_with(program, dialect, dir, &[])
    }

    /// Starts the control plane with further arguments. Its resources are in the subfolder `resources`.
    pub fn start_with(program: PathBuf, dialect: &str, dir: &Path, arguments: &[&str]) -> Result<Self, String> {
        let resources = dir.join("resources");
        let source = ["--dialect", dialect, "--resources", &resources.to_string_lossy()].map(str::to_owned);
        Self::start_of(program, dir, source.into_iter().chain(arguments.iter().map(|&text| text.into())).collect())
    }

    /// Starts the control plane with the arguments that determine what it serves. Its logs are written to the folder.
    pub fn start_of(program: PathBuf, dir: &Path, arguments: Vec<String>) -> Result<Self, String> {
        let (port, dir) = (net::free_port()?, dir.to_owned());
        let mut control_plane = Self { program, arguments, dir, port, life: 0, process: None };
        control_plane.restart()?;
        Ok(control_plane)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn stop(&mut self) {
        self.process = None;
    }

    pub fn restart(&mut self) -> Result<(), String> {
        self.process = None;
        self.life += 1;
        let listen = format!("127.0.0.1:{}", self.port);
        let mut arguments = vec!["--listen", &listen, "--log", "json"];
        arguments.extend(self.arguments.iter().map(String::as_str));
        let err = self.err();
        self.process = Some(Process::start(&self.program, &arguments, &self.log(), &err)?);
        wait::until(|| {
            let said = fs::read_to_string(&err).map_err(|error| error.to_string())?;
            so(said.contains("listening on "), || format!("the control plane doesn't listen, see {}", err.display()))
        })
    }

    fn log(&self) -> PathBuf {
        self.dir.join(format!("control_plane.{}.jsonl", self.life))
    }

    fn err(&self) -> PathBuf {
        self.dir.join(format!("control_plane.{}.err", self.life))
    }

    /// Returns the lines for people since the last start.
    pub fn complaints(&self) -> Result<String, String> {
        fs::read_to_string(self.err()).map_err(|error| error.to_string())
    }

    /// Returns all events of streams since the last start.
    pub fn events(&self) -> Result<Vec<Event>, String> {
        Ok(self.all()?.into_iter().filter(|event| event.stream() > 0).collect())
    }

    /// Returns all answers to polls since the last start.
    pub fn polls(&self) -> Result<Vec<Event>, String> {
        Ok(self.all()?.into_iter().filter(|event| event.is_any("poll")).collect())
    }

    /// Returns all events since the last start.
    pub fn all(&self) -> Result<Vec<Event>, String> {
        let log = fs::read_to_string(self.log()).map_err(|error| error.to_string())?;
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let parse = |line| serde_json::from_str(line).map(Event).map_err(|error| format!("{line}: {error}"));
        whole.lines().map(parse).collect()
    }

    /// Returns the events after the first `mark`.
    pub fn since(&self, mark: usize) -> Result<Vec<Event>, String> {
        self.events().map(|mut events| events.split_off(mark.min(events.len())))
    }

    pub fn mark(&self) -> Result<usize, String> {
        self.events().map(|events| events.len())
    }
}

/// A line of the log.
#[derive(Debug)]
pub struct Event(Value);

impl Event {
    /// Returns whether this is an event of this name for a type, given by the end of the type's URL.
    pub fn is(&self, event: &str, kind: &str) -> bool {
        self.0["event"] == event && self.text("type_url").ends_with(kind)
    }

    pub fn is_any(&self, event: &str) -> bool {
        self.0["event"] == event
    }

    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    pub fn stream(&self) -> u64 {
        self.number("stream")
    }

    pub fn number(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_default()
    }

    /// Returns the loads of a cluster, if this is a load report that has it.
    pub fn load(&self, cluster: &str) -> Option<&Value> {
        self.0["clusters"].as_array()?.iter().find(|load| load["cluster"] == cluster)
    }

    pub fn names(&self, key: &str) -> Vec<&str> {
        self.0[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Returns the number of such events.
pub fn count(events: &[Event], event: &str, kind: &str) -> usize {
    events.iter().filter(|one| one.is(event, kind)).count()
}

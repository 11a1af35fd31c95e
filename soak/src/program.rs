//! The control plane as a process, and what the system and its metrics say of it.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::judge::Reading;

/// The time that the program may take to begin, or to notice that its clients have left.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// The running control plane; killed when dropped.
pub struct Program {
    child: Child,
    pub address: SocketAddr,
    metrics: SocketAddr,
    complaints: PathBuf,
}

impl Program {
    /// Starts the program that lies beside this one.
    pub async fn start(resources: &Path, complaints: PathBuf) -> Result<Self, String> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = here.with_file_name("control_plane");
        let metrics = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let metrics = metrics.map_err(|error| error.to_string())?;
        let log = File::create(&complaints).map_err(|error| error.to_string())?;
        let mut command = Command::new(&program);
        command.args(["--listen", "127.0.0.1:0", "--log", "json", "--metrics", &metrics.to_string(), "--resources"]);
        command.arg(resources).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|error| format!("can't start {}: {error}", program.display()))?;
        let mut program = Self { child, address: metrics, metrics, complaints };
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let said = program.said();
            if let Some(address) = said.lines().find_map(|line| line.strip_prefix("listening on ")) {
                program.address = address.parse().map_err(|error| format!("{address}: {error}"))?;
                return Ok(program);
            }
            program.alive()?;
            sleep(PAUSE).await;
        }
        Err("the control plane does not listen".into())
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.complaints).unwrap_or_default()
    }

    /// Returns the last lines that the program wrote to standard error.
    pub fn last_words(&self) -> String {
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].iter().map(|line| format!("\n  control_plane: {line}"));
        last.collect()
    }

    /// Returns an error if the program has ended, or a part of it has panicked.
    pub fn alive(&mut self) -> Result<(), String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("the control plane has ended, {status}:\n{}", self.said()));
        }
        match self.said().lines().find(|line| line.contains("panicked")) {
            Some(line) => Err(format!("the control plane: {line}")),
            None => Ok(()),
        }
    }

    /// Waits until a condition holds, and returns the last reading in any case: the judge says what is wrong with it.
    pub async fn read_when(&mut self, is_quiet: impl Fn(&Reading) -> bool) -> Result<Reading, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let reading = self.read().await?;
            if is_quiet(&reading) || Instant::now() > end {
                return Ok(reading);
            }
            sleep(PAUSE).await;
        }
    }

    async fn read(&mut self) -> Result<Reading, String> {
        self.alive()?;
        let streams = sum(&self.page().await.map_err(|error| format!("no metrics: {error}"))?, "xds_streams");
        let status = self.proc("status")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim_matches([':', '\t', ' ', 'k', 'B']).parse().ok()).unwrap_or_default()
        };
        let files = fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_err(|error| error.to_string())?;
        let (resident, threads) = (field("VmRSS"), field("Threads"));
        Ok(Reading { resident, threads, files: files.count() as u64, streams })
    }

    fn proc(&self, file: &str) -> Result<String, String> {
        let path = format!("/proc/{}/{file}", self.child.id());
        fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    }

    async fn page(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.metrics).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        Ok(page)
    }

    /// Sends SIGTERM, and returns how the program ended.
    pub async fn terminate(&mut self, limit: Duration) -> Result<ExitStatus, String> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().map_err(|error| format!("kill: {error}"))?;
        if !sent.success() {
            return Err(format!("kill: {sent}"));
        }
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Ok(status);
            }
            sleep(PAUSE).await;
        }
        Err(format!("the control plane runs {limit:?} after SIGTERM"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// Returns the sum of the samples of a metric.
fn sum(page: &str, metric: &str) -> u64 {
    let samples = page.lines().filter_map(|line| line.strip_prefix(metric)).filter(|rest| rest.starts_with('{'));
    let values = samples.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_metric_are_added_up() {
        let page = "# TYPE xds_streams gauge\nxds_streams{type=\"ads\"} 3\nxds_streams{type=\"x y\"} 4\n\
                    xds_streams_other{a=\"b\"} 9\n";
        assert_eq!(sum(page, "xds_streams"), 7);
    }
}

//! The mode `tap`: a judging proxy between any client and any server. Messages pass unchanged; both sides are judged by
//! what the wire shows, without knowledge of the server's resources. The mode `judge` does the same with a recording.

mod judge;
mod log;
mod proxy;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::runtime::Builder;

use self::judge::Judge;
use self::log::Recorder;
use crate::report::{Calibration, Implementation, Report, Row};
use crate::run::Trouble;

/// Listens at one address, passes everything on to another, and judges until the program is told to end (SIGINT).
/// `on_complaint` receives each violation at once; `record` takes the recording that [`judge()`] reads.
///
/// # Errors
///
/// If the address cannot be listened at.
pub fn run(
    listen: &str,
    upstream: &str,
    strict: bool,
    record: Option<Box<dyn Write + Send>>,
    on_complaint: impl Fn(&str) + Send + 'static,
) -> Result<Report, Trouble> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Trouble(error.to_string()))?;
    let judge = Arc::new(Mutex::new(Judge::new("tap", record.map(Recorder::new), on_complaint)));
    let shared = judge.clone();
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await.map_err(|error| Trouble(format!("{listen}: {error}")))?;
        tokio::select! {
            () = proxy::accept(listener, upstream.to_owned(), shared) => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok::<_, Trouble>(())
    })?;
    runtime.shutdown_background();
    let rows = judge.lock().unwrap_or_else(PoisonError::into_inner).rows();
    Ok(report("tap", upstream, rows, strict))
}

/// Judges both sides of a recording, a JSON object a line, as `tap --record` writes it. `name` is the name of the
/// recording in the report.
///
/// # Errors
///
/// The error names the line that is no part of a recording.
pub fn judge(
    name: &str,
    text: &str,
    strict: bool,
    on_complaint: impl Fn(&str) + Send + 'static,
) -> Result<Report, Trouble> {
    let mut judge = Judge::new("judge", None, on_complaint);
    log::read(text, &mut judge).map_err(|why| Trouble(format!("{name}: {why}")))?;
    Ok(report("judge", name, judge.rows(), strict))
}

fn report(mode: &str, name: &str, rows: Vec<Row>, strict: bool) -> Report {
    Report {
        mode: mode.into(),
        implementation: Implementation::from(name.to_owned()),
        calibration: Calibration::default(),
        rows,
        stale: Vec::new(),
        strict,
    }
}

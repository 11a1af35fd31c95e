//! Load reports of the calls that standard input describes.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::{BufRead, stdin};
use std::thread;

use examples::printable;
use tokio::signal::unix::{SignalKind, signal};
use xds_machine::client::Backoff;
use xds_machine::load::{Call, Counts, Entry, Outcome, Place};
use xds_machine::message::Locality;
use xds_machine_tonic::client::{LoadEvent, LoadReporter, dial};

use crate::LONGEST_WAIT;
use crate::arguments::Arguments;

/// The reporter, which reads standard input on a thread of its own.
pub(crate) struct Loads(LoadReporter);

impl Loads {
    /// Connects to the server, and begins to read.
    ///
    /// # Errors
    ///
    /// If a certificate can't be read.
    pub(crate) fn start(arguments: &Arguments) -> Result<Self, String> {
        let server = dial(arguments.endpoint()?);
        let reporter = LoadReporter::builder(arguments.load_config())
            .backoff(Backoff::grpc().with_max(LONGEST_WAIT))
            .observe(|event| {
                if let LoadEvent::Closed { reason: Some(reason), again_in: Some(again_in) } = event {
                    eprintln!(
                        "xds_client: load reports: {}; again in {} ms",
                        printable::text(&reason.to_string()),
                        again_in.as_millis()
                    );
                }
            })
            .start(server);
        let mut calls = Calls::new(reporter.clone());
        thread::spawn(move || calls.read(stdin().lock()));
        Ok(Self(reporter))
    }

    /// Sends a last report, if the server asks for any.
    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }
}

/// Waits for SIGTERM or SIGINT, if they are to be handled; otherwise their default action ends the program.
pub(crate) async fn terminated(handled: bool) {
    let signals = || Ok::<_, std::io::Error>((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?));
    match handled.then(signals) {
        Some(Ok((mut terminate, mut interrupt))) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        Some(Err(error)) => {
            eprintln!("xds_client: can't handle signals: {error}");
            pending().await
        }
        None => pending().await,
    }
}

/// The clusters and calls that standard input has named.
struct Calls {
    reporter: LoadReporter,
    entries: BTreeMap<String, Entry>,
    /// The calls in progress, by their IDs.
    calls: BTreeMap<String, Call>,
}

impl Calls {
    fn new(reporter: LoadReporter) -> Self {
        Self { reporter, entries: BTreeMap::new(), calls: BTreeMap::new() }
    }

    /// Takes each line until the end. A line that can't be taken is reported, and counts nothing.
    fn read(&mut self, mut input: impl BufRead) {
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(0) => return, // the program goes on without input
                Ok(_) => {}
                Err(error) => {
                    eprintln!("xds_client: standard input: {error}");
                    return;
                }
            }
            let taken = std::str::from_utf8(&line).map_err(|_| "not UTF-8".to_string());
            if let Err(error) = taken.and_then(|line| self.take(line)) {
                eprintln!("xds_client: standard input, line {number}: {error}");
            }
        }
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["call", cluster, locality, ended, metrics @ ..] => {
                let (place, outcome, metrics) = (place(locality)?, outcome(ended)?, read_metrics(metrics)?);
                let (entry, counts) = (self.entry(cluster)?, counts(outcome));
                let count = |reporter: &mut xds_machine::load::Reporter| {
                    reporter.add(&entry, &place, counts)?;
                    metrics.iter().try_for_each(|(name, value)| reporter.add_metric(&entry, &place, name, 1, *value))
                };
                self.reporter.with(count).map_err(|error| error.to_string())
            }
            ["start", cluster, locality, id] => {
                let place = place(locality)?;
                if self.calls.contains_key(*id) {
                    return Err(format!("the call {id} is in progress"));
                }
                let entry = self.entry(cluster)?;
                let call = self.reporter.started(&entry, &place).map_err(|error| error.to_string())?;
                self.calls.insert((*id).to_string(), call);
                Ok(())
            }
            ["end", id, ended] => {
                let outcome = outcome(ended)?;
                let call = self.calls.remove(*id).ok_or_else(|| format!("no call {id} is in progress"))?;
                self.reporter.finished(call, outcome, []).map_err(|error| error.to_string())
            }
            ["drop", cluster, category] => {
                let entry = self.entry(cluster)?;
                self.reporter.dropped(&entry, category, 1).map_err(|error| error.to_string())
            }
            _ => Err(USAGE.into()),
        }
    }

    fn entry(&mut self, cluster: &str) -> Result<Entry, String> {
        if let Some(entry) = self.entries.get(cluster) {
            return Ok(entry.clone());
        }
        let entry = self.reporter.entry(cluster, "").map_err(|error| error.to_string())?;
        self.entries.insert(cluster.to_string(), entry.clone());
        Ok(entry)
    }
}

const USAGE: &str = "it must be `call CLUSTER LOCALITY ok|error [METRIC=VALUE ..]`, `start CLUSTER LOCALITY ID`, \
                     `end ID ok|error` or `drop CLUSTER CATEGORY`";

fn place(text: &str) -> Result<Place, String> {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [region, zone, sub_zone] => {
            let [region, zone, sub_zone] = [region, zone, sub_zone].map(|part| (*part).to_string());
            Ok(Place::new(Locality { region, zone, sub_zone }))
        }
        _ => Err(format!("{text} is no locality: it must be REGION/ZONE/SUBZONE")),
    }
}

fn outcome(text: &str) -> Result<Outcome, String> {
    match text {
        "ok" => Ok(Outcome::Ok),
        "error" => Ok(Outcome::Error),
        _ => Err(format!("{text}: a call ends with ok or error")),
    }
}

fn counts(outcome: Outcome) -> Counts {
    match outcome {
        Outcome::Ok => Counts::succeeded(1),
        Outcome::Error => Counts::failed(1),
    }
}

fn read_metrics<'a>(words: &[&'a str]) -> Result<BTreeMap<&'a str, f64>, String> {
    let mut metrics = BTreeMap::new();
    for word in words {
        let (name, value) = word
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("{word} is no metric: it must be METRIC=VALUE"))?;
        let value = value.parse::<f64>().ok().filter(|value| value.is_finite());
        let value = value.ok_or_else(|| format!("{word}: the value is no finite number"))?;
        if metrics.insert(name, value).is_some() {
            return Err(format!("the metric {name} is there twice"));
        }
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use xds_machine::load::{Config, Request};
    use xds_machine::message::Node;

    /// Returns calls whose reporter is asked for all clusters, and never connects.
    fn calls() -> Calls {
        let never = || pending::<Result<tonic::transport::Channel, std::io::Error>>();
        let calls = Calls::new(LoadReporter::builder(Config::new(Node::new("n"))).start(never));
        calls.reporter.with(|reporter| {
            let now = xds_machine::Instant::EPOCH;
            reporter.handle_open();
            reporter.poll_transmit(now).expect("the node");
            let all = xds_machine::load::Response { send_all_clusters: true, ..Default::default() };
            reporter.handle_response(now, all).expect("a good response");
        });
        calls
    }

    fn report(calls: &Calls) -> Request {
        let later = xds_machine::Instant::from_epoch(Duration::from_secs(3600));
        calls.reporter.with(|reporter| reporter.poll_transmit(later)).expect("a report")
    }

    #[tokio::test]
    async fn lines_of_input_are_counted_in_the_load_report() {
        let mut calls = calls();
        for line in [
            "call c1 r/z/s ok cpu_utilization=0.5 queue=2\n",
            "call c1 r/z/s error\n",
            "start c1 // 7",
            "start c1 // 8",
            "end 7 ok",
            "start c1 // 7",
            "drop c2 throttle",
        ] {
            assert_eq!(calls.take(line), Ok(()), "{line}");
        }
        let report = report(&calls);
        let [c1, c2] = &report.clusters[..] else { panic!("{report:?}") };
        let row = |at: usize| {
            let load = &c1.localities[at].load;
            (load.issued, load.ok, load.error, load.in_progress, load.metrics.len())
        };
        assert_eq!((row(0), row(1)), ((3, 1, 0, 2, 0), (2, 1, 1, 0, 1)));
        assert_eq!(c1.localities[1].cpu.map(|metric| metric.total.value()), Some(0.5));
        assert_eq!((c2.dropped, c2.drops[0].category.as_str()), (1, "throttle"));
    }

    #[tokio::test]
    async fn an_invalid_line_is_an_error_and_adds_no_entry() {
        let mut calls = calls();
        calls.take("start c1 // 7").expect("a call");
        report(&calls);
        for (line, error) in [
            ("", USAGE),
            ("call c1 // ok\u{20}extra", "extra is no metric: it must be METRIC=VALUE"),
            ("call c1 //", USAGE),
            ("hello c1 // ok", USAGE),
            ("call c1 r/z ok", "r/z is no locality: it must be REGION/ZONE/SUBZONE"),
            ("call c1 r/z/s/t ok", "r/z/s/t is no locality: it must be REGION/ZONE/SUBZONE"),
            ("call c1 // OK", "OK: a call ends with ok or error"),
            ("call c1 // ok =1", "=1 is no metric: it must be METRIC=VALUE"),
            ("call c1 // ok m=x", "m=x: the value is no finite number"),
            ("call c1 // ok m=inf", "m=inf: the value is no finite number"),
            ("call c1 // ok m=1 m=2", "the metric m is there twice"),
            ("start c1 // 7", "the call 7 is in progress"),
            ("end 8 ok", "no call 8 is in progress"),
            ("end 7 maybe", "maybe: a call ends with ok or error"),
            ("end 7 ok m=1", USAGE),
            ("drop c1", USAGE),
        ] {
            assert_eq!(calls.take(line), Err(error.to_string()), "{line}");
        }
        let nothing = calls.reporter.with(|reporter| reporter.entries().count());
        assert_eq!(nothing, 1);
        assert_eq!(calls.take("end 7 ok"), Ok(()), "it is still in progress");
    }
}

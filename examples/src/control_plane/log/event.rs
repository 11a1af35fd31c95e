//! An event of the log, as JSON and as text.

use std::fmt::Write;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::name::Name;

/// One event. Fields that are `None` are left out.
#[derive(Debug, Default, Serialize)]
pub struct Event<'a> {
    #[serde(serialize_with = "rfc3339")]
    pub ts: Timestamp,
    pub event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub type_url: Option<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<ClusterLoad<'a>>>,
    /// The number of names that the lists leave out, which the log counts.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The status of the answer to a poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}

/// The loads of a cluster in one report. All fields are always there.
#[derive(Debug, Serialize)]
pub struct ClusterLoad<'a> {
    pub cluster: Name<'a>,
    pub service: Name<'a>,
    pub issued: u64,
    pub ok: u64,
    pub error: u64,
    pub in_progress: u64,
    pub dropped: u64,
    pub interval_ms: Option<u64>,
    pub localities: Vec<LocalityLoad<'a>>,
}

/// The loads of a locality in one report.
#[derive(Debug, Serialize)]
pub struct LocalityLoad<'a> {
    pub region: Name<'a>,
    pub zone: Name<'a>,
    pub sub_zone: Name<'a>,
    pub priority: u32,
    pub issued: u64,
    pub ok: u64,
    pub error: u64,
    pub in_progress: u64,
}

impl ClusterLoad<'_> {
    fn text(&self) -> String {
        let Self { cluster, service, issued, ok, error, in_progress, dropped, .. } = self;
        let name = if service.as_str().is_empty() { cluster.to_string() } else { format!("{cluster}/{service}") };
        let mut text = format!(" {name}: {issued} issued, {ok} ok, {error} failed, {in_progress} in progress");
        if *dropped > 0 {
            let _ = write!(text, ", {dropped} dropped");
        }
        text
    }
}

/// The beginning of a list of names, and the length of the whole.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct List<'a> {
    shown: Vec<Name<'a>>,
    #[serde(skip)]
    len: usize,
}

/// The number of names of a list that are logged.
const SHOWN: usize = 100;

/// The number of names of a list in a line for people.
const SHOWN_TO_PEOPLE: usize = 10;

impl<'a> List<'a> {
    pub fn new(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = names.into_iter().map(Name::from);
        let shown: Vec<Name> = names.by_ref().take(SHOWN).collect();
        let len = shown.len() + names.count();
        Self { shown, len }
    }

    /// Makes a list of a number of names, of which only the first are looked at.
    pub fn of(len: usize, names: impl Iterator<Item = &'a str>) -> Self {
        Self { shown: names.take(SHOWN).map(Name::from).collect(), len }
    }

    fn text(&self) -> String {
        let shown: Vec<&str> = self.shown.iter().take(SHOWN_TO_PEOPLE).map(|name| name.as_str()).collect();
        match self.len - shown.len() {
            0 => format!("[{}]", shown.join(", ")),
            more => format!("[{} and {} more]", shown.join(", "), grouped(more)),
        }
    }
}

impl<'a> Event<'a> {
    /// Creates an event of the current time.
    pub fn new(event: &'a str) -> Self {
        Self { ts: Timestamp::now(), event, ..Self::default() }
    }

    /// Counts the names that the lists leave out.
    #[must_use]
    pub(super) fn cut(self) -> Self {
        let lists = [&self.names, &self.resources, &self.removed];
        let more = lists.into_iter().flatten().map(|list| list.len - list.shown.len()).sum();
        Self { more, ..self }
    }

    pub(super) fn text(&self) -> String {
        if let (Some(source), Some(type_url)) = (self.source, self.type_url) {
            return self.text_of_file(source, short(type_url.as_str()));
        }
        let mut text = format!("{} ", self.time());
        if let Some(stream) = self.stream {
            let _ = write!(text, "#{stream} ");
        }
        let _ = write!(text, "{:10}", self.event);
        let kind = self.type_url.map(|type_url| short(type_url.as_str()).into());
        for (label, word) in [("", kind), ("version ", self.version), ("nonce ", self.nonce), ("node ", self.node)] {
            if let Some(word) = word {
                let _ = write!(text, " {label}{word}");
            }
        }
        if let Some(peer) = self.peer.filter(|_| self.event == "open") {
            let _ = write!(text, " from {peer}");
        }
        for (label, list) in [("names", &self.names), ("resources", &self.resources), ("removed", &self.removed)] {
            if let Some(list) = list {
                let _ = write!(text, " {label} {}", list.text());
            }
        }
        if let Some(clusters) = &self.clusters {
            let shown = clusters.iter().take(SHOWN_TO_PEOPLE).map(ClusterLoad::text);
            text.push_str(&shown.collect::<Vec<_>>().join(";"));
            if let more @ 1.. = clusters.len().saturating_sub(SHOWN_TO_PEOPLE) {
                let _ = write!(text, "; and {} more", grouped(more));
            }
        }
        if let Some(status) = self.status {
            let _ = write!(text, " status {status}");
        }
        if let Some(code) = self.code.filter(|code| *code != 0) {
            let _ = write!(text, " code {code}");
        }
        if let Some(message) = self.message.filter(|message| !message.is_empty()) {
            let _ = write!(text, " {message:?}");
        }
        text
    }
}

impl Event<'_> {
    fn text_of_file(&self, source: &str, kind: &str) -> String {
        let mut text = format!("{} {:10} {source}:", self.time(), self.event);
        for (label, list) in [("", &self.names), (" removed", &self.removed)] {
            if let Some(list) = list.as_ref().filter(|list| list.len > 0) {
                let _ = write!(text, "{label} {} {kind} {}", grouped(list.len), list.text());
            }
        }
        text
    }

    fn time(&self) -> impl std::fmt::Display {
        self.ts.strftime("%H:%M:%S%.3f")
    }
}

/// Returns the last part of a type URL.
pub fn short(type_url: &str) -> &str {
    type_url.rsplit(['.', '/']).next().unwrap_or(type_url)
}

/// Writes a number with a comma between each three digits.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

fn rfc3339<S: Serializer>(ts: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{ts:.6}"))
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event<'a>(resources: List<'a>) -> Event<'a> {
        Event {
            event: "send",
            stream: Some(3),
            peer: Some(([10, 0, 0, 1], 4711).into()),
            node: Some("n".into()),
            type_url: Some("type.googleapis.com/envoy.config.cluster.v3.Cluster".into()),
            version: Some("v".into()),
            nonce: Some("3.1".into()),
            resources: Some(resources),
            removed: Some(List::default()),
            ..Event::default()
        }
        .cut()
    }

    #[test]
    fn an_event_is_written_as_text_and_as_json() {
        let event = event(List::new(["c1", "c2"]));
        let text = "00:00:00.000 #3 send       Cluster version v nonce 3.1 node n resources [c1, c2] removed []";
        assert_eq!(event.text(), text);
        let json = r#"{"ts":"1970-01-01T00:00:00.000000Z","event":"send","stream":3,"peer":"10.0.0.1:4711","node":"n",
            "type_url":"type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "version":"v","nonce":"3.1","resources":["c1","c2"],"removed":[]}"#;
        let line = serde_json::to_string(&event).expect("JSON");
        assert_eq!(line, json.split_whitespace().collect::<String>());
    }

    #[test]
    fn a_load_event_is_written_as_text_and_as_json() {
        let load = |cluster, service, dropped| ClusterLoad {
            cluster: Name::from(cluster),
            service: Name::from(service),
            issued: 4,
            ok: 2,
            error: 1,
            in_progress: 1,
            dropped,
            interval_ms: None,
            localities: vec![],
        };
        let clusters = Some(vec![load("c1", "", 0), load("c2", "s", 9)]);
        let event =
            Event { event: "load", stream: Some(2), node: Some("n".into()), clusters, ..Event::default() }.cut();
        let text = "00:00:00.000 #2 load       node n c1: 4 issued, 2 ok, 1 failed, 1 in progress; \
                    c2/s: 4 issued, 2 ok, 1 failed, 1 in progress, 9 dropped";
        assert_eq!(event.text(), text);
        let value = serde_json::to_value(&event).expect("JSON");
        let expected = serde_json::json!({
            "cluster": "c2", "service": "s", "issued": 4, "ok": 2, "error": 1, "in_progress": 1, "dropped": 9,
            "interval_ms": null, "localities": [],
        });
        assert_eq!(value["clusters"][1], expected);
        let many = Some((0..12).map(|_| load("c", "", 0)).collect());
        let text = Event { clusters: many, ..Event::default() }.text();
        assert!(text.ends_with("; and 2 more"), "{text}");
    }

    #[test]
    fn a_file_event_is_written_as_text() {
        let event = Event {
            source: Some("dir/clusters.yaml"),
            type_url: Some("type.googleapis.com/envoy.config.cluster.v3.Cluster".into()),
            names: Some(List::new(["c1", "c2"])),
            removed: Some(List::new(["c3"])),
            ..Event { event: "changed", ..Event::default() }
        };
        let text = "00:00:00.000 changed    dir/clusters.yaml: 2 Cluster [c1, c2] removed 1 Cluster [c3]";
        assert_eq!(event.text(), text);
        let text = "00:00:00.000 changed    dir/clusters.yaml: 2 Cluster [c1, c2]";
        assert_eq!(Event { removed: Some(List::default()), ..event }.text(), text);
    }

    #[test]
    fn long_lists_are_cut_and_the_omitted_names_are_counted() {
        let names: Vec<String> = (0..10_000).map(|at| format!("c{at}")).collect();
        let list = || List::new(names.iter().map(String::as_str));
        let mut event = event(list());
        let text = event.text();
        assert!(text.contains("[c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 9,990 more]"), "{text}");
        event.removed = Some(list());
        let value = serde_json::to_value(event.cut()).expect("JSON");
        assert_eq!(value["resources"].as_array().map(Vec::len), Some(100));
        assert_eq!(value["removed"][99], "c99");
        assert_eq!(value["more"], 19_800);

        let exactly = List::new(names.iter().take(100).map(String::as_str));
        let event = Event { names: Some(exactly), ..Event::default() }.cut();
        assert_eq!(serde_json::to_value(event).expect("JSON").get("more"), None);
    }
}

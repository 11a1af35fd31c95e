//! The judge of a conversation between third parties: a referee for each side of each stream.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_machine::service::Method;

use super::log::Recorder;
use crate::message::{Request, Response, Variant};
use crate::referee::{ClientReferee, Complaint, Rule, ServerReferee, World};
use crate::report::Row;
use crate::resource;
use crate::run::Verdict;

/// The lines of a conversation that are kept.
const KEPT: usize = 60;

/// A judge, with the streams and violations that it has seen.
pub(super) struct Judge {
    mode: &'static str,
    recorder: Option<Recorder>,
    streams: BTreeMap<u64, Stream>,
    opened: u64,
    messages: u64,
    rows: Vec<Row>,
    begun: Instant,
    on_complaint: Box<dyn Fn(&str) + Send>,
}

struct Stream {
    variant: Variant,
    /// Whether the stream is of one type: the reason for a response may be on another stream.
    is_single: bool,
    server: ServerReferee,
    client: ClientReferee,
    ladder: Vec<String>,
}

impl Judge {
    /// Makes the judge of a mode, which may record what it reads.
    pub(super) fn new(
        mode: &'static str,
        recorder: Option<Recorder>,
        on_complaint: impl Fn(&str) + Send + 'static,
    ) -> Self {
        let (streams, rows) = (BTreeMap::new(), Vec::new());
        let on_complaint = Box::new(on_complaint);
        Self { mode, recorder, streams, opened: 0, messages: 0, rows, begun: Instant::now(), on_complaint }
    }

    /// Begins to judge a stream of a method, whose path is `path`. Returns the number of the stream.
    pub(super) fn open(&mut self, method: &Method, path: &str) -> u64 {
        self.opened += 1;
        self.recorder.iter_mut().for_each(|recorder| recorder.open(self.opened, path));
        let (variant, single) = (method.variant, method.type_url);
        let server = ServerReferee::new(variant, single, World::unknown());
        let client = ClientReferee::amid(variant);
        self.streams
            .insert(self.opened, Stream { variant, is_single: single.is_some(), server, client, ladder: Vec::new() });
        self.opened
    }

    pub(super) fn close(&mut self, id: u64) {
        self.recorder.iter_mut().for_each(|recorder| recorder.close(id));
        self.streams.remove(&id);
    }

    /// Judges a message of the client, which is on its way to the server.
    pub(super) fn request(&mut self, id: u64, message: Bytes) {
        self.recorder.iter_mut().for_each(|recorder| recorder.message("request", id, &message));
        let Some(stream) = self.streams.get_mut(&id) else { return };
        self.messages += 1;
        let Ok(request) = Request::decode(stream.variant, message) else {
            return stream.say(format!("C{id}> no request"));
        };
        let (of, names) = (resource::short(&request.type_url), &request.names);
        let nack = if request.error.is_some() { " NACK" } else { "" };
        let unsubscribe = &request.unsubscribe;
        stream.say(format!("C{id}> {of} {names:?} -{unsubscribe:?} v={} n={}{nack}", request.version, request.nonce));
        stream.server.request(&request);
        let complaints = stream.client.request(&request);
        self.complain(id, complaints);
    }

    /// Judges a message of the server, which is on its way to the client.
    pub(super) fn response(&mut self, id: u64, message: Bytes) {
        self.recorder.iter_mut().for_each(|recorder| recorder.message("response", id, &message));
        let Some(stream) = self.streams.get_mut(&id) else { return };
        self.messages += 1;
        let Ok(response) = Response::decode(stream.variant, message, digest) else {
            return stream.say(format!("S{id}> no response"));
        };
        let (of, names) = (resource::short(&response.type_url), response.resources.iter().map(|item| &item.name));
        let names: Vec<&String> = names.take(20).collect();
        stream
            .say(format!("S{id}> {of} {names:?} rm{:?} v={} n={}", response.removed, response.version, response.nonce));
        stream.client.response(&response);
        let mut complaints = stream.server.response(&response);
        // The reason may be on another stream: a cluster that changes is a reason to send its endpoints once more.
        complaints.retain(|complaint| !(stream.is_single && complaint.rule == Rule::Needless));
        self.complain(id, complaints);
    }

    fn complain(&mut self, id: u64, complaints: Vec<Complaint>) {
        for complaint in complaints {
            let Some(stream) = self.streams.get_mut(&id) else { return };
            stream.say(format!("   !! {complaint}"));
            (self.on_complaint)(&format!("stream {id}: {complaint}"));
            let (rule, variant, ladder) = (complaint.rule, stream.variant, stream.ladder.clone());
            let row_id = format!("{}/{}", self.mode, rule.id());
            if self.rows.iter().any(|row| row.id == row_id && row.variant == variant) {
                continue;
            }
            let (why, time) = (complaint.to_string(), self.begun.elapsed());
            self.rows.push(Row { ladder, ..Row::of(rule, row_id, variant, Verdict::Fail, why, time) });
        }
    }

    /// Returns the violations, or a row that there was none.
    pub(super) fn rows(&self) -> Vec<Row> {
        if !self.rows.is_empty() {
            return self.rows.clone();
        }
        let verdict = if self.messages > 0 { Verdict::Pass } else { Verdict::Inconclusive };
        let why = format!("{} messages on {} streams", self.messages, self.opened);
        let time = Duration::from_secs(self.begun.elapsed().as_secs());
        vec![Row::of(Rule::Nonce, format!("{}/all", self.mode), Variant::Sotw, verdict, why, time)]
    }
}

impl Stream {
    fn say(&mut self, line: String) {
        if self.ladder.len() == KEPT {
            self.ladder.remove(0);
        }
        self.ladder.push(line);
    }
}

/// Returns a number that stands for the content of any resource, because its own revision is not known.
fn digest(_: &str, body: &[u8]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::message::{Item, Node};
    use crate::tap::log;

    /// The lines of a recording, in memory.
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("the lines").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn violations_by_client_and_server_are_reported_live_and_from_a_recording() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let mut judge = Judge::new("tap", Some(Recorder::new(Lines(lines.clone()))), |_| {});
        let method = Method { variant: Variant::Sotw, type_url: None };
        let id = judge.open(&method, &method.path().expect("the path"));
        let eds = resource::type_url("eds").to_owned();
        let node = Some(Node { id: "n".into(), ..Node::default() });
        let first = Request { type_url: eds.clone(), names: vec!["a".into()], node, ..Request::default() };
        judge.request(id, first.encode(Variant::Sotw).into());
        let body = Some(resource::body(&eds, "a", 1).into());
        let item = Item { name: "a".into(), any_type: eds.clone(), body, ..Item::default() };
        let response = |nonce: &str| Response {
            type_url: eds.clone(),
            version: "1".into(),
            nonce: nonce.into(),
            resources: vec![item.clone()],
            ..Response::default()
        };
        judge.response(id, response("n1").encode(Variant::Sotw).into());
        let ack = Request { node: None, version: "1".into(), nonce: "n1".into(), ..first };
        judge.request(id, ack.encode(Variant::Sotw).into());
        assert_eq!(judge.rows()[0].id, "tap/all");
        assert_eq!(judge.rows()[0].why, "3 messages on 1 streams");
        let twice = Response { resources: vec![item.clone(), item.clone()], ..response("n2") };
        judge.response(id, twice.encode(Variant::Sotw).into());
        let wrong = Request { nonce: "n9".into(), ..ack };
        judge.request(id, wrong.encode(Variant::Sotw).into());
        let ids: Vec<String> = judge.rows().into_iter().map(|row| row.id).collect();
        assert_eq!(ids, ["tap/twice", "tap/nonce-unknown"]);
        judge.close(id);

        // A recording of a tap is judged the same afterwards.
        let text = String::from_utf8(lines.lock().expect("the lines").clone()).expect("text");
        assert_eq!(text.lines().count(), 7);
        let mut again = Judge::new("judge", None, |_| {});
        assert_eq!(log::read(&text, &mut again), Ok(()));
        let whys = |judge: &Judge| judge.rows().into_iter().map(|row| (row.why, row.ladder)).collect::<Vec<_>>();
        assert_eq!(whys(&again), whys(&judge));
        assert_eq!(again.rows()[0].id, "judge/twice");
    }
}

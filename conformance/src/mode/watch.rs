//! The mode `watch`: a client that only observes. It is safe with a server in production: it asks for everything, and
//! ACKs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::plan::Plan;
use crate::message::{Node, Request, Variant};
use crate::net::{Connection, Patience, SharedControl};
use crate::referee::{Complaint, Rule, ServerReferee, World};
use crate::report::{Calibration, Report, Row, variant_name};
use crate::resource;
use crate::run::{Event, Peer, StreamId, Trouble, Verdict, Wait};

/// How long one look takes, and how long a connection may take.
const LOOK: Duration = Duration::from_millis(200);
const CONNECT: Duration = Duration::from_secs(10);
/// The number of lines of a conversation that are kept.
const KEPT: usize = 60;

/// A stream that is watched.
struct Watched {
    variant: Variant,
    referee: ServerReferee,
    ladder: Vec<String>,
    complaints: Vec<Complaint>,
    responses: usize,
    ended: Option<String>,
}

/// Watches a wildcard stream of each variant for this time.
///
/// # Errors
///
/// If the server cannot be reached.
pub fn watch(plan: &Plan, control: &SharedControl, time: Duration) -> Result<Report, Trouble> {
    let (begun, target) = (Instant::now(), plan.target(control));
    let mut connection = Connection::new(&target, Patience { answer: CONNECT, quiet: LOOK })
        .map_err(|error| Trouble(format!("no connection to {}: {error}", plan.address)))?;
    let mut streams: BTreeMap<StreamId, Watched> = BTreeMap::new();
    for variant in plan.variants.iter().copied().filter(|variant| plan.speaks(*variant)) {
        let id = connection.open(variant, None)?;
        let referee = ServerReferee::new(variant, None, World::unknown());
        let (ladder, complaints) = (Vec::new(), Vec::new());
        let mut watched = Watched { variant, referee, ladder, complaints, responses: 0, ended: None };
        for (at, of) in plan.wildcard.iter().enumerate() {
            let node = (at == 0).then(|| Node { id: "xds-conformance-watch".into(), features: Vec::new() });
            let type_url = resource::type_url(of).to_owned();
            let request = Request { type_url, names: vec!["*".into()], node, ..Request::default() };
            watched.send(&mut connection, id, &request)?;
        }
        streams.insert(id, watched);
    }
    while begun.elapsed() < time && streams.values().any(|watched| watched.ended.is_none()) {
        let Some(event) = connection.poll(Wait::Quiet) else { continue };
        let (Event::Response(id, _) | Event::Malformed(id, _) | Event::Closed(id, _)) = &event;
        let id = *id;
        if let Some(watched) = streams.get_mut(&id) {
            watched.take(&mut connection, id, event)?;
        }
    }
    let rows = streams.into_values().flat_map(|watched| watched.rows(begun.elapsed())).collect();
    Ok(Report {
        mode: "watch".into(),
        implementation: plan.implementation.clone(),
        calibration: Calibration::default(),
        rows,
        stale: Vec::new(),
        strict: plan.strict,
    })
}

impl Watched {
    fn send(&mut self, connection: &mut Connection, id: StreamId, request: &Request) -> Result<(), Trouble> {
        let of = resource::short(&request.type_url);
        self.say(format!("C> {of} {:?} v={} n={}", request.names, request.version, request.nonce));
        self.referee.request(request);
        connection.send(id, self.variant, request)
    }

    fn say(&mut self, line: String) {
        if self.ladder.len() == KEPT {
            self.ladder.remove(0);
        }
        self.ladder.push(line);
    }

    fn take(&mut self, connection: &mut Connection, id: StreamId, event: Event) -> Result<(), Trouble> {
        let response = match event {
            Event::Response(_, response) => response,
            Event::Malformed(_, why) | Event::Closed(_, why) => {
                self.say(format!("S> ends the stream: {why}"));
                self.ended = Some(why);
                return Ok(());
            }
        };
        self.responses += 1;
        let (of, number, removed) =
            (resource::short(&response.type_url), response.resources.len(), response.removed.len());
        self.say(format!("S> {of} {number} resources, {removed} removed v={} n={}", response.version, response.nonce));
        // The content changes by itself, so that no response is needless.
        let complaints =
            self.referee.response(&response).into_iter().filter(|complaint| complaint.rule != Rule::Needless);
        for complaint in complaints.collect::<Vec<_>>() {
            self.say(format!("   !! {complaint}"));
            self.complaints.push(complaint);
        }
        let sotw = self.variant == Variant::Sotw;
        let ack = Request {
            type_url: response.type_url,
            names: if sotw { vec!["*".into()] } else { Vec::new() },
            version: if sotw { response.version } else { String::new() },
            nonce: response.nonce,
            ..Request::default()
        };
        self.send(connection, id, &ack)
    }

    fn rows(self, time: Duration) -> Vec<Row> {
        let row = |rule: Rule, id: String, verdict, why| Row {
            ladder: self.ladder.clone(),
            ..Row::of(rule, id, self.variant, verdict, why, time)
        };
        let mut rows: Vec<Row> = Vec::new();
        for complaint in &self.complaints {
            let id = format!("watch/{}", complaint.rule.id());
            if rows.iter().all(|row| row.id != id) {
                rows.push(row(complaint.rule, id, Verdict::Fail, complaint.to_string()));
            }
        }
        if rows.is_empty() {
            let (name, responses) = (variant_name(self.variant), self.responses);
            let ended =
                self.ended.as_ref().map_or(String::new(), |why| format!("; the server ended the stream: {why}"));
            let verdict = if responses > 0 { Verdict::Pass } else { Verdict::Inconclusive };
            let why = format!("{responses} responses of {name}{ended}");
            rows.push(row(Rule::Nonce, "watch/all".into(), verdict, why));
        }
        rows
    }
}

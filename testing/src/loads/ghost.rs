//! The expected content of each report, counted call by call.

use std::collections::BTreeSet;
use std::time::Duration;

use xds_machine::load::{ClusterStats, Request, Response, Totals};
use xds_machine::{Instant, ResourceName};

use super::CLUSTERS;

/// Counts of one cluster.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Row {
    pub(super) issued: u64,
    pub(super) ok: u64,
    pub(super) error: u64,
    pub(super) dropped: u64,
}

impl Row {
    fn add(&mut self, other: Self) {
        self.issued += other.issued;
        self.ok += other.ok;
        self.error += other.error;
        self.dropped += other.dropped;
    }

    fn of(stats: &ClusterStats) -> Self {
        let sum = stats.sum();
        Self { issued: sum.issued, ok: sum.ok, error: sum.error, dropped: stats.dropped }
    }
}

/// The clusters that were asked for, by their numbers, and the interval.
type Asked = (BTreeSet<usize>, Duration);

#[derive(Clone, Debug, Hash)]
pub(super) struct Ghost {
    pub(super) takes_all: bool,
    pub(super) in_progress: [u64; 2],
    /// The clusters and the interval of the last response, on any stream.
    asked: Option<Asked>,
    /// The counts that are in no report, and since when; `None` if the cluster is not asked for, or has no entry.
    held: [Option<(Row, Instant)>; 2],
    /// The counts of the time in which the cluster was asked for.
    counted: [Row; 2],
    /// The counts in reports that the server has read.
    arrived: [Row; 2],
    /// The counts in reports that were lost with their stream.
    lost: [Row; 2],
    /// The counts in the report that is under way.
    under_way: [Row; 2],
    /// The time of that report, and the beginnings of its windows.
    made: Option<(Instant, [Option<Instant>; 2])>,
    is_open: bool,
    greeted: bool,
    heard_node: bool,
    /// The client has read a response on this stream.
    answered: bool,
    /// The last response on this stream.
    last: Option<Response>,
    /// The time before which no report is due.
    earliest: Instant,
    stopping: bool,
    /// A last report is owed.
    owes: bool,
}

impl Ghost {
    pub(super) fn new(takes_all: bool) -> Self {
        Self {
            takes_all,
            in_progress: [0; 2],
            asked: None,
            held: [None; 2],
            counted: [Row::default(); 2],
            arrived: [Row::default(); 2],
            lost: [Row::default(); 2],
            under_way: [Row::default(); 2],
            made: None,
            is_open: false,
            greeted: false,
            heard_node: false,
            answered: false,
            last: None,
            earliest: Instant::EPOCH,
            stopping: false,
            owes: false,
        }
    }

    pub(super) fn open(&mut self) {
        assert!(!self.stopping, "no stream is needed");
        (self.is_open, self.greeted, self.heard_node, self.answered, self.last) = (true, false, false, false, None);
    }

    pub(super) fn close(&mut self) {
        (self.is_open, self.owes) = (false, false);
    }

    /// Checks that the client may end the stream.
    pub(super) fn finish(&self) {
        assert!(self.stopping && !self.owes, "the last report is not sent");
    }

    pub(super) fn stop(&mut self) {
        self.owes = self.waits() && !self.stopping;
        self.stopping = true;
    }

    fn is_asked(&self, at: usize) -> bool {
        self.asked.as_ref().is_some_and(|(clusters, _)| clusters.contains(&at))
    }

    /// Returns whether a report has a time.
    pub(super) fn waits(&self) -> bool {
        self.is_open && self.answered && self.asked.as_ref().is_some_and(|(clusters, _)| !clusters.is_empty())
    }

    /// Returns when the next report is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waits().then_some(self.earliest)
    }

    pub(super) fn count(&mut self, at: usize, row: Row) {
        if let Some((held, _)) = &mut self.held[at] {
            held.add(row);
            self.counted[at].add(row);
        }
    }

    /// Records that the client has a handle to a cluster again.
    pub(super) fn enter(&mut self, now: Instant, at: usize) {
        if self.is_asked(at) && self.held[at].is_none() {
            self.held[at] = Some((Row::default(), now));
        }
    }

    /// Drops an empty entry after its last handle was released, or after a call has ended.
    pub(super) fn settle(&mut self, at: usize, is_used: bool) {
        if !is_used && self.in_progress[at] == 0 && self.held[at].is_some_and(|(row, _)| row == Row::default()) {
            self.held[at] = None;
        }
    }

    /// Checks a message that the client makes.
    pub(super) fn report(&mut self, now: Instant, stopped: bool, request: &Request) {
        assert_eq!(request.node.is_some(), !self.greeted, "the node is in the first message");
        if !self.greeted {
            assert!(request.clusters.is_empty(), "the first message is the node alone");
            self.greeted = true;
            self.made = None;
            return;
        }
        assert!(self.waits(), "a report that was not asked for");
        self.owes = false;
        assert!(stopped || now >= self.earliest, "a report is early");
        let expected: Vec<usize> = (0..2).filter(|at| self.held[*at].is_some()).collect();
        let reported: Vec<usize> = request.clusters.iter().map(|stats| number(&stats.cluster)).collect();
        assert_eq!(reported, expected, "the report is of the clusters that are asked for");
        let mut since = [None; 2];
        for (stats, at) in request.clusters.iter().zip(reported) {
            let (held, from) = self.held[at].expect("expected");
            assert_eq!(Row::of(stats), held, "the report of {} has what happened", stats.cluster);
            assert_eq!(stats.sum().in_progress, self.in_progress[at], "calls in progress of {}", stats.cluster);
            assert_eq!(stats.window.unwrap_or_default(), now.saturating_since(from), "the window of {}", stats.cluster);
            self.under_way[at] = held;
            since[at] = Some(from);
            self.held[at] = Some((Row::default(), now));
        }
        self.made = Some((now, since));
        let interval = self.asked.as_ref().map_or(Duration::ZERO, |(_, interval)| *interval);
        self.earliest = now + interval;
    }

    /// Checks the entries of the reporter: an entry without a handle is gone after its last report.
    pub(super) fn entries(&mut self, known: &[&ResourceName]) {
        let known: BTreeSet<usize> = known.iter().map(|cluster| number(cluster)).collect();
        for at in 0..2 {
            if self.in_progress[at] > 0 {
                assert!(known.contains(&at), "an entry with calls in progress is gone");
            }
            if !known.contains(&at) {
                let held = self.held[at].take().map(|(row, _)| row);
                assert!(held.is_none_or(|row| row == Row::default()), "an entry is gone with {held:?}");
            }
        }
    }

    /// Records that the transport gives a message back.
    pub(super) fn unsent(&mut self, request: &Request) {
        if request.node.is_some() {
            self.greeted = false;
        }
        let Some((made, since)) = self.made.take() else { return };
        self.earliest = made;
        self.owes = self.stopping && self.waits();
        for at in 0..2 {
            let row = std::mem::take(&mut self.under_way[at]);
            let Some(since) = since[at] else { continue };
            if self.is_asked(at) {
                let (mut held, from) = self.held[at].unwrap_or((Row::default(), made));
                held.add(row);
                self.held[at] = Some((held, since.min(from)));
            } else {
                self.counted[at] = minus(self.counted[at], row);
            }
        }
    }

    /// Records that the report under way was lost with its stream.
    pub(super) fn lost(&mut self, request: &Request) {
        if request.node.is_none() {
            for at in 0..2 {
                self.lost[at].add(std::mem::take(&mut self.under_way[at]));
            }
        }
    }

    /// Checks a report that the server has read.
    pub(super) fn received(&mut self, report: &[ClusterStats]) {
        assert!(!report.is_empty(), "a report of nothing");
        for stats in report {
            let at = number(&stats.cluster);
            let row = std::mem::take(&mut self.under_way[at]);
            assert_eq!(Row::of(stats), row, "what arrives is what was sent");
            self.arrived[at].add(row);
        }
    }

    /// Compares the totals of the server with the reports that it has read.
    pub(super) fn totals(&mut self, totals: &Totals) {
        self.heard_node = true;
        for stats in totals.iter() {
            let (sum, arrived) = (Row::of(stats), self.arrived[number(&stats.cluster)]);
            assert!(sum.issued <= arrived.issued && sum.ok <= arrived.ok, "sums of a stream");
        }
    }

    /// Checks a response of the server.
    pub(super) fn answer(&mut self, response: &Response) {
        assert!(self.heard_node, "an answer before the node");
        assert_ne!(self.last.as_ref(), Some(response), "the same answer again");
        let interval = response.interval.expect("an answer has an interval");
        assert!(interval.seconds >= 1 && interval.nanos >= 0, "an interval that kills clients: {interval:?}");
        let is_empty = response.clusters.is_empty();
        assert!(response.send_all_clusters == is_empty, "an answer has all or a list: {response:?}");
        assert!(self.takes_all || !response.send_all_clusters, "all, to a client that does not take it");
        self.last = Some(response.clone());
    }

    /// Records a response that the client reads.
    pub(super) fn hear(&mut self, now: Instant, stopped: bool, response: &Response) {
        if stopped {
            return;
        }
        let clusters: BTreeSet<usize> = match response.send_all_clusters {
            true => (0..2).collect(),
            false => response.clusters.iter().map(number).collect(),
        };
        let interval = response.interval.map_or(Duration::ZERO, |interval| interval.to_duration());
        let goes_on = self.waits() && self.asked.as_ref().is_some_and(|(_, before)| *before == interval);
        if !goes_on {
            self.earliest = now + interval;
        }
        for at in 0..2 {
            match (self.is_asked(at), clusters.contains(&at)) {
                (false, true) => self.held[at] = Some((Row::default(), now)),
                (true, false) => {
                    let held = self.held[at].take().map_or(Row::default(), |(row, _)| row);
                    self.counted[at] = minus(self.counted[at], held); // thrown away
                }
                _ => {}
            }
        }
        self.answered = true;
        self.asked = Some((clusters, interval));
    }

    /// Checks that every call is counted in exactly one place.
    pub(super) fn conserves(&self) {
        for (at, cluster) in CLUSTERS.iter().enumerate() {
            let mut sum = self.held[at].map_or(Row::default(), |(row, _)| row);
            [self.arrived[at], self.lost[at], self.under_way[at]].into_iter().for_each(|row| sum.add(row));
            assert_eq!(sum, self.counted[at], "calls of {cluster}");
        }
    }
}

fn number(cluster: &ResourceName) -> usize {
    CLUSTERS.iter().position(|known| cluster == known).unwrap_or_else(|| panic!("{cluster} is no cluster"))
}

fn minus(one: Row, other: Row) -> Row {
    Row {
        issued: one.issued - other.issued,
        ok: one.ok - other.ok,
        error: one.error - other.error,
        dropped: one.dropped - other.dropped,
    }
}

//! The client's side: counts calls, and reports them as the server asks.

use alloc::vec::Vec;

use super::config::Config;
use super::counters::Counters;
use super::entries::{Entries, Entry};
use super::message::{ClusterStats, Metric, Request, Response};
use super::place::{Counts, Outcome, Place};
use super::sum::Sum;
use super::wanted::Wanted;
use crate::error::{Error, Misuse};
use crate::model::{Label, Relabel};
use crate::name::ResourceName;
use crate::time::Instant;

/// Counts the calls of a client, and makes the load reports for one server. See the [module](super).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Reporter {
    config: Config,
    entries: Entries,
    /// The last selection, of this stream or an earlier one. The loads of its clusters are counted.
    wanted: Option<Wanted>,
    stream: Option<Stream>,
    /// The last message, until the next one. The driver may give it back.
    under_way: Option<UnderWay>,
    is_stopping: bool,
    ignored_metrics: u64,
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Stream {
    /// The node was sent.
    greeted: bool,
    /// The server has answered: the selection is that of this stream.
    answered: bool,
    due: Due,
    /// Nothing happened in the last report.
    idle: bool,
}

/// When the next report is due.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
enum Due {
    #[default]
    Never,
    At(Instant),
    Now,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct UnderWay {
    made: Instant,
    is_greeting: bool,
}

/// A call in progress. It is ended once, with [`Reporter::finished`].
#[must_use = "a call that is not finished stays in progress"]
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Call {
    entry: Entry,
    place: Place,
}

impl Reporter {
    /// Creates a reporter, which reports no loads before the server asks for them.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            entries: Entries::default(),
            wanted: None,
            stream: None,
            under_way: None,
            is_stopping: false,
            ignored_metrics: 0,
        }
    }

    /// Returns a handle to the loads of a cluster, or of one service of it; `service` is empty if the cluster has no
    /// other name for its endpoints. Handles are counted: give each back with [`release`](Self::release).
    ///
    /// If the name of the service changes, take a handle of the new name, and release the old one; the counts under the
    /// old name are still reported under the old name (R-LRS-17, R-LRS-24).
    ///
    /// # Errors
    ///
    /// [`Misuse::TooMuchLoad`] at the limit of clusters.
    pub fn entry(
        &mut self,
        now: Instant,
        cluster: impl Into<ResourceName>,
        service: impl Into<ResourceName>,
    ) -> Result<Entry, Misuse> {
        let (cluster, limit) = (cluster.into(), self.config.settings().limits.clusters);
        let since = self.counts(&cluster).then_some(now);
        self.entries.open(cluster, service.into(), since, limit)
    }

    /// Releases a handle. After the release of the last one, the entry stays until its calls have ended and its last
    /// counts are reported (R-LRS-24).
    ///
    /// # Errors
    ///
    /// [`Misuse::NoEntry`] if every handle was released before.
    pub fn release(&mut self, entry: Entry) -> Result<(), Misuse> {
        let counters = self.entries.get(&entry)?;
        let none = || Misuse::NoEntry { cluster: entry.cluster().clone() };
        counters.references = counters.references.checked_sub(1).ok_or_else(none)?;
        self.settle(&entry);
        Ok(())
    }

    /// Counts the start of a call: it is issued, and in progress (R-LRS-20).
    ///
    /// # Errors
    ///
    /// [`Misuse::NoEntry`]; [`Misuse::TooMuchLoad`] at the limit of localities or endpoints. Then nothing is counted.
    pub fn started(&mut self, entry: &Entry, place: &Place) -> Result<Call, Misuse> {
        self.add(entry, place, Counts { issued: 1, ..Counts::default() })?;
        Ok(Call { entry: entry.clone(), place: place.clone() })
    }

    /// Counts the end of a call, and adds its metrics, such as those of a per-call ORCA report. Metrics that are
    /// not finite are ignored, and so are new names beyond the limit
    /// ([`ignored_metrics`](Self::ignored_metrics)).
    ///
    /// # Errors
    ///
    /// [`Misuse::CallNotStarted`] if the call has ended before; then nothing is counted. A clone of a call that has
    /// ended can't be told from another call that is still in progress at the same place.
    pub fn finished<'a>(
        &mut self,
        call: Call,
        outcome: Outcome,
        metrics: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<(), Misuse> {
        let Call { entry, place } = call;
        // Metrics are added before the end is counted, because the last end of a released entry may remove the entry.
        self.entries.get(&entry)?.check(&place, outcome.end())?;
        for (name, value) in metrics {
            self.add_metric(&entry, &place, name, 1, value)?;
        }
        self.add(&entry, &place, outcome.end())
    }

    /// Adds the counts of a caller with counters of its own, such as a data path that counts without locks.
    ///
    /// # Errors
    ///
    /// [`Misuse::CallNotStarted`] if more calls end than are in progress; [`Misuse::NoEntry`]; [`Misuse::TooMuchLoad`].
    /// Then nothing is counted.
    pub fn add(&mut self, entry: &Entry, place: &Place, counts: Counts) -> Result<(), Misuse> {
        let limits = &self.config.settings().limits;
        let counters = self.entries.get(entry)?;
        counters.add(place, counts, limits)?;
        if counters.references == 0 {
            self.settle(entry);
        }
        Ok(())
    }

    /// Adds to a metric the number of calls that reported it, and the sum of their values. A sum that is not finite is
    /// ignored, and so is a new name beyond the limit ([`ignored_metrics`](Self::ignored_metrics)).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn add_metric(
        &mut self,
        entry: &Entry,
        place: &Place,
        name: &str,
        calls: u64,
        total: f64,
    ) -> Result<(), Misuse> {
        let limits = &self.config.settings().limits;
        let counters = self.entries.get(entry)?;
        let taken = match Sum::new(total) {
            Some(total) => counters.add_metric(place, name, Metric { calls, total }, limits)?,
            None => false,
        };
        self.ignored_metrics = self.ignored_metrics.saturating_add(u64::from(!taken));
        Ok(())
    }

    /// Counts dropped calls. The category of a call that a circuit breaker dropped is the empty string
    /// (R-LRS-18).
    ///
    /// # Errors
    ///
    /// [`Misuse::NoEntry`]; [`Misuse::TooMuchLoad`] at the limit of categories. Then nothing is counted.
    pub fn dropped(&mut self, entry: &Entry, category: &str, calls: u64) -> Result<(), Misuse> {
        let limits = &self.config.settings().limits;
        self.entries.get(entry)?.add_dropped(category, calls, limits)
    }

    /// Makes one last report, if something is selected. After that no stream is needed any more (R-LRS-25). A second
    /// call does nothing.
    pub fn stop(&mut self) {
        if self.is_stopping {
            return;
        }
        self.is_stopping = true;
        let is_asked = self.is_asked();
        if let Some(stream) = &mut self.stream {
            stream.due = if is_asked { Due::Now } else { Due::Never };
        }
    }

    /// Begins a stream. The counters and windows go on (R-LRS-21).
    pub fn handle_open(&mut self) {
        self.stream = Some(Stream::default());
        // A message of the last stream that is given back is not the greeting of this stream.
        if let Some(under_way) = &mut self.under_way {
            under_way.is_greeting = false;
        }
    }

    /// Ends the stream, for whatever reason. The clusters that the stream selected are not reported until the next
    /// stream selects them again, but their loads are counted meanwhile.
    pub fn handle_close(&mut self) {
        self.stream = None;
    }

    /// Takes the server's selection.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if the selection exceeds a limit; [`Misuse::NoStream`].
    pub fn handle_response(&mut self, now: Instant, response: Response) -> Result<(), Error> {
        let asked = self.is_asked();
        let settings = self.config.settings();
        let stream = self.stream.as_mut().ok_or(Misuse::NoStream)?;
        let wanted = Wanted::read(response, settings)?;
        if self.is_stopping {
            return Ok(()); // the last report has the former selection
        }
        let before = self.wanted.replace(wanted);
        let Some(wanted) = &self.wanted else { return Ok(()) };
        stream.due = match stream.due.clone() {
            _ if !wanted.wants_any() => Due::Never,
            // The timer runs on if the interval is the same (R-LRS-08).
            due @ (Due::At(_) | Due::Now)
                if asked && before.as_ref().map(|before| before.interval) == Some(wanted.interval) =>
            {
                due
            }
            _ => Due::At(now + wanted.interval),
        };
        stream.answered = true;
        if settings.quirks.count_before_asked {
            return Ok(());
        }
        self.entries.for_each(|counters| {
            if !wanted.wants(&counters.key().cluster) {
                counters.since = None;
                counters.forget(); // R-LRS-11
            } else if counters.since.is_none() {
                counters.since = Some(now); // a new cluster begins now (R-LRS-10), others go on (R-LRS-09)
            }
        });
        self.entries.remove_unused(Counters::is_idle);
        Ok(())
    }

    /// Takes back a message that the transport did not send: its counts are in the next report (R-LRS-23). The stream
    /// may have ended meanwhile.
    ///
    /// # Errors
    ///
    /// [`Misuse::NoReport`] if no message is under way: only the last one can be given back, and only once.
    pub fn handle_unsent(&mut self, request: Request) -> Result<(), Misuse> {
        let UnderWay { made, is_greeting } = self.under_way.take().ok_or(Misuse::NoReport)?;
        for stats in request.clusters {
            if self.counts(&stats.cluster) {
                self.entries.get_or_make(&stats.cluster, &stats.service, Some(made)).give_back(stats, made);
            }
        }
        let is_asked = self.is_asked();
        if let Some(stream) = &mut self.stream {
            stream.greeted &= !is_greeting;
            stream.idle = false;
            if is_asked {
                stream.due = Due::Now;
            }
        }
        Ok(())
    }

    /// Notes that a report is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(stream) = &mut self.stream {
            if matches!(stream.due, Due::At(due) if due <= now) {
                stream.due = Due::Now;
            }
        }
    }

    /// Returns the message to send. A report is composed of the current counts, so call this when the transport has
    /// room: there is never a second report that waits (R-LRS-23).
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Request> {
        self.handle_timeout(now);
        let is_asked = self.is_asked();
        let (settings, stream) = (self.config.settings(), self.stream.as_mut()?);
        let is_greeting = !core::mem::replace(&mut stream.greeted, true);
        // The first message has no stats (R-LRS-01), and the next one waits for the server (R-LRS-02). Like Envoy, a
        // reporter may continue at once with the selection of the last stream (R-LRS-21).
        let reports = is_asked && (is_greeting || stream.due == Due::Now);
        if !is_greeting && !reports {
            return None;
        }
        let quirks = settings.quirks;
        let clusters = if reports { self.report(now)? } else { Vec::new() };
        self.under_way = Some(UnderWay { made: now, is_greeting });
        let node = (is_greeting || quirks.node_on_every_request).then(|| self.config.settings().node.clone());
        Some(Request { node, clusters })
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called. `None` without a stream, while nothing is
    /// selected, and while a report waits for room.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.stream.as_ref()?.due {
            Due::At(due) => Some(due),
            Due::Never | Due::Now => None,
        }
    }

    /// Returns whether a stream is needed. After [`stop`](Self::stop) the driver ends the stream once this returns
    /// `false`.
    pub fn wants_stream(&self) -> bool {
        !self.is_stopping || self.stream.as_ref().is_some_and(|stream| stream.due == Due::Now)
    }

    /// Returns whether [`stop`](Self::stop) was called.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Returns the number of metrics that were ignored: their values were not finite, or there were too many names.
    pub fn ignored_metrics(&self) -> u64 {
        self.ignored_metrics
    }

    /// Returns the names of each entry that has handles, calls in progress, or counts that are still to be reported.
    pub fn entries(&self) -> impl Iterator<Item = (&ResourceName, &ResourceName)> {
        self.entries.iter().map(|counters| (&counters.key().cluster, &counters.key().service))
    }

    /// Makes a report. Returns `None` if a quiet reporter has nothing to report; its windows begin anew (R-LRS-16).
    fn report(&mut self, now: Instant) -> Option<Vec<ClusterStats>> {
        let (wanted, stream) = (self.wanted.as_ref()?, self.stream.as_mut()?);
        let quirks = self.config.settings().quirks;
        let mut clusters = Vec::new();
        self.entries.for_each(|counters| {
            if wanted.wants(&counters.key().cluster) {
                clusters.push(counters.take(now, wanted.endpoints, quirks));
            } else if quirks.count_before_asked {
                counters.since = Some(now);
                counters.forget();
            }
        });
        self.entries.remove_unused(Counters::is_drained);
        // At least an interval after this report, however late it is (R-LRS-04).
        stream.due = if self.is_stopping { Due::Never } else { Due::At(now + wanted.interval) };
        let is_idle = clusters.iter().all(ClusterStats::is_idle);
        let was_idle = core::mem::replace(&mut stream.idle, is_idle);
        (!(quirks.quiet && was_idle && is_idle)).then_some(clusters)
    }

    /// Returns whether the selection is in force on the stream, and selects something.
    fn is_asked(&self) -> bool {
        let keeps = self.config.settings().quirks.keep_selection;
        let in_force = self.stream.as_ref().is_some_and(|stream| stream.answered || keeps);
        in_force && self.wanted.as_ref().is_some_and(Wanted::wants_any)
    }

    /// Returns whether the loads of a cluster will be reported, as far as is known.
    fn counts(&self, cluster: &ResourceName) -> bool {
        self.config.settings().quirks.count_before_asked
            || self.wanted.as_ref().is_some_and(|wanted| wanted.wants(cluster))
    }

    /// Removes an entry that has no handles, no calls in progress and no counts to report.
    fn settle(&mut self, entry: &Entry) {
        self.entries.remove_if_unused(entry, Counters::is_idle);
    }
}

impl Relabel for Reporter {
    /// Passes the time of the next report, and the beginnings of the windows. These are in the past, so a state that is
    /// made canonical has lost the lengths of its windows.
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        if let Some(Stream { due: Due::At(due), .. }) = &mut self.stream {
            due.relabel(by);
        }
        if let Some(under_way) = &mut self.under_way {
            under_way.made.relabel(by);
        }
        self.entries.for_each(|counters| counters.since.relabel(by));
    }
}

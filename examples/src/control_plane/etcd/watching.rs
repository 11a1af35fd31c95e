//! The changes of a prefix: all events of a revision at once.

use bytes::Bytes;

use super::generated::watch_request::RequestUnion;
use super::generated::{Event, WatchCreateRequest, WatchRequest, WatchResponse};

/// The progress of a watch.
#[derive(Debug)]
pub struct Watching {
    /// The first revision that was not taken yet.
    next: i64,
    /// The events of a response whose remaining fragments are still to come.
    fragments: Vec<Event>,
}

/// Why a watch ended.
#[derive(Debug, Eq, PartialEq)]
pub enum End {
    /// The history since the last revision is gone: the keys have to be listed again.
    Compacted,
    /// The server ended the watch.
    Canceled(String),
}

/// The content of a response.
#[derive(Debug, Eq, PartialEq)]
pub enum Step {
    /// The watch has begun.
    Begun,
    /// All events of some revisions, of none if empty; the latest revision is [`Watching::revision`].
    Events(Vec<Event>),
}

impl Watching {
    /// Creates the progress of a watch that begins after a revision.
    pub fn after(revision: i64) -> Self {
        Self { next: revision.saturating_add(1), fragments: Vec::new() }
    }

    /// Returns the request of a new watch, and forgets what an earlier watch left unfinished.
    pub fn request(&mut self, (key, range_end): (Bytes, Bytes)) -> WatchRequest {
        self.fragments.clear();
        // Progress notifications keep the next revision ahead of compactions though nothing changes.
        let create =
            WatchCreateRequest { key, range_end, start_revision: self.next, progress_notify: true, fragment: true };
        WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) }
    }

    /// Returns the last revision that was taken.
    pub fn revision(&self) -> i64 {
        self.next - 1
    }

    /// Takes a response. Returns the events of a revision once all of them are there, because they are one transaction.
    ///
    /// # Errors
    ///
    /// The end of the watch.
    pub fn take(&mut self, response: WatchResponse) -> Result<Step, End> {
        if response.compact_revision > 0 {
            return Err(End::Compacted);
        }
        if response.canceled {
            return Err(End::Canceled(response.cancel_reason));
        }
        if response.created {
            return Ok(Step::Begun); // its revision is that of the store: earlier events may still arrive
        }
        self.fragments.extend(response.events);
        if response.fragment {
            return Ok(Step::Events(Vec::new()));
        }
        let mut events = std::mem::take(&mut self.fragments);
        let revision = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
        // The header of a response with events may be ahead of them.
        let last = events.iter().map(revision).max().or(response.header.map(|header| header.revision));
        events.retain(|event| revision(event) >= self.next);
        self.next = self.next.max(last.unwrap_or_default().saturating_add(1));
        Ok(Step::Events(events))
    }
}

#[cfg(test)]
mod tests {
    use super::super::generated::{KeyValue, ResponseHeader};
    use super::*;

    fn event(mod_revision: i64) -> Event {
        Event { kv: Some(KeyValue { mod_revision, ..KeyValue::default() }), ..Event::default() }
    }

    fn response(header: i64, events: &[i64]) -> WatchResponse {
        let header = Some(ResponseHeader { revision: header, ..ResponseHeader::default() });
        WatchResponse { header, events: events.iter().map(|at| event(*at)).collect(), ..WatchResponse::default() }
    }

    fn revisions(step: Result<Step, End>) -> Vec<i64> {
        let Ok(Step::Events(events)) = step else { panic!("{step:?}") };
        events.iter().map(|event| event.kv.as_ref().expect("a key").mod_revision).collect()
    }

    #[test]
    fn the_next_revision_is_after_the_events_and_not_after_the_header() {
        let mut watching = Watching::after(5);
        assert_eq!(revisions(watching.take(response(90, &[6, 7, 7]))), [6, 7, 7]);
        assert_eq!(watching.revision(), 7);
        assert_eq!(revisions(watching.take(response(90, &[7, 8]))), [8], "seven was taken");
        assert_eq!(revisions(watching.take(response(90, &[]))), [] as [i64; 0]);
        assert_eq!(watching.revision(), 90, "progress");
    }

    #[test]
    fn fragments_are_one_change() {
        let mut watching = Watching::after(5);
        let fragment = |events| WatchResponse { fragment: true, ..response(7, events) };
        assert_eq!(revisions(watching.take(fragment(&[6, 7]))), [] as [i64; 0]);
        assert_eq!(watching.revision(), 5);
        assert_eq!(revisions(watching.take(fragment(&[7]))), [] as [i64; 0]);
        assert_eq!(revisions(watching.take(response(7, &[7]))), [6, 7, 7, 7]);
        // After a stream that ended between fragments, the next watch begins before them.
        watching.take(fragment(&[8])).expect("a fragment");
        let request = watching.request(Default::default()).request_union;
        let Some(RequestUnion::CreateRequest(create)) = request else { panic!("{request:?}") };
        assert_eq!(create.start_revision, 8);
        assert_eq!(revisions(watching.take(response(8, &[8, 8]))), [8, 8]);
    }

    #[test]
    fn the_created_response_does_not_advance_the_revision() {
        let mut watching = Watching::after(5);
        let begun = WatchResponse { created: true, ..response(90, &[]) };
        assert_eq!(watching.take(begun), Ok(Step::Begun));
        assert_eq!(watching.revision(), 5);
    }

    #[test]
    fn a_canceled_watch_ends_with_its_cause() {
        let mut watching = Watching::after(5);
        let compacted = WatchResponse { canceled: true, compact_revision: 8, ..response(9, &[]) };
        assert_eq!(watching.take(compacted), Err(End::Compacted));
        let reason = "etcdserver: permission denied".to_owned();
        let canceled =
            WatchResponse { canceled: true, created: true, cancel_reason: reason.clone(), ..response(9, &[]) };
        assert_eq!(watching.take(canceled), Err(End::Canceled(reason)));
    }
}

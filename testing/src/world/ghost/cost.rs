//! Cost: what a server reads of its source is bounded by what changed, what was asked for, and what is sent.

use xds_machine::ResourceName;

use super::super::{Made, Step};
use super::Ghost;
use crate::variant::{Request, Response};

/// The entries that a server reads at most for each reason: it looks a name up by itself, by its aliases, and for errors.
const READS: usize = 6;

/// The entries of the source that a stream has read, and those that it had reasons to read.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Cost {
    read: usize,
    reasons: usize,
}

impl Ghost {
    /// Records an event: a change of the store, or time that passes.
    pub fn note_cost_of_event(&mut self, setup: &Made, step: Step) {
        self.cost.reasons += match step {
            Step::Put { .. } | Step::Delete { .. } | Step::Fail { .. } | Step::Doubt { .. } => 1,
            Step::Know { .. } => setup.names.len(),
            Step::Tick | Step::Beat | Step::Pass | Step::Wait if setup.tells_ttls() => {
                setup.types.len() * setup.names.len()
            }
            _ => 0,
        };
    }

    /// Records a request that the server reads.
    pub fn note_cost_of_request(&mut self, setup: &Made, request: &Request<'_>) {
        self.cost.reasons += cost_of_request(setup, request);
    }

    /// Records a poll: the entries that were read, and the response. Panics if more was read than there were reasons.
    pub fn note_cost_of_poll(&mut self, setup: &Made, read: usize, response: Option<&Response>) {
        self.cost.read += read;
        self.cost.reasons += response.map_or(0, |of| {
            // Each portion of a push reads again what waits for the next.
            let waiting = if setup.response_limit.is_some() { setup.names.len() } else { 0 };
            waiting + of.resources.len() + of.removed.len() + of.errors.len() + of.beats.len()
        });
        let Cost { read, reasons } = self.cost;
        let most = READS * (reasons + setup.names.len());
        assert!(read <= most, "{read} entries of the source were read, and {reasons} were changed, asked for or sent");
    }
}

fn cost_of_request(setup: &Made, request: &Request<'_>) -> usize {
    let of = |name: &ResourceName| if name.as_str().ends_with('*') { setup.names.len() } else { 1 };
    let listed: usize = request.names.iter().chain(request.unsubscribe).map(of).sum();
    let is_first = request.nonce.is_empty() && request.names.is_empty() && request.unsubscribe.is_empty();
    let all = if is_first { setup.names.len() } else { 0 };
    1 + listed + all + request.initial.len()
}

//! Checks whether an etcd still has the history that was read before.

use super::generated::ResponseHeader;

/// The latest state that was read of a history.
#[derive(Clone, Copy, Debug)]
pub struct History {
    cluster: u64,
    revision: i64,
    term: u64,
}

impl History {
    pub fn of(header: &ResponseHeader) -> Self {
        Self { cluster: header.cluster_id, revision: header.revision, term: header.raft_term }
    }

    /// Notes that the history was read up to a revision.
    pub fn advance(&mut self, revision: i64) {
        self.revision = self.revision.max(revision);
    }

    /// Returns whether a linearizable answer belongs to the same history: an etcd whose data was lost, or restored from
    /// a snapshot, counts its revisions anew, so that the same number stands for another revision.
    pub fn goes_on(&self, header: &ResponseHeader) -> bool {
        header.cluster_id == self.cluster && header.revision >= self.revision && header.raft_term >= self.term
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_cluster_or_an_earlier_revision_or_term_is_another_history() {
        let header = |cluster_id, revision, raft_term| ResponseHeader { cluster_id, revision, raft_term, member_id: 1 };
        let mut history = History::of(&header(7, 10, 3));
        history.advance(12);
        for (other, goes_on) in [
            (header(7, 12, 3), true),
            (header(7, 30, 4), true),
            (header(8, 30, 4), false),
            (header(7, 11, 4), false),
            (header(7, 30, 2), false),
        ] {
            assert_eq!(history.goes_on(&other), goes_on, "{other:?}");
        }
    }
}

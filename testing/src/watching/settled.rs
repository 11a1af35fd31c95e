//! The checks of a settled state: each watcher knows the server's state, and the server knows the subscriptions.

use std::collections::BTreeSet;

use xds_machine::client::DataErrors;
use xds_machine::server::{Source, State};
use xds_machine::{Code, ResourceName, WILDCARD};

use super::ghost::{Known, NOTHING, Watcher};
use super::{BAD, Both, World, is_part, is_whole};

impl<V: Both> World<V> {
    /// Checks a settled state. Panics if a check fails.
    pub fn check_settled(&self) {
        assert!(self.ghost.judging.is_none(), "an update has no verdict");
        for (&watch, watcher) in &self.ghost.watchers {
            assert_eq!(self.ghost.owed(watch), NOTHING, "{watch:?} is to be told of this");
            assert_eq!(watcher.unfinished, 0);
        }
        let watched: BTreeSet<&ResourceName> = self.ghost.watchers.values().map(|watcher| &watcher.name).collect();
        let Some(server) = &self.server else {
            assert!(!self.up || watched.is_empty(), "somebody watches, and there is no stream");
            assert!(watched.is_empty() || self.ghost.away.is_some(), "nobody was told that the server is away");
            return;
        };
        let interest = server.interest(&self.fixed.type_url);
        let all = ResourceName::from(WILDCARD);
        let wildcard = interest.is_some_and(|interest| interest.wildcard()).then_some(&all);
        let names = interest.into_iter().flat_map(|interest| interest.names());
        assert_eq!(names.chain(wildcard).collect::<BTreeSet<_>>(), watched, "the server's view of who watches what");
        for watcher in self.ghost.watchers.values() {
            for name in self.fixed.names.iter().filter(|name| **name == watcher.name || is_part(name, &watcher.name)) {
                self.check_resource(watcher, name);
            }
        }
    }

    /// Compares a watcher's state of a resource with the server's.
    fn check_resource(&self, watcher: &Watcher, name: &ResourceName) {
        let by_name = watcher.name == *name;
        let Known { content, error } = watcher.told.get(name).cloned().unwrap_or_default();
        // Errors are remembered for held content, but not for a removed resource that was only reported to a wildcard
        // or collection.
        let told = by_name || content.is_some();
        let away = self.ghost.away.is_some();
        let is = |code: Code| error.as_ref().is_some_and(|error| error.is(code)) || away || !told;
        let (removes, keeps, drops) = match self.fixed.setup.data_errors {
            DataErrors::Delete => (true, false, false),
            DataErrors::Keep => (false, true, false),
            DataErrors::Drop => (true, false, true),
            other => panic!("no model of {other:?}"),
        };
        let type_url = &self.fixed.type_url;
        // Delta: the server reports the error of a wildcard or collection once, and any content clears it at the
        // client.
        if is_whole(name) && (V::DELTA || name.is_glob()) {
            return;
        }
        let seen = format!("{name}: {content:?} {error:?}");
        if let Some(status) = self.cache.error(type_url, name) {
            let (gone, denied) = (status.is(Code::NotFound), status.is(Code::PermissionDenied));
            let hears = by_name || V::DELTA || self.fixed.setup.full_state;
            assert!(
                !hears || error.as_ref() == Some(status) || away || !told || (gone && is(Code::NotFound)),
                "{seen}, {status}"
            );
            assert!(content.is_none() || !hears || !(gone && removes || denied && drops), "{seen}, {status}");
            return;
        }
        if is_whole(name) {
            assert!(error.is_none() || away, "{seen}, and nothing is wrong");
            return;
        }
        let there = match self.cache.get(type_url, name).state {
            State::Present(resource) => resource.body().last().copied(),
            _ => None,
        };
        match there {
            Some(BAD) => {
                assert!(is(Code::InvalidArgument), "{seen}, and is bad");
                assert!(content.is_none() || !drops, "{seen}, and is bad");
            }
            Some(_) => {
                assert_eq!(content, there, "{seen}");
                assert!(error.is_none() || away, "{seen}, and nothing is wrong");
            }
            None if V::DELTA || self.fixed.setup.full_state => {
                assert!(content.is_none() || keeps, "{seen}, and does not exist");
                assert!(is(Code::NotFound), "{seen}, and does not exist");
            }
            // SotW reports no removal of a partial type: the held resource stays.
            None => assert!(content.is_some() || error.is_some() || !by_name, "{seen}, and does not exist"),
        }
    }
}

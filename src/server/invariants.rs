//! What holds of a stream between any two calls, whatever the client sent.

use alloc::string::String;

use super::Server;
use super::config::Settings;
use super::source::Revision;
use super::subscription::Subscription;
use super::variant::{Size, Variant};
use crate::ensure::ensure;
use crate::name::ResourceName;

impl<V: Variant> Server<V> {
    /// Checks what must hold of the machine whatever happened to it: for tests, fuzz targets and models of one's own.
    /// Costs as much as the machine holds.
    ///
    /// # Errors
    ///
    /// What does not hold. That is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        let settings = self.config.settings();
        let limits = &settings.limits;
        let order =
            |a: &Subscription, b: &Subscription| (a.kind.place(), a.type_url()) < (b.kind.place(), b.type_url());
        ensure!(self.types.is_sorted_by(order), "types are not in push order, each once");
        ensure!(self.types.len() <= limits.types, "{} types, limit {}", self.types.len(), limits.types);
        let size = self.types.iter().fold(Size::default(), |size, subscription| size + subscription.size());
        ensure!(size.names <= limits.names_per_stream, "{} names, limit {}", size.names, limits.names_per_stream);
        let limit = limits.name_bytes_per_stream;
        let initial: usize = self.types.iter().map(Subscription::initial_bytes).sum();
        ensure!(initial <= limit, "{initial} bytes of initial versions, limit {limit}");
        ensure!(size.bytes <= limit, "{} bytes of names, limit {limit}", size.bytes);
        for subscription in &self.types {
            let checked = subscription.check(settings).and_then(|()| self.check_answer(subscription));
            checked.map_err(|what| alloc::format!("{}: {what}", subscription.type_url()))?;
            ensure!(subscription.beat.is_none() || self.ttl, "heartbeats for a client that knows no TTL");
            let limit = limits.stale_requests;
            ensure!(subscription.stale <= limit || self.closed, "{} stale requests, and open", subscription.stale);
        }
        // A request makes four actions at most: who, what of the last response, that this is too much, what is wanted.
        let (waiting, limit) = (self.actions.len(), limits.waiting_actions + 4);
        ensure!(waiting <= limit, "{waiting} actions wait, limit {limit}");
        ensure!(self.greeted || self.types.is_empty(), "types that nobody asked for");
        Ok(())
    }

    /// What is out has a nonce that this stream gave.
    fn check_answer(&self, of: &Subscription) -> Result<(), String> {
        let waits = of.out.is_some() || of.late.is_some();
        ensure!(!(waits && of.nonce.is_empty()), "a response with no nonce is out");
        if let Some((_, count)) = of.nonce.as_str().split_once('.') {
            let given = count.parse().is_ok_and(|count: u64| count <= self.sent);
            ensure!(given, "{} is no nonce of this stream, which gave {}", of.nonce, self.sent);
        }
        Ok(())
    }
}

impl Subscription {
    fn check(&self, settings: &Settings) -> Result<(), String> {
        let (limits, names) = (&settings.limits, &self.interest.names);
        let bytes: usize = names.iter().map(|name| name.as_str().len()).sum();
        ensure!(bytes == self.name_bytes, "{bytes} bytes of names, counted as {}", self.name_bytes);
        ensure!(names.len() <= limits.names_per_type, "{} names, limit {}", names.len(), limits.names_per_type);
        ensure!(self.retries.is_none() || settings.retry.is_some(), "a rejection is remembered for nothing");
        let longest = names.iter().map(|name| name.as_str().len()).max().unwrap_or(1);
        ensure!(longest <= limits.name_bytes, "a name of {longest} bytes, limit {}", limits.name_bytes);
        ensure!(names.iter().all(|name| !name.is_wildcard() && !name.as_str().is_empty()), "a name that is none");
        ensure!(self.progress.is_none() || self.sweep, "an answer goes on to what nobody asked");
        ensure!(!self.sweep || self.interest.wildcard, "an answer to a wildcard that nobody wants");
        let lingering = self.lingering().filter(|name| !names.contains(*name)).count();
        ensure!(self.leaving.names <= lingering, "{:?} left, and {lingering} are kept", self.leaving);
        let wanted = |name: &ResourceName| self.interest.covers(name.as_str());
        let astray = self.lingering().find(|name| !wanted(name) && (!self.gone_by_alias || self.owed.contains(*name)));
        ensure!(!self.gone_by_alias || !self.ahead.is_empty(), "a removal is ahead, and nothing is");
        ensure!(astray.is_none(), "{astray:?} is owed or ahead and not wanted");
        match self.cursor {
            None => {
                let begun = self.removed_to > Revision::default() || !self.ahead.is_empty() || self.left.is_some();
                ensure!(!begun && self.held_until.is_none(), "something was served, and nothing looked at");
            }
            Some(cursor) => {
                ensure!(
                    self.inexact || self.removed_to <= cursor,
                    "removals up to {:?}, all up to {cursor:?}",
                    self.removed_to
                );
                ensure!(
                    self.inexact || self.ahead.values().all(|&at| at >= cursor),
                    "a name is behind and counts as ahead"
                );
                let left = self.inexact || self.left.is_none_or(|left| left <= cursor);
                ensure!(left, "unsubscribed after what was served");
            }
        }
        if let Some(initial) = &self.initial {
            let (count, limit) = (initial.versions.len(), limits.initial_versions);
            ensure!(count <= limit, "{count} initial versions, limit {limit}");
        }
        Ok(())
    }
}

//! The invariants of a stream, which hold between any two calls, whatever the client sent.

use alloc::string::String;

use super::Server;
use super::config::Settings;
use super::size::Size;
use super::subscription::Subscription;
use super::variant::Variant;
use crate::ensure::ensure;

impl<V: Variant> Server<V> {
    /// Checks the invariants of the machine: for tests, fuzz targets and custom models. Costs the size of the
    /// machine.
    ///
    /// # Errors
    ///
    /// Returns the violated invariant, which is a bug in this crate.
    pub fn check_invariants(&self) -> Result<(), String> {
        let settings = self.config.settings();
        let limits = &settings.limits;
        let push_order = |of: &Subscription| (of.resource_type.push_order(), of.type_url().clone());
        let in_order = self.types.is_sorted_by(|a, b| push_order(a) < push_order(b));
        ensure!(in_order, "types are not in push order, each once");
        ensure!(self.types.len() <= limits.types, "{} types, limit {}", self.types.len(), limits.types);
        let size = self.types.iter().fold(Size::default(), |size, of| size + of.wanted.size());
        ensure!(size.names <= limits.names_per_stream, "{} names, limit {}", size.names, limits.names_per_stream);
        let limit = limits.name_bytes_per_stream;
        ensure!(size.bytes <= limit, "{} bytes of names, limit {limit}", size.bytes);
        let claims: usize = self.types.iter().filter_map(|of| of.pending.claims()).map(|claims| claims.bytes()).sum();
        ensure!(claims <= limit, "{claims} bytes of claims, limit {limit}");
        for of in &self.types {
            let checked = of.check(settings, self.sent);
            checked.map_err(|what| alloc::format!("{}: {what}", of.type_url()))?;
            ensure!(of.heartbeat.due().is_none() || self.ttl, "heartbeats for a client that knows no TTL");
            let (foreign, limit) = (of.exchange.foreign(), limits.stale_requests);
            ensure!(foreign <= limit || self.closed, "{foreign} stale requests, and open");
        }
        // A request causes four actions at most: the node, a verdict or stale request, the close, the subscription.
        let (waiting, limit) = (self.actions.len(), limits.waiting_actions.max(1) + 4);
        ensure!(waiting <= limit, "{waiting} actions wait, limit {limit}");
        Ok(())
    }
}

impl Subscription {
    fn check(&self, settings: &Settings, sent: u64) -> Result<(), String> {
        let (limits, names) = (&settings.limits, self.wanted.names());
        ensure!(names.len() <= limits.names_per_type, "{} names, limit {}", names.len(), limits.names_per_type);
        let longest = names.iter().map(|name| name.as_str().len()).max().unwrap_or(1);
        ensure!(longest <= limits.name_bytes, "a name of {longest} bytes, limit {}", limits.name_bytes);
        if let Some(claims) = self.pending.claims() {
            let (count, limit) = (claims.count(), limits.initial_versions);
            ensure!(count <= limit, "{count} claims, limit {limit}");
        }
        self.wanted.check()?;
        self.view.check()?;
        self.pending.check(&self.wanted)?;
        self.exchange.check(sent)
    }
}

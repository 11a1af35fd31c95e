//! Passes news of the source on to the groups, the log and the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xds_machine::{ResourceName, TypeUrl};

use super::groups::Groups;
use super::health::Health;
use super::log::{Event, List, Log, grouped, short};
use super::metrics::Metrics;
use super::news::{Contents, FileNews, Group, News};

/// Receives the news of the source.
pub struct Feed {
    pub groups: Arc<Groups>,
    pub log: Log,
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
    /// The name of the source in metrics.
    pub source: String,
    /// The types that had a resource once, and therefore have a metric.
    pub types: BTreeSet<TypeUrl>,
}

impl Feed {
    /// Serves the news. The log names it by `event`.
    pub fn take(&mut self, event: &str, contents: &impl Contents, news: &News) {
        let is_known =
            news.complete.is_superset(&std::iter::once(None).chain(contents.groups().cloned().map(Some)).collect());
        if !news.views.is_empty() || !news.complete.is_empty() {
            self.groups.take(contents, news);
            self.count(contents);
        }
        let unread = (!is_known && !news.unread.is_empty()).then(|| unread(&news.unread));
        self.health.note(news.is_there, is_known, unread);
        self.metrics.source_up(&self.source).set(if news.is_there { 1.0 } else { 0.0 });
        news.files.iter().for_each(|file| self.log_file(event, file));
        news.complaints.iter().for_each(|complaint| tracing::warn!("{complaint}"));
    }

    fn count(&mut self, contents: &impl Contents) {
        let counts = contents.counts();
        self.types.extend(counts.keys().map(|type_url| (*type_url).clone()));
        for type_url in &self.types {
            let count = counts.get(type_url).copied().unwrap_or_default();
            self.metrics.resources(type_url.as_str()).set(count as f64);
        }
    }

    fn log_file(&self, event: &str, file: &FileNews) {
        let source = file.source.to_string_lossy();
        let event = Event {
            source: Some(&source),
            type_url: Some(file.type_url.as_str().into()),
            names: Some(list(&file.names)),
            removed: Some(list(&file.removed)),
            ..Event::new(event)
        };
        self.log.event(event);
    }
}

/// Returns what was never read, by view, as a text.
fn unread(unread: &BTreeMap<Group, Vec<String>>) -> String {
    let of = |(group, files): (&Group, &Vec<String>)| match group {
        Some(group) => format!("{} for the group {group}", files.join(", ")),
        None => format!("{} for all nodes", files.join(", ")),
    };
    unread.iter().map(of).collect::<Vec<_>>().join("; ")
}

fn list(names: &[ResourceName]) -> List<'_> {
    List::of(names.len(), names.iter().map(ResourceName::as_str))
}

/// Returns how many resources there are of each type, as a text.
pub fn summary(counts: &BTreeMap<&TypeUrl, usize>) -> String {
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(type_url, count)| format!("{} {}", grouped(*count), short(type_url.as_str())))
        .collect();
    if counts.is_empty() { "nothing yet".into() } else { counts.join(", ") }
}

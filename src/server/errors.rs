//! The errors of a response, for resources that cannot be served (`resource_errors`; cncf/xds TP3).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use super::draft::Draft;
use super::of_type::OfType;
use super::resource::Resource;
use super::source::{Entry, Source, State};
use super::view::{Reach, View};
use super::wanted::Wanted;
use crate::error::{Code, Status};
use crate::message::ResourceError;
use crate::name::ResourceName;
use crate::revision::Revision;

/// Errors that a response has besides those of the names that it answers or removes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Which {
    /// No further errors.
    Answered,
    /// Errors that are news.
    News,
    /// All errors, because a wildcard is answered.
    All,
}

/// Returns the errors of answered and removed names, and of others as `which` selects.
pub(super) fn errors<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &View,
    draft: &Draft,
    which: Which,
) -> Vec<ResourceError> {
    if !of.has_errors() {
        return Vec::new(); // most types have none at any time
    }
    let has_error = |name: &&ResourceName| wanted.covers(name.as_str()) && of.error(name).is_some();
    let mut names: BTreeSet<ResourceName> =
        draft.answered.iter().chain(&draft.removed).filter(has_error).cloned().collect();
    if draft.answered.iter().any(ResourceName::is_glob) {
        let glob = |name: &ResourceName| wanted.globs().of(name.as_str());
        let answered = |name: &ResourceName| glob(name).is_some_and(|glob| draft.answered.contains(glob));
        let members = of.errors(Revision::default()).filter(|(name, entry)| is_unknown(entry) && answered(name));
        names.extend(members.map(|(name, _)| name.clone()));
    }
    if which != Which::Answered {
        each_error(of, wanted, view, which, |name, entry| {
            // An absent name is no part of the wildcard. Its removal may be deferred, and the error with it.
            let news = match is_unknown(&entry) {
                true => which == Which::All || view.is_error_news(name, &entry),
                false => {
                    let is_news = entry.since > view.removals_sent_to() && view.is_error_news(name, &entry);
                    is_news && draft.removals == Reach::All && !draft.defers
                }
            };
            if news {
                names.insert(name.clone());
            }
        });
    }
    named(of, names)
}

/// Returns the errors that explain what a complete response lacks, and those of the draft. A resource whose removal is
/// deferred is not missing yet: its error is sent with the removal.
pub(super) fn standing<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &View,
    deferred: &[Resource],
    drafted: Vec<ResourceError>,
) -> Vec<ResourceError> {
    let mut names: BTreeSet<ResourceName> = drafted.into_iter().map(|error| error.name).collect();
    let deferred_names = view.deferred().iter().map(Resource::name);
    let has_reason = |name: &&ResourceName| wanted.covers(name.as_str()) && of.error(name).is_some();
    names.extend(deferred_names.filter(has_reason).cloned());
    each_error(of, wanted, view, Which::All, |name, entry| {
        if is_unknown(&entry) {
            names.insert(name.clone());
        }
    });
    names.retain(|name| deferred.iter().all(|resource| resource.name() != name));
    named(of, names)
}

/// Returns the absent names whose error was sent: a client remembers an error until something else is sent, and in
/// SotW beyond the absence of the resource. Names that are not `answered` are included only if `all`. The returned
/// names are removed from the reported errors.
pub(super) fn ended<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &mut View,
    answered: &BTreeSet<ResourceName>,
    all: bool,
) -> BTreeSet<ResourceName> {
    let mut ended = BTreeSet::new();
    if view.reported_errors().is_empty() {
        return ended;
    }
    let mut reported = view.reported_errors().clone();
    reported.retain(|name| {
        if !wanted.covers(name.as_str()) || !(all || answered.contains(name)) {
            return true;
        }
        let state = of.get(name).state;
        if state == State::Absent {
            ended.insert(name.clone());
        }
        state == State::Unknown
    });
    view.set_reported_errors(reported);
    ended
}

/// Notes the names whose error is sent. Beyond `limit` unsubscribed names the stream has to end: none can be forgotten,
/// because a client that leaves a name out of one request and lists it in the next keeps the error (TP3).
pub(super) fn note_reported<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &mut View,
    errors: &[ResourceError],
    limit: usize,
) -> Result<(), Status> {
    let names = errors.iter().map(|error| &error.name);
    let names = names.filter(|name| !name.is_wildcard() && is_unknown(&of.get(name)));
    let mut reported = names.cloned().collect::<BTreeSet<ResourceName>>();
    if reported.is_empty() {
        return Ok(());
    }
    reported.extend(view.reported_errors().iter().cloned());
    let unsubscribed = || reported.iter().filter(|name| !wanted.covers(name.as_str())).count();
    if reported.len() > limit && unsubscribed() > limit {
        let message = format!("more than {limit} unsubscribed names of {} whose error was sent", of.type_url());
        return Err(Status::new(Code::ResourceExhausted, message));
    }
    view.set_reported_errors(reported);
    Ok(())
}

/// Returns the errors of these names; NOT_FOUND for a name without one.
pub(super) fn named<S: Source>(of: OfType<'_, S>, names: BTreeSet<ResourceName>) -> Vec<ResourceError> {
    let error = |name: ResourceName| {
        let gone = || Status::new(Code::NotFound, "the resource does not exist");
        let status = of.error(&name).cloned().unwrap_or_else(gone);
        ResourceError { name, status: Some(status) }
    };
    names.into_iter().map(error).collect()
}

fn is_unknown(entry: &Entry<'_>) -> bool {
    entry.state == State::Unknown
}

/// Visits the subscribed names with an error that is newer than the sent content, or all of them. Iterates over the
/// smaller of the errors and the subscribed names.
fn each_error<'s, S: Source>(
    of: OfType<'s, S>,
    wanted: &Wanted,
    view: &View,
    which: Which,
    mut take: impl FnMut(&ResourceName, Entry<'s>),
) {
    let since = match which {
        Which::All => Revision::default(),
        _ => match view.sent_to() {
            Some(sent_to) => sent_to,
            None => return,
        },
    };
    if wanted.wildcard() || wanted.is_few(of.errors(since)) {
        of.errors(since).filter(|(name, _)| wanted.covers(name.as_str())).for_each(|(name, entry)| take(name, entry));
    } else {
        let with_error = wanted.names().iter().filter(|name| of.error(name).is_some());
        with_error.for_each(|name| take(name, of.get(name)));
    }
}

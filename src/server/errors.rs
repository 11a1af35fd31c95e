//! What a response says of resources that can't be given (`resource_errors`; cncf/xds TP3).

use alloc::collections::BTreeSet;
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

/// What of the errors of a type a response is to have, apart from those of names that it answers or removes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Which {
    /// No others.
    Answered,
    /// Those that are news.
    News,
    /// All, for a wildcard is answered.
    All,
}

/// The errors of names that are answered, of those that are removed, and of others as `which` says.
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
            // What does not exist is no part of everything. Its removal may be held back, and the reason with it.
            let news = match is_unknown(&entry) {
                true => which == Which::All || view.is_error_news(name, &entry),
                false => view.is_error_news(name, &entry) && draft.removals == Reach::All && !draft.defers,
            };
            if news {
                names.insert(name.clone());
            }
        });
    }
    named(of, names)
}

/// The errors that stand for what is missing in a response that has everything, and of what is in the draft. What is gone and
/// deferred is not missing yet: the reason goes when it does.
pub(super) fn standing<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &View,
    deferred: &[Resource],
    told: Vec<ResourceError>,
) -> Vec<ResourceError> {
    let mut names: BTreeSet<ResourceName> = told.into_iter().map(|error| error.name).collect();
    let let_go = view.deferred().iter().map(Resource::name);
    let has_reason = |name: &&ResourceName| wanted.covers(name.as_str()) && of.error(name).is_some();
    names.extend(let_go.filter(has_reason).cloned());
    each_error(of, wanted, view, Which::All, |name, entry| {
        if is_unknown(&entry) {
            names.insert(name.clone());
        }
    });
    names.retain(|name| deferred.iter().all(|resource| resource.name() != name));
    named(of, names)
}

/// The errors of names that do not exist any more, of those whose error the client was told: it remembers that until it hears
/// otherwise, and in SotW beyond the absence of the resource. Of names that are not `answered` only if `all` are to be told.
/// Takes them out of what the client was told.
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

/// Remembers what is told to have an error, as much as it may.
pub(super) fn note_reported<S: Source>(
    of: OfType<'_, S>,
    wanted: &Wanted,
    view: &mut View,
    errors: &[ResourceError],
    limit: usize,
) {
    let names = errors.iter().map(|error| &error.name);
    let names = names.filter(|name| !name.is_wildcard() && is_unknown(&of.get(name)));
    let mut reported = names.cloned().collect::<BTreeSet<ResourceName>>();
    if !reported.is_empty() {
        reported.extend(view.reported_errors().iter().cloned());
        if reported.len() > limit {
            reported.retain(|name| wanted.covers(name.as_str()));
        }
        view.set_reported_errors(reported);
    }
}

/// What is said of these names: their errors, or that they do not exist.
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

/// The wanted names with an error: of those that came since the client was told, or of all. Looks at the fewer of those that
/// have one and those that are wanted.
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

//! The dump of a client: one item for each resource that is subscribed to or held.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::{self, Vec};
use core::iter::Peekable;

use bytes::Bytes;

use super::borrowed::{ErrorRef, ItemRef};
use super::clock::Clock;
use super::contents::Contents;
use crate::client::{ResourceState, ResourceStatus, Variant};
use crate::name::{ResourceName, TypeUrl, Version};
use crate::servers::{ServerId, Servers};

/// The text for an absence, which has no error of its own.
const ABSENT: &str = "does not exist";

/// A row of [`Client::states`](crate::client::Client::states).
type Row<'a> = (&'a TypeUrl, &'a ResourceName, ResourceState<'a>);

/// Returns the dump of a client from its [states](crate::client::Client::states), in their order, which is that of
/// types and names (R-CSDS-17). `contents` has the bodies to show, if any are shown (R-CSDS-15).
///
/// The wildcard and collections are no items, but the resources that they brought are (R-CSDS-04). An alias that stands
/// for a held resource is no item: the resource is an item under its own name.
pub fn dump<'a, I>(
    states: I,
    clock: &Clock,
    contents: Option<&'a Contents>,
) -> impl Iterator<Item = ItemRef<'a>> + use<'a, I>
where
    I: Iterator<Item = Row<'a>>,
{
    let (mut bodies, clock) = (Bodies { contents, of: None }, *clock);
    states.filter(is_item).map(move |(type_url, name, state)| ItemRef {
        type_url,
        name,
        version: state.version,
        contents: state.version.and_then(|_| bodies.take(type_url, name)),
        updated: state.updated.map(|at| clock.timestamp(at)),
        config_status: None,
        client_status: Some(state.status),
        error: error(&state, &clock).map(Box::new),
    })
}

/// Returns the dump of a client of several servers: one item for each resource, with the status at its authoritative
/// server, and with the version and time of the server that sent the held content.
pub fn dump_servers<'a, V: Variant>(
    servers: &'a Servers<V>,
    clock: &Clock,
    contents: Option<&'a Contents>,
) -> impl Iterator<Item = ItemRef<'a>> + use<'a, V> {
    if let (Some(only), None) = (servers.client(ServerId(0)), servers.client(ServerId(1))) {
        return Merged::One(dump(only.states(), clock, contents));
    }
    let rows = servers.states().filter(|(_, type_url, name, state)| is_item(&(type_url, name, *state)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(server, type_url, name, _)| (*type_url, *name, *server));
    let alike =
        rows.chunk_by(|(_, type_url, name, _), (_, other_type, other, _)| (type_url, name) == (other_type, other));
    let one = alike.filter_map(|alike| of_servers(servers, alike));
    let rows: Vec<Row<'a>> = one.collect();
    Merged::Several(dump(rows.into_iter(), clock, contents).collect::<Vec<_>>().into_iter())
}

/// Returns the state of a resource from its states at several servers.
fn of_servers<'a, V: Variant>(
    servers: &Servers<V>,
    alike: &[(ServerId, &'a TypeUrl, &'a ResourceName, ResourceState<'a>)],
) -> Option<Row<'a>> {
    let (_, type_url, name, mut state) = *match alike {
        [only] => only,
        _ => {
            let authoritative = servers.server_of(alike.first()?.2);
            alike.iter().find(|(server, ..)| Some(*server) == authoritative).or(alike.first())?
        }
    };
    if state.version.is_some() && state.updated.is_none() {
        // Another server sent the content.
        let sent = |(_, _, _, other): &(_, _, _, ResourceState<'a>)| Some((other.updated?, other.version));
        if let Some((updated, version)) = alike.iter().filter_map(sent).max_by_key(|(updated, _)| *updated) {
            (state.updated, state.version) = (Some(updated), version);
        }
    }
    if state.status == ResourceStatus::DoesNotExist {
        state.absence = state.absence.or_else(|| alike.iter().find_map(|(_, _, _, other)| other.absence));
    }
    Some((type_url, name, state))
}

/// Returns the dumps of several clients of one node as one, in the order of types and names. If several clients have a
/// resource, the item of the first client is kept.
pub fn merge<'a, I>(mut dumps: Vec<I>) -> impl Iterator<Item = ItemRef<'a>> + use<'a, I>
where
    I: Iterator<Item = ItemRef<'a>>,
{
    let last = dumps.pop();
    let mut items: Vec<ItemRef<'a>> = match (last, dumps.is_empty()) {
        (Some(only), true) => return Merged::One(only),
        (last, _) => dumps.into_iter().chain(last).flatten().collect(),
    };
    items.sort_by_key(|item| (item.type_url, item.name));
    items.dedup_by_key(|item| (item.type_url, item.name));
    Merged::Several(items.into_iter())
}

/// A dump that is made while it is read, or one that was sorted.
enum Merged<'a, I> {
    One(I),
    Several(vec::IntoIter<ItemRef<'a>>),
}

impl<'a, I: Iterator<Item = ItemRef<'a>>> Iterator for Merged<'a, I> {
    type Item = ItemRef<'a>;

    fn next(&mut self) -> Option<ItemRef<'a>> {
        match self {
            Self::One(dump) => dump.next(),
            Self::Several(items) => items.next(),
        }
    }
}

fn is_item((_, name, state): &Row<'_>) -> bool {
    let is_held = state.version.is_some(); // the wildcard and collections never are
    state.stands_for.is_none() && (is_held || !(name.is_wildcard() || name.is_glob()))
}

/// Returns the error of a resource, by its status (R-CSDS-05).
fn error<'a>(state: &ResourceState<'a>, clock: &Clock) -> Option<ErrorRef<'a>> {
    let reported = |details: &'a str, version: &'a Version, at| {
        Some(ErrorRef { details, version: Some(version), at: Some(clock.timestamp(at)) })
    };
    // No response reported a time-out, so there is neither version nor time.
    let silent = |details: &'a str| Some(ErrorRef { details, version: None, at: None });
    match (state.status, state.error, state.absence) {
        (ResourceStatus::DoesNotExist, Some(failure), _) => reported(ABSENT, &failure.version, failure.at),
        (ResourceStatus::DoesNotExist, None, Some(absence)) => reported(ABSENT, &absence.version, absence.at),
        (ResourceStatus::DoesNotExist, None, None) => silent(ABSENT),
        (ResourceStatus::TimedOut, Some(failure), _) => silent(&failure.status.message),
        (_, Some(failure), _) => reported(&failure.status.message, &failure.version, failure.at),
        (_, None, _) => None,
    }
}

/// Walks along the contents in order, and looks up a name that is not the next one.
struct Bodies<'a> {
    contents: Option<&'a Contents>,
    of: Option<OfType<'a>>,
}

/// The contents of a type.
struct OfType<'a> {
    type_url: &'a TypeUrl,
    all: &'a BTreeMap<ResourceName, Bytes>,
    ahead: Peekable<btree_map::Range<'a, ResourceName, Bytes>>,
}

impl<'a> Bodies<'a> {
    fn take(&mut self, type_url: &'a TypeUrl, name: &ResourceName) -> Option<&'a Bytes> {
        if self.of.as_ref().is_none_or(|of| of.type_url != type_url) {
            let all = self.contents.and_then(|contents| contents.of(type_url))?;
            self.of = Some(OfType { type_url, all, ahead: all.range::<ResourceName, _>(..).peekable() });
        }
        let OfType { all, ahead, .. } = self.of.as_mut()?;
        if ahead.peek().is_none_or(|(next, _)| *next != name) {
            *ahead = all.range::<ResourceName, _>(name..).peekable();
        }
        ahead.next_if(|(next, _)| *next == name).map(|(_, body)| body)
    }
}

//! What a client has: one item for each resource that is subscribed to or held.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use core::iter::Peekable;

use bytes::Bytes;

use super::clock::Clock;
use super::contents::Contents;
use super::message::{ErrorState, Item};
use crate::client::{ResourceState, ResourceStatus, Variant};
use crate::name::{ResourceName, TypeUrl, Version};
use crate::servers::{ServerId, Servers};

/// The words of an absence, which has no error of its own.
const ABSENT: &str = "does not exist";

/// A row of [`Client::states`](crate::client::Client::states).
type Row<'a> = (&'a TypeUrl, &'a ResourceName, ResourceState<'a>);

/// Returns the dump of a client from its [states](crate::client::Client::states), in the order of types and names
/// (R-CSDS-17). `contents`: the bodies to show, if any are (R-CSDS-15).
///
/// The wildcard and collections are no items; the resources that came by them are (R-CSDS-04). Nor is an alias that
/// stands for a held resource, which is an item under its own name.
pub fn dump<'a>(states: impl IntoIterator<Item = Row<'a>>, clock: &Clock, contents: Option<&'a Contents>) -> Vec<Item> {
    // Names are compared while they are at hand: to look at each item again costs more than to sort takes.
    let (mut last, mut is_sorted) = (None, true);
    let rows = states.into_iter().filter(is_item).inspect(|(type_url, name, _)| {
        is_sorted &= last.replace((*type_url, *name)).is_none_or(|last| last < (*type_url, *name));
    });
    let mut items = items(rows, clock, contents);
    if !is_sorted {
        items.sort_by(|a, b| (&a.type_url, &a.name).cmp(&(&b.type_url, &b.name)));
    }
    items
}

/// Returns the dump of a client of several servers: one item for each resource, with the status at its authoritative
/// server, and the version and time of the server that the held content is of.
pub fn dump_servers<'a, V: Variant>(
    servers: &'a Servers<V>,
    clock: &Clock,
    contents: Option<&'a Contents>,
) -> Vec<Item> {
    let rows = servers.states().filter(|(_, type_url, name, state)| is_item(&(type_url, name, *state)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(server, type_url, name, _)| (*type_url, *name, *server));
    let alike =
        rows.chunk_by(|(_, type_url, name, _), (_, other_type, other, _)| (type_url, name) == (other_type, other));
    let one = |alike: &[(ServerId, &'a TypeUrl, &'a ResourceName, ResourceState<'a>)]| {
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
    };
    items(alike.filter_map(one), clock, contents)
}

fn is_item((_, name, state): &Row<'_>) -> bool {
    !name.is_wildcard() && !name.is_glob() && state.stands_for.is_none()
}

/// Makes the items of rows, most of which are in order.
fn items<'a>(rows: impl Iterator<Item = Row<'a>>, clock: &Clock, contents: Option<&'a Contents>) -> Vec<Item> {
    let mut bodies = Bodies { contents, of: None };
    let item = |(type_url, name, state): Row<'a>| Item {
        type_url: type_url.clone(),
        name: name.clone(),
        version: state.version.cloned(),
        contents: state.version.and_then(|_| bodies.take(type_url, name)),
        updated: state.updated.map(|at| clock.timestamp(at)),
        config_status: None,
        client_status: Some(state.status),
        error: error(&state, clock).map(Box::new),
    };
    // Most items have content: a vector that grows would copy its items again and again.
    let mut items = Vec::with_capacity(contents.map_or(0, Contents::len));
    items.extend(rows.map(item));
    items
}

/// Returns the error of a resource, by its status (R-CSDS-05).
fn error(state: &ResourceState<'_>, clock: &Clock) -> Option<ErrorState> {
    let reported = |details: &str, version: &Version, at| {
        Some(ErrorState { details: details.into(), version: version.clone(), at: Some(clock.timestamp(at)) })
    };
    // No response told of a time-out.
    let silent = |details: &str| Some(ErrorState { details: details.into(), version: Version::default(), at: None });
    match (state.status, state.error, state.absence) {
        (ResourceStatus::DoesNotExist, Some(failure), _) => reported(ABSENT, &failure.version, failure.at),
        (ResourceStatus::DoesNotExist, None, Some(absence)) => reported(ABSENT, &absence.version, absence.at),
        (ResourceStatus::DoesNotExist, None, None) => silent(ABSENT),
        (ResourceStatus::TimedOut, Some(failure), _) => silent(&failure.status.message),
        (_, Some(failure), _) => reported(&failure.status.message, &failure.version, failure.at),
        (_, None, _) => None,
    }
}

/// Walks along the contents, and looks up those that are not next.
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
    fn take(&mut self, type_url: &'a TypeUrl, name: &ResourceName) -> Option<Bytes> {
        if self.of.as_ref().is_none_or(|of| of.type_url != type_url) {
            let all = self.contents.and_then(|contents| contents.of(type_url))?;
            self.of = Some(OfType { type_url, all, ahead: all.range::<ResourceName, _>(..).peekable() });
        }
        let OfType { all, ahead, .. } = self.of.as_mut()?;
        if ahead.peek().is_none_or(|(next, _)| *next != name) {
            *ahead = all.range::<ResourceName, _>(name..).peekable();
        }
        ahead.next_if(|(next, _)| *next == name).map(|(_, body)| body.clone())
    }
}

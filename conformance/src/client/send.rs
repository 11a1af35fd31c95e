//! The kit's responses.

use bytes::Bytes;

use super::item::kit_item;
use super::player::{Player, Stop, not_asked};
use super::session::Session;
use super::story::{Content, Send};
use crate::message::{Item, Response, Variant};
use crate::referee::Merit;

/// The kit's bad resource: a string of which most is missing.
const BAD: &[u8] = &[0x0a, 0xff, 0xff, 0xff];

impl Player {
    /// Sends a response of the story.
    pub(super) fn send(&mut self, session: &mut Session<'_>, send: &Send) -> Result<(), Stop> {
        let type_url = self.type_url(&send.type_name);
        if session.wanted.get(&type_url).is_some_and(|names| !names.is_empty()) && !session.wait_asked(&type_url) {
            return Err(not_asked(session, &type_url));
        }
        if send.if_asked {
            session.rest();
            if !send.items.iter().any(|item| self.has_asked_anew(session, &type_url, &self.name(&item.name))) {
                return Ok(());
            }
        }
        let mut response = Response { type_url: type_url.clone(), ..Response::default() };
        response.version = send.version.clone().unwrap_or_else(|| session.next_version());
        for item in &send.items {
            response.resources.push(self.item(session.variant, &type_url, send, &item.name, item.content));
        }
        for number in 0..send.fill {
            let name = format!("fill-{number}");
            response.resources.push(self.item(session.variant, &type_url, send, &name, Content::Revision(1)));
        }
        response.removed = send.removed.iter().map(|name| self.name(name)).collect();
        for item in &send.items {
            if let Content::Revision(revision) = item.content {
                self.revisions.insert(item.name.clone(), revision);
            }
        }
        let bad = send.items.iter().filter(|item| item.content == Content::Bad).count();
        // The client may ignore a resource that it has not asked for, even a bad one.
        let is_asked = |item: &super::story::Item| session.asks_for(&type_url, &self.name(&item.name));
        let is_ignored = send.items.iter().any(|item| item.content == Content::Bad && !is_asked(item));
        let merit = match bad {
            _ if send.open || is_ignored => Merit::Open,
            0 => Merit::Good,
            all if all == send.items.len() && send.removed.is_empty() => Merit::Bad,
            _ => Merit::Mixed,
        };
        self.sent_marks.insert(type_url.clone(), session.log.len());
        self.marks.insert(type_url, session.log.len());
        if !session.send(&mut response, send.nonce.as_deref(), merit) {
            return Err(Stop::Inconclusive("the client has no stream for it".into()));
        }
        if let Some(variable) = &send.bind {
            self.bound_at.insert(variable.clone(), session.log.len());
            self.bound.insert(variable.clone(), response);
        }
        Ok(())
    }

    fn item(&self, variant: Variant, type_url: &str, send: &Send, name: &str, content: Content) -> Item {
        let revision = match content {
            Content::Revision(revision) => revision,
            Content::Bad => 1_000 + self.bound.len() as u64,
            Content::Beat => self.revisions.get(name).copied().unwrap_or(0),
        };
        let name = self.name(name);
        let mut item = kit_item(type_url, &name, revision);
        match content {
            Content::Revision(_) => {}
            Content::Bad => (item.body, item.revision) = (Some(Bytes::from_static(BAD)), None),
            Content::Beat => (item.body, item.revision) = (None, None),
        }
        item.wrapped = variant == Variant::Sotw && (send.wrapped || send.ttl.is_some() || content == Content::Beat);
        item.ttl = send.ttl;
        send.any_type.iter().for_each(|any_type| item.any_type.clone_from(any_type));
        item
    }
}

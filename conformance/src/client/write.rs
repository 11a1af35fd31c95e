//! Messages as lines of a ladder.

use super::session::Session;
use crate::message::{Item, Request, Response, Variant};
use crate::resource;

/// The maximum number of names in a line.
const MOST_NAMES: usize = 12;

impl Session<'_> {
    /// Returns a name as the story has it.
    pub(super) fn short_name<'n>(&self, name: &'n str) -> &'n str {
        if self.prefix.is_empty() { name } else { name.strip_prefix(self.prefix.as_str()).unwrap_or(name) }
    }

    pub(super) fn short_names(&self, names: &[String]) -> String {
        let more = names.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        names.iter().take(MOST_NAMES).map(|name| self.short_name(name)).collect::<Vec<_>>().join(",") + &more
    }

    pub(super) fn write_request(&self, request: &Request) -> String {
        let mut line = resource::short(&request.type_url).to_owned();
        if self.variant == Variant::Sotw {
            line += &format!(" [{}] v={}", self.short_names(&request.names), request.version);
        } else {
            if !request.names.is_empty() {
                line += &format!(" +[{}]", self.short_names(&request.names));
            }
            if !request.unsubscribe.is_empty() {
                line += &format!(" -[{}]", self.short_names(&request.unsubscribe));
            }
            for (name, version) in request.initial.iter().take(MOST_NAMES) {
                line += &format!(" irv{{{}:{version}}}", self.short_name(name));
            }
        }
        line += &format!(" n={}", request.nonce);
        if let Some((code, message)) = &request.error {
            let message: String = message.chars().take(80).collect();
            line += &format!(" NACK {code} {message:?}");
        }
        line + if request.node.is_some() { " node" } else { "" }
    }

    pub(super) fn write_response(&self, response: &Response) -> String {
        let item = |item: &Item| {
            let content = match (&item.body, item.revision) {
                (None, _) => "^".to_owned(),
                (Some(_), Some(revision)) => format!("@{revision}"),
                (Some(_), None) => "!".to_owned(),
            };
            let ttl = item.ttl.map_or(String::new(), |ttl| format!("/{}ms", ttl.as_millis()));
            format!("{}{content}{ttl}", self.short_name(&item.name))
        };
        let more = response.resources.len().saturating_sub(MOST_NAMES);
        let mut items: Vec<String> = response.resources.iter().take(MOST_NAMES).map(item).collect();
        items.extend((more > 0).then(|| format!("and {more} more")));
        let mut line = format!("{} {{{}}}", resource::short(&response.type_url), items.join(","));
        if !response.removed.is_empty() {
            line += &format!(" rm[{}]", self.short_names(&response.removed));
        }
        if self.variant == Variant::Sotw {
            line += &format!(" v={}", response.version);
        }
        line + &format!(" n={}", response.nonce)
    }
}

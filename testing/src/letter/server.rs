//! A naive server that follows the letter of the specification: it compares the existing resources with those sent, and
//! sends the difference. The server sends more than necessary where that is allowed, and does not wait for ACKs.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use xds_machine::resource_type::ResourceType;
use xds_machine::{Code, Instant, Nonce, ResourceName, Version};

use super::asked::Asked;
use super::truth::{State, There, Truth, covers};
use super::wire::{Ask, Item, Said};

type Names = BTreeSet<ResourceName>;

/// The state of one type on a stream.
pub(super) struct Stream {
    delta: bool,
    /// Whether requests with an old nonce are ignored (SotW).
    strict: bool,
    kind: ResourceType,
    pub asked: Asked,
    sent: BTreeMap<ResourceName, Sent>,
    /// Names to be reported as not existing, if they do not exist.
    owed: Names,
    /// A response must be sent, even an empty one.
    reply: bool,
    errors: BTreeMap<ResourceName, u64>,
    count: u64,
    prefix: String,
    nonce: Nonce,
    /// The version of the resources sent, and the version that the client accepted.
    version: Version,
    accepted: Version,
    beat: Option<Instant>,
    /// Resources that were sent and are unknown: they get no heartbeats.
    unknown: Names,
}

struct Sent {
    /// If empty, the resource must be sent again.
    version: Version,
    aliases: BTreeSet<ResourceName>,
}

impl Stream {
    pub(super) fn new(kind: ResourceType, delta: bool, strict: bool, prefix: String) -> Self {
        Self {
            delta,
            strict,
            kind,
            asked: Asked::default(),
            sent: BTreeMap::new(),
            owed: Names::new(),
            reply: false,
            errors: BTreeMap::new(),
            count: 0,
            prefix,
            nonce: Nonce::default(),
            version: Version::default(),
            accepted: Version::default(),
            beat: None,
            unknown: Names::new(),
        }
    }

    pub(super) fn hear(&mut self, now: Instant, ask: &Ask, truth: &Truth) {
        let first = !self.asked.any;
        if ask.error.is_none() && !self.delta {
            self.accepted = ask.version.clone();
        }
        if self.strict && !self.delta && !first && ask.nonce != self.nonce {
            return;
        }
        for (name, version) in &ask.claims {
            let aliases = truth.there(name).map(|there| there.aliases.clone()).unwrap_or_default();
            self.sent.insert(name.clone(), Sent { version: version.clone(), aliases });
        }
        let again = self.asked.hear(ask, self.delta, self.kind.has_legacy_wildcard());
        let wanted = &self.asked.wanted;
        // The client no longer has unsubscribed resources.
        self.sent.retain(|name, sent| wanted.iter().any(|wish| covers(wish, name) || sent.aliases.contains(wish)));
        for (name, sent) in &mut self.sent {
            let is_again = again.iter().any(|wish| covers(wish, name) || truth.is_asked_by(wish, name));
            if (is_again || ask.leave.contains(name)) && !ask.claims.contains_key(name) {
                sent.version = Version::default();
            }
        }
        let covered = |name: &ResourceName| wanted.iter().any(|wish| covers(wish, name));
        self.errors.retain(|name, _| !again.contains(name) && covered(name));
        self.reply |= first && !wanted.is_empty() || (!self.delta && !again.is_empty());
        self.owed.extend(again);
        self.owed.extend(ask.leave.iter().cloned());
        self.owed.retain(|name| wanted.contains(name) || wanted.iter().any(|wish| covers(wish, name)));
        if !self.delta && first && !ask.version.as_str().is_empty() && ask.version == self.version_of(truth) {
            self.reply = false;
            self.owed.clear();
            self.version = ask.version.clone();
            for (name, there) in truth.present().filter(|(name, _)| truth.is_wanted(wanted, name)) {
                self.sent.insert(name.clone(), Sent::new(there));
            }
            self.beat = Some(now);
        } else if first && !ask.claims.is_empty() {
            self.beat = Some(now);
        }
    }

    /// Returns the next response. Some bits of `mood` split it, or add more than necessary.
    pub(super) fn poll(&mut self, now: Instant, truth: &Truth, mood: u8) -> Option<Said> {
        if !self.asked.any || !truth.known {
            return None;
        }
        let full = !self.delta && self.kind.is_full_state();
        let present = truth.present().filter(|(name, _)| truth.is_wanted(&self.asked.wanted, name));
        let wanted: BTreeMap<ResourceName, There> =
            present.map(|(name, there)| (name.clone(), there.clone())).collect();
        let news =
            |name: &ResourceName, there: &There| self.sent.get(name).is_none_or(|sent| sent.version != version(there));
        let mut items: Vec<Item> = Vec::new();
        items.extend(wanted.iter().filter(|(name, there)| news(name, there)).map(|(name, there)| item(name, there)));
        let is_gone = |name: &&ResourceName| {
            !wanted.contains_key(*name) && (truth.there(name).is_some() || truth.state(name) == State::Absent)
        };
        let mut removed: Names = self.sent.keys().filter(is_gone).cloned().collect();
        self.sent.retain(|name, _| self.delta || full || !removed.contains(name)); // SotW can't report its removal
        let not_found = |name: &&ResourceName| {
            !name.as_str().ends_with('*')
                && truth.state(name) == State::Absent
                && !truth.is_doubtful(name)
                && !stands(truth, name)
        };
        removed.extend(self.owed.iter().filter(not_found).cloned());
        let errors = self.new_errors(truth, full);
        let must =
            self.reply || !items.is_empty() || !errors.is_empty() || (!removed.is_empty() && (self.delta || full));
        // The TTL of a resource runs while the resource is unknown, or has a form without a TTL that is not sent.
        let mut back = self.unknown.iter().filter(|name| wanted.contains_key(*name));
        let has = |name: &ResourceName| self.sent.contains_key(name);
        let shortest = wanted.iter().filter(|(name, _)| has(name)).filter_map(|(_, there)| there.ttl).min();
        let is_late = back.any(|name| wanted[name].ttl.is_some())
            || shortest.is_some_and(|ttl| self.beat.is_none_or(|beat| beat > now + ttl / 3));
        self.note_unknown(truth);
        if !must {
            self.beat = if is_late { Some(now) } else { self.beat };
            return self.beats(now, truth, mood);
        }
        let mut part = false;
        if full || (!self.delta && mood % 4 == 0) {
            items = wanted.iter().map(|(name, there)| item(name, there)).collect();
        } else if mood % 8 == 1 && items.len() > 1 {
            items.truncate(1);
            part = !self.delta;
        } else if mood % 8 == 2 {
            let again = wanted.iter().find(|(name, _)| !items.iter().any(|item| item.name == **name));
            items.extend(again.map(|(name, there)| item(name, there)));
        }
        self.reply = false;
        removed.iter().for_each(|name| _ = self.sent.remove(name));
        self.sent.retain(|name, _| !full || wanted.contains_key(name));
        for item in &items {
            self.sent.insert(item.name.clone(), Sent::new(&wanted[&item.name]));
        }
        let failed = |name: &ResourceName| errors.iter().any(|(of, _)| of == name);
        self.sent.iter_mut().filter(|(name, _)| failed(name)).for_each(|(_, sent)| sent.version = Version::default());
        self.errors.retain(|name, _| !items.iter().any(|item| item.name == *name));
        self.errors.extend(errors.iter().map(|(name, _)| (name.clone(), truth.touched(name))));
        self.owed
            .retain(|name| !truth.known || matches!(truth.state(name), State::Unknown(_)) || truth.is_doubtful(name));
        self.version = self.version_of(truth);
        if part {
            self.version = format!("{}+", self.version).into(); // a client that claims it lacks the rest
        }
        let shortest = wanted.values().filter_map(|there| there.ttl).min();
        let next = shortest.map(|ttl| if is_late && !items.is_empty() { now } else { now + ttl / 3 });
        self.beat = self.beat.filter(|_| next.is_some()).map_or(next, |beat| next.map(|next| beat.min(next)));
        let removed = if self.delta { removed.into_iter().collect() } else { Vec::new() };
        Some(self.say(items, removed, errors))
    }

    fn note_unknown(&mut self, truth: &Truth) {
        let unknown = self.sent.keys().filter(|name| matches!(truth.state(name), State::Unknown(_)));
        self.unknown = unknown.cloned().collect();
    }

    /// Returns when the next heartbeats are due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.beat
    }

    fn beats(&mut self, now: Instant, truth: &Truth, mood: u8) -> Option<Said> {
        if self.beat.is_none_or(|due| due > now) || (!self.delta && self.accepted != self.version) {
            return None;
        }
        // Some clients take a resource that is left out for a removal, but heartbeats alone are allowed.
        let full = !self.delta && self.kind.is_full_state() && mood % 2 == 0;
        let has = |name: &ResourceName| self.sent.contains_key(name);
        let wanted = truth.present().filter(|(name, _)| truth.is_wanted(&self.asked.wanted, name));
        let alive = wanted.filter(|(name, there)| has(name) && (there.ttl.is_some() || full));
        let items: Vec<Item> =
            alive.map(|(name, there)| Item { content: None, aliases: Vec::new(), ..item(name, there) }).collect();
        let shortest = items.iter().filter_map(|item| item.ttl).min();
        self.beat = shortest.map(|ttl: Duration| now + ttl / 3);
        shortest.is_some().then(|| self.say(items, Vec::new(), Vec::new()))
    }

    fn say(&mut self, items: Vec<Item>, removed: Vec<ResourceName>, errors: Vec<(ResourceName, i32)>) -> Said {
        self.count += 1;
        self.nonce = format!("{}{}", self.prefix, self.count).into();
        let (type_url, version) = (self.kind.type_url().clone(), self.version.clone());
        Said { type_url, version, nonce: self.nonce.clone(), items, removed, errors }
    }

    /// Returns unsent errors; all of them if a response has to be complete.
    fn new_errors(&self, truth: &Truth, full: bool) -> Vec<(ResourceName, i32)> {
        let code = |name: &ResourceName| match truth.state(name) {
            State::Unknown(code) if code != 0 => Some((name.clone(), code)),
            // An error stands until the name is reported otherwise (TP3), and SotW can't report a removal.
            State::Absent if !self.delta && self.errors.contains_key(name) => {
                Some((name.clone(), Code::NotFound.number()))
            }
            _ => None,
        };
        // Also of a name that only a wildcard or collection covers now.
        let names: Names = self.asked.wanted.iter().chain(self.errors.keys()).cloned().collect();
        let errors: Vec<_> = names.iter().filter_map(code).collect();
        let is_new = |(name, _): &(ResourceName, i32)| self.errors.get(name) != Some(&truth.touched(name));
        if full && errors.iter().any(is_new) { errors } else { errors.into_iter().filter(is_new).collect() }
    }

    /// Returns a version of all existing subscribed resources.
    fn version_of(&self, truth: &Truth) -> Version {
        if self.delta {
            return "all".into();
        }
        let mut hasher = DefaultHasher::new();
        for (name, there) in truth.present().filter(|(name, _)| truth.is_wanted(&self.asked.wanted, name)) {
            (name, version(there)).hash(&mut hasher);
        }
        format!("{:x}", hasher.finish()).into()
    }
}

impl Sent {
    fn new(there: &There) -> Self {
        Self { version: version(there), aliases: there.aliases.clone() }
    }
}

fn stands(truth: &Truth, alias: &ResourceName) -> bool {
    truth.present().any(|(_, there)| there.aliases.contains(alias))
}

fn item(name: &ResourceName, there: &There) -> Item {
    let There { content, aliases, ttl } = there.clone();
    let aliases = aliases.into_iter().collect();
    Item { name: name.clone(), version: version(there), aliases, content: Some(content), ttl }
}

fn version(there: &There) -> Version {
    let aliases: Vec<&str> = there.aliases.iter().map(ResourceName::as_str).collect();
    format!("{}{}", there.content, aliases.join(",")).into()
}

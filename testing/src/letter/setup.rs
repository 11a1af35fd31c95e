//! The immutable part of a walk, and its steps, all drawn from one seed.

use std::time::Duration;

use xds_machine::resource_type::{ResourceType, TypeRegistry};
use xds_machine::{ResourceName, TypeUrl, WILDCARD, type_url};

use crate::random::Random;

/// The shape of a walk. Each feature is on in many walks and off in many.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub types: Vec<ResourceType>,
    /// The names of resources.
    pub names: Vec<ResourceName>,
    /// Further names for subscriptions: aliases, a collection, the wildcard.
    pub aliases: Vec<ResourceName>,
    pub many: Vec<ResourceName>,
    pub ttls: Ttls,
    pub response_limit: Option<usize>,
    pub tombstones: usize,
    pub page: Option<usize>,
    /// Removed SotW clusters stay until the resources that refer to them are removed.
    pub hold: bool,
    /// Nothing is known of a type before its first change.
    pub unknown: bool,
    /// The maximum number of subscribed names of a type.
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ttls {
    None,
    All,
    /// Resources have one of two TTLs, or none.
    Mixed,
}

/// A step. Names are numbers in [`Setup`], so that steps keep their meaning when others are removed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// The client subscribes to a name, or to the alias or collection of a number beyond the names.
    Subscribe {
        t: usize,
        n: usize,
    },
    Unsubscribe {
        t: usize,
        n: usize,
    },
    /// The client sends its subscriptions.
    Send {
        t: usize,
    },
    /// The server reads a request.
    Up,
    /// The server sends its pending response.
    Poll {
        mood: u8,
    },
    /// The client reads a response. A naive client ACKs or NACKs at once; `plain` adds no other changes to that
    /// request.
    Down {
        accept: bool,
        plain: bool,
    },
    /// The application judges an update: accepts it, or all but one resource, or nothing.
    Judge {
        t: usize,
        mood: u8,
    },
    Put {
        t: usize,
        n: usize,
        content: u8,
        aliases: u8,
    },
    Delete {
        t: usize,
        n: usize,
    },
    Fail {
        t: usize,
        n: usize,
        code: i32,
    },
    Doubt {
        t: usize,
        n: usize,
    },
    Know {
        t: usize,
    },
    Cut,
    /// A stream opens; the client claims none, all or some of its held resources.
    Open {
        claims: u8,
    },
    /// Time passes: to the next deadline if nothing is in flight, otherwise a little.
    Pass,
    /// All messages in flight arrive.
    Flow,
    /// Like `Flow`, with everything that falls due in some minutes; then the settled state is checked.
    Rest,
}

impl Step {
    /// Returns the type that the step concerns.
    pub(super) fn t(self) -> Option<usize> {
        match self {
            Self::Subscribe { t, .. } | Self::Unsubscribe { t, .. } | Self::Send { t } | Self::Judge { t, .. } => {
                Some(t)
            }
            Self::Put { t, .. } | Self::Delete { t, .. } | Self::Fail { t, .. } | Self::Doubt { t, .. } => Some(t),
            Self::Know { t } => Some(t),
            _ => None,
        }
    }
}

pub(super) const TTL: Duration = Duration::from_secs(90);

impl Setup {
    pub(super) fn draw(random: &mut Random, delta: bool) -> Self {
        let structured = random.one_in(4);
        let urls: &[&str] = match random.below(7) {
            _ if structured => &["T"],
            0 | 1 => &[type_url::CLUSTER],
            2 | 3 => &[type_url::ENDPOINT],
            4 => &[type_url::SECRET],
            5 => &[type_url::CLUSTER, type_url::LISTENER],
            _ => &[type_url::CLUSTER, type_url::ENDPOINT],
        };
        let (full, legacy) = (random.one_in(2), random.one_in(2));
        let known = TypeRegistry::default();
        let kind = |url: &&str| {
            let place = known.get(&(*url).into()).push_order();
            let kind = if full { ResourceType::full_state(*url) } else { ResourceType::partial(*url) };
            kind.with_legacy_wildcard(legacy).with_push_order(place)
        };
        let types: Vec<ResourceType> = urls.iter().map(kind).collect();
        let name = |letter: char| if structured { format!("xdstp:///T/{letter}") } else { letter.to_string() };
        let count = random.pick(&[2, 3, 3, 4, 6]);
        let names = ('a'..='z').take(count).map(|letter| name(letter).into()).collect();
        let choices = [["y", "z"], ["A", "y"], ["A", "B"]];
        let aliases = random.pick(&choices).into_iter().take(if delta { random.pick(&[0, 1, 2]) } else { 0 });
        let mut many: Vec<ResourceName> = Vec::new();
        many.extend((structured && random.below(4) > 0).then(|| "xdstp:///T/*".into()));
        many.extend((random.below(3) > 0).then(|| WILDCARD.into()));
        Self {
            types,
            names,
            aliases: aliases.map(Into::into).collect(),
            many,
            ttls: random.pick(&[Ttls::None, Ttls::None, Ttls::All, Ttls::Mixed]),
            response_limit: random.one_in(3).then(|| 1 + random.below(3)),
            tombstones: random.pick(&[10_000, 10_000, 1, 0]),
            page: random.one_in(3).then(|| 1 + random.below(3)),
            hold: random.one_in(3),
            unknown: random.one_in(5),
            limit: random.pick(&[100, 100, 100, 3]),
        }
    }

    /// Returns random steps, most of them of the protocol.
    pub(super) fn steps(&self, random: &mut Random, count: usize) -> Vec<Step> {
        let all = self.names.len() + self.aliases.len() + self.many.len();
        let unrest = random.pick(&[1, 1, 3, 8]);
        let mut steps = vec![Step::Open { claims: 0 }];
        for _ in 1..count {
            let t = random.below(self.types.len());
            let (n, wish) = (random.below(self.names.len()), random.below(all));
            // Most steps let messages flow; few of the others break the stream or reject.
            steps.push(match random.below(64) {
                0..9 => Step::Subscribe { t, n: wish },
                9..13 => Step::Unsubscribe { t, n: wish },
                13..24 => Step::Put { t, n, content: random.below(3) as u8, aliases: self.some_aliases(random) },
                24..29 => Step::Delete { t, n },
                29 if unrest > 1 => Step::Fail { t, n, code: random.pick(&[5, 14]) },
                30 if unrest > 1 => Step::Doubt { t, n },
                31 if self.unknown => Step::Know { t },
                32 if random.below(8) < unrest => Step::Cut,
                33 | 34 => Step::Open { claims: random.below(3) as u8 },
                35..37 => Step::Pass,
                37..41 => Step::Flow,
                41 if random.one_in(3) => Step::Rest,
                42..46 => Step::Send { t },
                46..50 => Step::Up,
                50..55 => Step::Poll { mood: random.below(256) as u8 },
                55..58 => Step::Judge { t, mood: random.below(8).max(5 - unrest.min(5)) as u8 },
                _ => Step::Down { accept: random.below(24) >= unrest, plain: random.one_in(3) },
            });
        }
        steps.push(Step::Rest);
        steps
    }

    /// Returns none, one or both aliases.
    fn some_aliases(&self, random: &mut Random) -> u8 {
        if self.aliases.is_empty() { 0 } else { random.below(1 << self.aliases.len()) as u8 }
    }

    pub(super) fn url(&self, t: usize) -> &TypeUrl {
        self.types[t].type_url()
    }

    pub(super) fn type_number(&self, url: &TypeUrl) -> usize {
        self.types.iter().position(|known| known.type_url() == url).expect("one of the types")
    }

    /// Returns a name for a subscription.
    pub(super) fn wish(&self, n: usize) -> ResourceName {
        let mut all = self.names.iter().chain(&self.aliases).chain(&self.many);
        all.nth(n).expect("one of the names").clone()
    }

    pub(super) fn ttl(&self, n: usize, content: u8) -> Option<Duration> {
        match self.ttls {
            Ttls::None => None,
            Ttls::All => Some(TTL),
            Ttls::Mixed => [Some(TTL), None, Some(TTL * 5 / 3)][(n + usize::from(content)) % 3],
        }
    }
}

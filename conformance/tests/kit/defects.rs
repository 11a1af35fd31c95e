//! Servers with one defect each, named by what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};

use xds_conformance::memory::Defect;
use xds_conformance::message::{Item, Request, Response};
use xds_conformance::resource;
use xds_conformance::run::{Op, StreamId};

/// A defect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wrong {
    ServesNothing,
    NeverPushes,
    EmptyNonces,
    OneVersion,
    OtherAnyType,
    SaysTwice,
    NeedsNodeAlways,
    OneTypeAStream,
    DiesOfUnknownTypes,
    NeedsTypeUrl,
    DiesOfNacks,
    DropsManyNames,
    DiesOfManyNames,
    ResendsOnAck,
    ResendsOnNack,
    GivesUpOnNack,
    ComparesVersions,
    ResendsOnNackOfItsVersion,
    IgnoresNamesOnAck,
    IgnoresNamesOnNack,
    OneRequestPerNonce,
    WildcardHidesNames,
    ResendsOnFewerNames,
    NeverForgetsNames,
    IgnoresEmptyLists,
    NoLegacyWildcard,
    LiteralWildcard,
    EmptyMeansAll,
    LateWildcardIgnored,
    ForgetsTheMissing,
    PartOfFullState,
    NeverRemoves,
    AnswersStale,
    LosesStaleNames,
    DropsOldNonces,
    TrustsVersions,
    DropsChanges,
    NoNotFound,
    IgnoresResubscribe,
    TellsMissingOnce,
    AnswersUnsubscribe,
    DiesOfPhantoms,
    IgnoresUnsubscribe,
    WildcardForEver,
    NoNamesMeansAll,
    ResendsAllOnChange,
    LosesRemovalsBeforeAck,
    DropsStale,
    DropsWhileWaiting,
    IgnoresClaims,
    DropsClaims,
    ForgetsClaimsOfTheWildcard,
    WaitsForClusters,
    ClustersLast,
    NoWarming,
    NoBeats,
    NeverWraps,
    NoAliases,
    NoGlobs,
    WildcardIsASnapshot,
    BeatsOnce,
    BeatsWithOtherVersion,
    NamedByItsAlias,
    HoldsAllBehindClusters,
    ClustersAlwaysFirst,
    SendsTheNewestChange,
    ReadsNamesAfterAck,
    BeatsWait,
}

/// A defect and its memory.
pub(crate) struct Seeded {
    wrong: Wrong,
    /// By stream and type: all responses, of which the last has the current nonce and version.
    sent: BTreeMap<(StreamId, String), Vec<Response>>,
    lists: BTreeMap<(StreamId, String), BTreeSet<String>>,
    answered: BTreeSet<String>,
    asked: BTreeSet<String>,
    told: BTreeSet<String>,
    late: Vec<Response>,
    first: BTreeMap<StreamId, String>,
    /// Names that are read with the next answer.
    deferred: Vec<String>,
    /// Whether clusters changed while their last response was not answered.
    clusters_wait: bool,
    /// Whether the last thing that happened was a change of the world.
    world: bool,
    dead: bool,
    again: u32,
}

impl Seeded {
    pub(crate) fn new(wrong: Wrong) -> Self {
        Self {
            wrong,
            sent: BTreeMap::new(),
            lists: BTreeMap::new(),
            answered: BTreeSet::new(),
            asked: BTreeSet::new(),
            told: BTreeSet::new(),
            late: Vec::new(),
            first: BTreeMap::new(),
            deferred: Vec::new(),
            clusters_wait: false,
            world: false,
            dead: false,
            again: 0,
        }
    }

    /// Returns whether the last response with clusters is not answered.
    fn waits_for_clusters(&self, stream: StreamId) -> bool {
        let last = self.last(stream, resource::type_url("cds"));
        last.is_some_and(|last| !self.answered.contains(&last.nonce))
    }

    fn last(&self, stream: StreamId, type_url: &str) -> Option<&Response> {
        self.sent.get(&(stream, type_url.to_owned()))?.last()
    }
}

impl Defect for Seeded {
    fn request(&mut self, stream: StreamId, request: &mut Request) -> bool {
        self.world = false;
        let key = (stream, request.type_url.clone());
        let first_of_stream = !self.first.contains_key(&stream);
        let only = self.first.entry(stream).or_insert_with(|| request.type_url.clone()).clone();
        let first = !self.lists.contains_key(&key);
        let last = self.last(stream, &request.type_url).cloned().unwrap_or_default();
        let current = !last.nonce.is_empty() && request.nonce == last.nonce;
        let stale = !first && !request.nonce.is_empty() && !current;
        let waits = !last.nonce.is_empty() && !self.answered.contains(&last.nonce);
        let before = self.lists.entry(key.clone()).or_default().clone();
        let answer = current && self.answered.insert(request.nonce.clone());
        self.asked.extend(request.names.iter().cloned());
        let many = request.names.len() > 5_000;
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        let (nack, has_all) = (request.error.is_some(), request.names.iter().any(|name| name == "*"));
        let takes = match self.wrong {
            Wrong::NeedsNodeAlways => request.node.is_some() || answer,
            Wrong::OneTypeAStream => only == request.type_url,
            Wrong::DiesOfUnknownTypes => {
                self.dead |= request.type_url.contains("Unknown");
                !self.dead
            }
            Wrong::NeedsTypeUrl => !request.type_url.is_empty(),
            Wrong::DiesOfNacks | Wrong::GivesUpOnNack => {
                self.dead |= nack;
                !self.dead
            }
            Wrong::DropsManyNames => !many,
            Wrong::DiesOfManyNames => {
                self.dead |= many;
                !self.dead
            }
            Wrong::IgnoresNamesOnAck if answer && !nack => {
                request.names = list(&before);
                true
            }
            Wrong::IgnoresNamesOnNack if nack => {
                request.names = list(&before);
                true
            }
            Wrong::OneRequestPerNonce => first || answer,
            Wrong::WildcardHidesNames if has_all => {
                request.names = vec!["*".into()];
                true
            }
            Wrong::NeverForgetsNames => {
                request
                    .names
                    .extend(before.iter().filter(|name| !request.names.contains(name)).cloned().collect::<Vec<_>>());
                true
            }
            Wrong::IgnoresEmptyLists if request.names.is_empty() => {
                request.names = list(&before);
                true
            }
            Wrong::NoLegacyWildcard => !(first && request.names.is_empty()),
            Wrong::LiteralWildcard => {
                request.names.iter_mut().filter(|name| *name == "*").for_each(|name| *name = "star".into());
                !(first && request.names.is_empty())
            }
            Wrong::EmptyMeansAll if request.names.is_empty() => {
                request.names = vec!["*".into()];
                true
            }
            Wrong::LateWildcardIgnored => {
                if !first {
                    request.names.retain(|name| name != "*");
                    request.unsubscribe.retain(|name| name != "*");
                }
                true
            }
            Wrong::LosesStaleNames if stale => {
                self.told.extend(request.names.iter().cloned());
                return false;
            }
            Wrong::LosesStaleNames => {
                let told = &self.told;
                request.names.retain(|name| before.contains(name) || !told.contains(name));
                true
            }
            Wrong::DropsOldNonces => !first || request.nonce.is_empty(),
            Wrong::TrustsVersions => !first || (request.version.is_empty() && request.initial.is_empty()),
            Wrong::IgnoresResubscribe => {
                request.names.retain(|name| !before.contains(name));
                true
            }
            Wrong::DiesOfPhantoms => {
                self.dead |= request.unsubscribe.iter().any(|name| !before.contains(name));
                !self.dead
            }
            Wrong::IgnoresUnsubscribe => {
                request.unsubscribe.clear();
                true
            }
            Wrong::WildcardForEver => {
                request.unsubscribe.retain(|name| name != "*");
                true
            }
            Wrong::NoNamesMeansAll if !request.unsubscribe.is_empty() => {
                let left = before.iter().any(|name| !request.unsubscribe.contains(name));
                request.names.extend((!left).then(|| "*".to_owned()));
                true
            }
            Wrong::DropsStale => !stale,
            Wrong::DropsWhileWaiting => !(waits && request.nonce.is_empty()),
            Wrong::ReadsNamesAfterAck if waits && request.nonce.is_empty() => {
                self.deferred.append(&mut request.names);
                false
            }
            Wrong::ReadsNamesAfterAck if current => {
                request.names.append(&mut self.deferred);
                true
            }
            Wrong::IgnoresClaims => {
                request.initial.clear();
                true
            }
            Wrong::DropsClaims => request.initial.is_empty(),
            Wrong::ForgetsClaimsOfTheWildcard => {
                let named = |name: &&String| request.names.contains(name);
                self.told.extend(request.initial.keys().filter(|name| !named(name)).cloned());
                true
            }
            Wrong::NoAliases => !request.names.iter().any(|name| name.ends_with("other")),
            Wrong::NoGlobs => !request.names.iter().any(|name| name.ends_with("/*")),
            _ => true,
        };
        let lists = self.lists.entry(key).or_default();
        if request.unsubscribe.is_empty()
            && (!request.names.is_empty() || !request.version.is_empty())
            && !first_of_stream
        {
            lists.extend(request.names.iter().cloned());
        } else {
            lists.extend(request.names.iter().cloned());
            lists.retain(|name| !request.unsubscribe.contains(name));
        }
        takes
    }

    fn response(&mut self, stream: StreamId, response: &mut Response) -> bool {
        let key = (stream, response.type_url.clone());
        let before: Vec<_> =
            self.sent.get(&key).into_iter().flatten().flat_map(|sent| sent.resources.clone()).collect();
        let goes = match self.wrong {
            Wrong::ServesNothing => false,
            Wrong::NeverPushes => !self.world,
            Wrong::DiesOfNacks | Wrong::GivesUpOnNack => !self.dead,
            Wrong::EmptyNonces => {
                response.nonce.clear();
                true
            }
            Wrong::OneVersion => {
                response.version = "1".into();
                response.resources.iter_mut().for_each(|item| item.version = "1".into());
                true
            }
            Wrong::OtherAnyType => {
                response.resources.iter_mut().for_each(|item| item.any_type += "2");
                true
            }
            Wrong::SaysTwice => {
                response.resources.extend(response.resources.first().cloned());
                true
            }
            Wrong::PartOfFullState => {
                response.resources.retain(|item| !before.contains(item));
                true
            }
            Wrong::NoNotFound => {
                response.removed.clear();
                !response.resources.is_empty()
            }
            Wrong::ForgetsClaimsOfTheWildcard => {
                response.removed.retain(|name| !self.told.contains(name));
                true
            }
            Wrong::TellsMissingOnce => {
                response.removed.retain(|name| self.told.insert(name.clone()));
                !response.resources.is_empty() || !response.removed.is_empty()
            }
            Wrong::WaitsForClusters => {
                !(self.waits_for_clusters(stream) && response.type_url == resource::type_url("eds"))
            }
            Wrong::HoldsAllBehindClusters => {
                let is_cluster = response.type_url == resource::type_url("cds");
                is_cluster || !(self.clusters_wait && self.waits_for_clusters(stream))
            }
            Wrong::ClustersAlwaysFirst
                if response.type_url != resource::type_url("cds") && self.waits_for_clusters(stream) =>
            {
                self.late.push(response.clone());
                return false;
            }
            Wrong::SendsTheNewestChange => {
                let known = |item: &Item| before.iter().any(|old| old.name == item.name);
                let newest = response.resources.iter().filter_map(|item| item.revision).max();
                let all_known = response.resources.iter().all(known);
                response.resources.retain(|item| !all_known || item.revision == newest);
                true
            }
            Wrong::BeatsWait => {
                let answered = before.is_empty()
                    || self.last(stream, &response.type_url).is_some_and(|last| self.answered.contains(&last.nonce));
                // A server may also send the content again to renew a TTL.
                let is_known =
                    |item: &Item| before.iter().any(|old| old.name == item.name && old.revision == item.revision);
                let renews = |item: &Item| item.ttl.is_some() && (item.body.is_none() || is_known(item));
                answered || response.resources.is_empty() || !response.resources.iter().all(renews)
            }
            Wrong::ClustersLast if self.world && response.type_url == resource::type_url("cds") => {
                self.late.push(response.clone());
                return false;
            }
            Wrong::NoWarming => !response.resources.iter().all(|item| before.contains(item)),
            Wrong::WildcardIsASnapshot => {
                let known =
                    |name: &String| self.asked.contains(name) || before.iter().any(|item: &Item| item.name == *name);
                let is_new = response.resources.iter().all(|item| !known(&item.name));
                !(self.world && is_new && response.removed.is_empty())
            }
            Wrong::BeatsOnce => {
                let is_beat = response.resources.iter().any(|item| item.body.is_none());
                !is_beat || !before.iter().any(|item| item.body.is_none())
            }
            Wrong::BeatsWithOtherVersion => {
                let beats = response.resources.iter_mut().filter(|item| item.body.is_none());
                beats.for_each(|item| item.version = "beat".into());
                true
            }
            Wrong::NamedByItsAlias => {
                for item in response.resources.iter_mut().filter(|item| !item.aliases.is_empty()) {
                    item.name = item.aliases.remove(0);
                }
                true
            }
            Wrong::NoBeats => response.resources.iter().any(|item| item.body.is_some()),
            Wrong::NeverWraps => {
                response.resources.iter_mut().for_each(|item| item.wrapped = false);
                true
            }
            _ => true,
        };
        if goes {
            self.sent.entry(key).or_default().push(response.clone());
        }
        goes
    }

    fn more(&mut self, stream: StreamId, request: Option<&Request>, sent: &[Response]) -> Vec<Response> {
        let is_cluster = |response: &Response| response.type_url == resource::type_url("cds");
        let keeps = self.wrong == Wrong::ClustersAlwaysFirst
            && (self.waits_for_clusters(stream) || sent.iter().any(is_cluster));
        let late: Vec<Response> = if keeps { Vec::new() } else { std::mem::take(&mut self.late) };
        if !late.is_empty() {
            return late;
        }
        let Some(request) = request else {
            let all = self.wrong == Wrong::ResendsAllOnChange && !sent.is_empty();
            let again = sent.first().filter(|_| all).map(|response| (stream, response.type_url.clone()));
            let mut again: Vec<Response> = again.and_then(|key| self.sent.get(&key).cloned()).unwrap_or_default();
            again.truncate(1);
            return again.into_iter().map(|response| self.once_more(response)).collect();
        };
        let Some(last) = self.last(stream, &request.type_url).cloned() else { return Vec::new() };
        let current = request.nonce == last.nonce;
        let nack = request.error.is_some();
        let old = !request.nonce.is_empty() && !current;
        let all = self.sent.get(&(stream, request.type_url.clone())).into_iter().flatten();
        let told = all.flat_map(|response| &response.resources).any(|item| !request.names.contains(&item.name));
        let again = match self.wrong {
            Wrong::ResendsOnAck => current && !nack,
            Wrong::ResendsOnNack => nack,
            Wrong::ComparesVersions => current && request.version != last.version,
            Wrong::ResendsOnNackOfItsVersion => nack && request.version == last.version,
            Wrong::ResendsOnFewerNames => current && sent.is_empty() && told,
            Wrong::AnswersStale => old,
            Wrong::AnswersUnsubscribe => !request.unsubscribe.is_empty(),
            _ => false,
        };
        if again && self.again < 50 { vec![self.once_more(last)] } else { Vec::new() }
    }

    fn change(&mut self, op: &Op) -> bool {
        self.world = true;
        match (self.wrong, op) {
            (Wrong::NeverRemoves, Op::Delete { .. }) => false,
            (Wrong::ForgetsTheMissing, Op::Put(put)) => !(put.revision == 1 && self.asked.contains(&put.name)),
            (Wrong::HoldsAllBehindClusters, Op::Put(put)) if put.type_url == resource::type_url("cds") => {
                let streams: Vec<StreamId> = self.first.keys().copied().collect();
                self.clusters_wait = streams.into_iter().any(|stream| self.waits_for_clusters(stream));
                true
            }
            (Wrong::DropsChanges, Op::Put(put)) => put.revision <= 20,
            (Wrong::LosesRemovalsBeforeAck, Op::Delete { .. }) => {
                self.sent.values().flatten().all(|response| self.answered.contains(&response.nonce))
            }
            _ => true,
        }
    }
}

impl Seeded {
    fn once_more(&mut self, mut response: Response) -> Response {
        self.again += 1;
        response.nonce = format!("again-{}", self.again);
        response
    }
}

//! The referee of a server: one stream, both variants.

mod of_type;
mod reads;
mod rests;
mod shape;

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::type_url;

use self::of_type::OfType;
use super::{Complaint, Rule, World};
use crate::message::{Request, Response, Variant};

/// The referee of a server, for one stream.
///
/// The caller reports each request of the kit ([`request`](Self::request)), each response of the server
/// ([`response`](Self::response)), each change of the server's resources ([`put`](Self::put),
/// [`delete`](Self::delete)), and the points at which the server has nothing left to send ([`rest`](Self::rest)).
///
/// ```
/// use xds_conformance::message::{Request, Response, Variant};
/// use xds_conformance::referee::{Rule, ServerReferee, World};
///
/// let eds = xds_machine::type_url::ENDPOINT;
/// let mut referee = ServerReferee::new(Variant::Delta, None, World::controlled(""));
/// referee.request(&Request { type_url: eds.into(), names: vec!["a".into()], ..Request::default() });
/// let silence = referee.rest(true); // the server was given all the time that it needs, and said nothing
/// assert_eq!(silence[0].rule, Rule::Unanswered);
/// ```
#[derive(Clone, Debug)]
pub struct ServerReferee {
    variant: Variant,
    /// The only type of the stream, if it has only one.
    single: Option<String>,
    world: World,
    types: BTreeMap<String, OfType>,
    /// By type: the revision of each name at a version, on the stream before.
    types_before: BTreeMap<String, BTreeMap<(String, String), u64>>,
    /// The nonces by type: on ADS each type is a stream of its own ("each resource type is treated as a separate
    /// logical stream").
    nonces: BTreeSet<(String, String)>,
}

impl ServerReferee {
    /// Makes the referee of a new stream: aggregated, or of a `single` type. `world` has the resources that the server
    /// may have now.
    pub fn new(variant: Variant, single: Option<&str>, world: World) -> Self {
        let single = single.map(str::to_owned);
        let (types, types_before) = (BTreeMap::new(), BTreeMap::new());
        Self { variant, single, world, types, types_before, nonces: BTreeSet::new() }
    }

    /// Takes over the revisions at the versions of the client's stream before.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for (type_url, old) in &before.types {
            let of = self.types_before.entry(type_url.clone()).or_default();
            of.extend(old.past_versions.iter().chain(&old.versions).map(|(key, revision)| (key.clone(), *revision)));
        }
        self
    }

    /// Records a request that was sent.
    pub fn request(&mut self, request: &Request) {
        let type_url = match &self.single {
            Some(single) if request.type_url.is_empty() => single.clone(),
            _ => request.type_url.clone(),
        };
        let first = !self.types.contains_key(&type_url);
        let of = self.types.entry(type_url.clone()).or_insert_with(|| {
            let past_versions = self.types_before.remove(&type_url).unwrap_or_default();
            OfType { past_versions, ..OfType::new(&type_url) }
        });
        match self.variant {
            Variant::Sotw => of.read_list(request, first),
            Variant::Delta => of.read_changes(request, first),
        }
    }

    /// Judges a response that was received.
    pub fn response(&mut self, response: &Response) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let mut complain = |rule, what: String| {
            complaints.push(Complaint { rule, type_url: response.type_url.clone(), what });
        };
        if response.nonce.is_empty() {
            complain(Rule::Nonce, "a response without a nonce".into());
        } else if !self.nonces.insert((response.type_url.clone(), response.nonce.clone())) {
            complain(Rule::NonceAgain, format!("nonce {:?} for a second time on the stream", response.nonce));
        }
        shape::check(self.variant, response, &mut complain);
        let Some(of) = self.types.get_mut(&response.type_url) else {
            complain(Rule::TypeNotAsked, "a response of a type that was not asked for".into());
            return complaints;
        };
        of.receive(self.variant, response, &self.world, &mut complain);
        self.rewarm(response);
        complaints
    }

    /// Gives a reason, but no duty, to send the children of a parent: a client that receives a parent may need its
    /// children again ("Resource warming").
    fn rewarm(&mut self, response: &Response) {
        let child = match response.type_url.as_str() {
            type_url::CLUSTER => type_url::ENDPOINT,
            type_url::LISTENER => type_url::ROUTE,
            type_url::ROUTE => type_url::VIRTUAL_HOST,
            _ => return,
        };
        if let Some(of) = self.types.get_mut(child) {
            of.give_reason_for_all();
        }
    }

    /// Records that the control was told to put a resource, which the server may know now or later.
    pub fn put(&mut self, type_url: &str, name: &str, revision: u64) {
        self.world.put(type_url, name, revision);
        self.changed(type_url, name);
    }

    /// Records that the control was told to delete a resource.
    pub fn delete(&mut self, type_url: &str, name: &str) {
        self.world.delete(type_url, name);
        self.changed(type_url, name);
    }

    /// Records that nothing is known of a resource any more.
    pub fn forget(&mut self, type_url: &str, name: &str) {
        self.world.forget(type_url, name);
        self.changed(type_url, name);
    }

    fn changed(&mut self, type_url: &str, name: &str) {
        if let Some(of) = self.types.get_mut(type_url) {
            of.give_reason_for(name);
        }
    }

    /// Judges the silence: the server has read every request, and will send nothing more unless something happens. With
    /// `settled`, the server also has taken all changes ([`put`](Self::put), [`delete`](Self::delete)).
    ///
    /// Nothing is owed for a type that has a response without an answer of the kit: a server may wait for the ACK.
    pub fn rest(&mut self, settled: bool) -> Vec<Complaint> {
        if settled {
            self.world.settle();
        }
        let mut complaints = Vec::new();
        for (type_url, of) in &mut self.types {
            let mut complain = |rule, what| {
                complaints.push(Complaint { rule, type_url: type_url.clone(), what });
            };
            of.rest(self.variant, type_url, &self.world, &mut complain);
        }
        complaints
    }

    /// Returns the nonces of a type that the kit has not answered.
    pub fn unanswered(&self, type_url: &str) -> &[String] {
        self.types.get(type_url).map_or(&[], |of| of.unanswered.as_slice())
    }
}

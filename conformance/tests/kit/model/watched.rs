//! A world of the model check under the eyes of the referees of both sides.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use xds_conformance::message::{Request, Response};
use xds_conformance::referee::{ClientReferee, Complaint, Rule, ServerReferee, Wanted, World as Known};
use xds_machine::ResourceName;
use xds_machine_testing::search::{Model, catch};
use xds_machine_testing::world::{Made, Step, World};

use crate::walker::Judged;

/// The referees of a client's last stream, whether it is open or not.
#[derive(Clone, Debug, Default)]
struct Referees {
    /// Of the server, at the client's end of the wires.
    server: Option<Arc<ServerReferee>>,
    /// Of the client, at the server's end.
    client: Option<Arc<ClientReferee>>,
}

/// A world, and what the referees know of it.
///
/// States are compared by the world alone. So the referees judge every state and every transition of the model, with
/// what they know from the shortest trace to it. The world keeps its own nonces, because the referees do.
#[derive(Clone)]
pub(crate) struct Watched<V: Judged> {
    world: World<V>,
    /// The resources of the store.
    known: Arc<Known>,
    referees: Vec<Referees>,
    /// The rules whose complaints are no fault of the search.
    may_complain: u128,
    /// The rules that the referees complained of, a bit each.
    complained: u128,
    /// The model's own checks found a seeded bug here: what follows is no conversation of its machines.
    over: bool,
    /// The hash of the canonical world.
    print: u64,
}

/// The state before a step, which the state afterwards is compared with.
struct Before {
    /// The messages on the wires of the client that the step concerns.
    up: usize,
    down: usize,
    contents: Vec<(Option<u8>, bool)>,
}

impl Before {
    fn new<V: Judged>(world: &World<V>, step: Step) -> Self {
        let (up, down) = step.client().map_or((0, 0), |c| (world.pairs[c].up.len(), world.pairs[c].down.len()));
        Self { up, down, contents: contents(world, step) }
    }
}

/// Returns the content of each resource of the type that the step changes, and whether it has an error instead, if it
/// changes the store.
fn contents<V: Judged>(world: &World<V>, step: Step) -> Vec<(Option<u8>, bool)> {
    match step {
        Step::Put { t, .. } | Step::Delete { t, .. } => {
            let content = |name: &ResourceName| world.content(t, name).filter(|_| is_resource(name));
            let fails = |name: &ResourceName| world.store.error(&world.setup, t, name).is_some();
            world.setup.names.iter().map(|name| (content(name), fails(name))).collect()
        }
        _ => Vec::new(),
    }
}

fn bit(rule: Rule) -> u128 {
    let at = Rule::ALL.iter().position(|other| *other == rule);
    1 << at.expect("one of all")
}

/// Returns the rules of these bits.
pub(crate) fn rules(bits: u128) -> BTreeSet<Rule> {
    Rule::ALL.iter().copied().filter(|&rule| bits & bit(rule) > 0).collect()
}

/// Returns the content of the world's resources, which their last byte has.
fn revision(_: &str, body: &[u8]) -> Option<u64> {
    body.last().map(|&content| content.into())
}

fn heard<V: Judged>(response: &V::Response) -> Response {
    <V as Judged>::response(response, revision)
}

fn said<V: Judged>(request: &V::Request) -> Request {
    <V as Judged>::request(request)
}

impl<V: Judged> Watched<V> {
    /// Makes a world without history. A complaint is a fault, unless its rule is one of these.
    pub(crate) fn new(setup: &Arc<Made>, may_complain: &[Rule]) -> Self {
        let mut known = Known::controlled("");
        // A name that is no resource, but selects resources, exists or not as they do.
        for name in setup.names.iter().filter(|name| !is_resource(name)) {
            setup.types.iter().for_each(|type_url| known.forget(type_url.as_str(), name.as_str()));
        }
        Self {
            world: World::new(setup.clone()),
            known: Arc::new(known),
            referees: vec![Referees::default(); setup.clients],
            may_complain: may_complain.iter().fold(0, |bits, &rule| bits | bit(rule)),
            complained: 0,
            over: false,
            print: 0,
        }
    }

    fn client(&mut self, c: usize) -> &mut ClientReferee {
        Arc::make_mut(self.referees[c].client.as_mut().expect("a stream"))
    }

    fn server(&mut self, c: usize) -> &mut ServerReferee {
        Arc::make_mut(self.referees[c].server.as_mut().expect("a stream"))
    }

    /// Tells the referees which message the step reads, or that the names that the client wants change. Returns their
    /// complaints.
    fn before(&mut self, step: Step) -> Vec<Complaint> {
        match step {
            Step::ServerReads { c } => {
                let request = said::<V>(&self.world.pairs[c].up[0]);
                self.client(c).request(&request)
            }
            Step::ClientReads { c } => {
                let response = heard::<V>(&self.world.pairs[c].down[0]);
                self.server(c).response(&response)
            }
            Step::Subscribe { c, .. }
            | Step::Unsubscribe { c, .. }
            | Step::Refetch { c, .. }
            | Step::Forget { c, .. } => {
                self.referees[c].client.iter_mut().for_each(|client| Arc::make_mut(client).unsettle());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Tells the referees which messages the step has sent, and how it has changed the store.
    fn after(&mut self, step: Step, before: &Before) {
        match step {
            Step::Open { c } => {
                let Referees { server, client } = &mut self.referees[c];
                let judge = ServerReferee::new(V::VARIANT, None, Known::clone(&self.known));
                *server = Some(Arc::new(server.iter().fold(judge, |judge, before| judge.after(before))));
                let next = client.as_ref().map_or_else(|| ClientReferee::new(V::VARIANT), |client| client.next());
                *client = Some(Arc::new(next));
                self.requests(c, 0);
            }
            Step::ClientSends { c } => self.requests(c, before.up),
            Step::ServerSends { c } => {
                let sent = self.world.pairs[c].down.iter().skip(before.down);
                for response in sent.map(heard::<V>).collect::<Vec<_>>() {
                    self.client(c).response(&response);
                }
            }
            Step::Put { t, .. } | Step::Delete { t, .. } => {
                let setup = self.world.setup.clone();
                let contents = contents(&self.world, step);
                let changed = contents.iter().zip(&before.contents).zip(&setup.names);
                for (((content, fails), (_, failed)), name) in changed.filter(|((now, before), _)| now != before) {
                    // An error that ends without a resource is a change, and a response from before it may be on the
                    // wire.
                    match content.is_none() && fails != failed {
                        true => self.forget(t, name),
                        false => self.changes(t, name, *content),
                    }
                }
            }
            Step::Fail { t, n } => {
                let name = self.world.setup.names[n].clone();
                self.forget(t, &name);
            }
            Step::Doubt { .. } | Step::Know { .. } => unreachable!("no shape of the default model has doubts"),
            _ => {}
        }
    }

    fn requests(&mut self, c: usize, from: usize) {
        for request in self.world.pairs[c].up.iter().skip(from).map(said::<V>).collect::<Vec<_>>() {
            self.server(c).request(&request);
        }
    }

    fn forget(&mut self, t: usize, name: &ResourceName) {
        let url = self.world.setup.types[t].to_string();
        Arc::make_mut(&mut self.known).forget(&url, name.as_str());
        self.each_server(|server| server.forget(&url, name.as_str()));
    }

    fn changes(&mut self, t: usize, name: &ResourceName, content: Option<u8>) {
        let (url, name) = (self.world.setup.types[t].to_string(), name.as_str());
        let known = Arc::make_mut(&mut self.known);
        match content {
            Some(content) => known.put(&url, name, content.into()),
            None => known.delete(&url, name),
        }
        known.settle();
        let setup = self.world.setup.clone();
        // The resource that an alias stands for may have changed with this name.
        let aliases: Vec<&str> = setup.names.iter().map(ResourceName::as_str).filter(|name| is_alias(name)).collect();
        self.each_server(|server| {
            match content {
                Some(content) => server.put(&url, name, content.into()),
                None => server.delete(&url, name),
            }
            aliases.iter().for_each(|alias| server.forget(&url, alias));
        });
    }

    fn each_server(&mut self, change: impl Fn(&mut ServerReferee)) {
        let servers = self.referees.iter_mut().filter_map(|referees| referees.server.as_mut());
        servers.for_each(|server| change(Arc::make_mut(server)));
    }

    /// Returns whether the protocol has come to rest.
    fn rests(&self) -> bool {
        let world = &self.world;
        let busy = |c| world.steps_of(c).any(|step| world.can(step));
        !(0..world.pairs.len()).any(busy) && !world.can(Step::Tick)
    }

    /// Returns the complaints about the silence.
    fn silence(&mut self) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        for c in 0..self.world.pairs.len() {
            if self.world.pairs[c].server.is_none() {
                continue;
            }
            let names = |names: &BTreeSet<ResourceName>| names.iter().map(ToString::to_string).collect();
            let apps = self.world.setup.types.iter().zip(&self.world.pairs[c].apps);
            let wanted: Wanted = apps.map(|(url, app)| (url.to_string(), names(&app.wanted))).collect();
            complaints.extend(self.server(c).rest(true));
            complaints.extend(self.client(c).rest(&wanted));
        }
        complaints
    }

    fn judge(&mut self, complaints: &[Complaint]) {
        for complaint in complaints {
            assert!(self.may_complain & bit(complaint.rule) > 0, "{complaint}");
            self.complained |= bit(complaint.rule);
        }
    }

    /// Gives the referee the message at which the model's own check stopped the sender of a seeded bug, as the last
    /// message on the wire. Returns the complaints.
    fn last_words(&mut self, step: Step, before: &World<V>) -> Vec<Complaint> {
        let Some((bug, c)) = before.setup.bug.zip(step.client()) else { return Vec::new() };
        let mut pair = before.pairs[c].clone();
        let mut complaints = Vec::new();
        match step {
            Step::ClientSends { .. } => {
                let mut transmit = pair.client.poll_transmit().expect("the step was possible");
                let wants = pair.apps.iter().any(|app| !app.wanted.is_empty());
                let times = pair.faulty.client_says(bug, wants, &mut transmit.intent, &mut transmit.request);
                let said_now = std::iter::repeat_n(transmit.request, times);
                for request in pair.up.iter().cloned().chain(said_now) {
                    complaints.extend(self.client(c).request(&said::<V>(&request)));
                }
            }
            Step::ServerSends { .. } => {
                let server = pair.server.as_mut().expect("a stream");
                let message =
                    server.poll_transmit(before.now, &before.store.cache).map(|response| V::message(&response));
                let mut says = |message: &mut V::Response| pair.faulty.server_says(bug, message);
                let said_now = message.and_then(|mut message| says(&mut message).then_some(message));
                for response in pair.down.iter().chain(&said_now) {
                    complaints.extend(self.server(c).response(&heard::<V>(response)));
                }
            }
            _ => {}
        }
        complaints
    }
}

fn is_resource(name: &ResourceName) -> bool {
    !name.as_str().ends_with('*') && !is_alias(name.as_str())
}

fn is_alias(name: &str) -> bool {
    name.starts_with('~')
}

impl<V: Judged> Hash for Watched<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print.hash(state);
    }
}

impl<V: Judged> Model for Watched<V> {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        if !self.over {
            self.world.steps(steps);
        }
    }

    fn is_own(step: Step) -> bool {
        step.is_protocol()
    }

    fn take(&mut self, step: Step) {
        let before = Before::new(&self.world, step);
        let mut complaints = self.before(step);
        if self.world.setup.bug.is_none() {
            self.world.take(step);
        } else {
            // The model's own checks are not what is tested here.
            let world = self.world.clone();
            if catch(|| self.world.take(step)).is_some() {
                self.over = true;
                complaints.extend(self.last_words(step, &world));
                return self.judge(&complaints);
            }
        }
        self.after(step, &before);
        if self.rests() {
            complaints.extend(self.silence());
        }
        self.judge(&complaints);
    }

    fn check_settled(&self) {}

    fn canonicalize(&mut self) {
        if self.over {
            self.print = 0; // nothing follows: all such states are one
            return;
        }
        let (mut canonical, mut hasher) = (self.world.clone(), DefaultHasher::new());
        canonical.canonicalize();
        canonical.hash(&mut hasher);
        self.print = hasher.finish();
    }

    fn goals(&self) -> u128 {
        self.complained
    }
}

//! The server of the oracle, as in `grpc_oracle.py`: its resources, the requested names, and its responses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use xds_machine::message::{Any, sotw};
use xds_machine::{TypeUrl, Version};

use super::answer::TARGET;
use super::case::{Change, Kind, Step};

#[derive(Default)]
pub struct Server {
    /// The resources, in the order in which they were added.
    held: BTreeMap<Kind, Vec<(String, Vec<u8>)>>,
    always: BTreeSet<(Kind, String)>,
    pub wanted: BTreeMap<Kind, BTreeSet<String>>,
    given: BTreeSet<Kind>,
    count: u64,
    pub responses: VecDeque<sotw::Response>,
}

impl Server {
    pub fn step(&mut self, step: &Step, ports: &[u16]) {
        let mut touched: Vec<Kind> = Vec::new();
        for change in &step.changes {
            let (kind, name) = match change {
                Change::Put(of) | Change::Extra(of) => (of.kind(), of.name(TARGET).to_owned()),
                Change::Gone(kind, name) => (*kind, if name.is_empty() { TARGET } else { name }.to_owned()),
            };
            let held = self.held.entry(kind).or_default();
            let place = held.iter().position(|(held, _)| *held == name);
            match (change.resource().map(|of| of.encode(TARGET, ports)), place) {
                (Some(body), Some(place)) => held[place].1 = body,
                (Some(body), None) => held.push((name.clone(), body)),
                (None, Some(place)) => drop(held.remove(place)),
                (None, None) => {}
            }
            let always = matches!(change, Change::Extra(_));
            if always {
                self.always.insert((kind, name.clone()));
            }
            let wanted = self.wanted.get(&kind).is_some_and(|wanted| wanted.contains(&name));
            if !touched.contains(&kind) && (always || wanted) {
                touched.push(kind);
            }
        }
        touched.into_iter().for_each(|kind| self.send(kind));
    }

    pub fn served(&self) -> BTreeSet<(Kind, String)> {
        self.held.iter().flat_map(|(kind, held)| held.iter().map(|(name, _)| (*kind, name.clone()))).collect()
    }

    pub fn request(&mut self, request: &sotw::Request) {
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.type_url() == request.type_url.as_str()) else {
            return;
        };
        let names: BTreeSet<String> = request.names.iter().map(|name| name.as_str().to_owned()).collect();
        let before = self.wanted.insert(kind, names.clone()).unwrap_or_default();
        let new: BTreeSet<&String> = names.difference(&before).collect();
        if self.held.get(&kind).is_some_and(|held| held.iter().any(|(name, _)| new.contains(name))) {
            self.send(kind);
        }
    }

    fn send(&mut self, kind: Kind) {
        let wanted = self.wanted.entry(kind).or_default();
        let is_sent = |name: &String| wanted.contains(name) || self.always.contains(&(kind, name.clone()));
        let held = self.held.get(&kind).into_iter().flatten();
        let sent: Vec<&Vec<u8>> = held.filter(|(name, _)| is_sent(name)).map(|(_, body)| body).collect();
        let is_full = matches!(kind, Kind::Listener | Kind::Cluster);
        if sent.is_empty() && !(is_full && self.given.contains(&kind)) {
            return;
        }
        let type_url = TypeUrl::from(kind.type_url().as_str());
        let any = |body: &Vec<u8>| sotw::Item::Bare(Any { type_url: type_url.clone(), value: body.clone().into() });
        self.count += 1;
        self.responses.push_back(sotw::Response {
            version: Version::from(self.count.to_string().as_str()),
            resources: sent.into_iter().map(any).collect(),
            type_url: type_url.clone(),
            nonce: self.count.to_string().as_str().into(),
            control_plane: String::new(),
            errors: vec![],
        });
        self.given.insert(kind);
    }
}

//! The features of the protocol that are active on a stream.

use xds_machine::server::State;
use xds_machine::{ResourceName, WILDCARD};

use super::super::store::is_shared;
use super::super::{Feature, Made, Store, is_alias, is_resource, stands_for};
use super::{Ghost, Memory};

impl Ghost {
    /// Returns the features that are active on the stream.
    pub fn active(&self, setup: &Made, store: &Store) -> Vec<Feature> {
        let of_a_type = |feature| (0..setup.types.len()).any(|t| self.types[t].is_active(setup, store, t, feature));
        Feature::ALL.into_iter().filter(|&feature| of_a_type(feature)).collect()
    }
}

fn is_unknown(store: &Store, setup: &Made, t: usize, name: &ResourceName) -> bool {
    store.state(setup, t, name) == State::Unknown
}

impl Memory {
    fn is_active(&self, setup: &Made, store: &Store, t: usize, feature: Feature) -> bool {
        let mut names = setup.names.iter().filter(|name| is_resource(name));
        let there = |name: &ResourceName| store.content(setup, t, name);
        let sent_by = |is: fn(&ResourceName) -> bool| {
            let by = |(name, sent): (&ResourceName, &u8)| {
                self.listed.iter().any(|wanted| is(wanted) && stands_for(wanted, name, Some(*sent)))
            };
            self.delivered.iter().any(by)
        };
        let is_unsent = |name: &ResourceName| {
            let there = there(name);
            there.is_some() && self.server_wants(name, there) && self.delivered.get(name) != there.as_ref()
        };
        let is_gone = |name: &ResourceName| !is_unknown(store, setup, t, name) && there(name).is_none();
        match feature {
            Feature::ResponseLimit => {
                let out = self.outs.last().map_or(0, |out| out.resources.len());
                setup.response_limit.is_some_and(|response_limit| out >= response_limit) && names.any(is_unsent)
            }
            Feature::Pages => setup.page.is_some_and(|page| names.count() > page) && self.listed.contains(WILDCARD),
            Feature::Ttl => {
                setup.tells_ttls()
                    && self.delivered.iter().any(|(name, &content)| setup.told_ttl_of(name, content).is_some())
            }
            Feature::Hold => self.delivered.keys().any(|name| is_gone(name) && self.server_wants(name, None)),
            Feature::Alias => sent_by(is_alias),
            Feature::MovedAlias => {
                self.listed.iter().any(is_shared)
                    && self.delivered.iter().any(|(name, &sent)| sent == 1 && there(name) != Some(1))
            }
            Feature::Collection => sent_by(ResourceName::is_glob),
            Feature::Error => names.any(|name| self.server_wants(name, None) && store.error(setup, t, name).is_some()),
            Feature::Limit => setup.limit.is_some_and(|limit| self.listed.len() >= limit),
            Feature::Unknown => names.any(|name| {
                let fails = store.error(setup, t, name).is_some();
                self.server_wants(name, None) && is_unknown(store, setup, t, name) && !fails
            }),
            Feature::Claims => self.claimed,
            Feature::Wildcard => self.listed.contains(WILDCARD) && self.listed.len() > 1,
        }
    }
}

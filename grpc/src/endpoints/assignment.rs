//! The endpoints of a cluster as the ClusterLoadAssignment has them, in the order of priority.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;

use xds_machine::message;

/// The endpoints of a cluster: a valid ClusterLoadAssignment without the parts that gRPC does not use (R-EDS-19).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Assignment {
    /// The priorities, the most preferred first.
    pub priorities: Vec<Priority>,
    /// The categories of calls that are dropped, in order.
    pub drops: Vec<Drop>,
}

/// The localities of one priority.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Priority {
    /// The localities, in the order of the resource; at least one.
    pub localities: Vec<Locality>,
}

/// The endpoints of a locality.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Locality {
    /// The names of the region, the zone and the part of the zone; each may be empty.
    pub name: message::Locality,
    /// The weight of the locality among those of its priority.
    pub weight: NonZeroU32,
    /// The endpoints that may be used, in the order of the resource; a locality without any is unreachable (R-EDS-15).
    pub endpoints: Vec<Endpoint>,
}

/// An endpoint that may be used.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Endpoint {
    /// The address.
    pub address: SocketAddr,
    /// Further addresses of the same endpoint (gRFC A61).
    pub additional: Vec<SocketAddr>,
    /// The weight of the endpoint in its locality; 1 if the resource has none (R-EDS-08).
    pub weight: NonZeroU32,
    /// The health, as the control plane knows it.
    pub health: Health,
}

/// The health of an endpoint that may be used. Endpoints of other health are left out (R-EDS-09).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Health {
    /// Not known; used like a healthy one.
    #[default]
    Unknown,
    /// Healthy.
    Healthy,
    /// Used for calls of existing sessions only (gRFC A55).
    Draining,
}

/// A category of calls that are dropped.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Drop {
    /// The name of the category, for load reports.
    pub category: String,
    /// The share of calls that are dropped, in millionths: at most 1,000,000 (R-EDS-17).
    pub per_million: u32,
}

impl Assignment {
    /// Returns what the assignment lacks, in words for people; `None` if there are endpoints (R-CHAIN-31).
    pub fn lack(&self) -> Option<String> {
        if self.priorities.is_empty() {
            return Some("contains no localities".into());
        }
        let localities = self.priorities.iter().flat_map(|priority| &priority.localities);
        let has_endpoints = localities.clone().any(|locality| !locality.endpoints.is_empty());
        let names = || localities.map(Locality::describe).collect::<Vec<_>>().join("; ");
        (!has_endpoints).then(|| format!("contains empty localities: [{}]", names()))
    }
}

impl Locality {
    fn describe(&self) -> String {
        let message::Locality { region, zone, sub_zone } = &self.name;
        format!("{{region=\"{region}\", zone=\"{zone}\", sub_zone=\"{sub_zone}\"}}")
    }
}

impl Priority {
    /// Returns the endpoints of all localities with their weights among all of them, for policies that know no
    /// localities, such as `ring_hash`. R-EDS-25: A weight is that of the locality times that of the endpoint, which
    /// fits into 64 bits; a sum of weights may need more.
    pub fn flat_weights(&self) -> impl Iterator<Item = (&Endpoint, u64)> {
        self.localities.iter().flat_map(|locality| {
            let of_locality = u64::from(locality.weight.get());
            locality.endpoints.iter().map(move |endpoint| (endpoint, of_locality * u64::from(endpoint.weight.get())))
        })
    }
}

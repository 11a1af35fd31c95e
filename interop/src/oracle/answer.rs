//! The behaviour of a client in a case: that of C-core, or that of this crate's own client.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::case::Kind;

/// The target of every case, whatever its number.
pub const TARGET: &str = "@";

/// The name of a resource that can't be decoded so far.
pub const NAMELESS: &str = "?";

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Seen {
    /// The names that the client requests, once it is quiet.
    #[serde(rename = "n")]
    pub names: BTreeMap<Kind, BTreeSet<String>>,
    /// The resources that were rejected.
    #[serde(rename = "f", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rejected: BTreeSet<(Kind, String)>,
    /// The result of the call of each route.
    #[serde(rename = "c")]
    pub calls: Vec<Call>,
}

/// The class of a call's result.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Call {
    /// A backend answered: any of these.
    #[serde(rename = "ok")]
    Ok(BTreeSet<u8>),
    /// There was no configuration yet.
    #[serde(rename = "wait")]
    Waits,
    /// The filter of the listener aborted the call.
    #[serde(rename = "abort")]
    Aborted,
    /// The listener, or the routes that are in use, have an error.
    #[serde(rename = "target")]
    Target,
    /// No virtual host is for the authority.
    #[serde(rename = "host")]
    NoHost,
    /// No route is for the path.
    #[serde(rename = "route")]
    NoRoute,
    /// The route has another action than to forward.
    #[serde(rename = "action")]
    Action,
    /// The cluster has an error.
    #[serde(rename = "cluster")]
    Cluster(String),
    /// The cluster has no endpoints that can be reached.
    #[serde(rename = "down")]
    Unreachable,
    /// An endpoint drop applies.
    #[serde(rename = "drop")]
    Dropped,
    /// Anything else.
    #[serde(rename = "other")]
    Other(String),
}

impl Call {
    fn read(text: &str) -> Self {
        if let Some(backend) = text.strip_prefix("ok ") {
            return backend.parse().map_or_else(|_| Self::Other(text.into()), |backend| Self::Ok([backend].into()));
        }
        let (code, text) = text.split_once(' ').unwrap_or((text, ""));
        let cluster = || Some(Self::Cluster(text.strip_prefix("CDS resource ")?.split(": ").next()?.to_owned()));
        let no_leaves = || {
            let rest = text.strip_prefix("aggregate cluster dependency graph for ")?;
            Some(Self::Cluster(rest.strip_suffix(" has no leaf clusters")?.to_owned()))
        };
        match code {
            "DEADLINE_EXCEEDED" => Self::Waits,
            "ABORTED" => Self::Aborted,
            _ if code != "UNAVAILABLE" => Self::Other(format!("{code} {text}")),
            _ if text.contains("could not find VirtualHost") => Self::NoHost,
            _ if text.starts_with("LDS resource ") || text.starts_with("RDS resource ") => Self::Target,
            _ if text.starts_with("No matching route") => Self::NoRoute,
            _ if text.contains("inappropriate action") => Self::Action,
            _ if text.contains("EDS-configured drop") => Self::Dropped,
            _ if text.starts_with("connections to all backends failing") => Self::Unreachable,
            _ if text.starts_with("no children in weighted_target policy") => Self::Unreachable,
            _ => match text.strip_prefix("empty address list (") {
                Some(rest) if rest.starts_with("LDS resource ") || rest.starts_with("RDS resource ") => Self::Target,
                _ => cluster().or_else(no_leaves).unwrap_or_else(|| Self::Other(text.to_owned())),
            },
        }
    }
}

/// A step as `grpc_oracle.py` writes it.
#[derive(Deserialize)]
pub struct Raw {
    names: BTreeMap<Kind, BTreeSet<String>>,
    nacks: Vec<(Kind, Vec<String>, String)>,
    calls: Vec<String>,
}

impl Raw {
    /// Replaces the target's name, so that the same case has the same answer under any number.
    pub fn read(self, target: &str) -> Seen {
        let general = |name: String| if name == target { TARGET.to_owned() } else { name };
        let set = |(kind, names): (Kind, BTreeSet<String>)| (kind, names.into_iter().map(general).collect());
        let mut rejected = BTreeSet::new();
        for (kind, names, text) in self.nacks {
            for part in text.split("resource index ").skip(1) {
                let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
                let name = digits.parse::<usize>().ok().and_then(|index| names.get(index));
                // Without a name before the code, C-core could not read one.
                let is_named = !part[digits.len()..].starts_with(": INVALID_ARGUMENT");
                let name = if is_named { name.cloned().unwrap_or_else(|| text.clone()) } else { NAMELESS.into() };
                rejected.insert((kind, general(name)));
            }
            if !text.contains("resource index ") {
                rejected.insert((kind, text));
            }
        }
        let calls = self.calls.iter().map(|text| Call::read(text)).collect();
        Seen { names: self.names.into_iter().map(set).collect(), rejected, calls }
    }
}

//! The configuration of several servers: their order, their authorities, and the fallback policy.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::client::{self, Backoff};

/// The choice among several servers. More policies may be added.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// Fallback as in gRPC (gRFC A71), separately for each authority. The next server of the list is subscribed to as
    /// well when the last one in use has failed (its stream ended before any response) and nothing is known about some
    /// subscribed resource. A response of a server ends the use of those after it.
    ///
    /// A server that fails while all subscribed resources are known therefore changes nothing: known resources are
    /// better than those of a fallback server.
    Grpc,
    /// Failover as in Envoy (`GrpcMuxFailover`): a list has a primary and at most one failover, of which one is used at
    /// a time. Two consecutive failures of a primary that never responded lead to the failover. The failover is used as
    /// long as its stream lives; then the primary is retried, and the two alternate until one responds. A primary that
    /// responded once is never left.
    ///
    /// Two things differ from Envoy. Each server has its own backoff, whereas Envoy waits 500 ms before it retries the
    /// primary. And each server has its own versions: Envoy sends none to a server that is not the last one that
    /// responded.
    Envoy,
}

impl fmt::Display for Policy {
    /// Writes the name of the policy's model in lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grpc => "grpc",
            Self::Envoy => "envoy",
        })
    }
}

/// A server: its index among those of the configuration.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId(pub usize);

/// The servers, and the names that each is responsible for.
///
/// ```
/// use xds_machine::Sotw;
/// use xds_machine::client;
/// use xds_machine::message::Node;
/// use xds_machine::servers::{Config, Policy, ServerId, Servers};
///
/// let client = client::Config::new(Node::new("me"));
/// let (primary, fallback, partner) = (ServerId(0), ServerId(1), ServerId(2));
/// let config = Config::new(Policy::Grpc, [client.clone(), client.clone(), client])
///     .with_default([primary, fallback])
///     .with_authority("partner.example.com", [partner]);
/// let servers = Servers::<Sotw>::new(config)?;
/// # Ok::<(), xds_machine::servers::ConfigError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    pub(super) policy: Policy,
    pub(super) servers: Vec<client::Config>,
    pub(super) default: Vec<ServerId>,
    pub(super) authorities: Vec<(String, Vec<ServerId>)>,
    pub(super) backoff: Backoff,
}

/// An authority (`None` for names without one), and the indexes of its servers.
type List = (Option<Arc<str>>, Vec<usize>);

impl Config {
    /// Makes a configuration of these servers in order of preference, each with the configuration of its client. All of
    /// them serve all names, unless the configuration is refined.
    pub fn new(policy: Policy, servers: impl IntoIterator<Item = client::Config>) -> Self {
        let servers: Vec<_> = servers.into_iter().collect();
        let default = (0..servers.len()).map(ServerId).collect();
        let backoff = match policy {
            Policy::Grpc => Backoff::grpc(),
            Policy::Envoy => Backoff::envoy(),
        };
        Self { policy, servers, default, authorities: Vec::new(), backoff }
    }

    /// Returns the configuration of the client of each server, in order.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &client::Config> {
        self.servers.iter()
    }

    /// Sets the servers, in order of preference, for the wildcard and for names without an authority (those that do not
    /// begin with `xdstp:`). Default: all.
    #[must_use]
    pub fn with_default(mut self, servers: impl IntoIterator<Item = ServerId>) -> Self {
        self.default = servers.into_iter().collect();
        self
    }

    /// Sets the servers for the names of an authority (gRFC A47). An empty list means those of
    /// [`with_default`](Self::with_default). The authority of `xdstp:///type/id` is the empty string. A server in
    /// several lists has one stream for all.
    #[must_use]
    pub fn with_authority(mut self, authority: impl Into<String>, servers: impl IntoIterator<Item = ServerId>) -> Self {
        self.authorities.push((authority.into(), servers.into_iter().collect()));
        self
    }

    /// Sets how long each server waits between streams. Default: as the policy's model does.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Returns the lists; the first is that of names without an authority.
    pub(super) fn lists(&self) -> Result<Vec<List>, ConfigError> {
        let mut lists = Vec::from([(None, self.default.clone())]);
        let mut authorities = BTreeSet::new();
        for (authority, servers) in &self.authorities {
            if !authorities.insert(authority) {
                return Err(ConfigError::AuthorityTwice { authority: authority.clone() });
            }
            let servers = if servers.is_empty() { &self.default } else { servers };
            lists.push((Some(authority.as_str().into()), servers.clone()));
        }
        let mut seen = BTreeSet::new();
        for (_, list) in &lists {
            if self.policy == Policy::Envoy && list.len() > 2 {
                return Err(ConfigError::TooManyServers { count: list.len() });
            }
            for (at, &server) in list.iter().enumerate() {
                if server.0 >= self.servers.len() {
                    return Err(ConfigError::UnknownServer { server });
                }
                if list[..at].contains(&server) {
                    return Err(ConfigError::ServerTwice { server });
                }
                if !seen.insert(server) && self.policy == Policy::Envoy {
                    return Err(ConfigError::ServerShared { server });
                }
            }
        }
        Ok(lists.into_iter().map(|(authority, list)| (authority, list.into_iter().map(|id| id.0).collect())).collect())
    }
}

/// A fault of a configuration.
#[derive(Clone, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An authority has two lists.
    #[error("authority {authority:?} is configured twice")]
    AuthorityTwice {
        /// The authority that has two lists.
        authority: String,
    },
    /// With [`Policy::Envoy`], a server is in two lists.
    #[error("server {} is in two lists, and Policy::Envoy asks one server of a list at a time", server.0)]
    ServerShared {
        /// The server that is in two lists.
        server: ServerId,
    },
    /// A server is in a list twice.
    #[error("server {} is in a list twice", server.0)]
    ServerTwice {
        /// The server that is in a list twice.
        server: ServerId,
    },
    /// With [`Policy::Envoy`], a list has more than a primary and a failover.
    #[error("{count} servers in a list, and Policy::Envoy has a primary and a failover")]
    TooManyServers {
        /// The number of servers in the list.
        count: usize,
    },
    /// A list names a server that the configuration does not have.
    #[error("no server {} is configured", server.0)]
    UnknownServer {
        /// The server that is not configured.
        server: ServerId,
    },
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::message::Node;

    #[test]
    fn an_inconsistent_configuration_is_refused() {
        let client = || client::Config::new(Node::new("n"));
        let [a, b, c] = [0, 1, 2].map(ServerId);
        let grpc = || Config::new(Policy::Grpc, [client(), client()]);
        let envoy = || Config::new(Policy::Envoy, [client(), client()]);
        let refused = |config: Config| config.lists().expect_err("it makes no sense").to_string();
        assert_eq!(refused(grpc().with_default([a, c])), "no server 2 is configured");
        assert_eq!(refused(grpc().with_default([a, b, a])), "server 0 is in a list twice");
        assert_eq!(
            refused(grpc().with_authority("x", []).with_authority("x", [])),
            "authority \"x\" is configured twice"
        );
        assert_eq!(
            refused(envoy().with_authority("x", [])),
            "server 0 is in two lists, and Policy::Envoy asks one server of a list at a time"
        );
        assert_eq!(
            refused(Config::new(Policy::Envoy, [client(), client(), client()])),
            "3 servers in a list, and Policy::Envoy has a primary and a failover"
        );
        let lists = grpc().with_default([b]).with_authority("", []).with_authority("x", [a, b]).lists();
        let authority = |name: &str| Some(Arc::from(name));
        let expected = [(None, [1].into()), (authority(""), [1].into()), (authority("x"), [0, 1].into())];
        assert_eq!(lists, Ok(expected.into()));
    }
}

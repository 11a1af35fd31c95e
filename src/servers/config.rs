//! The configuration of several servers: their order, their authorities, and the policy of fallback.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::client::{self, Backoff};

/// Which server is asked when there are several. More policies may come.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Policy {
    /// As gRPC does (gRFC A71), for each authority by itself. The next server of the list is asked too when the last one
    /// that is asked has failed (its stream ended before any response) and something is wanted that nothing is known of.
    /// A response of a server ends the use of those after it.
    ///
    /// So one server that fails while all that is wanted is known changes nothing: what is known is better than what a
    /// fallback server has.
    Grpc,
    /// As Envoy does (its `GrpcMuxFailover`): a list has a primary and at most one failover, and one of them is asked at a
    /// time. Two failures in a row of a primary that never answered lead to the failover. That is used as long as its
    /// stream lives; then the primary is tried again, and by turns until one answers. A primary that answered once is
    /// never left.
    ///
    /// Two things differ from Envoy. Each server has its own backoff, where Envoy waits 500 ms before the primary is tried
    /// again. And each has its own versions: Envoy sends none to a server that is not the last that answered.
    Envoy,
}

impl fmt::Display for Policy {
    /// Whose policy it is, in lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grpc => "grpc",
            Self::Envoy => "envoy",
        })
    }
}

/// A server: its place among those of the configuration.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId(pub usize);

/// The servers, and which is asked for what.
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

/// An authority, if it is one, and the numbers of its servers.
type List = (Option<Arc<str>>, Vec<usize>);

impl Config {
    /// These servers, each with the configuration of its client, in the order in which they are preferred. Whatever is
    /// wanted is wanted of them, unless the configuration says more.
    pub fn new(policy: Policy, servers: impl IntoIterator<Item = client::Config>) -> Self {
        let servers: Vec<_> = servers.into_iter().collect();
        let default = (0..servers.len()).map(ServerId).collect();
        let backoff = match policy {
            Policy::Grpc => Backoff::grpc(),
            Policy::Envoy => Backoff::envoy(),
        };
        Self { policy, servers, default, authorities: Vec::new(), backoff }
    }

    /// The servers, in the order in which they are preferred, of names that have no authority (those that do not begin
    /// with `xdstp:`) and of the wildcard. Default: all.
    #[must_use]
    pub fn with_default(mut self, servers: impl IntoIterator<Item = ServerId>) -> Self {
        self.default = servers.into_iter().collect();
        self
    }

    /// The servers of the names of an authority (gRFC A47); none: those of [`with_default`](Self::with_default). The
    /// authority of `xdstp:///type/id` is the empty string. A server that is in several lists has one stream for all.
    #[must_use]
    pub fn with_authority(mut self, authority: impl Into<String>, servers: impl IntoIterator<Item = ServerId>) -> Self {
        self.authorities.push((authority.into(), servers.into_iter().collect()));
        self
    }

    /// How long each server waits between streams. Default: as the policy's model does.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The lists, that of the names without authority first.
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

/// What is wrong with a configuration.
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
    fn a_configuration_that_makes_no_sense_is_refused() {
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

//! The configuration of a client.

use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, watch};
use xds_machine::client::{self, Backoff, Variant};
use xds_machine::proto::Wire;
use xds_machine::servers::{self, ConfigError, Policy, ServerId};
use xds_machine::{Delta, Sotw, service};

use super::actor::Actor;
use super::connect::{Connect, Dial};
use super::engine::Dials;
use super::{States, XdsClient};

/// The default of [`Builder::max_response_bytes`].
const MAX_RESPONSE: usize = 256 << 20;

/// Configures an [`XdsClient`]: see [`XdsClient::builder`].
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    config: client::Config,
    whole: Option<servers::Config>,
    servers: Vec<Box<dyn Dial>>,
    policy: Policy,
    default: Option<Vec<ServerId>>,
    authorities: Vec<(String, Vec<ServerId>)>,
    backoff: Option<Backoff>,
    variant: service::Variant,
    aggregated: bool,
    max_response: usize,
    keeps_contents: bool,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers.len();
        f.debug_struct("Builder").field("config", &self.config).field("servers", &servers).finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(config: client::Config) -> Self {
        Self {
            config,
            whole: None,
            servers: Vec::new(),
            policy: Policy::Grpc,
            default: None,
            authorities: Vec::new(),
            backoff: None,
            variant: service::Variant::Delta,
            aggregated: true,
            max_response: MAX_RESPONSE,
            keeps_contents: false,
        }
    }

    pub(super) fn of(whole: servers::Config) -> Option<Self> {
        let config = whole.servers().next()?.clone();
        Some(Self { whole: Some(whole), ..Self::new(config) })
    }

    /// Adds a server, after those that were added before: servers are in order of preference, and the first one is
    /// `ServerId(0)`.
    pub fn server(mut self, server: impl Connect) -> Self {
        self.servers.push(Box::new(server));
        self
    }

    /// Sets when the client leaves a server for the next one. Default: [`Policy::Grpc`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the servers for names without an authority. Default: all.
    pub fn default_servers(mut self, servers: impl IntoIterator<Item = ServerId>) -> Self {
        self.default = Some(servers.into_iter().collect());
        self
    }

    /// Sets the servers for the names of an authority (`xdstp://authority/..`). Names of other authorities can't be
    /// watched. An empty list means those of [`default_servers`](Self::default_servers).
    pub fn authority(mut self, name: impl Into<String>, servers: impl IntoIterator<Item = ServerId>) -> Self {
        self.authorities.push((name.into(), servers.into_iter().collect()));
        self
    }

    /// Sets how long the client waits after a stream before it opens the next one to the same server. Default: that of
    /// the client that the [policy](Self::policy) models.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Sets the variant of the protocol. Default: [`Delta`](service::Variant::Delta).
    pub fn variant(mut self, variant: service::Variant) -> Self {
        self.variant = variant;
        self
    }

    /// Opens a stream for each type, to the type's own service. Default: all types on one aggregated stream (ADS).
    pub fn separate_streams(mut self) -> Self {
        self.aggregated = false;
        self
    }

    /// Sets the limit on the size of a response; a longer one ends the stream. Default: 256 MiB, which is ten times the
    /// size of 100,000 clusters.
    pub fn max_response_bytes(mut self, limit: usize) -> Self {
        self.max_response = limit;
        self
    }

    /// Keeps the contents of the resources that are held, for the [status](XdsClient::status) of the client. They take
    /// the memory of the responses that they arrived in.
    pub fn keep_contents(mut self) -> Self {
        self.keeps_contents = true;
        self
    }

    /// Starts the client's task on tokio's current runtime. Connections are made when something is watched.
    ///
    /// # Errors
    ///
    /// If the servers, authorities and policy don't fit together.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, as [`tokio::spawn`].
    pub fn start(self) -> Result<XdsClient, ConfigError> {
        match self.variant {
            service::Variant::Delta => self.start_as::<Delta>(),
            service::Variant::Sotw => self.start_as::<Sotw>(),
        }
    }

    fn start_as<V>(self) -> Result<XdsClient, ConfigError>
    where
        V: Variant + Wire,
    {
        let mut config = match self.whole {
            Some(whole) if whole.servers().len() > self.servers.len() => {
                return Err(ConfigError::UnknownServer { server: ServerId(self.servers.len()) });
            }
            Some(whole) => whole,
            None => servers::Config::new(self.policy, self.servers.iter().map(|_| self.config.clone())),
        };
        if let Some(servers) = self.default {
            config = config.with_default(servers);
        }
        for (authority, servers) in self.authorities {
            config = config.with_authority(authority, servers);
        }
        if let Some(backoff) = self.backoff {
            config = config.with_backoff(backoff);
        }
        let servers: Arc<[_]> = self.servers.into_iter().map(Mutex::new).collect();
        let dials = Dials { servers, limit: self.max_response };
        let (commands, receiver) = mpsc::unbounded_channel();
        let (publish, states) = watch::channel(Vec::new());
        let actor = Actor::<V>::new(config, dials, self.aggregated, self.keeps_contents, publish, receiver)?;
        let task = Arc::new(tokio::sync::Mutex::new(Some(tokio::spawn(actor.run()))));
        Ok(XdsClient { commands, states: States::new(states), task })
    }
}

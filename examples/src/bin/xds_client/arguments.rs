//! The command line.

use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use examples::references::Target;
use examples::{dialects, duration};
use prost::Message;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Uri};
use xds_machine::client::{Config, DataErrors, Dialect};
use xds_machine::message::Node;
use xds_machine::resource_type::TypeRegistry;
use xds_machine::{ResourceName, TypeUrl, WILDCARD, load, poll, service, type_url};

/// How long gRPC waits for a resource from a server that reports nonexistent resources (gRFC A88).
const TRANSIENT_TIMEOUT: Duration = Duration::from_secs(30);

const TYPES: [(&str, &str); 10] = [
    ("lds", type_url::LISTENER),
    ("rds", type_url::ROUTE),
    ("srds", type_url::SCOPED_ROUTE),
    ("vhds", type_url::VIRTUAL_HOST),
    ("cds", type_url::CLUSTER),
    ("eds", type_url::ENDPOINT),
    ("leds", type_url::LB_ENDPOINT),
    ("sds", type_url::SECRET),
    ("rtds", type_url::RUNTIME),
    ("ecds", type_url::EXTENSION_CONFIG),
];

/// Subscribes to resources of a control plane over ADS, over REST or from files, and prints each event as one line of JSON.
#[derive(Parser)]
#[command(name = "xds_client", version)]
pub(crate) struct Arguments {
    /// The control plane, `https://` means TLS; with --variant file, a folder
    #[arg(long, value_name = "URL", value_parser = read_place)]
    pub(crate) server: String,
    /// The variant of the protocol
    #[arg(long)]
    pub(crate) variant: Variant,
    /// The time between an answer and the next poll, to which up to as much is added at random [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    refresh: Option<Duration>,
    /// The time after which a poll is given up [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    request_timeout: Option<Duration>,
    /// What to subscribe to: lds, rds, cds, eds, .. or a type URL, and names; all resources without names
    #[arg(long, value_name = "TYPE[=NAME,..]", required = true, value_parser = read_subscription)]
    subscribe: Vec<Subscription>,
    /// The id of the node
    #[arg(long, value_name = "ID", default_value = "xds_client")]
    node: String,
    /// The cluster of the node
    #[arg(long, value_name = "NAME", default_value = "")]
    node_cluster: String,
    /// An entry of the node's metadata
    #[arg(long, value_name = "KEY=VALUE", value_parser = read_entry)]
    node_metadata: Vec<(String, String)>,
    /// Behave as a real client, or as a real server needs it: spec, envoy, grpc, istio
    #[arg(long, default_value = "spec", value_parser = |name: &str| dialects::find(&dialects::CLIENT, name))]
    dialect: Dialect,
    /// What gRPC's bootstrap file calls the features of the server; `ignore_resource_deletion` is what gRPC does by
    /// default since gRFC A88. For comparisons with gRPC.
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', hide = true)]
    server_features: Vec<String>,
    /// Also subscribe to what the received resources refer to
    #[arg(long)]
    pub(crate) follow: bool,
    /// Serve what this client has, each resource with its status (ClientStatusDiscoveryService)
    #[arg(long, value_name = "ADDR")]
    pub(crate) csds: Option<String>,
    /// End after this time: a number of seconds, or a number with ms, s or m
    #[arg(long = "for", value_name = "TIME", value_parser = duration::read)]
    pub(crate) limit: Option<Duration>,
    /// Report loads (LRS) to the same server: calls as lines of standard input say
    #[arg(long)]
    #[arg(long_help = "Report loads (LRS) to the same server. Each line of standard input is \
                       `call CLUSTER LOCALITY ok|error [METRIC=VALUE ..]`, `start CLUSTER LOCALITY ID`, `end ID ok|error` \
                       or `drop CLUSTER CATEGORY`; LOCALITY is REGION/ZONE/SUBZONE, whose parts may be empty")]
    pub(crate) load_report: bool,
    /// The CA of the server's certificate, instead of the system's
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// The client's certificate
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the client's certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

#[derive(Clone, Copy, Eq, PartialEq, ValueEnum)]
pub(crate) enum Variant {
    /// State of the world, over ADS
    Sotw,
    /// Incremental, over ADS
    Delta,
    /// Polls over REST-JSON, one for each --subscribe
    Rest,
    /// Files of a folder, one for each type: cds.yaml, ..
    File,
}

/// The files of a TLS connection.
pub(crate) struct TlsFiles<'a> {
    pub(crate) ca: Option<&'a Path>,
    pub(crate) cert: Option<&'a Path>,
    pub(crate) key: Option<&'a Path>,
}

/// The resources of one type; `*` stands for all.
#[derive(Clone)]
struct Subscription(TypeUrl, Vec<String>);

impl Arguments {
    /// Reads the command line; ends the program if it is wrong.
    pub(crate) fn read() -> Self {
        let arguments = Self::parse();
        if let Err((kind, error)) = arguments.check() {
            Self::command().error(kind, error).exit();
        }
        arguments
    }

    fn check(&self) -> Result<(), (ErrorKind, String)> {
        let files = [&self.tls_ca, &self.tls_cert, &self.tls_key];
        let is_tls = self.variant != Variant::File && self.server().is_ok_and(|uri| uri.scheme_str() == Some("https"));
        if !is_tls && files.into_iter().any(Option::is_some) {
            return Err((ErrorKind::ArgumentConflict, "certificates need a --server of https://".into()));
        }
        if self.variant != Variant::File {
            self.server().map_err(|error| (ErrorKind::InvalidValue, format!("--server {}: {error}", self.server)))?;
        }
        if self.variant == Variant::File && self.load_report {
            return Err((
                ErrorKind::ArgumentConflict,
                "--load-report needs a server, and --variant file has none".into(),
            ));
        }
        if self.variant != Variant::Rest && (self.refresh.is_some() || self.request_timeout.is_some()) {
            let error = "--refresh and --request-timeout need --variant rest";
            return Err((ErrorKind::ArgumentConflict, error.into()));
        }
        if self.variant == Variant::Rest {
            self.poll_config(0).map_err(|error| (ErrorKind::InvalidValue, error))?;
        }
        for Subscription(type_url, _) in &self.subscribe {
            let can = match self.variant {
                Variant::Sotw | Variant::Delta => true,
                Variant::Rest => service::rest_path(type_url).is_some(),
                Variant::File => short(type_url).is_some(),
            };
            if !can {
                let what = if self.variant == Variant::Rest { "can't be polled" } else { "has no short name" };
                return Err((ErrorKind::InvalidValue, format!("{type_url} {what}")));
            }
        }
        Ok(())
    }

    /// Returns the server.
    ///
    /// # Errors
    ///
    /// If it is no URL.
    pub(crate) fn server(&self) -> Result<Uri, String> {
        read_server(&self.server)
    }

    pub(crate) fn tls_files(&self) -> TlsFiles<'_> {
        TlsFiles { ca: self.tls_ca.as_deref(), cert: self.tls_cert.as_deref(), key: self.tls_key.as_deref() }
    }

    /// Returns the configuration of a poll.
    pub(crate) fn poll_config(&self, id: u64) -> Result<poll::Config, String> {
        let second = Duration::from_secs(1);
        let config = poll::Config::new(self.config().with_id(id), self.refresh.unwrap_or(second));
        let config = config.and_then(|config| config.with_request_timeout(self.request_timeout.unwrap_or(second)));
        let reports = self.dialect != Dialect::Envoy;
        config.map(|config| config.with_report_rejection(reports)).map_err(|error| error.to_string())
    }

    /// Returns whether a response without a resource of this type removes the resource.
    pub(crate) fn is_full_state(&self, type_url: &TypeUrl) -> bool {
        TypeRegistry::default().get(type_url).is_full_state()
    }

    /// Returns the subscriptions as they were given.
    pub(crate) fn subscriptions(&self) -> Vec<(TypeUrl, Vec<ResourceName>)> {
        let names = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        self.subscribe.iter().map(|Subscription(type_url, all)| (type_url.clone(), names(all))).collect()
    }

    /// Returns what to subscribe to, in the order of the command line.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let of_type = |Subscription(type_url, names): &Subscription| {
            names.iter().map(|name| (type_url.clone(), name.as_str().into())).collect::<Vec<_>>()
        };
        self.subscribe.iter().flat_map(of_type).collect()
    }

    pub(crate) fn config(&self) -> Config {
        let mut node = Node::new(&self.node).with_rest(metadata(&self.node_metadata));
        node.cluster.clone_from(&self.node_cluster);
        let mut config = Config::new(node).with_dialect(self.dialect);
        for feature in &self.server_features {
            config = match feature.as_str() {
                "ignore_resource_deletion" => config.with_data_errors(DataErrors::Keep),
                "fail_on_data_errors" => config.with_data_errors(DataErrors::Drop),
                "resource_timer_is_transient_error" => {
                    config.with_transient_timeout().with_existence_timeout(Some(TRANSIENT_TIMEOUT))
                }
                _ => config, // as gRPC does
            };
        }
        config
    }

    /// Returns the configuration of load reports: the node is that of the xDS client, and the habits are those of the
    /// dialect.
    pub(crate) fn load_config(&self) -> load::Config {
        let dialect = match self.dialect {
            Dialect::Envoy => load::Dialect::Envoy,
            Dialect::Grpc => load::Dialect::Grpc,
            _ => load::Dialect::Spec,
        };
        load::Config::new((**self.config().node()).clone()).with_dialect(dialect)
    }

    /// Returns the endpoint of the server.
    ///
    /// # Errors
    ///
    /// If a file can't be read, or is no certificate or key.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, String> {
        let server = self.server()?;
        let endpoint = Endpoint::from(server.clone());
        if server.scheme_str() != Some("https") {
            return Ok(endpoint);
        }
        let mut tls = ClientTlsConfig::new();
        tls = match &self.tls_ca {
            Some(file) => tls.ca_certificate(Certificate::from_pem(read_pem(file, "CERTIFICATE")?)),
            None => tls.with_native_roots(),
        };
        if let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let (certificate, key) = (read_pem(cert, "CERTIFICATE")?, read_pem(key, "PRIVATE KEY")?);
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        endpoint.tls_config(tls).map_err(|error| {
            let files = [&self.tls_ca, &self.tls_cert, &self.tls_key].into_iter().flatten();
            let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
            let cause = error.source().map_or(error.to_string(), ToString::to_string);
            format!("{}: {cause}", files.join(", "))
        })
    }
}

/// Reads a PEM file that has such a block. A file without one would be taken for an empty list.
fn read_pem(file: &Path, block: &str) -> Result<Vec<u8>, String> {
    let pem = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let has = String::from_utf8_lossy(&pem).contains(&format!("{block}-----"));
    if has { Ok(pem) } else { Err(format!("{}: no {block} in PEM form", file.display())) }
}

/// Reads a URL, or the path of a folder.
fn read_place(place: &str) -> Result<String, String> {
    if place.contains("://") {
        read_server(place)?;
    }
    Ok(place.to_string())
}

fn read_server(url: &str) -> Result<Uri, String> {
    let with_scheme = if url.contains("://") { url.to_string() } else { format!("http://{url}") };
    let uri: Uri = with_scheme.parse().map_err(|error| format!("no URL: {error}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(_)) => Ok(uri),
        _ => Err("it must be http://HOST:PORT or https://HOST:PORT".into()),
    }
}

/// Returns the short name of a type.
pub(crate) fn short(type_url: &TypeUrl) -> Option<&'static str> {
    TYPES.iter().find(|(_, url)| type_url == *url).map(|(short, _)| *short)
}

fn read_subscription(what: &str) -> Result<Subscription, String> {
    let (kind, names) = what.split_once('=').unwrap_or((what, WILDCARD));
    let known = TYPES.iter().find(|(short, _)| *short == kind).map(|(_, url)| *url);
    let known = known.or(Some(kind).filter(|kind| kind.contains('/')));
    let type_url = TypeUrl::from(known.ok_or_else(|| format!("no type {kind:?}: give a type URL, or lds, cds, .."))?);
    if names.split(',').any(str::is_empty) {
        return Err("it has an empty name".into());
    }
    Ok(Subscription(type_url, names.split(',').map(String::from).collect()))
}

fn read_entry(entry: &str) -> Result<(String, String), String> {
    let (key, value) = entry.split_once('=').ok_or("it must be KEY=VALUE")?;
    Ok((key.to_string(), value.to_string()))
}

/// The metadata of `envoy.config.core.v3.Node`, encoded.
fn metadata(entries: &[(String, String)]) -> Vec<u8> {
    #[derive(Clone, PartialEq, Message)]
    struct Rest {
        #[prost(message, optional, tag = "3")]
        metadata: Option<prost_types::Struct>,
    }
    let value = |text: &String| prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(text.clone())) };
    let fields = entries.iter().map(|(key, text)| (key.clone(), value(text))).collect();
    let metadata = (!entries.is_empty()).then_some(prost_types::Struct { fields });
    Rest { metadata }.encode_to_vec()
}

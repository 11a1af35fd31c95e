//! The command line of `xds_client`.

use std::time::Duration;

use tonic::transport::Uri;
use xds_machine::client::Dialect;
use xds_machine::{TypeUrl, WILDCARD, type_url};

use crate::dialects;
use crate::references::Target;

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

pub struct Arguments {
    pub server: Uri,
    pub delta: bool,
    pub dialect: Dialect,
    pub node: String,
    pub subscribe: Vec<Target>,
    /// The time after which the program ends.
    pub limit: Option<Duration>,
    pub follow: bool,
}

impl Arguments {
    pub const USAGE: &str = "usage: xds_client --server URL --variant sotw|delta [--node ID] \
                     [--dialect spec|envoy|grpc|istio] --subscribe TYPE[=NAME,..] [--subscribe ..] [--for SECONDS] [--follow]";

    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut server, mut delta, mut node) = (None, None, "xds_client".to_string());
        let (mut dialect, mut subscribe, mut limit, mut follow) = (Dialect::Spec, Vec::new(), None, false);
        while let Some(flag) = arguments.next() {
            if flag == "--follow" {
                follow = true;
                continue;
            }
            let known =
                ["--server", "--variant", "--node", "--dialect", "--subscribe", "--for"].contains(&flag.as_str());
            let value = arguments.next().filter(|_| known);
            let value = match value {
                Some(value) => value,
                None if known => return Err(format!("{flag} needs a value")),
                None => return Err(format!("unknown flag {flag}")),
            };
            match (flag.as_str(), value.as_str()) {
                ("--server", url) => server = Some(read_server(url)?),
                ("--variant", "sotw") => delta = Some(false),
                ("--variant", "delta") => delta = Some(true),
                ("--variant", other) => return Err(format!("no variant {other:?}: there are sotw and delta")),
                ("--dialect", name) => dialect = dialects::find(&dialects::CLIENT, name)?,
                ("--subscribe", what) => subscribe.extend(read_subscription(what)?),
                ("--for", seconds) => {
                    let time = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    limit = Some(time.ok_or_else(|| format!("--for {seconds:?} is no number of seconds"))?);
                }
                _ => node = value,
            }
        }
        if subscribe.is_empty() {
            return Err("--subscribe is missing".into());
        }
        let server = server.ok_or("--server is missing")?;
        Ok(Self { server, delta: delta.ok_or("--variant is missing")?, dialect, node, subscribe, limit, follow })
    }
}

fn read_server(url: &str) -> Result<Uri, String> {
    let with_scheme = if url.contains("://") { url.to_string() } else { format!("http://{url}") };
    let uri: Uri = with_scheme.parse().map_err(|error| format!("--server {url:?} is no URL: {error}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(_)) => Ok(uri),
        _ => Err(format!("--server {url:?} must be http://HOST:PORT: this program has no TLS")),
    }
}

fn read_subscription(what: &str) -> Result<Vec<Target>, String> {
    let (kind, names) = what.split_once('=').unwrap_or((what, WILDCARD));
    let known = TYPES.iter().find(|(short, _)| *short == kind).map(|(_, url)| *url);
    let known = known.or(Some(kind).filter(|kind| kind.contains('/')));
    let type_url = TypeUrl::from(known.ok_or_else(|| format!("no type {kind:?}: give a type URL, or lds, cds, .."))?);
    if names.split(',').any(str::is_empty) {
        return Err(format!("--subscribe {what:?} has an empty name"));
    }
    Ok(names.split(',').map(|name| (type_url.clone(), name.into())).collect())
}

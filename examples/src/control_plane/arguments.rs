//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::builder::{RangedU64ValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use xds_machine::server::Dialect;

use super::etcd::arguments::Etcd;
use crate::{dialects, duration};

/// The resources that are served without `--resources`.
pub const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/resources");

/// Serves a folder of xDS resources, or those of an etcd, to Envoy, gRPC and any other xDS client.
#[derive(Debug, Parser)]
#[command(name = "control_plane", version)]
pub struct Arguments {
    /// Where to listen: HOST:PORT (port 0 is any that is free), :PORT for all addresses, or unix:PATH
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:18000")]
    pub listen: String,

    /// A folder of .json, .yaml, .pb and .pb_text files, each a DiscoveryResponse, watched for changes
    #[arg(long, value_name = "DIR", default_value = DEMO, hide_default_value = true)]
    #[arg(
        long_help = "A folder of .json, .yaml, .pb and .pb_text files, each a DiscoveryResponse, watched for changes; \
                       with --group-by, DIR/GROUP/ holds what only the nodes of that group see. \
                       Without the flag a demo is served"
    )]
    pub resources: PathBuf,

    /// The size of the largest file of DIR that is read
    #[arg(long, value_name = "N", default_value_t = 64 << 20)]
    pub max_file_bytes: u64,

    #[command(flatten)]
    pub etcd: Etcd,

    /// Which part of the node says its group: cluster, id or metadata.KEY; without it only what all see is read
    #[arg(long, value_name = "WHAT")]
    pub group_by: Option<GroupBy>,

    /// What clients need beyond the specification
    #[arg(long, value_name = "NAME", default_value = "spec", value_parser = dialect())]
    pub dialect: Dialect,

    /// The certificate chain of the server, in PEM; new connections use a new one when the file changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// The CA that has to have signed a client's certificate, in PEM; without it clients need none
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,

    /// Where to serve /metrics (Prometheus), /healthz and /readyz over plain HTTP
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,

    /// Ask for load reports (LRS) of all clusters, each time that this has passed: a number with ms, s or m, at least 1s
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub load_interval: Option<Duration>,

    /// The size from which on a delta response is sent in portions; gRPC clients take 4 MiB (4194304) by default
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    #[arg(
        long_help = "The size from which on a delta response is sent in portions, each after the answer to the one \
                       before, in bytes. gRPC clients take messages of up to 4194304 bytes unless told otherwise; \
                       Envoy takes any. A larger resource is sent alone, and SotW responses are never split"
    )]
    pub max_response_bytes: Option<usize>,

    /// The format of the log on standard output
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub log: Format,
}

impl Arguments {
    /// Reads the command line; ends the program if it is wrong.
    pub fn read() -> Self {
        let arguments = Self::parse();
        if let Err(error) = arguments.etcd.check() {
            Self::command().error(ErrorKind::ArgumentConflict, error).exit();
        }
        arguments
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// One JSON object a line, and nothing else on standard output
    Json,
    /// Lines for people
    Text,
}

/// The part of a node that names its group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GroupBy {
    /// `node.cluster`.
    Cluster,
    /// `node.id`.
    Id,
    /// The value of a key of `node.metadata`.
    Metadata(String),
}

impl FromStr for GroupBy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.strip_prefix("metadata.")) {
            ("cluster", _) => Ok(Self::Cluster),
            ("id", _) => Ok(Self::Id),
            (_, Some(key)) if !key.is_empty() => Ok(Self::Metadata(key.to_owned())),
            _ => Err("a group is the node's cluster, id or metadata.KEY"),
        }
    }
}

fn dialect() -> impl TypedValueParser<Value = Dialect> {
    let names = dialects::SERVER.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| dialects::find(&dialects::SERVER, &name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, String> {
        let arguments = ["control_plane"].iter().chain(arguments);
        Arguments::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn group_by_accepts_cluster_id_and_metadata_keys() {
        let by = |what| parse(&["--group-by", what]).map(|arguments| arguments.group_by);
        assert_eq!(by("cluster"), Ok(Some(GroupBy::Cluster)));
        assert_eq!(by("id"), Ok(Some(GroupBy::Id)));
        assert_eq!(by("metadata.a.b"), Ok(Some(GroupBy::Metadata("a.b".into()))));
        for wrong in ["metadata.", "metadata", "locality", ""] {
            let error = by(wrong).expect_err("no part of a node");
            assert!(error.contains("a group is the node's cluster, id or metadata.KEY"), "{error}");
        }
    }

    #[test]
    fn a_certificate_needs_its_key() {
        assert!(parse(&["--tls-cert", "c"]).expect_err("no key").contains("--tls-key <FILE>"));
        assert!(parse(&["--tls-key", "k"]).expect_err("no certificate").contains("--tls-cert <FILE>"));
        assert!(parse(&["--tls-client-ca", "a"]).expect_err("no certificate").contains("--tls-cert <FILE>"));
        assert!(parse(&["--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a"]).is_ok());
    }

    #[test]
    fn the_etcd_option_excludes_a_folder_and_its_options_are_checked() {
        let etcd = parse(&["--etcd", "a:1,https://b:2"]).expect("an etcd").etcd;
        assert_eq!((etcd.name().as_str(), etcd.prefix.as_str()), ("http://a:1,https://b:2", "/xds"));
        let error = parse(&["--etcd", "a:1", "--resources", "dir"]).expect_err("both");
        assert!(error.contains("'--etcd <URL>' cannot be used with '--resources <DIR>'"), "{error}");
        for wrong in ["ftp://a", "http://a/b", "http://", "a b"] {
            assert!(parse(&["--etcd", wrong]).is_err(), "{wrong}");
        }
        assert!(parse(&["--etcd-tls-ca", "f"]).expect_err("no etcd").contains("--etcd <URL>"));
        assert!(
            parse(&["--etcd", "https://a:1", "--etcd-tls-cert", "f"]).expect_err("no key").contains("--etcd-tls-key")
        );
        assert!(
            parse(&["--etcd", "a:1", "--etcd-user", "u"]).expect_err("no password").contains("--etcd-password-file")
        );
        let plain = parse(&["--etcd", "a:1", "--etcd-tls-ca", "f"]).expect("one by one").etcd.check();
        assert_eq!(plain, Err("certificates need --etcd URLs of https://".into()));
    }

    #[test]
    fn every_dialect_can_be_chosen() {
        for (name, dialect) in dialects::SERVER {
            assert_eq!(parse(&["--dialect", name]).expect(name).dialect, dialect);
        }
        assert!(parse(&["--dialect", "envoy"]).is_err());
    }
}

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Judges servers and clients of the xDS transport protocol by the sentences of its specification
#[derive(Debug, Parser)]
#[command(name = "xds-conformance", version, args_override_self = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) mode: Mode,

    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Runs the fixed cases against a server
    Server {
        /// With --control stdio: the command of the adapter, which starts the server
        #[arg(last = true, value_name = "CMD")]
        command: Vec<String>,
    },
    /// Walks at random with a server, and makes what is wrong as small as it can
    Walk {
        /// Whom to walk with
        #[arg(value_enum)]
        side: Side,
        /// As for the fixed cases
        #[arg(last = true, value_name = "CMD")]
        command: Vec<String>,
    },
    /// Only looks: asks a server for everything, ACKs, and judges what comes; safe in production
    Watch {
        /// How long: 90s, 10m, 2h
        #[arg(long = "for", value_name = "TIME", value_parser = span, default_value = "10m")]
        time: Duration,
    },
    /// A judging proxy between a client and a server; ends, and reports, at an interrupt
    Tap {
        /// Where to listen
        #[arg(long, value_name = "HOST:PORT")]
        listen: String,
        /// The server
        #[arg(long, value_name = "HOST:PORT")]
        upstream: String,
        /// Write what passes, for judge
        #[arg(long, value_name = "FILE.jsonl")]
        record: Option<PathBuf>,
    },
    /// Judges both sides of a recording, as tap --record writes it
    Judge {
        /// The recording: a JSON object a line
        #[arg(value_name = "FILE.jsonl")]
        file: PathBuf,
    },
    /// Makes one page of several reports in JSON: cases and peers
    Matrix {
        /// The reports
        #[arg(required = true, value_name = "REPORT.json")]
        reports: Vec<PathBuf>,
        /// Write the picture, too
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// Write the numbers as a table of Markdown, too
        #[arg(long, value_name = "FILE")]
        markdown: Option<PathBuf>,
    },
    /// Plays the story of a walk once more
    Replay {
        /// The file that the walk has written
        file: PathBuf,
        /// As for the fixed cases
        #[arg(last = true, value_name = "CMD")]
        command: Vec<String>,
    },
    /// Runs the fixed cases with a client: the kit is the server
    Client {
        /// The command of the client or of its adapter; {port}, {bootstrap}, {envoy} and {variant} are filled in
        #[arg(last = true, value_name = "CMD", required = true)]
        command: Vec<String>,
    },
}

/// Whom to walk with.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Side {
    /// A server
    Server,
    /// A client
    Client,
}

/// Options, before or after the mode's name
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The address of the server
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub(crate) address: Option<String>,

    /// How the kit changes what the server has: none, stdio, dir:DIR, exec or grpc:HOST:PORT
    #[arg(long, global = true, value_name = "CONTROL", default_value = "none")]
    pub(crate) control: String,

    /// Client: what makes it ask: stdio (its adapter is told) or reference (what the kit serves)
    #[arg(long, global = true, value_name = "HOW", default_value = "stdio")]
    pub(crate) induced: String,

    /// Client: the bootstraps that {envoy} stands for, a run each: ads-sotw, ads-delta, sotw, delta, ..
    #[arg(long, global = true, value_delimiter = ',', value_name = "NAME")]
    pub(crate) envoy: Vec<String>,

    /// With --control exec: the command that puts the resource of XC_TYPE, XC_NAME, XC_REV and XC_FILE
    #[arg(long, global = true, value_name = "CMD")]
    pub(crate) put: Option<String>,

    /// With --control exec: the command that deletes the resource of XC_TYPE and XC_NAME
    #[arg(long, global = true, value_name = "CMD")]
    pub(crate) delete: Option<String>,

    /// The version of the transport API
    #[arg(long, global = true, value_name = "VERSION", default_value = "v3", value_parser = ["v2", "v3"])]
    pub(crate) transport: String,

    /// Server: the node id of all streams, where a server knows nodes by their ids; each case has its own if not given
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) node: Option<String>,

    /// What the report says of the implementation: project, version, url, contact, ..; may be given more than once
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = fact)]
    pub(crate) about: Vec<(String, String)>,

    /// A file of options, xds-conformance.toml; those of the command line have the last word
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The variants to run
    #[arg(long, global = true, value_enum, value_delimiter = ',', default_values = ["sotw", "delta"])]
    pub(crate) variants: Vec<VariantName>,

    /// The types that the server serves: cds, eds, lds, rds; all of them if not given
    #[arg(long, global = true, value_delimiter = ',', value_name = "TYPE")]
    pub(crate) types: Vec<String>,

    /// The types that have a wildcard
    #[arg(long, global = true, value_delimiter = ',', value_name = "TYPE", default_values = ["cds", "lds"])]
    pub(crate) wildcard: Vec<String>,

    /// Features of the server, besides those that its adapter names: per-type, ads-order, ttl, alias, vhds, glob, ..
    #[arg(long, global = true, value_delimiter = ',', value_name = "FEATURE")]
    pub(crate) features: Vec<String>,

    /// A feature that the server does not have, and why; may be given more than once
    #[arg(long, global = true, value_name = "FEATURE=REASON", value_parser = reason)]
    pub(crate) unsupported: Vec<(String, String)>,

    /// A file of cases that are known to fail: an id or glob a line, a reason behind #
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) known_failing: Option<PathBuf>,

    /// Failures at level SHOULD decide the exit code too
    #[arg(long, global = true)]
    pub(crate) strict: bool,

    /// How long to wait for what must come; measured if not given
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) patience: Option<Duration>,

    /// Run only these cases; the mode's prefix may be left out: 'delta/re*'
    #[arg(long, global = true, value_name = "GLOB")]
    pub(crate) filter: Option<String>,

    /// Of walks: their number
    #[arg(long, global = true, value_name = "N", default_value_t = 1_000)]
    pub(crate) walks: usize,

    /// Of walks: how long to walk; what is wrong may be made smaller for as long again
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub(crate) seconds: Duration,

    /// Of walks: the number that all chance comes from; another one each time if not given
    #[arg(long, global = true, value_name = "S")]
    pub(crate) seed: Option<u64>,

    /// Of walks: the steps of each
    #[arg(long, global = true, value_name = "K", default_value_t = 30)]
    pub(crate) steps: usize,

    /// Of walks: not random ones, but all of up to so many operations; --walks, --steps and --seed do not matter
    #[arg(long, global = true, value_name = "DEPTH", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) exhaustive: Option<u8>,

    /// Of walks: the folder for the stories of what is wrong; it is made if it does not exist
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) save: PathBuf,

    /// Write the report as JSON; - is standard output, and then nothing else goes there
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the report as a page of HTML
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the report as JUnit's XML
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum VariantName {
    /// State of the world
    Sotw,
    /// Incremental
    Delta,
}

fn reason(text: &str) -> Result<(String, String), String> {
    let (feature, reason) = text.split_once('=').ok_or("it is FEATURE=REASON")?;
    Ok((feature.to_owned(), reason.to_owned()))
}

fn fact(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it is KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Reads a time with its unit: 90s, 10m, 2h.
fn span(text: &str) -> Result<Duration, String> {
    let unit = |char: char| match char {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        _ => None,
    };
    let factor = text.chars().last().and_then(unit).ok_or("it is 90s, 10m or 2h")?;
    let time = seconds(&text[..text.len() - 1])?;
    time.checked_mul(factor).ok_or_else(|| "too long".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("more than zero".into()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, String> {
        let arguments = ["xds-conformance"].iter().chain(arguments);
        Arguments::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn options_may_precede_or_follow_the_mode() {
        for line in [
            &["--address", "a:1", "--strict", "server", "--variants", "delta"][..],
            &["server", "--variants", "delta", "--strict", "--address", "a:1"],
            &["--variants", "delta", "server", "--address", "a:1", "--strict"],
        ] {
            let Arguments { options, .. } = parse(line).expect("arguments");
            assert_eq!(options.address.as_deref(), Some("a:1"));
            assert_eq!((options.variants, options.strict), (vec![VariantName::Delta], true));
        }
    }

    #[test]
    fn the_arguments_after_a_double_dash_are_the_command() {
        let line = ["server", "--control", "stdio", "--patience", "2.5", "--", "./adapter", "--strict"];
        let Arguments { mode: Mode::Server { command } | Mode::Client { command }, options } =
            parse(&line).expect("arguments")
        else {
            panic!("cases")
        };
        assert_eq!(command, ["./adapter", "--strict"]);
        assert_eq!((options.patience, options.strict), (Some(Duration::from_millis(2500)), false));
    }

    #[test]
    fn the_walk_mode_takes_a_side_limits_and_a_seed() {
        let line =
            ["walk", "server", "--walks", "7", "--seconds", "2", "--steps", "5", "--seed", "9", "--", "./adapter"];
        let Arguments { mode: Mode::Walk { side, command }, options } = parse(&line).expect("arguments") else {
            panic!("a walk")
        };
        assert_eq!((side, command.len(), options.walks, options.steps), (Side::Server, 1, 7, 5));
        assert_eq!((options.seconds, options.seed), (Duration::from_secs(2), Some(9)));
    }

    #[test]
    fn the_exhaustive_option_takes_a_length_of_1_to_5() {
        let Arguments { options, .. } = parse(&["walk", "client", "--exhaustive", "3", "--", "x"]).expect("arguments");
        assert_eq!(options.exhaustive, Some(3));
        assert!(parse(&["walk", "server", "--exhaustive", "6"]).expect_err("too long").contains("1..=5"));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        assert!(parse(&["serve"]).is_err());
        assert!(parse(&["server", "--unsupported", "ttl"]).expect_err("no reason").contains("FEATURE=REASON"));
        assert!(parse(&["server", "--patience", "0"]).expect_err("zero").contains("more than zero"));
        assert!(parse(&["server", "--variants", "v2"]).is_err());
    }
}

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use examples::duration;
use xds_machine_grpc::bootstrap::Target;

/// Does what a gRPC channel does with xDS before it picks a connection, and prints each configuration as one line of JSON.
#[derive(Parser)]
#[command(name = "grpc_target", version)]
pub(crate) struct Arguments {
    /// The bootstrap file, instead of what the environment says
    #[arg(long, value_name = "FILE")]
    #[arg(long_help = "The bootstrap file. Without it, GRPC_XDS_BOOTSTRAP names the file, or \
                       GRPC_XDS_BOOTSTRAP_CONFIG holds its text")]
    pub(crate) bootstrap: Option<PathBuf>,
    /// End after this time: a number of seconds, or a number with ms, s or m
    #[arg(long = "for", value_name = "SECONDS", value_parser = duration::read)]
    pub(crate) limit: Option<Duration>,
    /// Print what the bootstrap file says, and end
    #[arg(long)]
    pub(crate) check: bool,
    /// The target of the channel: xds:///SERVICE or xds://AUTHORITY/SERVICE
    #[arg(value_parser = Target::parse)]
    pub(crate) target: Target,
}

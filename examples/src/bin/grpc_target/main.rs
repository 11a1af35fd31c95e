//! Takes the xDS steps of a gRPC channel before it picks a connection: from a target to endpoints, by the bootstrap
//! file.
//!
//! Each configuration is one line of JSON. The rules of gRPC are in the crate `xds-machine-grpc`, not here.

mod arguments;
mod session;
mod setup;
mod show;

use std::env;
use std::future::pending;
use std::process::exit;

use arguments::Arguments;
use clap::Parser;
use examples::grpc::connect::connector;
use serde_json::json;
use session::Session;
use setup::Setup;
use tokio::time::sleep;
use xds_machine::service;
use xds_machine_grpc::bootstrap::{Agent, Era};
use xds_machine_grpc::chain::Chain;
use xds_machine_tonic::client::XdsClient;

const AGENT: Agent<'static> = Agent { name: "grpc_target", version: env!("CARGO_PKG_VERSION") };

/// gRFC A88's guard.
const DATA_ERRORS: &str = "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments = Arguments::parse();
    let setup = Setup::read(&arguments).unwrap_or_else(|faults| {
        show::print(&json!({ "bootstrap_error": faults }));
        exit(2);
    });
    if arguments.check {
        show::print(&setup.show());
        return;
    }
    let limit = async {
        match arguments.limit {
            Some(limit) => sleep(limit).await,
            None => pending().await,
        }
    };
    let ran = tokio::select! {
        ran = run(&arguments, setup) => ran,
        () = limit => Ok(()),
    };
    if let Err(error) = ran {
        eprintln!("grpc_target: {error}");
        exit(1);
    }
    exit(0) // without waiting for a name that is being looked up
}

async fn run(arguments: &Arguments, setup: Setup) -> Result<(), String> {
    let Setup { bootstrap, listener } = setup;
    let era = if env::var(DATA_ERRORS).is_ok_and(|value| value == "true") { Era::A88 } else { Era::A53 };
    let config = bootstrap.servers_config(bootstrap.node(&AGENT), era);
    let mut client = XdsClient::builder_of(config).ok_or("no servers")?.variant(service::Variant::Sotw);
    for server in bootstrap.servers() {
        client = client.server(connector(server));
    }
    let client = client.start().map_err(|error| error.to_string())?;
    let updates = client.updates().await.map_err(|error| error.to_string())?;
    let chain = Chain::new(listener, &arguments.target.data_plane_authority());
    Session::new(bootstrap, updates, chain).run().await
}

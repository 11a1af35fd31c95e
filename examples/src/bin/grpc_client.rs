//! A gRPC client whose channels are `xds:///` ones. Answers each line of standard input:
//!
//! ```text
//! rpc TARGET     the answer to a call to xds:///TARGET
//! close TARGET
//! ```

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{Write, stdin, stdout};
use std::process::exit;
use std::time::Duration;

use bytes::Bytes;
use examples::raw::Raw;
use examples::xds_channel::{XdsChannel, supports};
use http::uri::PathAndQuery;
use tokio::task::block_in_place;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::{Request, Status};
use xds_machine_grpc::bootstrap::{Bootstrap, Source, Target, from_env};

const METHOD: &str = "/interop.Backend/Name";
const LIMIT: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() {
    let bootstrap = bootstrap().unwrap_or_else(|error| {
        eprintln!("grpc_client: {error}");
        exit(2)
    });
    let mut channels = BTreeMap::new();
    while let Some(Ok(line)) = block_in_place(|| stdin().lines().next()) {
        let answer = match line.split_once(' ') {
            Some(("rpc", target)) => rpc(&bootstrap, target, &mut channels).await,
            Some(("close", target)) => {
                channels.remove(target);
                Ok(target.to_owned())
            }
            _ => Err(Status::invalid_argument("no command")),
        };
        let text = match answer {
            Ok(answer) => format!("ok {answer}"),
            Err(status) => format!("error {:?} {}", status.code(), status.message()),
        };
        if writeln!(stdout(), "{text}").is_err() {
            return;
        }
    }
}

async fn rpc(bootstrap: &Bootstrap, name: &str, channels: &mut BTreeMap<String, XdsChannel>) -> Result<String, Status> {
    let channel = match channels.get(name) {
        Some(channel) => channel.clone(),
        None => {
            let target =
                Target::parse(&format!("xds:///{name}")).map_err(|error| Status::internal(error.to_string()))?;
            let channel = XdsChannel::connect(bootstrap.clone(), &target).map_err(Status::internal)?;
            channels.insert(name.to_owned(), channel.clone());
            channel
        }
    };
    let mut client = Grpc::new(channel);
    let path = PathAndQuery::from_static(METHOD);
    let call = async {
        client.ready().await?;
        client.unary(Request::new(Bytes::new()), path, Raw).await
    };
    let answer = timeout(LIMIT, call).await.map_err(|_| Status::deadline_exceeded("no answer"))??;
    Ok(String::from_utf8_lossy(&answer.into_inner()).into_owned())
}

/// Reads the bootstrap file that the environment names.
fn bootstrap() -> Result<Bootstrap, String> {
    let text = match from_env(|name| env::var(name).ok()) {
        Some(Source::File(path)) => fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?,
        Some(Source::Text(text)) => text,
        None => return Err("no bootstrap".into()),
    };
    Bootstrap::parse(&text, supports).map_err(|faults| faults.to_string())
}

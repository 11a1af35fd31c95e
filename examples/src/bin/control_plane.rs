//! A control plane that serves a folder of resources: `control_plane --help`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, thread};

use examples::dialects;
use examples::folder::{Folder, News};
use examples::log::{Format, Log};
use examples::observe::Logged;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use xds_machine::server::{Cache, Dialect};
use xds_machine::service;
use xds_machine_tonic::server::{ControlPlane, Group, Shared, next_epoch};

const USAGE: &str = "\
usage: control_plane [--listen 127.0.0.1:18000] [--resources DIR] [--dialect NAME] [--log json|text]

  --listen     where to listen; port 0 is any that is free
  --resources  a folder of .json, .yaml and .pb files, each a DiscoveryResponse, watched for changes;
               a demo without it
  --dialect    spec (the default), istio or go-control-plane: what else than the specification clients need
  --log        one line for each thing that happens, as JSON or for people (the default)";

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/resources");

#[tokio::main]
async fn main() -> ExitCode {
    let result = match parse(env::args().skip(1)) {
        Ok(Some(options)) => run(options).await,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("control_plane: {error} (--help says more)");
            return ExitCode::from(2);
        }
    };
    result.map_or_else(
        |error| {
            eprintln!("control_plane: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

struct Options {
    listen: String,
    resources: PathBuf,
    dialect: Dialect,
    format: Format,
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let (listen, resources) = ("127.0.0.1:18000".into(), DEMO.into());
    let mut options = Options { listen, resources, dialect: Dialect::Spec, format: Format::Text };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        if matches!(flag.as_str(), "--help" | "-h") {
            return Ok(None);
        }
        if !matches!(flag.as_str(), "--listen" | "--resources" | "--dialect" | "--log") {
            return Err(format!("unknown argument {flag}"));
        }
        let value = value.or_else(|| arguments.next()).ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--listen" => options.listen = value,
            "--resources" => options.resources = value.into(),
            "--dialect" => options.dialect = dialects::find(&dialects::SERVER, &value)?,
            _ => {
                options.format = match value.as_str() {
                    "json" => Format::Json,
                    "text" => Format::Text,
                    _ => return Err(format!("--log is json or text, not {value}")),
                }
            }
        }
    }
    Ok(Some(options))
}

async fn run(options: Options) -> Result<(), String> {
    let (folder, news) = Folder::open(&options.resources)
        .map_err(|error| format!("the folder of resources {}: {error}", options.resources.display()))?;
    let listener = TcpListener::bind(&options.listen)
        .await
        .map_err(|error| format!("can't listen on {}: {error}", options.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;

    // The server reports absence only if it is certain: an unreadable file may hold any resource.
    let epoch = next_epoch();
    let cache = if news.complete { Cache::new(epoch) } else { Cache::unknown(epoch) };
    let group = Group::with_store("", Shared::new(cache));
    let log = Log::new(options.format);
    take(news, &group, &log);
    let (watched, said) = (group.clone(), log.clone());
    thread::spawn(move || watch(folder, &watched, &said));

    log.line(format!("listening on {address}"));
    log.complain(hint(&address.to_string(), &options.resources));
    let plane = ControlPlane::builder(move |_, _| Ok(group.clone()))
        .configure(move |config| config.with_dialect(options.dialect).with_control_plane("xds-machine control_plane"))
        .observe(Logged(log))
        .build();
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .max_concurrent_streams(100_000) // where each resource has a stream of its own
        .serve_with_incoming(plane.service(), TcpIncoming::from(listener).with_nodelay(Some(true)))
        .await
        .map_err(|error| error.to_string())
}

fn hint(address: &str, resources: &Path) -> String {
    let mut hint = format!("serving {}\npoint an Envoy at it:\n  envoy -c examples/envoy.yaml", resources.display());
    if !address.ends_with(":18000") {
        hint += &format!("    # with the address of the cluster `xds` changed to {address}");
    }
    if resources == Path::new(DEMO) {
        hint += "\n  curl http://127.0.0.1:10000/ready    # goes through Envoy: what it has learned here";
    }
    hint
}

/// Watches the folder forever.
fn watch(mut folder: Folder, group: &Group, log: &Log) {
    loop {
        let start = Instant::now();
        take(folder.look(), group, log);
        // Limits polling to about a tenth of the time, because listing a large folder is slow.
        thread::sleep(Duration::from_millis(50).max(start.elapsed() * 10));
    }
}

/// Serves changed resources.
fn take(news: News, group: &Group, log: &Log) {
    news.complaints.into_iter().for_each(|complaint| log.complain(complaint));
    let Some(resources) = news.resources else { return };
    group.update(|cache| {
        let gone = cache.types().filter(|known| !resources.contains_key(*known)).cloned();
        for type_url in gone.collect::<Vec<_>>() {
            cache.replace(&type_url, []);
        }
        for (type_url, resources) in resources {
            cache.replace(&type_url, resources);
        }
        if news.complete {
            service::types().for_each(|type_url| cache.set_known(&type_url.into()));
        }
    });
}

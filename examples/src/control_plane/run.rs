//! Puts the parts together, and runs until a signal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_stream::wrappers::ReceiverStream;
use xds_machine::server::ResponseLimit;
use xds_machine_tonic::server::ControlPlane;

use super::about::About;
use super::accept::{Acceptor, raise_open_files};
use super::arguments::Arguments;
use super::feed::Feed;
use super::folder::watch::Anew;
use super::groups::Groups;
use super::health::{self, Health};
use super::listen::{Listener, bind_tcp};
use super::loads::Loads;
use super::log::{Log, Logged};
use super::metrics::{Measured, Metrics};
use super::regexes;
use super::rest;
use super::source::{self, Hint, Source};
use super::tls::{Files, Tls};

/// The time that clients have to read the end of their streams.
const DRAIN: Duration = Duration::from_secs(2);

/// The time between two reports of lost lines of the log.
const REPORT: Duration = Duration::from_secs(1);

/// Runs the program until SIGTERM or SIGINT.
///
/// # Errors
///
/// One line that says what can't be done.
pub async fn run(arguments: Arguments, log: Log) -> Result<(), String> {
    let connections = raise_open_files();
    let signals = |error| format!("can't handle signals: {error}");
    let (stop, hangups) = (stop().map_err(signals)?, signal(SignalKind::hangup()).map_err(signals)?);
    let tls = Files::of(&arguments).map(Tls::open).transpose()?.map(Arc::new);
    let error = |error| format!("can't listen on {}: {error}", arguments.listen);
    let (listener, address) = Listener::bind(&arguments.listen).await.map_err(error)?;
    let metrics = Arc::new(Metrics::new().map_err(|error| error.to_string())?);
    let source = source::name(&arguments);
    metrics.source_up(&source).set(0.0);
    let health = Arc::new(Health::new(source.clone()));
    if let Some(address) = &arguments.metrics {
        let error = |error| format!("can't serve metrics on {address}: {error}");
        let listener = bind_tcp(address).await.map_err(error)?;
        tokio::spawn(axum::serve(listener, health::pages(metrics.clone(), health.clone())).into_future());
    }

    let groups = Arc::new(Groups::new(arguments.group_by.clone()));
    let types = BTreeSet::new();
    let feed = Feed {
        groups: groups.clone(),
        log: log.clone(),
        metrics: metrics.clone(),
        health: health.clone(),
        source,
        types,
    };
    let source = Source::open(&arguments).await?;
    let hint = Hint::new(&arguments, &address);
    let is_transactional = matches!(source, Source::Etcd(..));

    log.listening(&address);
    let assigned = groups.clone();
    let loads = Loads { log: log.clone(), groups: groups.clone(), interval: arguments.load_interval };
    let plane = ControlPlane::builder(move |node, _| Ok(assigned.assign(node)))
        .configure(move |config| {
            let config = config.with_dialect(arguments.dialect).with_control_plane("xds-machine control_plane");
            let config = match arguments.max_response_bytes {
                Some(bytes) => config.with_response_limit(ResponseLimit { bytes, ..ResponseLimit::default() }),
                None => config,
            };
            // The removals of a transaction are sent last in SotW too.
            if is_transactional { config.with_sotw_removal_delay() } else { config }
        })
        .regexes(regexes::compile)
        .observe((Logged::new(log.clone()), Measured::new(metrics.clone(), groups)))
        .load_reports(loads)
        .build();
    let changed = plane.clone();
    // Clients may be served other clusters after a change.
    let anew = source.follow(feed, hint, move || changed.select_loads())?;
    tokio::spawn(reread(hangups, anew));
    if let Some(tls) = tls.clone() {
        tokio::spawn(async move { tls.watch().await });
    }
    tokio::spawn(async move { metrics.keep_up().await });
    tokio::spawn(report_lost(log.clone()));
    let (acceptor, connections) = Acceptor::new(listener, tls, connections);
    tokio::spawn(acceptor.run(plane.draining()));
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .max_concurrent_streams(100_000) // for clients that open a stream for each resource
        .accept_http1(true)
        .serve_with_incoming_shutdown(
            rest::Front::new(plane.clone(), log, About::start(&health, plane.draining())),
            ReceiverStream::new(connections),
            plane.draining(),
        );
    plane.run(server, stop, DRAIN).await.map_err(|error| error.to_string())
}

/// Returns a future that completes at the signal to stop.
fn stop() -> std::io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Lets the folder be read again at each SIGHUP. An etcd tells of all changes itself.
async fn reread(mut hangups: Signal, anew: Option<Anew>) {
    while hangups.recv().await.is_some() {
        match &anew {
            Some(anew) => {
                tracing::info!("SIGHUP: all files are read again");
                anew.ask();
            }
            None => tracing::info!("SIGHUP: there is nothing to read again, the source tells of its changes"),
        }
    }
}

/// Reports lines of the log that were dropped because no program read them.
async fn report_lost(log: Log) {
    let mut said = 0;
    let mut times = tokio::time::interval(REPORT);
    loop {
        times.tick().await;
        let now = log.lost();
        if now > said {
            tracing::warn!("{} lines of the log are lost: nobody read them", now - said);
            said = now;
        }
    }
}

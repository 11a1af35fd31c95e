//! `quilkin-xds` as a server: the streams of its control plane, polled as tonic would poll them, without a network.

mod config;
mod probes;
mod stream;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use benches::alloc;
use futures_util::future::join_all;
use harness::data::TYPE_URL;
use harness::{Probe, Sent, Server, Variant, serve, wire};
use quilkin_xds::net::TcpListener;
use quilkin_xds::server::ControlPlane;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::config::Config;
use crate::stream::{Stream, subscribe};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    quilkin_xds::metrics::set_registry(Box::leak(Box::default())); // without it, the first request panics
    wire::serve_or(on_a_port, serve::<Quilkin>)
}

/// Serves N resources over HTTP/2, by its own management server.
fn on_a_port(n: usize) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let plane = Plane::new(n);
    let listener = TcpListener::bind(None)?;
    let port = listener.port();
    let _inside = runtime.enter();
    runtime.spawn(plane.plane.clone().management_server(listener, None)?);
    wire::obey(port, |round| {
        plane.config.change(0, round);
        plane.plane.push_update(TYPE_URL);
    });
    Ok(())
}

/// The control plane, which lives until the sender is dropped.
pub struct Plane {
    pub config: Arc<Config>,
    pub plane: ControlPlane<Config>,
    _shutdown: watch::Sender<()>,
}

impl Plane {
    pub fn new(n: usize) -> Self {
        let (config, (shutdown, ends)) = (Arc::new(Config::new(n)), watch::channel(()));
        let plane = ControlPlane::from_arc(config.clone(), Duration::from_secs(30), ends);
        Self { config, plane, _shutdown: shutdown }
    }
}

struct Quilkin {
    runtime: Runtime,
    plane: Plane,
    streams: Vec<Stream>,
}

impl Server for Quilkin {
    const DRIVE: &'static str =
        "in memory: its control plane's streams, without HTTP/2; the store is ours, as it has none";

    fn new(n: usize, variant: Variant) -> Result<Self, String> {
        if variant == Variant::Sotw {
            return Err("it answers unimplemented: only delta streams are supported".into());
        }
        let runtime = runtime().map_err(|error| error.to_string())?;
        Ok(Self { runtime, plane: Plane::new(n), streams: Vec::new() })
    }

    fn open(&mut self) -> Result<Sent, String> {
        let Self { runtime, plane, streams } = self;
        runtime.block_on(async {
            let mut stream = Stream::open(&plane.plane, subscribe(&[])).await?;
            let sent = stream.take().await?;
            streams.push(stream);
            Ok(sent)
        })
    }

    fn change(&mut self, at: usize, round: u8, _: bool) -> Result<Sent, String> {
        let Self { runtime, plane, streams } = self;
        runtime.block_on(async {
            plane.config.change(at, round);
            plane.plane.push_update(TYPE_URL);
            // All streams at once, because the control plane sends changes on its own, a tenth of a second later.
            let sent: Result<Vec<Sent>, String> =
                join_all(streams.iter_mut().map(Stream::take)).await.into_iter().collect();
            sent?.first().copied().ok_or_else(|| "no stream".into())
        })
    }

    fn probes() -> Vec<Probe> {
        runtime().map(|runtime| runtime.block_on(probes::all())).unwrap_or_default()
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()
}

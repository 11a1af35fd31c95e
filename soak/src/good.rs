//! Clients that keep to the rules: they have to have every change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use prost::Message;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use xds_machine::client::Config;
use xds_machine::message::Node;
use xds_machine::service::Variant;
use xds_machine::watch::News;
use xds_machine::{ResourceName, WILDCARD, type_url};
use xds_machine_tonic::client::{Watch, XdsClient, XdsResource};

use crate::folder::{self, MARKER};

/// The number of clients with streams on one connection.
const SHARE: usize = 10;

#[derive(PartialEq)]
struct Cluster(u64);

impl XdsResource for Cluster {
    const TYPE_URL: &'static str = type_url::CLUSTER;
    type Error = String;

    fn decode(_: &ResourceName, body: &Bytes) -> Result<Self, String> {
        folder::Cluster::decode(body.clone()).map(|of| Self(of.round())).map_err(|error| error.to_string())
    }
}

/// A cluster that is rejected, whatever it is.
#[derive(PartialEq)]
struct Rejected;

impl XdsResource for Rejected {
    const TYPE_URL: &'static str = type_url::CLUSTER;
    type Error = &'static str;

    fn decode(_: &ResourceName, _: &Bytes) -> Result<Self, &'static str> {
        Err("this client rejects everything")
    }
}

/// What a client has: the round of each cluster.
#[derive(Default)]
pub struct Has {
    /// One more than the round of the marker; 0 before there is one.
    marker: AtomicU64,
    clusters: Mutex<BTreeMap<String, u64>>,
}

impl Has {
    /// Returns the last change that the client has.
    pub fn round(&self) -> Option<u64> {
        self.marker.load(Ordering::Relaxed).checked_sub(1)
    }

    pub fn clusters(&self) -> BTreeMap<String, u64> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Starts clients that stay: of ten, nine speak delta on a connection that they share, and one SotW on its own.
pub async fn stay(
    at: SocketAddr,
    count: usize,
    tasks: &mut JoinSet<Result<(), String>>,
) -> Result<Vec<Arc<Has>>, String> {
    let mut all = Vec::new();
    for first in (0..count).step_by(SHARE) {
        let channel = channel(at).connect().await.map_err(|error| error.to_string())?;
        for number in first..count.min(first + SHARE) {
            let variant = if number % SHARE == 0 { Variant::Sotw } else { Variant::Delta };
            let client = match variant {
                Variant::Sotw => client(number, Variant::Sotw, self::channel(at).connect_lazy())?,
                Variant::Delta => client(number, Variant::Delta, channel.clone())?,
            };
            let has = Arc::<Has>::default();
            all.push(has.clone());
            tasks.spawn(async move { follow(client, &has).await });
        }
    }
    Ok(all)
}

/// Comes, waits for all resources, and leaves; or rejects them.
pub async fn visit(at: SocketAddr, random: &mut fastrand::Rng) -> Result<(), String> {
    let variant = if random.bool() { Variant::Sotw } else { Variant::Delta };
    let client = client(0, variant, channel(at).connect_lazy())?;
    if random.u8(..4) == 0 {
        let mut watch = client.watch::<Rejected>(WILDCARD).await.map_err(|error| error.to_string())?;
        until(&mut watch, |name, news| name == MARKER && matches!(news, News::Changed(Err(_)))).await?;
    } else {
        let mut watch = client.watch::<Cluster>(WILDCARD).await.map_err(|error| error.to_string())?;
        until(&mut watch, |name, news| name == MARKER && matches!(news, News::Changed(Ok(_)))).await?;
    }
    client.close().await;
    Ok(())
}

async fn until<R: XdsResource>(
    watch: &mut Watch<R>,
    is_it: impl Fn(&str, &News<Arc<R>>) -> bool,
) -> Result<(), String> {
    loop {
        let event = watch.next().await.ok_or("a visitor's client ended")?;
        if is_it(event.name.as_str(), &event.news) {
            return Ok(());
        }
    }
}

fn channel(at: SocketAddr) -> Endpoint {
    Endpoint::from_shared(format!("http://{at}")).expect("an address is a URI").tcp_nodelay(true)
}

fn client(number: usize, variant: Variant, channel: Channel) -> Result<XdsClient, String> {
    let connect = move || ready(Ok::<_, Infallible>(channel.clone()));
    let config = Config::new(Node::new(format!("good-{number}")));
    XdsClient::builder(config).variant(variant).server(connect).start().map_err(|error| error.to_string())
}

async fn follow(client: XdsClient, has: &Has) -> Result<(), String> {
    let mut watch = client.watch::<Cluster>(WILDCARD).await.map_err(|error| error.to_string())?;
    while let Some(event) = watch.next().await {
        let name = event.name.as_str().to_owned();
        let mut clusters = has.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        match event.news {
            News::Changed(Ok(cluster)) => {
                if name == MARKER {
                    has.marker.store(cluster.0 + 1, Ordering::Relaxed);
                }
                clusters.insert(name, cluster.0);
            }
            News::Changed(Err(_)) => _ = clusters.remove(&name),
            _ => {}
        }
    }
    Ok(())
}

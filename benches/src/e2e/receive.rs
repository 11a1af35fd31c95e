//! The process that receives: `receive ours|bare PORT N`. It opens a stream for a first line, and closes it for the
//! next.

use std::convert::Infallible;
use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::sleep;
use tonic::transport::Endpoint;
use xds_machine::client::Config;
use xds_machine::message::Node;
use xds_machine::{ResourceName, WILDCARD, type_url};
use xds_machine_tonic::client::{Watch, XdsClient, XdsResource};

use super::Variant;
use super::generator::Fleet;
use super::serve::obey;
use super::wire::nothing;

/// The time in which the last request is surely sent.
const AFTER: Duration = Duration::from_millis(50);

/// A cluster that is not decoded.
#[derive(PartialEq)]
struct Cluster(Bytes);

impl XdsResource for Cluster {
    const TYPE_URL: &'static str = type_url::CLUSTER;
    type Error = Infallible;

    fn decode(_: &ResourceName, body: &Bytes) -> Result<Self, Infallible> {
        Ok(Self(body.clone()))
    }
}

/// Receives until the input ends.
///
/// # Errors
///
/// If the arguments are none of the above.
pub fn receive(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [kind, port, n] = arguments[..] else { return Err("receive ours|bare PORT N".into()) };
    let (port, n) = (port.parse()?, n.parse()?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    println!("{port}");
    if kind == "ours" {
        let close = |(client, _watch)| runtime.block_on(XdsClient::close(&client));
        take_turns(|| runtime.block_on(watch(port, n)), close);
    } else {
        let local = LocalSet::new();
        let close = |fleet| local.block_on(&runtime, Fleet::close(fleet));
        take_turns(|| local.block_on(&runtime, fleet(port, n)), close);
    }
    Ok(())
}

/// Opens a client for a line, which takes until the moment that `open` returns, and closes it for the next.
fn take_turns<T>(open: impl Fn() -> (T, Instant), close: impl Fn(T)) {
    let mut client = None;
    obey(|| match client.take() {
        None => {
            let (opened, last) = open();
            client = Some(opened);
            last
        }
        Some(opened) => {
            close(opened);
            Instant::now()
        }
    });
}

/// Watches all clusters, until N have arrived. Returns the moment of the last one.
async fn watch(port: u16, n: usize) -> ((XdsClient, Watch<Cluster>), Instant) {
    let server = Endpoint::new(format!("http://127.0.0.1:{port}")).expect("a URI");
    let client = XdsClient::builder(Config::new(Node::new("n"))).server(server).start().expect("one server");
    let mut watch = client.watch::<Cluster>(WILDCARD).await.expect("the only watcher");
    for _ in 0..n {
        watch.next().await.expect("the client is open");
    }
    let last = Instant::now();
    sleep(AFTER).await;
    ((client, watch), last)
}

/// Receives all clusters. Returns the moment of the last one.
async fn fleet(port: u16, n: usize) -> (Fleet, Instant) {
    let fleet = Fleet::open(port, 1, 1, Variant::Delta, &nothing(Variant::Delta)).await;
    assert_eq!(fleet.responses().await, n);
    let last = Instant::now();
    sleep(AFTER).await;
    (fleet, last)
}

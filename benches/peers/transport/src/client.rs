//! The work of a client: F9, a response of all resources in which one has changed, and F10, names that are watched one
//! by one.

use std::process::ExitCode;

use benches::alloc;
use benches::data::name;
use benches::floor::{Decode, Encode, SotwResponse};
use benches::work::{OneByOne, all};
use bytes::Bytes;
use harness::clock::{Start, floor, rounds};
use harness::server::Wrong;
use harness::{Probe, Row, cap};
use prost::Message;
use tokio::runtime::Runtime;
use tokio::task::yield_now;

use crate::stub::Stub;

/// A client with its transport.
#[allow(async_fn_in_trait)]
pub trait Client: Sized {
    /// How it is driven.
    const DRIVE: &'static str;

    /// Creates a client, which may connect later.
    async fn new(address: &str) -> Result<Self, Wrong>;

    /// Watches a name, or all resources if the name is empty.
    async fn watch(&mut self, name: String);

    /// Waits until the application has looked at all resources of a response. Returns the newest round (the last byte
    /// of a body) among them.
    async fn applied(&mut self, resources: usize) -> Result<u8, Wrong>;

    /// Returns the answers of the client to further questions.
    async fn probes() -> Vec<Probe>;
}

/// Runs the program of a client: `WORKLOAD N`.
pub fn serve<T: Client>() -> ExitCode {
    alloc::keep();
    cap::cap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let n = arguments.get(1).and_then(|number| number.parse().ok()).unwrap_or(0);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.to_string()),
    };
    let result = match arguments.first().map(String::as_str) {
        Some("all") => full::<T>(&runtime, n, false),
        Some("named") => full::<T>(&runtime, n, true),
        Some("names") => runtime.block_on(names::<T>(n, false)),
        Some("turns") => runtime.block_on(names::<T>(n, true)),
        Some("probe") => {
            runtime.block_on(T::probes()).iter().for_each(|probe| probe.print(T::DRIVE));
            Ok(())
        }
        _ => Err("usage: all N | named N | names N | turns N | probe".into()),
    };
    result.map_or_else(|wrong| fail(&wrong), |()| ExitCode::SUCCESS)
}

fn fail(wrong: &str) -> ExitCode {
    eprintln!("{wrong}");
    ExitCode::FAILURE
}

/// Returns a response of all resources, in which one is of this round.
pub fn response(n: usize, round: u8) -> Bytes {
    let version_info = round.to_string();
    SotwResponse { nonce: round.to_string(), version_info, ..all(n, round) }.encode_to_vec().into()
}

/// Measures F9: from the response, ready on the server's side, until its ACK has arrived and the application has seen
/// the change.
fn full<T: Client>(runtime: &Runtime, n: usize, named: bool) -> Result<(), Wrong> {
    let floor_ns = floor(Decode::new(&all(n, 0)));
    let (mut stub, mut client) = runtime.block_on(async {
        let mut stub = Stub::start().await?;
        let mut client = T::new(&stub.address).await?;
        let wanted = if named { (0..n).map(name).collect() } else { vec![String::new()] };
        for (watched, name) in wanted.into_iter().enumerate() {
            client.watch(name).await;
            if (watched + 1) % 1000 == 0 {
                eprintln!("{} of {n} names are watched", watched + 1);
            }
        }
        while stub.request().await.names.len() < if named { n } else { 0 } {}
        Ok::<_, Wrong>((stub, client))
    })?;
    let mut bytes = 0;
    let (took, rounds) = rounds(15, |round| {
        let response = response(n, round as u8);
        bytes = response.len();
        let start = Start::now();
        let newest = runtime.block_on(async {
            stub.respond(response);
            let nonce = round.to_string();
            let (acknowledged, applied) = tokio::join!(stub.acknowledged(&nonce), client.applied(n));
            acknowledged.and(applied)
        })?;
        let took = start.took();
        eprintln!("{} responses", round + 1);
        if newest == round as u8 { Ok(took) } else { Err(format!("round {newest} is applied instead of {round}")) }
    })?;
    let workload = if named { "response, all named" } else { "response, wildcard" }.into();
    let bytes = bytes as f64;
    let (s, changed, wrong, drive) = (1, 1, None, T::DRIVE);
    Row { workload, n, s, changed, took, rounds, bytes, resources: n, floor_ns, wrong, drive }.print();
    Ok(())
}

/// Measures F10: until a request with all names has arrived. With `turns`, all pending work is done after each name.
async fn names<T: Client>(n: usize, turns: bool) -> Result<(), Wrong> {
    let floor_ns = floor(Encode::new(OneByOne::new(n).floor()));
    let mut stub = Stub::start().await?;
    let mut client = T::new(&stub.address).await?;
    client.watch("first".into()).await;
    stub.request().await;
    let start = Start::now();
    for watched in 0..n {
        client.watch(name(watched)).await;
        if turns {
            yield_now().await;
        }
        if (watched + 1) % 1000 == 0 {
            eprintln!("{} of {n} names are watched", watched + 1);
        }
    }
    let (mut requests, mut bytes, mut announced) = (0, 0, 0);
    while announced <= n {
        let said = stub.request().await;
        announced = said.names.len();
        requests += 1;
        bytes += said.bytes;
    }
    let took = start.took();
    let workload = if turns { "names, a turn each" } else { "names, one by one" }.into();
    let (rounds, bytes, wrong, drive) = (1, bytes as f64, None, T::DRIVE);
    Row { workload, n, s: 1, changed: n, took, rounds, bytes, resources: requests, floor_ns, wrong, drive }.print();
    Ok(())
}

/// Encodes any message.
pub fn encode(message: &impl Message) -> Vec<u8> {
    message.encode_to_vec()
}

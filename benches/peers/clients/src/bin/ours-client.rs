//! xds-machine as a client, under a driver like the one in `examples/`: a task that owns the machine and the stream,
//! and an application that talks to it over channels.

use std::process::ExitCode;
use std::time::Instant as Clock;

use benches::alloc;
use benches::data::clusters;
use bytes::Bytes;
use harness::Probe;
use tokio::sync::mpsc;
use tonic::Streaming;
use transport::{Client, serve};
use xds_machine::client::{self, Action};
use xds_machine::message::Node;
use xds_machine::{Instant, Sotw, WILDCARD, proto};

#[global_allocator]
static COUNTING: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    serve::<Ours>()
}

struct Ours {
    names: mpsc::UnboundedSender<String>,
    applied: mpsc::UnboundedReceiver<u8>,
}

impl Client for Ours {
    const DRIVE: &'static str =
        "tonic over loopback: a driver task like that in examples/, watches sent over a channel";

    async fn new(address: &str) -> Result<Self, String> {
        let (names, wanted) = mpsc::unbounded_channel();
        let (seen, applied) = mpsc::unbounded_channel();
        let machine = client::Client::new(client::Config::new(Node::new("n")));
        let driver = Driver { machine, epoch: Clock::now(), seen };
        tokio::spawn(driver.run(address.to_string(), wanted));
        Ok(Self { names, applied })
    }

    async fn watch(&mut self, name: String) {
        let _ = self.names.send(if name.is_empty() { WILDCARD.into() } else { name });
    }

    async fn applied(&mut self, _: usize) -> Result<u8, String> {
        self.applied.recv().await.ok_or_else(|| "the stream ended".into())
    }

    async fn probes() -> Vec<Probe> {
        Vec::new()
    }
}

struct Driver {
    machine: client::Client<Sotw>,
    epoch: Clock,
    seen: mpsc::UnboundedSender<u8>,
}

impl Driver {
    async fn run(mut self, address: String, mut wanted: mpsc::UnboundedReceiver<String>) -> Result<(), String> {
        let (requests, outbound) = mpsc::channel(1);
        let first = wanted.recv().await.ok_or("nobody wants anything")?;
        self.subscribe(first, &mut wanted);
        self.machine.handle_open();
        let mut opening = std::pin::pin!(clients::open(address, outbound));
        let mut inbound: Option<Streaming<Bytes>> = None;
        loop {
            self.act();
            let due = self.machine.poll_timeout().map(|due| self.epoch + due.since_epoch());
            tokio::select! {
                opened = &mut opening, if inbound.is_none() => {
                    inbound = Some(opened.map_err(|status| status.to_string())?);
                }
                name = wanted.recv() => match name {
                    Some(name) => self.subscribe(name, &mut wanted),
                    None => return Ok(()),
                },
                room = requests.reserve(), if self.machine.wants_transmit() => {
                    let room = room.map_err(|error| error.to_string())?;
                    if let Some(transmit) = self.machine.poll_transmit() {
                        room.send(Bytes::from(proto::sotw::encode_request(&transmit.request)));
                        self.machine.handle_sent(self.now(), transmit.sent);
                    }
                }
                message = next(&mut inbound), if self.machine.wants_response() => {
                    let bytes = message?.ok_or("the server ended the stream")?;
                    let response = proto::sotw::decode_response(bytes).map_err(|error| error.to_string())?;
                    self.machine.handle_response(self.now(), response).map_err(|error| error.to_string())?;
                }
                () = tokio::time::sleep_until(due.unwrap_or(self.epoch).into()), if due.is_some() => {
                    self.machine.handle_timeout(self.now());
                }
            }
        }
    }

    /// Subscribes to all waiting names at once.
    fn subscribe(&mut self, first: String, more: &mut mpsc::UnboundedReceiver<String>) {
        let types = clusters();
        let mut next = Some(first);
        while let Some(name) = next {
            self.machine.resources_mut(&types).subscribe([name]).expect("a good name");
            next = more.try_recv().ok();
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            if let Action::Apply(update) = action {
                let newest = update.resources().filter_map(|resource| resource.body().last().copied()).max();
                self.machine.handle_verdict(self.now(), update.accept()).expect("the update was polled just now");
                let _ = self.seen.send(newest.unwrap_or_default());
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::from_epoch(self.epoch.elapsed())
    }
}

async fn next(inbound: &mut Option<Streaming<Bytes>>) -> Result<Option<Bytes>, String> {
    match inbound {
        Some(inbound) => inbound.message().await.map_err(|status| status.to_string()),
        None => std::future::pending().await,
    }
}

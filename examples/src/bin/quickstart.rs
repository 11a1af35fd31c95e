//! Runs a client and a server in one process and prints the messages they exchange. There is no socket, clock or
//! thread: the machines are plain values, and this program carries their messages from one to the other.
//!
//! `cargo run -p examples --bin quickstart`

use xds_machine::client::{self, Action, Client, Intent, Verdict};
use xds_machine::message::{Node, delta};
use xds_machine::server::{self, Cache, Server, StreamId};
use xds_machine::{Delta, Instant, ResourceName, TypeUrl, type_url};

/// The time passed to the machines. Nothing in this program takes any time.
const NOW: Instant = Instant::EPOCH;

/// The width of a message in the diagram.
const WIDTH: usize = 60;

fn main() -> Result<(), xds_machine::Error> {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut cache = Cache::new(1);
    cache.insert(&clusters, server::Resource::new("web", "port 80").with_version("1"));
    let mut world = World {
        client: Client::new(client::Config::new(Node::new("quickstart"))),
        server: Server::new(server::Config::ads(), StreamId(1)),
        cache,
    };
    println!("         client{:w$}server", "", w = WIDTH - 2);

    title("The client wants two clusters. The server has one of them.");
    world.client.resources_mut(&clusters).subscribe(["web", "db"])?;
    world.client.handle_open();
    world.talk()?;

    title("A cluster changes, and one that was asked for comes to be: one response.");
    world.cache.insert(&clusters, server::Resource::new("web", "port 8080").with_version("2"));
    world.cache.insert(&clusters, server::Resource::new("db", "port 5432").with_version("1"));
    world.talk()?;

    title("A change that the client can't use. The good half of it applies all the same.");
    world.cache.insert(&clusters, server::Resource::new("web", "port 99999").with_version("3"));
    world.cache.insert(&clusters, server::Resource::new("db", "port 5433").with_version("2"));
    world.talk()?;

    title("What was rejected is not sent again. The fix is.");
    world.talk()?;
    world.cache.insert(&clusters, server::Resource::new("web", "port 9090").with_version("4"));
    world.talk()?;

    title("A cluster is removed. The client stays subscribed to it.");
    world.cache.remove(&clusters, "db");
    world.talk()?;

    title("The stream breaks. On the next, the client says what it has, and is sent what is new.");
    world.client.handle_close();
    world.cache.insert(&clusters, server::Resource::new("db", "port 5434").with_version("3"));
    world.server = Server::new(server::Config::ads(), StreamId(2));
    world.client.handle_open();
    world.talk()
}

struct World {
    client: Client<Delta>,
    /// The server's side of one stream.
    server: Server<Delta>,
    /// The resources, shared by all streams of the server.
    cache: Cache,
}

impl World {
    /// Carries messages until neither side has anything left to send.
    fn talk(&mut self) -> Result<(), xds_machine::Error> {
        loop {
            while let Some(transmit) = self.client.poll_transmit() {
                to_server(&request(&transmit.request, transmit.intent));
                self.client.handle_sent(NOW, transmit.sent);
                self.server.handle_request(NOW, transmit.request)?;
            }
            while let Some(action) = self.server.poll_action() {
                match action {
                    server::Action::Ack { nonce, .. } => at_server(&format!("{nonce} was accepted")),
                    server::Action::Nack { nonce, .. } => at_server(&format!("{nonce} was rejected")),
                    _ => {}
                }
            }
            let Some(response) = self.server.poll_transmit(NOW, &self.cache) else { return Ok(()) };
            let message = delta::Response::from(&response); // over a network, `response.chunks()`
            to_client(&answer(&response));
            self.client.handle_response(NOW, message)?;
            while let Some(action) = self.client.poll_action() {
                match action {
                    Action::Apply(update) => {
                        let verdict = apply(update);
                        self.client.handle_verdict(NOW, verdict)?;
                    }
                    Action::DoesNotExist { names, .. } => at_client(&format!("there is no {}", list(&names))),
                    _ => {}
                }
            }
        }
    }
}

/// The application: accepts the valid resources and reports an error for each of the others.
fn apply(update: client::Update) -> Verdict {
    update.removed().iter().for_each(|name| at_client(&format!("drop {name}")));
    update.check(|resource| {
        let (name, text) = (resource.name(), String::from_utf8_lossy(resource.body()));
        let port = text.strip_prefix("port ").and_then(|port| port.parse::<u16>().ok());
        at_client(&port.map_or(format!("refuse {name}"), |port| format!("use {name} on port {port}")));
        port.map(|_| ()).ok_or(format!("\"{text}\" is no port"))
    })
}

/// Describes a request.
fn request(request: &delta::Request, intent: Intent) -> String {
    let mut words = match (intent, &request.error) {
        (Intent::Ack, _) => vec![format!("ACK {}", request.nonce)],
        (_, Some(error)) => vec![format!("NACK {}: {}", request.nonce, error.message)],
        _ => Vec::new(),
    };
    if !request.subscribe.is_empty() {
        words.push(format!("subscribe {}", list(&request.subscribe)));
    }
    if !request.initial_versions.is_empty() {
        let has = |(name, version): (&str, &str)| format!("{name}@{version}");
        words.push(format!("has {}", request.initial_versions.iter().map(has).collect::<Vec<_>>().join(", ")));
    }
    words.join("; ")
}

/// Describes a response.
fn answer(response: &server::Response<Delta>) -> String {
    let mut words = vec![response.nonce().to_string()];
    let resource = |resource: &server::Resource| {
        format!("{}@{} \"{}\"", resource.name(), resource.version(), String::from_utf8_lossy(resource.body()))
    };
    words.extend(response.resources().map(resource));
    words.extend(response.removed().iter().map(|name| format!("no {name}")));
    words.join(", ").replacen(", ", ": ", 1)
}

fn list(names: &[ResourceName]) -> String {
    names.iter().map(ResourceName::as_str).collect::<Vec<_>>().join(", ")
}

fn title(text: &str) {
    println!("\n{text}\n");
}

/// Prints a message from the client to the server.
fn to_server(text: &str) {
    println!("            |-- {:-<WIDTH$}>|", format!("{text} "));
}

/// Prints a message from the server to the client.
fn to_client(text: &str) {
    println!("            |<{:->WIDTH$} --|", format!(" {text}"));
}

/// Prints an event at the client.
fn at_client(text: &str) {
    println!("            | {text:w$} |", w = WIDTH + 2);
}

/// Prints an event at the server.
fn at_server(text: &str) {
    println!("            | {text:>w$} |", w = WIDTH + 2);
}

//! Runs a client and a server on smol, over TCP with frames of its own: the drivers depend on neither tokio nor gRPC.
//!
//! A frame is a length of four bytes and a message. A stream ends without a status: the other side closes the
//! connection.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{Sink, Stream, sink, stream};
use smol::future::FutureExt;
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::{TcpListener, TcpStream};
use smol::{Executor, Timer};
use xds_machine::client::{self, Action, Backoff, Client, Update, Verdict};
use xds_machine::message::Node;
use xds_machine::proto::Wire;
use xds_machine::server::{self, Cache, Resource, Response, Server, StreamId};
use xds_machine::{Code, Delta, Instant, Status, TypeUrl, type_url};
use xds_machine_driver::Runtime;
use xds_machine_driver::client::{Ended, run};
use xds_machine_driver::server::{Handler, Responses, Shared, serve_stream};

/// The longest message in bytes.
const LIMIT: usize = 1 << 22;

fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::new();
    smol::block_on(executor.run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let store = Arc::new(Shared::new(Cache::new(1)));
        put(&store, &[("a", "one"), ("b", "one")]);
        // The application's steps: each update that it applied.
        let (applied, steps) = smol::channel::unbounded();
        let (stop, stopped) = smol::channel::bounded::<()>(1);
        let serving = executor.spawn(serve(listener, store.clone(), stopped));
        let following = executor.spawn(follow(address, applied));

        println!("{}", steps.recv().await?);
        put(&store, &[("a", "two"), ("b", "bad")]);
        println!("{}", steps.recv().await?);
        // The first stream ends. On the next one the client states what it holds, so the server sends only the changes.
        stop.send(()).await?;
        store.publish(|cache| cache.remove(&TypeUrl::from(type_url::CLUSTER), "a"));
        put(&store, &[("c", "one")]);
        for _ in 0..2 {
            println!("{}", steps.recv().await?);
        }
        following.cancel().await;
        serving.cancel().await;
        Ok(())
    }))
}

fn put(store: &Shared, clusters: &[(&str, &'static str)]) {
    store.publish(|cache| {
        for (name, content) in clusters {
            cache.insert(&TypeUrl::from(type_url::CLUSTER), Resource::new(*name, content.as_bytes()));
        }
    });
}

// The client.

/// Follows all clusters, and reports each applied update and each end of a stream.
async fn follow(address: std::net::SocketAddr, applied: smol::channel::Sender<String>) {
    let mut client = Client::<Delta>::new(client::Config::new(Node::new("smol")));
    let subscribed = client.resources_mut(&TypeUrl::from(type_url::CLUSTER)).subscribe(["*"]);
    debug_assert_eq!(subscribed, Ok(()));
    let connect = || async move {
        let stream = TcpStream::connect(address).await?;
        Ok((messages(stream.clone(), Delta::decode_response), requests(stream)))
    };
    let mut app = |_: &mut Client<Delta>, action: Action| match action {
        Action::Apply(update) => {
            let (text, verdict) = apply(update);
            _ = applied.try_send(text);
            Some(verdict)
        }
        _ => None,
    };
    // The reason is left out because it varies: TCP resets a connection that is closed with bytes unread.
    let ended = |_: Ended<io::Error, io::Error>, _| _ = applied.try_send("the stream ended".into());
    // Without jitter there is no wait before the first attempt.
    let ran = run(&mut client, connect, Backoff::envoy(), || 0, &Smol::new(), &mut app, ended).await;
    debug_assert_eq!(ran, Ok(()));
}

fn apply(update: Update) -> (String, Verdict) {
    let mut parts: Vec<String> = update.removed().iter().map(|name| format!("{name} is gone")).collect();
    let verdict = update.check(|cluster| {
        let content = String::from_utf8_lossy(cluster.body()).into_owned();
        if content == "bad" {
            parts.push(format!("{} rejected", cluster.name()));
            return Err("it is bad");
        }
        parts.push(format!("{} is {content}", cluster.name()));
        Ok(())
    });
    (parts.join(", "), verdict)
}

fn requests(stream: TcpStream) -> impl Sink<<Delta as xds_machine::message::Messages>::Request, Error = io::Error> {
    sink::unfold(stream, |stream, request| write(stream, [Delta::encode_request(&request).into()]))
}

// The server.

/// Accepts streams, each in a task of its own. `stopped` ends the first one.
async fn serve(listener: TcpListener, store: Arc<Shared>, stopped: smol::channel::Receiver<()>) -> io::Result<()> {
    let executor = Executor::new();
    let accept = async {
        for id in 1.. {
            let (stream, _) = listener.accept().await?;
            let (store, stopped) = (store.clone(), stopped.clone());
            let serve = async move {
                let stop = async move {
                    _ = stopped.recv().await;
                };
                stop.or(serve_one(StreamId(id), stream, store)).await;
            };
            executor.spawn(serve).detach();
        }
        Ok(())
    };
    executor.run(accept).await
}

async fn serve_one(id: StreamId, stream: TcpStream, store: Arc<Shared>) {
    let machine = Arc::new(Mutex::new(Server::<Delta>::new(server::Config::ads(), id)));
    let inbound = Box::pin(messages(stream.clone(), Delta::decode_request));
    let inbound = futures_util::StreamExt::map(inbound, |request| {
        request.map_err(|error: io::Error| Status::new(Code::InvalidArgument, error.to_string()))
    });
    let outbound = sink::unfold(stream, |stream, response: Response<Delta>| {
        let chunks: Vec<Bytes> = response.chunks().collect();
        write(stream, chunks)
    });
    let mut responses = Responses::new(machine, inbound, Everyone(store), Smol::new());
    if let Ok(Some(status)) = serve_stream(&mut responses, outbound).await {
        eprintln!("stream {}: {status}", id.0);
    }
}

/// All nodes are served from one store.
struct Everyone(Arc<Shared>);

impl Handler<Delta> for Everyone {
    type Store = Arc<Shared>;

    fn assign(&mut self, _: &Node) -> Result<Self::Store, Status> {
        Ok(self.0.clone())
    }
}

// Frames, and the clock.

/// Returns the messages of a connection, up to its end.
fn messages<T, E: Error + Send + Sync + 'static>(
    stream: TcpStream,
    decode: fn(Bytes) -> Result<T, E>,
) -> impl Stream<Item = io::Result<T>> {
    stream::try_unfold(stream, move |mut stream| async move {
        let mut len = [0; 4];
        match stream.read_exact(&mut len).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let len = u32::from_be_bytes(len) as usize;
        if len > LIMIT {
            return Err(io::Error::other(format!("a message of {len} bytes, limit {LIMIT}")));
        }
        let mut message = vec![0; len];
        stream.read_exact(&mut message).await?;
        Ok(Some((decode(message.into()).map_err(io::Error::other)?, stream)))
    })
}

/// Writes a message that is given in pieces.
async fn write(mut stream: TcpStream, chunks: impl AsRef<[Bytes]>) -> io::Result<TcpStream> {
    let len = chunks.as_ref().iter().map(Bytes::len).sum::<usize>();
    let len = u32::try_from(len).map_err(io::Error::other)?;
    stream.write_all(&len.to_be_bytes()).await?;
    for chunk in chunks.as_ref() {
        stream.write_all(chunk).await?;
    }
    Ok(stream)
}

/// The clock of smol.
#[derive(Clone)]
struct Smol(std::time::Instant);

impl Smol {
    fn new() -> Self {
        Self(std::time::Instant::now())
    }
}

impl Runtime for Smol {
    type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn now(&self) -> Instant {
        Instant::from_epoch(self.0.elapsed())
    }

    fn sleep_until(&self, due: Instant) -> Self::Sleep {
        let due = self.0.checked_add(due.since_epoch());
        Box::pin(async move {
            _ = due.map_or_else(Timer::never, Timer::at).await;
        })
    }
}

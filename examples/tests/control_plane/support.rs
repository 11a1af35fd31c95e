//! The program as a process, and clients that send exactly what a test gives them.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use http::uri::PathAndQuery;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use xds_machine::proto::Wire;

use crate::codec::{Chunks, ClientCodec};

/// The time limit for any step, ample even on a busy machine.
pub const LONG: Duration = Duration::from_secs(20);

/// A separate folder for each test.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        let temporary = path.with_file_name(".temporary");
        fs::write(&temporary, content).expect("a file");
        fs::rename(temporary, path).expect("a file");
    }
}

/// A control plane that runs until it is dropped.
pub struct ControlPlane {
    child: Child,
    pub address: String,
    log: Arc<(Mutex<Log>, Condvar)>,
}

#[derive(Default)]
struct Log {
    out: Vec<String>,
    err: Vec<String>,
}

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_control_plane"))
}

impl ControlPlane {
    pub fn start(dir: &Dir) -> Self {
        Self::start_with(dir, &[])
    }

    /// Starts the program with further arguments.
    pub fn start_with(dir: &Dir, arguments: &[&str]) -> Self {
        let mut command = command();
        command.args(["--listen", "127.0.0.1:0", "--log", "json", "--resources"]).arg(&dir.0).args(arguments);
        Self::run(command)
    }

    /// Runs a command that has at least `--listen`; most helpers need `--log json` too.
    pub fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        let log = Arc::<(Mutex<Log>, Condvar)>::default();
        read(child.stdout.take().expect("piped"), &log, |log| &mut log.out);
        read(child.stderr.take().expect("piped"), &log, |log| &mut log.err);
        let mut control_plane = Self { child, address: String::new(), log };
        control_plane.address = control_plane.wait("its address", |log| {
            log.err.iter().chain(&log.out).find_map(|line| line.strip_prefix("listening on ")).map(str::to_owned)
        });
        control_plane
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the process.
    pub fn ended(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    fn wait<T>(&self, what: &str, mut find: impl FnMut(&Log) -> Option<T>) -> T {
        let end = Instant::now() + LONG;
        let (log, changed) = &*self.log;
        let mut log = log.lock().expect("no panic");
        loop {
            if let Some(found) = find(&log) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: not so after {LONG:?}\n{}\n{}", log.out.join("\n"), log.err.join("\n"));
            log = changed.wait_timeout(log, left).expect("no panic").0;
        }
    }

    /// Waits for the first `count` events of streams and returns them without the fields that differ each time: the
    /// time, the peer, and `version`, which is a hash.
    pub fn events(&self, count: usize) -> Vec<Value> {
        self.events_of(count, |event| event.get("stream").is_some())
    }

    /// Waits until `find` succeeds on the load reports.
    pub fn loads<T>(&self, what: &str, mut find: impl FnMut(&[Value]) -> Option<T>) -> T {
        self.wait(what, |log| {
            let events = log.out.iter().map(|line| parse(line));
            find(&events.filter(|event| event["event"] == "load").collect::<Vec<_>>())
        })
    }

    /// Waits for the first `count` events of the folder.
    pub fn news(&self, count: usize) -> Vec<Value> {
        self.events_of(count, |event| event.get("source").is_some())
    }

    fn events_of(&self, count: usize, which: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events: Vec<Value> = self.wait(&format!("{count} events"), |log| {
            let events: Vec<Value> = log.out.iter().map(|line| parse(line)).filter(&which).collect();
            (events.len() >= count).then_some(events)
        });
        for event in events.iter_mut().filter_map(Value::as_object_mut) {
            let ts = event.remove("ts").expect("a time");
            assert!(ts.as_str().is_some_and(|ts| ts.ends_with('Z') && ts.contains('T')), "{ts}");
            if event.contains_key("stream") {
                let peer = event.remove("peer").expect("a peer");
                assert!(peer.as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{peer}");
            }
            event.remove("version");
        }
        events
    }

    /// Waits for a line on standard error.
    pub fn complaint(&self, line: &str) {
        self.wait(line, |log| log.err.iter().any(|said| said == line).then_some(()));
    }

    /// Waits for a line on standard error that begins with `start`, and returns the rest.
    pub fn said(&self, start: &str) -> String {
        self.wait(start, |log| log.err.iter().find_map(|line| line.strip_prefix(start)).map(str::to_owned))
    }

    /// Waits for a line on standard error that ends so.
    pub fn ending(&self, end: &str) {
        self.wait(end, |log| log.err.iter().any(|said| said.ends_with(end)).then_some(()));
    }

    /// Waits for a line on standard output.
    pub fn printed(&self, is_it: impl Fn(&str) -> bool) -> String {
        self.wait("a line", |log| log.out.iter().find(|line| is_it(line)).cloned())
    }

    /// Returns the lines on standard output so far.
    pub fn lines(&self) -> Vec<String> {
        self.log.0.lock().expect("no panic").out.clone()
    }

    /// Returns the lines on standard error so far.
    pub fn complaints(&self) -> Vec<String> {
        self.log.0.lock().expect("no panic").err.clone()
    }

    pub fn channel(&self) -> Channel {
        Endpoint::new(format!("http://{}", self.address)).expect("an address").connect_lazy()
    }
}

fn read(from: impl Read + Send + 'static, log: &Arc<(Mutex<Log>, Condvar)>, which: fn(&mut Log) -> &mut Vec<String>) {
    let log = log.clone();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            which(&mut log.0.lock().expect("no panic")).push(line);
            log.1.notify_all();
        }
    });
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).expect(line)
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client's end of a stream.
pub struct Peer<V: Wire> {
    requests: mpsc::Sender<Chunks>,
    responses: Streaming<V::Response>,
}

impl<V: Wire> Peer<V> {
    pub async fn open(channel: Channel, path: &'static str) -> Self {
        let (requests, queue) = mpsc::channel(64);
        let mut grpc = Grpc::new(channel);
        grpc.ready().await.expect("a connection");
        let request = Request::new(ReceiverStream::new(queue));
        let path = PathAndQuery::from_static(path);
        let opening = grpc.streaming(request, path, ClientCodec::<V>::default());
        let responses = timeout(LONG, opening).await.expect("headers in time").expect("a stream");
        Self { requests, responses: responses.into_inner() }
    }

    pub async fn send(&self, request: V::Request) {
        self.send_bytes(V::encode_request(&request)).await;
    }

    pub async fn send_bytes(&self, bytes: Vec<u8>) {
        self.requests.send(vec![bytes.into()]).await.expect("the stream is open");
    }

    pub async fn next(&mut self) -> V::Response {
        self.message().await.expect("no error").expect("not the end")
    }

    pub async fn status(&mut self) -> Status {
        self.message().await.expect_err("an error")
    }

    pub async fn message(&mut self) -> Result<Option<V::Response>, Status> {
        timeout(LONG, self.responses.message()).await.expect("a response in time")
    }

    /// Ends the client's half of the stream.
    pub fn end(self) -> Streaming<V::Response> {
        self.responses
    }
}

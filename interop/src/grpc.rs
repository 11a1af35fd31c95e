//! gRPC's C-core, driven through Python, and other clients of gRPC, driven in the same way.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::peer::Peer;
use crate::wait::so;

/// `ccore.py`, which ends when its standard input is closed.
pub struct Grpc {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Grpc {
    pub fn start(python: &Path, root: &Path, dir: &Path, xds: u16) -> Result<Self, String> {
        let mut command = Command::new(python);
        command.arg(root.join("ccore.py"));
        Self::run(command, root, &dir.join("ccore.err"), xds)
    }

    /// Starts a program that reads commands as `ccore.py` does.
    fn run(mut command: Command, root: &Path, err: &Path, xds: u16) -> Result<Self, String> {
        let read = |name: &str| std::fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"));
        let bootstrap = read("grpc-bootstrap.json")?.replace("127.0.0.1:18000", &format!("127.0.0.1:{xds}"));
        let err = std::fs::File::create(err).map_err(|error| error.to_string())?;
        command.env("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(err);
        let mut child = command.spawn().map_err(|error| format!("can't start {command:?}: {error}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or("no output")?);
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Returns the ports of the backends `a` and `b`.
    pub fn backends(&mut self) -> Result<[u16; 2], String> {
        let ports: Vec<u16> = self.ask("backends")?.split(' ').filter_map(|port| port.parse().ok()).collect();
        ports.try_into().map_err(|ports| format!("not two ports: {ports:?}"))
    }

    pub fn ask(&mut self, question: &str) -> Result<String, String> {
        let input = self.input.as_mut().ok_or("no input")?;
        writeln!(input, "{question}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).map_err(|error| error.to_string())?;
        let answer = answer.trim_end();
        answer.strip_prefix("ok ").map(str::to_owned).ok_or_else(|| answer.to_owned())
    }
}

impl Peer for Grpc {
    fn request(&mut self, service: u32) -> Result<String, String> {
        self.ask(&format!("rpc l{service}"))
    }

    fn is_gone(&mut self, service: u32) -> Result<(), String> {
        let answer = self.request(service);
        so(answer.is_err(), || format!("l{service} still answers {answer:?}"))?;
        self.ask(&format!("close l{service}")).map(drop)
    }
}

impl Drop for Grpc {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that is not C-core, and C-core's backends.
pub struct Beside {
    pub client: Grpc,
    pub backends: Grpc,
}

impl Beside {
    /// Starts `grpc_client`, a channel of the tower kind over `xds-machine-grpc`.
    pub fn tower(programs: &Path, python: &Path, root: &Path, dir: &Path, xds: u16) -> Result<Self, String> {
        let client = Command::new(programs.join("grpc_client"));
        Self::start(client, "grpc_client.err", python, root, dir, xds)
    }

    /// Starts `grpcjs.js`, with the packages of a folder.
    pub fn js(packages: &Path, python: &Path, root: &Path, dir: &Path, xds: u16) -> Result<Self, String> {
        let mut client = Command::new("node");
        client.arg(root.join("grpcjs.js")).env("NODE_PATH", packages);
        Self::start(client, "grpcjs.err", python, root, dir, xds)
    }

    fn start(client: Command, err: &str, python: &Path, root: &Path, dir: &Path, xds: u16) -> Result<Self, String> {
        let backends = Grpc::start(python, root, dir, xds)?;
        Ok(Self { client: Grpc::run(client, root, &dir.join(err), xds)?, backends })
    }
}

impl Peer for Beside {
    fn request(&mut self, service: u32) -> Result<String, String> {
        self.client.request(service)
    }

    fn is_gone(&mut self, service: u32) -> Result<(), String> {
        self.client.is_gone(service)
    }
}

//! Just enough HTTP for the tests.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The ports for servers: below those that the system gives to outgoing connections, one of which could take a port
/// before its server listens.
const PORTS: Range<u16> = 20_000..32_000;

/// Returns a port that is free, and that no other call returned lately.
pub fn free_port() -> Result<u16, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = PORTS.len() as u32;
    for _ in 0..count {
        // Processes that run side by side begin at different places.
        let at = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(97)) % count;
        let port = PORTS.start + at as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(format!("none of the ports {PORTS:?} is free"))
}

/// Returns the status and the body of a response.
pub fn get(port: u16, path: &str) -> Result<(u16, String), String> {
    exchange(port, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
}

/// Returns the status and the body of the response to a request with a body, for which a gateway to gRPC has two
/// seconds.
pub fn post(port: u16, path: &str, body: &str) -> Result<(u16, String), String> {
    exchange(
        port,
        &format!("POST {path} HTTP/1.0\r\nhost: x\r\ngrpc-timeout: 2S\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
    )
}

fn exchange(port: u16, request: &str) -> Result<(u16, String), String> {
    let exchange = || -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(|| format!("no status: {head}"))?, body.to_owned()))
}

/// Starts an HTTP server that replies with its name, until this process ends.
pub fn backend(name: &'static str) -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, name));
        }
    });
    Ok(port)
}

fn answer(mut stream: TcpStream, name: &str) -> io::Result<()> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        seen.extend_from_slice(&buffer[..read]);
        if seen.windows(4).any(|window| window == b"\r\n\r\n") {
            seen.clear();
            stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len()).as_bytes())?;
        }
    }
}

//! A link to one of several servers, which a test may cut, or lead elsewhere.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The link, which begins at a port of its own.
pub struct Switch {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The server; without one, connections are closed at once.
    target: Option<u16>,
    open: Vec<TcpStream>,
}

impl Switch {
    pub fn new(target: u16) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let state = Arc::new(Mutex::new(State { target: Some(target), open: Vec::new() }));
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = connect(client, &shared); // a server that is away closes the connection
            }
        });
        Ok(Self { port, state })
    }

    /// Cuts all connections. New ones go to the target, if there is one.
    pub fn lead(&self, target: Option<u16>) {
        let mut state = lock(&self.state);
        state.target = target;
        state.open.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(client: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut state = lock(state);
    let Some(target) = state.target else { return Ok(()) };
    let server = TcpStream::connect(("127.0.0.1", target))?;
    state.open.extend([client.try_clone()?, server.try_clone()?]);
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        from.set_nodelay(true)?;
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

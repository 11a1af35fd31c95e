//! The states of a client's servers, to look at and to wait for.

use tokio::sync::watch::Receiver;

use super::ServerState;

/// The states of a client's servers, as they change: see [`XdsClient::states`](super::XdsClient::states). Each call
/// returns copies, so that no caller can hold up the client.
#[derive(Clone, Debug)]
pub struct States(Receiver<Vec<ServerState>>);

impl States {
    pub(super) fn new(states: Receiver<Vec<ServerState>>) -> Self {
        Self(states)
    }

    /// Returns the current states, in the order of the servers.
    pub fn get(&self) -> Vec<ServerState> {
        self.0.borrow().clone()
    }

    /// Waits until the states have changed since the last call, and returns them. States that come and go meanwhile are
    /// passed over. Returns `None` once the client has ended.
    ///
    /// Cancel safety: no change is lost if the call is dropped.
    pub async fn next(&mut self) -> Option<Vec<ServerState>> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }

    /// Waits until the states are as `is` tells, and returns them; at once if they are so already. Returns `None` if the
    /// client ends before.
    ///
    /// Cancel safety: dropping the future ends the wait and nothing else.
    pub async fn until(&mut self, is: impl Fn(&[ServerState]) -> bool) -> Option<Vec<ServerState>> {
        loop {
            let states = self.0.borrow_and_update().clone();
            if is(&states) {
                return Some(states);
            }
            self.0.changed().await.ok()?;
        }
    }
}

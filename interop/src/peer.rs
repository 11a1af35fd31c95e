//! A client whose traffic shows what it has learned.

pub trait Peer {
    /// Sends a request to a service, and returns the name of the backend that answered.
    fn request(&mut self, service: u32) -> Result<String, String>;

    /// Whether nothing is left of a service that was removed.
    fn is_gone(&mut self, service: u32) -> Result<(), String>;
}

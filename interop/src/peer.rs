//! A client whose traffic shows the resources that it applied.

pub trait Peer {
    /// Sends a request to a service, and returns the name of the backend that served it.
    fn request(&mut self, service: u32) -> Result<String, String>;

    /// Checks that nothing is left of a removed service.
    fn is_gone(&mut self, service: u32) -> Result<(), String>;
}

//! What `grpc_target` and the channel share: connections to control planes, DNS, and decoded resources.

pub mod connect;
pub mod dns;
pub mod resource;

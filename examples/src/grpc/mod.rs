//! What `grpc_target` and the channel share: connections to control planes, DNS, decoded resources, and what is
//! told to the client.

pub mod connect;
pub mod dns;
pub mod resource;
pub mod wishes;

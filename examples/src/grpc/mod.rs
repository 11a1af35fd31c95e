//! Parts that `grpc_target` and the channel share: connections to control planes, DNS, decoded resources, and the
//! ledgers' wishes to the client.

pub mod connect;
pub mod dns;
pub mod resource;
pub mod wishes;

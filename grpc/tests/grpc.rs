//! The rules of gRPC above the transport, one file for each part.

mod grpc {
    mod cluster;
    mod endpoints;
    mod listener;
    mod resource;
    mod routes;
    mod wire;
//! The layers that gRPC has above the transport. One crate, because each test crate is linked anew.

mod grpc {
    mod chain;
}

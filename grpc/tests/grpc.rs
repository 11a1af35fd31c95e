//! The layers that gRPC has above the transport. One crate, because each test crate is linked anew.

mod grpc {
    mod chain;
    mod cluster;
    mod endpoints;
    mod listener;
    mod resource;
    mod routes;
    mod wire;
}

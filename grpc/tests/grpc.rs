//! The rules of gRPC above the transport, one file for each part. One crate, because each test crate is linked anew.

mod grpc {
    mod chain;
    mod cluster;
    mod endpoints;
    mod ledgers;
    mod listener;
    mod resource;
    mod routes;
    mod serving;
    mod wire;
}

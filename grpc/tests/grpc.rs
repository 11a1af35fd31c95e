//! The rules of gRPC above the transport, one file for each part.

mod grpc {
    mod bootstrap;
    mod choice;
    mod cluster;
    mod endpoints;
    mod listener;
    mod resource;
    mod routes;
    mod wire;
}

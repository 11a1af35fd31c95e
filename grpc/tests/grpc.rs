//! The rules of gRPC above the transport, one file for each part.

mod grpc {
    mod cluster;
    mod endpoints;
    mod listener;
    mod resource;
    mod routes;
    mod wire;
}

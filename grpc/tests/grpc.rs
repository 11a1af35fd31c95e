//! The rules of gRPC above the transport, one file for each part.

mod grpc {
    mod bootstrap;
    mod bootstrap_names;
    mod bootstrap_node;
    mod bootstrap_servers;
    mod choice;
    mod cluster;
    mod endpoints;
    mod faults;
    mod listener;
    mod resource;
    mod routes;
    mod rules;
    mod wire;
}

//! The layers that gRPC has above the transport. One crate, because each test crate is linked anew.

mod grpc {
    mod bootstrap;
    mod bootstrap_names;
    mod bootstrap_node;
    mod bootstrap_servers;
    mod chain;
    mod choice;
    mod cluster;
    mod endpoints;
    mod faults;
    mod ledgers;
    mod listener;
    mod resource;
    mod routes;
    mod rules;
    mod serving;
    mod wire;
}

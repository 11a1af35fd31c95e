//! The layers that gRPC has above the transport. One crate, because each test crate is linked anew.

mod grpc {
    mod chain;
    mod ledgers;
    mod serving;
}

//! The drivers over gRPC, each against a peer in the same process. One program, because each program compiles tonic's
//! generic code anew.

mod client;
mod client_status;
mod flow;
mod load;
mod loading;
mod pushes;
mod rude;
mod server;
mod support;
mod tls;

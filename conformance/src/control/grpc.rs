//! The control service of gRPC's tests, `grpc.testing.xdsconfig.XdsConfigControlService`, which the control planes of
//! these tests have.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::Control;
use crate::net::stream::{frame, next_message, status, write};
use crate::resource::{field, first_bytes, first_number};
use crate::run::{Op, Trouble};

const PATH: &str = "/grpc.testing.xdsconfig.XdsConfigControlService/SetResources";
/// How long a call may take.
const CALL: Duration = Duration::from_secs(10);

/// The control service at an address. Each change is a call of `SetResources`.
pub struct Grpc {
    address: String,
    runtime: Runtime,
    /// The resources that were put and not deleted: type and name.
    there: BTreeSet<(String, String)>,
}

impl Grpc {
    /// Makes the control.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be made.
    pub fn new(address: impl Into<String>) -> Result<Self, Trouble> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Trouble(error.to_string()))?;
        Ok(Self { address: address.into(), runtime, there: BTreeSet::new() })
    }

    fn set(&mut self, resources: &[u8]) -> Result<(), Trouble> {
        let address = &self.address;
        let trouble = |why: &str| Trouble(format!("the control service at {address}: {why}"));
        let call = async { tokio::time::timeout(CALL, call(address, resources)).await };
        let answer = self.runtime.block_on(call).map_err(|_| trouble("no answer in time"))?;
        let answer = answer.map_err(|why| trouble(&why))?;
        if first_number(&answer, 1) == Some(1) {
            return Ok(());
        }
        Err(trouble(&String::from_utf8_lossy(first_bytes(&answer, 2).unwrap_or(b"no success"))))
    }
}

/// Calls the service once. Returns the answer.
async fn call(address: &str, message: &[u8]) -> Result<Bytes, String> {
    let tcp = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let (requests, connection) = h2::client::handshake(tcp).await.map_err(|error| error.to_string())?;
    // The connection ends with the call.
    tokio::select! {
        biased;
        answer = ask(requests, address, message) => answer,
        ended = connection => Err(ended.err().map_or_else(|| "no answer".into(), |error| error.to_string())),
    }
}

async fn ask(requests: SendRequest<Bytes>, address: &str, message: &[u8]) -> Result<Bytes, String> {
    let mut requests = requests.ready().await.map_err(|error| error.to_string())?;
    let request = http::Request::post(format!("http://{address}{PATH}"));
    let request = request.header("content-type", "application/grpc").header("te", "trailers").body(());
    let request = request.map_err(|error| error.to_string())?;
    let (response, mut send) = requests.send_request(request, false).map_err(|error| error.to_string())?;
    write(&mut send, frame(message)).await.map_err(|error| error.to_string())?;
    send.send_data(Bytes::new(), true).map_err(|error| error.to_string())?;
    let response = response.await.map_err(|error| error.to_string())?;
    if let Some(why) = status(response.headers()) {
        return Err(why);
    }
    let (mut body, mut buffer) = (response.into_body(), BytesMut::new());
    while let Some(data) = body.data().await {
        let data = data.map_err(|error| error.to_string())?;
        _ = body.flow_control().release_capacity(data.len()); // more than was received is never released
        buffer.extend_from_slice(&data);
        if let Some(message) = next_message(&mut buffer) {
            return message;
        }
    }
    let trailers = body.trailers().await.map_err(|error| error.to_string())?;
    Err(trailers.as_ref().and_then(status).unwrap_or_else(|| "no message".into()))
}

/// Encodes a resource to set; one without a body is deleted.
fn resource(type_url: &str, name: &str, body: Option<Vec<u8>>) -> Vec<u8> {
    let any = |body: Vec<u8>| field(3, &[field(1, type_url.as_bytes()), field(2, &body)].concat());
    let body = body.map(any).unwrap_or_default();
    field(1, &[field(1, type_url.as_bytes()), field(2, name.as_bytes()), body].concat())
}

impl Control for Grpc {
    fn apply(&mut self, ops: &[Op]) -> Result<(), Trouble> {
        let (mut message, mut there) = (Vec::new(), self.there.clone());
        for op in ops {
            match op {
                Op::Put(put) if put.ttl.is_none() && put.alias.is_none() => {
                    message.extend(resource(&put.type_url, &put.name, Some(put.body())));
                    there.insert((put.type_url.clone(), put.name.clone()));
                }
                Op::Delete { type_url, name } => {
                    message.extend(resource(type_url, name, None));
                    there.remove(&(type_url.clone(), name.clone()));
                }
                Op::Clear => {
                    let all = std::mem::take(&mut there);
                    message.extend(all.iter().flat_map(|(type_url, name)| resource(type_url, name, None)));
                }
                _ => return Err(Trouble("the control service puts and deletes only".into())),
            }
        }
        if !message.is_empty() {
            self.set(&message)?;
        }
        self.there = there;
        Ok(())
    }

    /// Returns `false`: the service may take the resources of one call one after the other.
    fn is_atomic(&self) -> bool {
        false
    }

    fn is_confirmed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::net::TcpListener;

    use super::*;
    use crate::resource::{Put, type_url};

    /// Starts a control service that gives these answers, one for each call. The thread returns the messages that it
    /// received.
    fn service(answers: Vec<Vec<u8>>) -> (String, thread::JoinHandle<Vec<Bytes>>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("the address").to_string();
        let serve = async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            let mut told = Vec::new();
            for answer in answers {
                let (tcp, _) = listener.accept().await.expect("a connection");
                let mut connection = h2::server::handshake(tcp).await.expect("HTTP/2");
                let (request, mut respond) = connection.accept().await.expect("a call").expect("HTTP/2");
                assert_eq!(request.uri().path(), PATH);
                let mut body = request.into_body();
                let work = async {
                    let mut buffer = BytesMut::new();
                    let message = loop {
                        buffer.extend_from_slice(&body.data().await.expect("the message").expect("HTTP/2"));
                        if let Some(message) = next_message(&mut buffer) {
                            break message.expect("a message");
                        }
                    };
                    let mut send = respond.send_response(http::Response::new(()), false).expect("HTTP/2");
                    write(&mut send, frame(&answer)).await.expect("HTTP/2");
                    send.send_data(Bytes::new(), true).expect("HTTP/2");
                    message
                };
                tokio::pin!(work);
                let message = loop {
                    tokio::select! {
                        message = &mut work => break message,
                        next = connection.accept() => assert!(next.is_none(), "one call a connection"),
                    }
                };
                told.push(message);
                while let Some(Ok(_)) = connection.accept().await {}
            }
            told
        };
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        (address, thread::spawn(move || runtime.block_on(serve)))
    }

    fn put(name: &str) -> Op {
        let type_url = type_url("cds").to_owned();
        Op::Put(Put { type_url, name: name.into(), revision: 1, ttl: None, alias: None })
    }

    #[test]
    fn operations_applied_together_are_one_call() {
        let refusal = field(2, b"no room");
        let (address, service) = service(vec![vec![8, 1], refusal, vec![8, 1]]);
        let mut control = Grpc::new(address.as_str()).expect("a runtime");
        assert_eq!(control.apply(&[put("a"), put("b")]), Ok(()));
        let why = format!("the control service at {address}: no room");
        assert_eq!(control.apply(&[put("c")]), Err(Trouble(why)));
        // A resource that was refused does not exist, and need not be cleared.
        assert_eq!(control.apply(&[Op::Clear]), Ok(()));
        assert_eq!(control.apply(&[Op::Clear]), Ok(()));
        let told = service.join().expect("the service");
        let cds = type_url("cds");
        let body = |name: &str| Some(crate::resource::body(cds, name, 1));
        let both = [resource(cds, "a", body("a")), resource(cds, "b", body("b"))].concat();
        let none = [resource(cds, "a", None), resource(cds, "b", None)].concat();
        assert_eq!(told, [both, resource(cds, "c", body("c")), none]);
        let first = first_bytes(&told[0], 1).expect("a resource");
        let any = first_bytes(first, 3).expect("a body");
        assert_eq!((first_bytes(first, 1), first_bytes(first, 2)), (Some(cds.as_bytes()), Some(&b"a"[..])));
        assert_eq!((first_bytes(any, 1), first_bytes(any, 2)), (Some(cds.as_bytes()), body("a").as_deref()));
    }

    #[test]
    fn unsupported_operations_and_an_unreachable_service_are_errors() {
        let mut control = Grpc::new("127.0.0.1:1").expect("a runtime");
        let only = Trouble("the control service puts and deletes only".into());
        assert_eq!(control.apply(&[Op::Restart]), Err(only));
        let gone = control.apply(&[put("a")]).expect_err("nobody listens").0;
        assert!(gone.starts_with("the control service at 127.0.0.1:1: "), "{gone}");
    }
}

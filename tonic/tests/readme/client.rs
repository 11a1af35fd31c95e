// A client that tries out the control plane of the README; a part of that program, so without a `//!` line.

#[tokio::main(flavor = "current_thread")]
async fn try_it() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, edge) = (listener.local_addr()?, Group::new("edge"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = serve(edge.clone(), listener, async { _ = stopped.await });
    let trying = async {
        let mut client = client::Client::connect(address, "edge").await?;
        assert_eq!(client.next().await?, [("web".to_owned(), b"an encoded Cluster".to_vec())]);
        client.answer(None).await?;

        let (changed, seen) = tokio::join!(change(&edge), async {
            assert_eq!(client.next().await?, [("web".to_owned(), b"another".to_vec())]);
            client.answer(Some("no")).await
        });
        seen?;
        assert!(changed.expect_err("it was rejected").contains("message: \"no\""));

        let mut stranger = client::Client::connect(address, "nowhere").await?;
        assert_eq!(stranger.next().await.expect_err("refused").message(), "the node's cluster is no group");
        stop.send(()).expect("it runs");
        assert_eq!(client.next().await.expect_err("the end").message(), "the control plane shuts down");
        Ok::<_, Box<dyn Error>>(())
    };
    let (served, tried) = tokio::join!(serving, trying);
    tried.and(served)
}

mod client {
    use std::error::Error;
    use std::net::SocketAddr;

    use bytes::{Buf, BufMut, Bytes};
    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;
    use tonic::client::Grpc;
    use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
    use tonic::transport::Endpoint;
    use tonic::{Request, Status, Streaming};
    use xds_machine::message::{Node, Resource, delta};
    use xds_machine::proto::delta::{decode_response, encode_request};
    use xds_machine::service::{Method, Variant};
    use xds_machine::{Nonce, type_url};

    /// A stream that subscribes to all clusters.
    pub struct Client {
        requests: mpsc::Sender<Vec<u8>>,
        responses: Streaming<Bytes>,
        nonce: Nonce,
    }

    impl Client {
        pub async fn connect(to: SocketAddr, cluster: &str) -> Result<Self, Box<dyn Error>> {
            let mut grpc = Grpc::new(Endpoint::new(format!("http://{to}"))?.connect().await?);
            let (requests, queue) = mpsc::channel(4);
            let node = Node { cluster: cluster.into(), ..Node::new("n") };
            let request = delta::Request { node: Some(node.into()), ..delta::Request::new(type_url::CLUSTER) };
            requests.send(encode_request(&request)).await?;
            grpc.ready().await?;
            let path = Method { variant: Variant::Delta, type_url: None }.path().expect("ADS");
            let responses = grpc.streaming(Request::new(ReceiverStream::new(queue)), path.parse()?, Raw).await?;
            Ok(Self { requests, responses: responses.into_inner(), nonce: Nonce::default() })
        }

        /// Returns the names and contents of the next response.
        pub async fn next(&mut self) -> Result<Vec<(String, Vec<u8>)>, Status> {
            let response = decode_response(self.responses.message().await?.expect("not the end")).expect("a response");
            self.nonce = response.nonce;
            let of = |resource: Resource| (resource.name.to_string(), resource.body.expect("content").value.to_vec());
            Ok(response.resources.into_iter().map(of).collect())
        }

        /// Sends the ACK of the last response, or a NACK with this message.
        pub async fn answer(&self, error: Option<&str>) -> Result<(), Box<dyn Error>> {
            let error = error.map(|message| xds_machine::Status { code: 3, message: message.into() });
            let request = delta::Request::new(type_url::CLUSTER);
            let request = delta::Request { nonce: self.nonce.clone(), error, ..request };
            Ok(self.requests.send(encode_request(&request)).await?)
        }
    }

    /// Messages as they are.
    struct Raw;

    impl Codec for Raw {
        type Encode = Vec<u8>;
        type Decode = Bytes;
        type Encoder = Self;
        type Decoder = Self;

        fn encoder(&mut self) -> Self {
            Self
        }

        fn decoder(&mut self) -> Self {
            Self
        }
    }

    impl Encoder for Raw {
        type Item = Vec<u8>;
        type Error = Status;

        fn encode(&mut self, bytes: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
            to.put(&*bytes);
            Ok(())
        }
    }

    impl Decoder for Raw {
        type Item = Bytes;
        type Error = Status;

        fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
            Ok(Some(from.copy_to_bytes(from.remaining())))
        }
    }
}

//! Both variants as bytes, for drivers that are generic over the variant.

use alloc::vec::Vec;

use bytes::Bytes;

use super::{DecodeError, delta, sotw};
use crate::message::Messages;
use crate::service::Variant;
use crate::variant::{Delta, Sotw};

/// A variant on the wire: the functions of [`proto::sotw`](super::sotw) and [`proto::delta`](super::delta), for a
/// driver that is generic over the variant.
///
/// ```
/// use bytes::Bytes;
/// use xds_machine::proto::Wire;
/// use xds_machine::server::{self, Cache, Server};
/// use xds_machine::{Error, Instant, Status};
///
/// /// What a server says to a request, in the pieces that a transport sends.
/// fn reply<V>(server: &mut Server<V>, cache: &Cache, now: Instant, frame: Bytes) -> Result<Vec<Bytes>, Status>
/// where
///     V: server::Variant + Wire,
/// {
///     let request = V::decode_request(frame)?;
///     server.handle_request(now, request)?;
///     let response = server.poll_transmit(now, cache);
///     Ok(response.into_iter().flat_map(|response| response.chunks().collect::<Vec<_>>()).collect())
/// }
/// # use xds_machine::{Delta, Sotw, message, type_url};
/// # fn check<V: server::Variant + Wire>(request: V::Request) {
/// #     let mut server = Server::<V>::new(server::Config::ads(), server::StreamId(1));
/// #     let frame = V::encode_request(&request);
/// #     let chunks = reply(&mut server, &Cache::new(1), Instant::EPOCH, frame.into()).expect("an answer");
/// #     assert!(V::decode_response(chunks.concat().into()).is_ok());
/// #     let status = reply(&mut server, &Cache::new(1), Instant::EPOCH, (&[0xff][..]).into()).expect_err("no message");
/// #     assert_eq!(status.code, 3);
/// # }
/// # check::<Sotw>(message::sotw::Request::new(type_url::CLUSTER));
/// # check::<Delta>(message::delta::Request::new(type_url::CLUSTER));
/// ```
pub trait Wire: Messages {
    /// The variant as a value, from which a driver derives its [path](crate::service::Method::path).
    const VARIANT: Variant;

    /// Decodes a request.
    ///
    /// # Errors
    ///
    /// If the bytes are not such a message.
    fn decode_request(bytes: Bytes) -> Result<Self::Request, DecodeError>;

    /// Encodes a request.
    fn encode_request(request: &Self::Request) -> Vec<u8>;

    /// Decodes a response. The bodies of the resources are slices of `bytes`.
    ///
    /// # Errors
    ///
    /// If the bytes are not such a message.
    fn decode_response(bytes: Bytes) -> Result<Self::Response, DecodeError>;

    /// Encodes a response. A response of a [`Server`](crate::server::Server) encodes itself
    /// ([`chunks`](crate::server::Response::chunks)), which is cheaper.
    fn encode_response(response: &Self::Response) -> Vec<u8>;
}

macro_rules! on_the_wire {
    ($($variant:ident $module:ident)+) => {
        $(impl Wire for $variant {
            const VARIANT: Variant = Variant::$variant;

            fn decode_request(bytes: Bytes) -> Result<Self::Request, DecodeError> {
                $module::decode_request(bytes)
            }

            fn encode_request(request: &Self::Request) -> Vec<u8> {
                $module::encode_request(request)
            }

            fn decode_response(bytes: Bytes) -> Result<Self::Response, DecodeError> {
                $module::decode_response(bytes)
            }

            fn encode_response(response: &Self::Response) -> Vec<u8> {
                $module::encode_response(response)
            }
        })+
    };
}

on_the_wire! {
    Sotw sotw
    Delta delta
}

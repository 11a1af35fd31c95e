//! The client, against servers that a test plays by hand, on tokio's paused clock.

mod plane;
mod servers;
mod updates;
mod watches;

use self::plane::Plane;
use bytes::Bytes;
use xds_machine::client::Config;
use xds_machine::message::Node;
use xds_machine::{ResourceName, type_url};
use xds_machine_tonic::client::{Builder, XdsClient, XdsResource};

/// A resource whose content is a text. The text `bad` is rejected.
#[derive(Debug, PartialEq)]
struct Text<const TYPE: usize>(String);

type Cluster = Text<0>;
type Endpoints = Text<1>;

impl<const TYPE: usize> XdsResource for Text<TYPE> {
    const TYPE_URL: &'static str = [type_url::CLUSTER, type_url::ENDPOINT][TYPE];
    type Error = &'static str;

    fn decode(_: &ResourceName, body: &Bytes) -> Result<Self, Self::Error> {
        match std::str::from_utf8(body) {
            Ok("bad") | Err(_) => Err("this is bad"),
            Ok(text) => Ok(Self(text.to_string())),
        }
    }
}

fn client(planes: &[&Plane]) -> Builder {
    let builder = XdsClient::builder(Config::new(Node::new("me")));
    planes.iter().fold(builder, |builder, plane| builder.server(plane.connector()))
}

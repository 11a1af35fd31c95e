//! Makes resources from JSON, by the descriptors of the full xDS API.

use std::sync::LazyLock;

use bytes::Bytes;
use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use xds_machine::ResourceName;
use xds_machine_grpc::faults::Faults;
use xds_machine_grpc::resources::{Context, View};

/// The descriptors of the full xDS API.
pub(crate) static FULL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(xds_api::FILE_DESCRIPTOR_SET).expect("a descriptor set"));

/// Encodes a message, given by its full name and as JSON.
pub(crate) fn encode(message: &str, json: Value) -> Bytes {
    let kind = FULL.get_message_by_name(message).unwrap_or_else(|| panic!("no message {message}"));
    let text = json.to_string();
    let message = DynamicMessage::deserialize(kind, json).unwrap_or_else(|error| panic!("{error}: {text}"));
    message.encode_to_vec().into()
}

/// A decoder of resources.
type Decode<T> = fn(&ResourceName, &Bytes, &Context) -> Result<View<T>, Faults>;

/// A decoder, and the message that the decoder reads.
pub(crate) struct Decoder<T> {
    pub(crate) message: &'static str,
    pub(crate) decode: Decode<T>,
}

impl<T> Decoder<T> {
    /// Decodes a resource of the name `r`.
    pub(crate) fn decode(&self, json: Value) -> Result<View<T>, Faults> {
        self.decode_with(&Context::default(), json)
    }

    pub(crate) fn decode_with(&self, context: &Context, json: Value) -> Result<View<T>, Faults> {
        (self.decode)(&"r".into(), &encode(self.message, json), context)
    }

    /// Returns the value of a valid resource.
    pub(crate) fn value(&self, json: Value) -> T {
        self.decode(json).unwrap_or_else(|faults| panic!("{faults}")).into_value()
    }

    /// Returns the faults of a resource.
    pub(crate) fn faults(&self, json: Value) -> String {
        self.faults_with(&Context::default(), json)
    }

    pub(crate) fn faults_with(&self, context: &Context, json: Value) -> String {
        let text = json.to_string();
        match self.decode_with(context, json) {
            Ok(_) => panic!("it is valid: {text}"),
            Err(faults) => faults.to_string(),
        }
    }
}

/// An `Any` with a message.
pub(crate) fn any(message: &str, mut json: Value) -> Value {
    json["@type"] = json!(format!("type.googleapis.com/{message}"));
    json
}

/// Encodes a field of bytes by hand, for content that no message has.
pub(crate) fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [number << 3 | 2, content.len() as u64] {
        prost_reflect::prost::encoding::encode_varint(number, &mut bytes);
    }
    bytes.extend(content);
    bytes
}

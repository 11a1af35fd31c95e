//! Values: a resource as JSON or in its binary form.

use bytes::Bytes;
use prost_reflect::DynamicMessage;
use xds_machine::message::Any;
use xds_machine::server::Resource;

use crate::control_plane::news::Key;
use crate::reader::{DESCRIPTORS, any_name};
use crate::{discovery_file, json};

/// Reads the resource of a key. A value that begins with `{`, blanks before it apart, is JSON.
///
/// # Errors
///
/// One line that says why the value is not the resource of that key.
pub fn read(key: &Key, value: &Bytes) -> Result<Resource, String> {
    let (type_url, name) = key;
    let of = any_name(type_url.as_str());
    let value = if let Some(json) = as_json(of, value) {
        Bytes::from(json?)
    } else {
        if let Some(message) = DESCRIPTORS.get_message_by_name(of) {
            let is = DynamicMessage::decode(message, value.clone());
            is.map_err(|error| format!("neither JSON nor a {of}: {error}"))?;
        }
        Bytes::copy_from_slice(value) // a slice would keep the whole answer in memory
    };
    let body = Any { type_url: type_url.clone(), value };
    match discovery_file::name_of(&body) {
        Some(own) if own == *name => Ok(Resource::new(own, body.value)),
        Some(own) => Err(format!("its own name is {:?}", own.as_str())),
        None => Err(format!("a {of} has no name")),
    }
}

/// Returns a value of JSON in its binary form, or `None` if the value is in its binary form already.
fn as_json(of: &str, value: &[u8]) -> Option<Result<Vec<u8>, String>> {
    if !value.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let read = json::read_resource(of, value);
    // The tag and the length of a message's first field may be blanks too: 10 and 32.
    let is_binary =
        |of: &str| DESCRIPTORS.get_message_by_name(of).is_some_and(|of| DynamicMessage::decode(of, value).is_ok());
    if read.is_err() && !value.starts_with(b"{") && is_binary(of) { None } else { Some(read) }
}

#[cfg(test)]
mod tests {
    use xds_machine::type_url::{CLUSTER, ENDPOINT};

    use super::*;

    fn body(of: &str, name: &str, value: impl Into<Bytes>) -> Result<Bytes, String> {
        read(&(of.into(), name.into()), &value.into()).map(|resource| resource.body().clone())
    }

    #[test]
    fn json_in_both_spellings_and_the_binary_form_are_the_same() {
        let binary = &b"\x0a\x01c\x22\x02\x08\x02"[..];
        assert_eq!(body(CLUSTER, "c", binary).as_deref(), Ok(binary));
        for json in [
            r#"{"name":"c","connect_timeout":"2s"}"#,
            r#"{"connectTimeout":"2s","name":"c"}"#,
            r#"{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"c","connectTimeout":"2s"}"#,
        ] {
            assert_eq!(body(CLUSTER, "c", json).as_deref(), Ok(binary), "{json}");
        }
        for blanks in [" ", "\n", "\r\n\t "] {
            let json = format!("{blanks}{{\"name\": \"c\", \"connectTimeout\": \"2s\"}}\n");
            assert_eq!(body(CLUSTER, "c", json).as_deref(), Ok(binary), "{blanks:?}");
        }
        let name = "{".repeat(32);
        let blank = [&b"\x0a\x20"[..], name.as_bytes()].concat();
        assert_eq!(body(CLUSTER, &name, blank.clone()), Ok(blank.into()), "the tag and the length are blanks");
        assert!(body(ENDPOINT, "e", r#"{"clusterName":"e"}"#).is_ok());
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_the_cause() {
        let cluster = "envoy.config.cluster.v3.Cluster";
        for (value, error) in [
            (r#"{"name":"d"}"#, "its own name is \"d\"".to_owned()),
            ("", "its own name is \"\"".to_owned()),
            (r#"{"name":"c""#, "EOF while parsing an object at line 1 column 11".to_owned()),
            (r#"{"name":"c"} x"#, "trailing characters at line 1 column 14".to_owned()),
            (
                r#"{"@type":"type.googleapis.com/a.B","name":"c"}"#,
                format!("its @type is type.googleapis.com/a.B, not type.googleapis.com/{cluster}"),
            ),
            (
                r#"{"name":"c","connectTimeout":"1s","connect_timeout":"1s"}"#,
                "connectTimeout and connect_timeout are the same field".to_owned(),
            ),
        ] {
            assert_eq!(body(CLUSTER, "c", value), Err(error), "{value}");
        }
        let error = body(CLUSTER, "c", r#"{"name":"c","unheardOf":1}"#).expect_err("an unknown field");
        assert!(error.contains("unheardOf"), "{error}");
        let error = body(CLUSTER, "c", &b"\x0a\x05c"[..]).expect_err("cut off");
        assert!(error.starts_with(&format!("neither JSON nor a {cluster}: ")), "{error}");
        let error = body("type.googleapis.com/a.B", "c", r#"{"name":"c"}"#);
        assert_eq!(error, Err("a.B is not described".to_owned()));
    }
}

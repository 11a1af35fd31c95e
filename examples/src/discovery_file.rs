//! A `DiscoveryResponse` in a file, as in Envoy's filesystem subscriptions: `.json`, `.yaml` or `.pb`.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};
use xds_machine::message::Any;
use xds_machine::message::sotw::Item;
use xds_machine::server::Resource;
use xds_machine::{ResourceName, TypeUrl, WILDCARD, proto, type_url};

use crate::canonical;
use crate::json::DESCRIPTORS;

/// The resources of a file, by type and name.
pub type Resources = BTreeMap<(TypeUrl, ResourceName), Resource>;

/// Returns whether [`read`] accepts a file of this name.
pub fn is_one(path: &Path) -> bool {
    let hidden = path.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with('.'));
    !hidden && matches!(extension(path), "json" | "yaml" | "yml" | "pb")
}

/// Reads the resources of a file.
///
/// # Errors
///
/// One line that explains why the file can't be served. A file is accepted completely or not at all.
pub fn read(path: &Path, content: Vec<u8>) -> Result<Resources, String> {
    if content.is_empty() {
        return Err("the file is empty".to_owned()); // as at the start of a write
    }
    let response = match extension(path) {
        "json" => canonical::encode(&from_json(&content)?).into(),
        "yaml" | "yml" => canonical::encode(&from_yaml(&content)?).into(),
        _ => Bytes::from(content),
    };
    let response = proto::sotw::decode_response(response).map_err(|error| error.to_string())?;
    let mut resources = Resources::new();
    for (at, item) in response.resources.into_iter().enumerate() {
        let (type_url, resource) = resource(item).map_err(|error| format!("resource {}: {error}", at + 1))?;
        if !response.type_url.as_str().is_empty() && response.type_url != type_url {
            return Err(format!("resource {}: its type is {type_url}, the file's is {}", at + 1, response.type_url));
        }
        let key = (type_url, resource.name().clone());
        if resources.contains_key(&key) {
            return Err(format!("resource {}: {} {} is there twice", at + 1, key.0, key.1));
        }
        resources.insert(key, resource);
    }
    Ok(resources)
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn from_json(content: &[u8]) -> Result<DynamicMessage, String> {
    let mut json = serde_json::Deserializer::from_slice(content);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let message = DynamicMessage::deserialize(descriptor()?, tracked).map_err(|error| {
        // An error of YAML contains the path itself.
        let path = track.path().to_string();
        if path.starts_with("resources[") { format!("{path}: {error}") } else { error.to_string() }
    });
    message.and_then(|message| json.end().map(|()| message).map_err(|error| error.to_string()))
}

fn from_yaml(content: &[u8]) -> Result<DynamicMessage, String> {
    DynamicMessage::deserialize(descriptor()?, serde_yaml_ng::Deserializer::from_slice(content))
        .map_err(|error| error.to_string())
}

fn descriptor() -> Result<MessageDescriptor, String> {
    let name = "envoy.service.discovery.v3.DiscoveryResponse";
    DESCRIPTORS.get_message_by_name(name).ok_or_else(|| format!("{name} is not described"))
}

/// Converts a bare or a wrapped resource. Its version is a hash of the content, even if a wrapper has a version.
fn resource(item: Item) -> Result<(TypeUrl, Resource), String> {
    let (body, wrapper) = match item {
        Item::Bare(body) => (body, None),
        Item::Wrapped(wrapper) => {
            let body = wrapper.body.clone();
            (body.ok_or_else(|| format!("{} has no content", wrapper.name))?, Some(*wrapper))
        }
        Item::Malformed => return Err(format!("not a {}", type_url::RESOURCE)),
    };
    if body.type_url.as_str().is_empty() {
        return Err("it has no type".to_owned());
    }
    let name = match &wrapper {
        Some(wrapper) => wrapper.name.clone(),
        None => name_of(&body).ok_or_else(|| format!("a {} without a name", body.type_url))?,
    };
    if name.as_str().is_empty() || name == WILDCARD {
        return Err(format!("a {} may not be named {:?}", body.type_url, name.as_str()));
    }
    let mut resource = Resource::new(name, body.value);
    if let Some(wrapper) = wrapper {
        match wrapper.ttl {
            Some(ttl) if ttl.is_zero() => return Err(format!("the ttl of {} is not positive", wrapper.name)),
            Some(ttl) => resource = resource.with_ttl(ttl),
            None => {}
        }
        if !wrapper.aliases.is_empty() {
            resource = resource.with_aliases(wrapper.aliases);
        }
    }
    Ok((body.type_url, resource))
}

/// Returns the name in field 1, where all named types of the xDS API have it; types without a descriptor are assumed to
/// have it there as well.
pub fn name_of(body: &Any) -> Option<ResourceName> {
    let full_name = body.type_url.as_str().rsplit('/').next()?;
    if let Some(message) = DESCRIPTORS.get_message_by_name(full_name) {
        message.get_field(1).filter(|field| matches!(field.kind(), Kind::String) && !field.is_list())?;
    }
    // A `String` decodes as a message with just that field, and skips all others.
    String::decode(body.value.clone()).ok().map(ResourceName::from)
}

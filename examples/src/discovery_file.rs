//! A `DiscoveryResponse` in a file, as in Envoy's filesystem subscriptions: `.json`, `.yaml`, `.pb` or `.pb_text`.

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
use crate::reader::{self, DESCRIPTORS, Rules, Tree, any_name};

/// The resources of a file, by type and name.
pub type Resources = BTreeMap<(TypeUrl, ResourceName), Resource>;

/// What an operator wrote: an unknown field is an error, and all else is as Envoy takes it.
const RULES: Rules = Rules { ignore_unknown: false, refuse_twice: false };

/// How a file is written.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Yaml,
    Binary,
    Text,
}

/// Returns whether [`read`] accepts a file of this name.
pub fn is_one(path: &Path) -> bool {
    let hidden = path.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with('.'));
    !hidden && form(path).is_some()
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
    let described = |tree: Tree| {
        if tree == Tree::Null {
            return Err("it holds no document".to_owned()); // comments, for example
        }
        Ok(Bytes::from(canonical::encode(&reader::read(&descriptor()?, &tree, RULES)?)))
    };
    let response = match form(path) {
        Some(Form::Json) => described(Tree::from_json(&content)?)?,
        Some(Form::Yaml) => described(Tree::from_yaml(&content)?)?,
        Some(Form::Text) => {
            let text = std::str::from_utf8(&content).map_err(|error| error.to_string())?;
            let message = DynamicMessage::parse_text_format(descriptor()?, text).map_err(|error| error.to_string())?;
            Bytes::from(canonical::encode(&message))
        }
        Some(Form::Binary) | None => Bytes::from(content),
    };
    let response = proto::sotw::decode_response(response).map_err(|error| error.to_string())?;
    let mut resources = Resources::new();
    for (at, item) in response.resources.into_iter().enumerate() {
        let (type_url, resource) = resource(item).map_err(|error| format!("resource {}: {error}", at + 1))?;
        let key = (type_url, resource.name().clone());
        if resources.contains_key(&key) {
            return Err(format!("resource {}: {} {} is there twice", at + 1, key.0, key.1));
        }
        resources.insert(key, resource);
    }
    Ok(resources)
}

/// Returns how a file is written, by its suffix in any case.
fn form(path: &Path) -> Option<Form> {
    let suffix = path.extension()?.to_str()?.to_ascii_lowercase();
    match suffix.as_str() {
        "json" => Some(Form::Json),
        "yaml" | "yml" => Some(Form::Yaml),
        "pb" => Some(Form::Binary),
        "pb_text" => Some(Form::Text),
        _ => None,
    }
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
    // The last segment is the type, and whatever stands before it, clients ask for the one of this host.
    let name = any_name(body.type_url.as_str());
    if name.is_empty() {
        return Err("it has no type".to_owned());
    }
    let body = Any { type_url: format!("type.googleapis.com/{name}").into(), ..body };
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
    if let Some(message) = DESCRIPTORS.get_message_by_name(any_name(body.type_url.as_str())) {
        message.get_field(1).filter(|field| matches!(field.kind(), Kind::String) && !field.is_list())?;
    }
    // A `String` decodes as a message with just that field, and skips all others.
    String::decode(body.value.clone()).ok().map(ResourceName::from)
}

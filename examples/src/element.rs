//! Actions and messages of the machines as JSON, the elements of the shim's output.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use xds_machine::client::{self, Failed, Intent, Rejection, Update};
use xds_machine::{Code, Nonce, ResourceName, Status, TypeUrl, Version, server};

pub fn names(names: &[ResourceName]) -> Vec<&str> {
    names.iter().map(ResourceName::as_str).collect()
}

pub fn intent(intent: Intent) -> &'static str {
    match intent {
        Intent::Initial => "initial",
        Intent::Subscribe => "subscribe",
        Intent::Ack => "ack",
        Intent::Nack => "nack",
    }
}

pub fn apply(id: u64, update: &Update) -> Value {
    let resources = update.resources().map(|resource| {
        let body = BASE64_STANDARD.encode(resource.body());
        json!({ "name": resource.name().as_str(), "version": resource.version().as_str(), "body": body })
    });
    json!({ "apply": {
        "id": id,
        "type_url": update.type_url().as_str(),
        "version": update.version().as_str(),
        "resources": resources.collect::<Vec<_>>(),
        "removed": names(update.removed()),
    } })
}

/// Converts every client action except `Apply`.
pub fn client_action(action: &client::Action) -> Vec<Value> {
    use client::Action::{DoesNotExist, DropStale, Errors, Expired, Rejected, Synced};
    vec![match action {
        DropStale { type_url, nonce, reason, count, .. } => {
            let reason = match reason {
                client::DropReason::NotAsked => "not_asked",
                _ => "other",
            };
            drop_stale(None, type_url, nonce, reason, *count)
        }
        Errors { type_url, errors } => {
            let error = |Failed { name, status, .. }: &Failed| json!({ "name": name.as_str(), "code": status.code, "message": status.message });
            let errors: Vec<Value> = errors.iter().map(error).collect();
            json!({ "errors": { "type_url": type_url.as_str(), "errors": errors } })
        }
        Expired { type_url, names: gone } => {
            json!({ "expired": { "type_url": type_url.as_str(), "names": names(gone) } })
        }
        DoesNotExist { type_url, names } => {
            let missing = |name: &ResourceName| json!({ "type_url": type_url.as_str(), "name": name.as_str() });
            return names.iter().map(|name| json!({ "missing": missing(name) })).collect();
        }
        Rejected { type_url, nonce, faults } => {
            let name = |fault: &Rejection| fault.name.as_ref().map(ToString::to_string);
            let faults = faults.iter().map(|fault| json!({ "name": name(fault), "reason": fault.reason }));
            json!({ "note": {
                "kind": "rejected",
                "type_url": type_url.as_str(),
                "nonce": nonce.as_str(),
                "faults": faults.collect::<Vec<_>>(),
            } })
        }
        Synced { type_url, .. } => json!({ "note": { "kind": "synced", "type_url": type_url.as_str() } }),
        other => json!({ "note": { "kind": "other", "text": format!("{other:?}") } }),
    }]
}

pub fn server_action(stream: u64, action: &server::Action) -> Value {
    use server::Action::{Ack, Close, DropStale, Nack, Node, Subscribed};
    let verdict = |type_url: &TypeUrl, version: &Version, nonce: &Nonce| {
        let (type_url, version, nonce) = (type_url.as_str(), version.as_str(), nonce.as_str());
        json!({ "stream": stream, "type_url": type_url, "version": version, "nonce": nonce })
    };
    match action {
        Ack { type_url, version, nonce, .. } => json!({ "ack": verdict(type_url, version, nonce) }),
        Nack { type_url, version, nonce, error, .. } => {
            let mut verdict = verdict(type_url, version, nonce);
            verdict["code"] = error.code.into();
            verdict["message"] = error.message.as_str().into();
            json!({ "nack": verdict })
        }
        Close(Status { code, message }) => {
            let known = [Code::InvalidArgument, Code::ResourceExhausted, Code::Unavailable];
            let name = known.iter().find(|known| known.number() == *code).map_or("UNKNOWN", |known| known.name());
            close(stream, name, message)
        }
        DropStale { type_url, nonce, reason, count, .. } => {
            let reason = match reason {
                server::DropReason::OtherNonce => "other_nonce",
                server::DropReason::NoNonce => "no_nonce",
                _ => "other",
            };
            drop_stale(Some(stream), type_url, nonce, reason, *count)
        }
        Subscribed { type_url, added, removed, wildcard } => json!({ "subscribed": {
            "stream": stream,
            "type_url": type_url.as_str(),
            "added": names(added),
            "removed": names(removed),
            "wildcard": wildcard,
        } }),
        Node(node) => json!({ "note": { "kind": "node", "stream": stream, "id": node.id } }),
        other => json!({ "note": { "kind": "other", "stream": stream, "text": format!("{other:?}") } }),
    }
}

pub fn send<V: server::Variant>(stream: u64, response: &server::Response<V>) -> Value {
    let mut pb = Vec::with_capacity(response.encoded_len());
    response.encode(&mut pb);
    json!({ "send": { "stream": stream, "pb": BASE64_STANDARD.encode(pb) } })
}

pub fn close(stream: u64, code: &str, message: &str) -> Value {
    json!({ "close": { "stream": stream, "code": code, "message": message } })
}

/// Describes a stale message. `count` is present unless it is one.
fn drop_stale(stream: Option<u64>, type_url: &TypeUrl, nonce: &Nonce, reason: &str, count: u64) -> Value {
    let mut dropped = json!({ "type_url": type_url.as_str(), "nonce": nonce.as_str(), "reason": reason });
    stream.into_iter().for_each(|stream| dropped["stream"] = stream.into());
    (count > 1).then(|| dropped["count"] = count.into());
    json!({ "drop_stale": dropped })
}

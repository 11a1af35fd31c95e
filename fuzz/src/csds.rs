//! Requests for the status of clients, and the nodes that their matchers are applied to: any bytes.

use bytes::Bytes;
use xds_machine::csds::{ClientConfig, Item, Matchers, Regex, Response};
use xds_machine::message::Node;
use xds_machine::proto::client_status::{
    decode_request, decode_response, encode_client, encode_request, encode_response,
};

/// Decodes a message as a request and as a response. The first byte is the length of a node's metadata, which comes
/// before the message.
pub fn csds(data: &[u8]) {
    let Some((&len, data)) = data.split_first() else { return };
    let (rest, message) = data.split_at(usize::from(len).min(data.len()));
    let message = Bytes::copy_from_slice(message);
    if let Ok(request) = decode_request(message.clone()) {
        let again = decode_request(encode_request(&request).into()).expect("what was written");
        assert_eq!(again, request, "a request that is written and read");
        let compile = |pattern: &str| -> Result<Regex, String> {
            let pattern = pattern.to_string();
            if pattern.len() < 8 { Ok(Box::new(move |text| text == pattern)) } else { Err("too long".into()) }
        };
        if let Ok(matchers) = Matchers::new(&request.matchers, compile) {
            let node = Node::new(String::from_utf8_lossy(rest)).with_rest(rest.to_vec());
            let selects = matchers.select(&node);
            let each = request.matchers.iter().any(|one| {
                let one = std::slice::from_ref(one);
                Matchers::new(one, compile).is_ok_and(|matchers| matchers.select(&node))
            });
            assert_eq!(selects, each || request.matchers.is_empty(), "one of the matchers, or none at all");
        }
    }
    if let Ok(response) = decode_response(message) {
        let written = encode_response(&response, usize::MAX).expect("any length");
        assert!(encode_response(&response, written.len().saturating_sub(1)).is_err() || written.is_empty());
        let again: Response = decode_response(written.clone().into()).expect("what was written");
        assert_eq!(encode_response(&again, usize::MAX).expect("any length"), written, "a response, written again");
        let client = |client: &ClientConfig| {
            let items = client.items.iter().map(Item::borrowed);
            encode_client(client.node.as_deref(), &client.scope, items, usize::MAX).expect("any length")
        };
        let clients: Vec<Bytes> = response.clients.iter().map(client).collect();
        assert_eq!(clients.concat(), written, "client by client");
    }
}

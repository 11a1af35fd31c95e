//! The step that expects a message beside a resource that changes all the time.

use super::peer::{Peer, Wait};
use super::{MOST_EVENTS, Runner, Stop};
use crate::message::Response;
use crate::resource;
use crate::story::{Change, Expected, To};

/// The number of responses with the resource that changes before which the expected one must come: a server that takes
/// turns needs a few.
const MOST_TURNS: usize = 20;

impl Runner {
    /// Checks that responses with these parts come while a resource changes. Its next content is put before a response
    /// that has the resource is answered, so that a server which waits for the answer always has something of it to
    /// send.
    pub(super) fn must_beside(
        &mut self,
        peer: &mut dyn Peer,
        expected: &Expected,
        type_name: &str,
        name: &str,
    ) -> Result<(), Stop> {
        let (type_url, hot_url, hot) = (self.type_url(&expected.type_name), self.type_url(type_name), self.name(name));
        self.stream(peer)?;
        let (mut read, mut turns): (Vec<Response>, usize) = (Vec::new(), 0);
        for _ in 0..MOST_EVENTS {
            let mut unread = self.here()?.unread.iter().map(|response| response.type_url.clone());
            let next = unread.find(|of| *of == type_url || *of == hot_url);
            drop(unread);
            let Some(response) = next.and_then(|of| self.read(&of)) else {
                if self.wait(peer, Wait::Answer) {
                    continue;
                }
                break;
            };
            if response.type_url == type_url {
                read.push(response.clone());
                if self.lacks(expected, &read).is_empty() {
                    self.bind(expected, read);
                    return Ok(());
                }
            }
            if response.type_url == hot_url && response.resources.iter().any(|item| item.answers(&hot)) {
                turns += 1;
                if turns > MOST_TURNS {
                    break;
                }
                let last = self.world.states(&hot_url, &hot).last().copied().flatten().unwrap_or(0);
                let to = To::Put { revision: last + 1, ttl: None, alias: None };
                self.change(peer, &[Change { type_name: type_name.into(), name: name.into(), to }], false)?;
            }
            self.answer(peer, &response, false)?;
        }
        let (lacks, short) = (self.lacks(expected, &read).join(", "), resource::short(&type_url));
        self.fails(peer, format!("must come on {short} beside {turns} responses with {name}, and did not: {lacks}"))
    }
}

//! A client machine, driven by lines of JSON.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use examples::element;
use examples::line::{Fault, Line};
use serde_json::{Value, json};
use xds_machine::Instant;
use xds_machine::client::{self, Client, Sent, Transmit, Update};
use xds_machine::proto::Wire;

use crate::{Machine, Out};

pub(crate) struct ClientSide<V: client::Variant> {
    client: Client<V>,
    sent: Option<Sent>,
    applies: u64,
    judging: BTreeMap<u64, Update>,
}

impl<V: client::Variant> ClientSide<V> {
    pub(crate) fn new(config: client::Config) -> Self {
        Self { client: Client::new(config), sent: None, applies: 0, judging: BTreeMap::new() }
    }

    fn act(&mut self, action: client::Action) -> Out {
        let client::Action::Apply(update) = action else { return element::client_action(&action) };
        self.applies += 1;
        let apply = element::apply(self.applies, &update);
        self.judging.insert(self.applies, update);
        vec![apply]
    }

    fn send(&mut self, transmit: &Transmit<V::Request>) -> Value
    where
        V: Wire,
    {
        self.sent = Some(transmit.sent);
        let pb = BASE64_STANDARD.encode(V::encode_request(&transmit.request));
        json!({ "send": { "intent": element::intent(transmit.intent), "pb": pb } })
    }
}

impl<V> Machine for ClientSide<V>
where
    V: Wire + client::Variant,
{
    fn run(&mut self, op: &str, line: Line<'_>, now: Instant, out: &mut Out) -> Result<(), Fault> {
        let client = &mut self.client;
        match op {
            "subscribe" => client.resources_mut(&line.type_url()?).subscribe(line.names()?)?,
            "unsubscribe" => client.resources_mut(&line.type_url()?).unsubscribe(line.names()?),
            "refetch" => client.resources_mut(&line.type_url()?).refetch(line.names()?),
            "open" => client.handle_open(),
            "close" => client.handle_close(),
            "response" => client.handle_response(now, V::decode_response(line.base64("pb")?)?)?,
            "verdict" => {
                let (id, rejections) = (line.number("id")?, line.rejections()?);
                let update = self.judging.get(&id).cloned();
                let update = update.ok_or_else(|| Fault::line(format!("no apply {id} waits for a verdict")))?;
                client.handle_verdict(now, update.reject(rejections))?;
                self.judging.remove(&id);
            }
            "sent" => self.sent.into_iter().for_each(|sent| client.handle_sent(now, sent)),
            "poll_action" => {
                let action = client.poll_action();
                out.extend(action.into_iter().flat_map(|action| self.act(action)));
            }
            "poll_transmit" => {
                let transmit = client.poll_transmit();
                out.extend(transmit.map(|transmit| self.send(&transmit)));
            }
            _ => return Err(Fault::line(format!("no op {op:?} for a client"))),
        }
        Ok(())
    }

    fn drain(&mut self, now: Instant, out: &mut Out) {
        loop {
            while let Some(action) = self.client.poll_action() {
                out.extend(self.act(action));
            }
            let Some(transmit) = self.client.poll_transmit() else { break };
            out.push(self.send(&transmit));
            self.client.handle_sent(now, transmit.sent);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    fn timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
    }
}

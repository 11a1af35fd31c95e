//! Requests of types take turns, and so do answers and changes of subscriptions.

use std::collections::BTreeMap;

use super::*;

#[test]
fn the_subscriptions_of_one_type_starve_no_other() {
    let (cds, eds) = (clusters(), endpoints());
    let mut client = Client::<Delta>::new(spec());
    client.resources_mut(&cds).subscribe(["x"]).expect("a name");
    client.handle_open();
    client.resources_mut(&eds).subscribe(["e"]).expect("a name");
    let mut seen: BTreeMap<TypeUrl, u32> = BTreeMap::new();
    for n in 0..10 {
        client.resources_mut(&cds).subscribe([format!("c{n}")]).expect("a name");
        let transmit = client.poll_transmit().expect("there is something to say");
        *seen.entry(transmit.request.type_url).or_default() += 1;
        client.handle_sent(at(n), transmit.sent);
    }
    assert_eq!(seen, BTreeMap::from([(cds, 9), (eds, 1)]));
}

#[test]
fn the_answers_of_one_type_starve_no_subscription_and_no_other_answer() {
    let (cds, eds) = (clusters(), endpoints());
    let mut client = client::<Delta>(spec(), &[(&cds, "*")]);
    client.resources_mut(&eds).subscribe(["e"]).expect("a name");
    let mut seen = Vec::new();
    let tick = |client: &mut Client<Delta>, n: u64, of: &TypeUrl| {
        for k in 0..2 {
            let one = resource(of, "e", &format!("{n}.{k}"), None);
            client.handle_response(at(n), response(of, n * 10 + k, vec![one])).expect("read");
            let verdict = update(client).accept();
            client.handle_verdict(at(n), verdict).expect("it is out");
        }
    };
    for n in 0..4 {
        tick(&mut client, n, &cds);
        let transmit = client.poll_transmit().expect("there is something to say");
        seen.push((transmit.request.type_url.clone(), transmit.intent));
        client.handle_sent(at(n), transmit.sent);
    }
    use client::Intent::{Ack, Initial, Subscribe};
    let ack = |of: &TypeUrl| (of.clone(), Ack);
    assert_eq!(seen, [ack(&cds), (eds.clone(), Initial), ack(&cds), ack(&cds)]);
    // Another type's answer goes out before the rest of the backlog, and so does a name of the same type.
    tick(&mut client, 4, &eds);
    client.resources_mut(&cds).subscribe(["name"]).expect("a name");
    let next: Vec<_> = (0..4).map_while(|_| client.poll_transmit()).collect();
    let next: Vec<_> = next.into_iter().map(|transmit| (transmit.request.type_url, transmit.intent)).collect();
    assert!(next[..3].contains(&(cds.clone(), Subscribe)), "{next:?}");
    assert!(next[..3].contains(&ack(&eds)), "{next:?}");
}

//! Every limit and time-out of a client at 0, 1 and its maximum: the protocol goes on, and no time-out is due again
//! after it was handled.

use super::*;
use xds_machine::client::Limits;

type Knob = (&'static str, fn(&mut Limits) -> &mut usize);

const KNOBS: [Knob; 10] = [
    ("waiting_responses", |limits| &mut limits.waiting_responses),
    ("waiting_bytes", |limits| &mut limits.waiting_bytes),
    ("responses_per_stream", |limits| &mut limits.responses_per_stream),
    ("resources_per_response", |limits| &mut limits.resources_per_response),
    ("resources_per_type", |limits| &mut limits.resources_per_type),
    ("nonce_bytes", |limits| &mut limits.nonce_bytes),
    ("version_bytes", |limits| &mut limits.version_bytes),
    ("error_bytes", |limits| &mut limits.error_bytes),
    ("departed_names", |limits| &mut limits.departed_names),
    ("waiting_actions", |limits| &mut limits.waiting_actions),
];

fn rests<V: Variant>(client: &mut Client<V>, now: Instant, what: &str) {
    client.handle_timeout(now);
    while client.poll_action().is_some() {}
    let due = client.poll_timeout();
    assert!(due.is_none_or(|due| due > now), "{what}: due at {due:?}, and it is {now:?}");
    assert_eq!(client.check_invariants(), Ok(()), "{what}");
}

/// A resource of each of two types is asked for, received in two versions, and accepted; a name that does not exist is
/// reported; and a stream that breaks is followed by the next.
fn converses(config: Config, what: &str) {
    let (cds, eds) = (clusters(), endpoints());
    let existence = config.clone();
    let mut client = client::<Delta>(config, &[(&cds, "*"), (&eds, "a"), (&eds, "no")]);
    let mut now = 0;
    for round in 0..3 {
        for of in [&cds, &eds] {
            for version in ["", "1"] {
                while !client.wants_response() {
                    let due = client.poll_timeout().unwrap_or_else(|| panic!("{what}: reading waits for ever"));
                    now = due.since_epoch().as_millis() as u64 + 1;
                    rests(&mut client, at(now), what);
                }
                let mut one = response(of, 1, vec![resource(of, "a", version, Some(100_000))]);
                one.nonce = "n".into(); // a nonce of one byte
                one.system_version = "".into();
                client.handle_response(at(now), one).unwrap_or_else(|error| panic!("{what}: {error}"));
                while let Some(action) = client.poll_action() {
                    if let Action::Apply(update) = action {
                        client.handle_verdict(at(now), update.accept()).expect("it is out");
                    }
                }
                send(&mut client, at(now));
                rests(&mut client, at(now), what);
            }
            assert!(client.layer(of).held().any(|(name, _)| name == "a"), "{what}: round {round}, {of}");
        }
        now += 16_000;
        rests(&mut client, at(now), what);
        client.handle_open();
        send(&mut client, at(now));
        rests(&mut client, at(now), what);
    }
    _ = existence;
}

#[test]
fn each_limit_at_its_ends_lets_the_protocol_go_on() {
    for (what, knob) in KNOBS {
        for value in [0, 1, usize::MAX] {
            let mut limits = Limits::default();
            *knob(&mut limits) = value;
            converses(spec().with_limits(limits), &format!("{what} {value}"));
        }
    }
}

#[test]
fn each_time_out_at_its_ends_lets_the_protocol_go_on() {
    for timeout in [Some(Duration::ZERO), Some(Duration::from_nanos(1)), Some(Duration::MAX), None] {
        for transient in [false, true] {
            let config = spec().with_existence_timeout(timeout);
            let config = if transient { config.with_transient_timeout() } else { config };
            converses(config, &format!("existence time-out {timeout:?}, transient {transient}"));
        }
    }
}

/// Time-outs of two types pass at once, and one action may wait: none stays due.
#[test]
fn time_outs_are_not_due_again_while_actions_wait() {
    let (cds, eds) = (clusters(), endpoints());
    let limits = Limits { waiting_actions: 1, ..Limits::default() };
    let mut client = client::<Delta>(spec().with_limits(limits), &[(&cds, "c"), (&eds, "e")]);
    client.handle_timeout(at(15_000));
    assert_eq!(client.poll_timeout(), None);
    assert_eq!(std::iter::from_fn(|| client.poll_action()).count(), 2);
}

/// The lower of the ends is one, where zero would mean that nothing is ever taken.
#[test]
fn limits_that_would_refuse_everything_are_one() {
    let mut zero = Limits::default();
    KNOBS.iter().for_each(|(_, knob)| *knob(&mut zero) = 0);
    let config = spec().with_limits(zero);
    let limits = config.limits();
    let floors = [
        limits.waiting_responses,
        limits.responses_per_stream,
        limits.resources_per_response,
        limits.resources_per_type,
        limits.nonce_bytes,
        limits.waiting_actions,
    ];
    assert_eq!(floors, [1; 6]);
    assert_eq!([limits.waiting_bytes, limits.version_bytes, limits.error_bytes, limits.departed_names], [0; 4]);
}

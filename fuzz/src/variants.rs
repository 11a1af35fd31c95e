//! The same application history over SotW and over delta ends in the same state.

use std::collections::{BTreeMap, BTreeSet};

use xds_machine::server::State;
use xds_machine::{Delta, ResourceName, Sotw};

use xds_machine_testing::world::{Both, Step, Ttls, World, words};

/// Plays one history in two worlds.
pub fn variants(data: &[u8]) {
    let (setup, steps) = words::setup::<Sotw>(data);
    if setup.warms {
        return; // a verdict that never comes may wait in one world alone
    }
    let (mut sotw, mut delta) = (World::<Sotw>::new(setup.clone()), World::<Delta>::new(setup.clone()));
    for (at, &byte) in steps.iter().enumerate() {
        match words::step(byte, &setup) {
            // Steps of the application and of the store are taken in both worlds.
            step @ (Step::Subscribe { .. }
            | Step::Unsubscribe { .. }
            | Step::Put { .. }
            | Step::Delete { .. }
            | Step::Fail { .. }
            | Step::Doubt { .. }
            | Step::Know { .. }) => {
                assert_eq!(sotw.can(step), delta.can(step), "{step:?}");
                both(&mut sotw, &mut delta, step);
            }
            step @ (Step::Refetch { .. } | Step::Cut { .. } | Step::Pause { .. } | Step::Forget { .. }) => {
                both(&mut sotw, &mut delta, step);
            }
            // Time passes in each world as far as it may.
            step @ (Step::Beat | Step::Wait | Step::Pass) => both(&mut sotw, &mut delta, step),
            // Steps of the protocol are taken in each world at its own pace.
            Step::ClientSends { .. } => _ = words::run(&mut sotw, usize::from(byte >> 4), at as u64),
            Step::ServerSends { .. } => _ = words::run(&mut delta, usize::from(byte >> 4), at as u64),
            Step::Tick => settle(&mut sotw, &mut delta, at as u64),
            _ => {}
        }
    }
    settle(&mut sotw, &mut delta, steps.len() as u64);
}

fn both(sotw: &mut World<Sotw>, delta: &mut World<Delta>, step: Step) {
    if sotw.can(step) {
        sotw.take(step);
    }
    if delta.can(step) {
        delta.take(step);
    }
}

fn settle(sotw: &mut World<Sotw>, delta: &mut World<Delta>, choice: u64) {
    words::settle(sotw, choice);
    words::settle(delta, choice.rotate_left(7));
    if sotw.setup.ttl != Ttls::None {
        return; // what expired since a heartbeat was late depends on when who said what
    }
    for (c, (of_sotw, of_delta)) in sotw.pairs.iter().zip(&delta.pairs).enumerate() {
        for t in 0..sotw.setup.types.len() {
            assert_eq!(view(sotw, c, t), view(delta, c, t), "client {c}, type {t}");
            let (sotw_app, delta_app) = (&of_sotw.apps[t], &of_delta.apps[t]);
            assert_eq!(sotw_app.wanted, delta_app.wanted);
            if sotw.setup.full_state && sotw.setup.existence_timeout.is_some() {
                // Only one of the two clients may have seen that a resource did not exist before it had an error, or
                // before it was unknown, which a response of SotW can't report; and SotW can't report that a
                // collection is empty now.
                let has_error = |name: &ResourceName| sotw.store.error(&sotw.setup, t, name).is_some();
                let is_unknown = |name: &ResourceName| sotw.store.state(&sotw.setup, t, name) == State::Unknown;
                let same = |name: &&ResourceName| !has_error(name) && !is_unknown(name) && !name.is_glob();
                let of_sotw: Vec<_> = sotw_app.missing.keys().filter(same).collect();
                let of_delta: Vec<_> = delta_app.missing.keys().filter(same).collect();
                assert_eq!(of_sotw, of_delta, "client {c}, type {t}: what does not exist");
            }
        }
    }
}

/// Returns the existing resources that an application has, and the subscribed names. Removed resources are left out,
/// because SotW never removes resources of a partial type.
fn view<V: Both>(world: &World<V>, c: usize, t: usize) -> (BTreeMap<ResourceName, u8>, BTreeSet<ResourceName>) {
    let pair = &world.pairs[c];
    let there = |(name, _): &(&ResourceName, &u8)| world.content(t, name).is_some();
    let applied = pair.apps[t].applied.iter().filter(there).map(|(name, &content)| (name.clone(), content));
    let interest = pair.server.as_ref().and_then(|server| server.interest(&world.setup.types[t]));
    let told = interest.into_iter().flat_map(|interest| interest.names().cloned());
    (applied.collect(), told.collect())
}

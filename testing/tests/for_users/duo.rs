//! Models of an application over the real machines: a right one, and one that keeps removed resources, which the search
//! finds by a shortest trace.

use std::collections::BTreeSet;

use xds_machine::client::{Action, Config};
use xds_machine::message::Node;
use xds_machine::model::{Label, Relabel, canonical};
use xds_machine::server::{self, Cache, Resource};
use xds_machine::{Delta, ResourceName, Sotw, TypeUrl, type_url};
use xds_machine_testing::duo::{self, Duo};
use xds_machine_testing::search::{Model, Report, explore};
use xds_machine_testing::variant::Both;

#[derive(Clone, Hash)]
struct Proxy<V: Both> {
    duo: Duo<V>,
    store: Cache,
    has: BTreeSet<ResourceName>,
    /// The remaining events: puts, removals, lost streams.
    left: [u8; 3],
    keeps_removed: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Protocol(duo::Step),
    Put,
    Remove,
    Cut,
}

fn clusters() -> TypeUrl {
    type_url::CLUSTER.into()
}

impl<V: Both> Proxy<V> {
    fn explore(left: [u8; 3], keeps_removed: bool) -> Report<Step> {
        let mut duo = Duo::new(Config::new(Node::new("proxy")).with_existence_timeout(None), server::Config::ads());
        duo.client.resources_mut(&clusters()).subscribe(["*"]).expect("a good name");
        explore(Self { duo, store: Cache::new(1), has: BTreeSet::new(), left, keeps_removed }, usize::MAX)
    }
}

impl<V: Both> Model for Proxy<V> {
    type Step = Step;

    fn steps(&self, steps: &mut Vec<Step>) {
        let own = self.duo.steps(&self.store).filter(|step| *step != duo::Step::Cut);
        steps.extend(own.map(Step::Protocol));
        let others = [Step::Put, Step::Remove, Step::Cut].into_iter().zip(self.left);
        steps.extend(others.filter(|(_, left)| *left > 0).map(|(step, _)| step));
    }

    fn is_own(step: Step) -> bool {
        matches!(step, Step::Protocol(_))
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Protocol(step) => self.duo.take(step, &self.store),
            Step::Put => {
                self.left[0] -= 1;
                self.store.insert(&clusters(), Resource::new("a", vec![0x0a, 1, b'a']));
            }
            Step::Remove => {
                self.left[1] -= 1;
                self.store.remove(&clusters(), "a");
            }
            Step::Cut => {
                self.left[2] -= 1;
                self.duo.take(duo::Step::Cut, &self.store);
            }
        }
        while let Some(action) = self.duo.client.poll_action() {
            let Action::Apply(update) = action else { continue };
            self.has.extend(update.resources().map(|cluster| cluster.name().clone()));
            if !self.keeps_removed {
                update.removed().iter().for_each(|name| _ = self.has.remove(name));
            }
            self.duo.client.handle_verdict(self.duo.now, update.accept()).expect("the update is out");
        }
    }

    fn check_settled(&self) {
        let there: BTreeSet<_> = self.store.resources(&clusters()).map(|cluster| cluster.name().clone()).collect();
        assert_eq!(self.has, there, "the proxy has what there is");
    }

    fn canonicalize(&mut self) {
        canonical(self, self.duo.now);
        self.duo.renumbered();
    }
}

impl<V: Both> Relabel for Proxy<V> {
    fn relabel(&mut self, by: &mut dyn FnMut(Label<'_>)) {
        self.duo.relabel(by);
        self.store.relabel(by);
    }
}

#[test]
fn a_correct_application_passes_in_every_order_of_events() {
    for report in [Proxy::<Sotw>::explore([2, 2, 2], false), Proxy::<Delta>::explore([2, 2, 2], false)] {
        assert!(report.fault.is_none(), "{:?}", report.fault);
        assert!(report.complete && report.states > 1_000 && report.settled > 10, "{report:?}");
    }
}

#[test]
fn an_application_that_keeps_removed_resources_is_found_by_a_shortest_trace() {
    let report = Proxy::<Delta>::explore([1, 1, 1], true);
    let fault = report.fault.expect("it is found");
    assert!(fault.what.contains("the proxy has what there is"), "{}", fault.what);
    // The store puts the resource, and then removes it; there is no shorter trace.
    let at = |step: Step| fault.trace.iter().position(|taken| *taken == step);
    assert_eq!((fault.trace.len(), at(Step::Put), at(Step::Remove), at(Step::Cut)), (14, Some(3), Some(8), None));
}

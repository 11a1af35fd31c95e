//! Watchers of collections, beside watchers of names.

use xds_machine::Delta;
use xds_machine::client::DataErrors;

use super::World;

const GLOB: &str = "xdstp:///type/*";
const PART: &str = "xdstp:///type/a";

fn world() -> World<Delta> {
    World::new(false, DataErrors::Delete)
}

/// A new collection adds only the resources that it covers: the content of another name is forgotten with the last
/// watcher of that name.
#[test]
fn a_collection_keeps_only_the_resources_that_it_covers() {
    let mut world = world();
    world.put("a", 1);
    world.put(PART, 2);
    let (other, part) = (world.watch("a"), world.watch(PART));
    world.open();
    world.run();
    assert_eq!(world.told(), ["#1 a is 1".into(), format!("#2 {PART} is 2")]);
    world.watch(GLOB);
    assert_eq!(world.told(), [format!("#3 {PART} is 2")]);
    world.unwatch(other);
    world.unwatch(part);
    world.watch("a");
    assert_eq!(world.told(), [""; 0], "the server has not answered yet");
    world.watch(PART);
    assert_eq!(world.told(), [format!("#5 {PART} is 2")]);
    world.run();
    assert_eq!(world.told(), ["#4 a is 1"]);
}

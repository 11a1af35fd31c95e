//! The changes for each group when keys change.

use examples::control_plane::etcd::key::Prefix;
use examples::control_plane::etcd::keys::Keys;
use examples::control_plane::news::Contents;

use crate::news::{cluster, delete, key, kv, put, views};

fn keys(grouped: bool) -> Keys {
    Keys::new(Prefix::new("/xds"), grouped)
}

#[test]
fn a_transaction_is_one_change_and_the_last_event_of_a_key_counts() {
    let mut keys = keys(false);
    let news = keys.list(vec![kv("_", "a", cluster("a", 1), 2)], false);
    assert_eq!(views(&news), ["_ a=1"]);
    let events = vec![put("_", "b", cluster("b", 1), 3), delete("_", "a", 3), put("_", "b", cluster("b", 2), 4)];
    let news = keys.apply(events);
    assert_eq!(views(&news), ["_ a gone", "_ b=2"]);
    let told: Vec<_> = news.files.iter().map(|file| (&file.source, file.names.len(), file.removed.len())).collect();
    assert_eq!(told.len(), 3, "each event is told: {told:?}");
    assert_eq!(news.files[1].source.to_str(), Some(&key("_", "a")[..]));
    assert_eq!(keys.counts().into_values().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_put_of_an_equal_value_is_no_change() {
    let mut keys = keys(false);
    keys.list(vec![kv("_", "a", cluster("a", 1), 2)], false);
    let news = keys.apply(vec![put("_", "a", r#"{"connectTimeout":"1s","name":"a"}"#, 3)]);
    assert_eq!((views(&news).len(), news.files.len()), (0, 0));
}

#[test]
fn a_listing_reports_only_the_changed_keys() {
    let mut keys = keys(false);
    let all = |names: &[(&str, u8, i64)]| {
        names.iter().map(|(name, seconds, revision)| kv("_", name, cluster(name, *seconds), *revision)).collect()
    };
    keys.list(all(&[("a", 1, 2), ("b", 1, 3), ("c", 1, 4)]), false);
    let news = keys.list(all(&[("a", 1, 2), ("b", 2, 9), ("d", 1, 8)]), true);
    assert_eq!(views(&news), ["_ b=2", "_ c gone", "_ d=1"]);
    // In another history, a known revision does not mean that a key is unchanged.
    let news = keys.list(all(&[("a", 5, 2), ("b", 2, 3)]), false);
    assert_eq!(views(&news), ["_ a=5", "_ d gone"]);
}

#[test]
fn a_bad_value_keeps_the_last_good_one_or_leaves_the_key_unknown() {
    let mut keys = keys(false);
    let news = keys.list(vec![kv("_", "a", cluster("a", 1), 2), kv("_", "b", cluster("x", 1), 3)], false);
    assert_eq!(views(&news), ["_ a=1", "_ b unknown"]);
    let known = "(it is not known yet, and nothing is said of it)";
    assert_eq!(news.complaints, [format!("{}: its own name is \"x\" {known}", key("_", "b"))]);
    let news = keys.apply(vec![put("_", "a", "{}", 4)]);
    assert!(views(&news).is_empty());
    let served = "(its last good value is still served)";
    assert_eq!(news.complaints, [format!("{}: its own name is \"\" {served}", key("_", "a"))]);
    // A bad value that did not change is not reported again.
    let news = keys.list(vec![kv("_", "a", "{}", 4), kv("_", "b", cluster("x", 1), 3)], true);
    assert!(views(&news).is_empty() && news.complaints.is_empty(), "{news:?}");
    let news = keys.apply(vec![put("_", "b", cluster("b", 3), 5), delete("_", "a", 5)]);
    assert_eq!(views(&news), ["_ a gone", "_ b=3"]);
    // A bad key that is deleted is known not to exist.
    keys.apply(vec![put("_", "c", "x", 6)]);
    assert_eq!(views(&keys.apply(vec![delete("_", "c", 7)])), ["_ c gone"]);
}

#[test]
fn a_malformed_key_is_reported_and_ignored() {
    let mut keys = keys(true);
    let mut odd = kv("_", "a", cluster("a", 1), 2);
    odd.key = "/xds/odd".into();
    let news = keys.list(vec![odd], false);
    assert_eq!(news.complaints, ["/xds/odd: the key is not /xds/GROUP/TYPE/NAME (it is ignored)"]);
    assert!(views(&news).is_empty() && news.complete.contains(&None));
}

#[test]
fn keys_of_a_group_override_those_for_all_nodes() {
    let mut keys = keys(true);
    let all =
        vec![kv("_", "a", cluster("a", 1), 2), kv("_", "b", cluster("b", 1), 2), kv("edge", "b", cluster("b", 7), 2)];
    assert_eq!(views(&keys.list(all, false)), ["_ a=1", "_ b=1", "edge a=1", "edge b=7"]);
    assert_eq!(views(&keys.apply(vec![put("_", "b", cluster("b", 2), 3)])), ["_ b=2", "edge b=7"]);
    assert_eq!(views(&keys.apply(vec![put("_", "c", cluster("c", 1), 4)])), ["_ c=1", "edge c=1"]);
    // A bad value hides no resource for all nodes.
    let news = keys.apply(vec![put("edge", "c", "bad", 5)]);
    assert_eq!((views(&news), news.complaints.len()), (vec!["edge c=1".to_owned()], 1));
    assert_eq!(keys.groups().count(), 1);
    // The last keys of a group are deleted. The group is removed at the next change, after the news for its nodes.
    let news = keys.apply(vec![delete("edge", "b", 6), delete("edge", "c", 6)]);
    assert_eq!((views(&news), keys.groups().count()), (vec!["edge b=2".to_owned(), "edge c=1".to_owned()], 1));
    keys.apply(Vec::new());
    assert_eq!(keys.groups().count(), 0);
}

#[test]
fn without_groups_keys_of_groups_are_ignored() {
    let mut keys = keys(false);
    let news = keys.list(vec![kv("edge", "b", "bad", 2)], false);
    assert!(news.complaints.is_empty() && news.views.is_empty(), "{news:?}");
}

//! The answers of a store: a custom source with all the defaults, and the crate's cache.

use xds_machine::message::{delta, sotw};
use xds_machine::server::{Action, Cache, Config, Entry, Page, Resource, Revision, Server, Source, State, StreamId};
use xds_machine::{Code, Delta, Instant, ResourceName, Sotw, Status, TypeUrl, Version, type_url};

use crate::hash;
const NOW: Instant = Instant::EPOCH;
const GLOB: &str = "xdstp://a/T/dir/*";
const MEMBER: &str = "xdstp://a/T/dir/x";

fn resource(name: &str) -> Resource {
    Resource::new(name, [&[0x0a, name.len() as u8], name.as_bytes()].concat())
}

/// Two resources of any type that always existed.
struct Fixed([Resource; 2]);

impl Fixed {
    fn new() -> Self {
        Self([resource(MEMBER), resource("a")])
    }
}

impl Source for Fixed {
    fn epoch(&self) -> u64 {
        1
    }

    fn revision(&self) -> Revision {
        Revision(1)
    }

    fn type_revision(&self, _: &TypeUrl) -> Revision {
        Revision(1)
    }

    fn version(&self, _: &TypeUrl) -> Version {
        "one".into()
    }

    fn get(&self, _: &TypeUrl, name: &ResourceName) -> Entry<'_> {
        let found = self.0.iter().find(|resource| resource.name() == name);
        found.map_or(Entry::absent(Revision(1)), |resource| Entry::present(resource, Revision(1)))
    }

    fn changes(&self, _: &TypeUrl, since: Revision) -> impl Iterator<Item = Entry<'_>> {
        self.0.iter().filter(move |_| since < Revision(1)).map(|resource| Entry::present(resource, Revision(1)))
    }

    fn removals(&self, _: &TypeUrl, _: Revision) -> Option<impl Iterator<Item = (&ResourceName, Entry<'_>)>> {
        Some(std::iter::empty())
    }

    fn pages(&self, _: &TypeUrl) -> impl Iterator<Item = Page> {
        std::iter::once(Page::new(self.0.to_vec()))
    }

    fn is_known(&self, _: &TypeUrl) -> bool {
        true
    }
}

#[test]
fn defaults_of_a_source() {
    let (source, cluster, endpoint) = (Fixed::new(), type_url::CLUSTER.into(), type_url::ENDPOINT.into());
    assert_eq!(source.expiring(&cluster).count(), 0);
    assert_eq!(source.error(&cluster, &"a".into()), None);
    assert_eq!(source.errors(&cluster, Revision(0)).count(), 0);
    assert_eq!(source.previous(&cluster, &"gone".into(), Revision(0)), None);
    assert_eq!(source.former_targets(&cluster, &"alias".into()), None);
    let members: Vec<_> = source.members(&cluster, &GLOB.into()).map(|entry| entry.state).collect();
    assert_eq!(members, [State::Present(&source.0[0])]);
    let unknown = Entry::unknown(Revision(3));
    assert_eq!((unknown.state, unknown.since, unknown.resource()), (State::Unknown, Revision(3), None));
    assert_eq!(source.dependent_type(&cluster), Some(type_url::ENDPOINT));
    assert_eq!(source.dependent_type(&endpoint), None);
    assert_eq!(source.dependent(&cluster, &source.0[1]), Some("a".into()));
}

/// The answers of a stream over a source with only defaults.
#[test]
fn a_stream_over_a_source_with_defaults_sends_resources_and_removals() {
    let source = Fixed::new();
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let names = [GLOB, "gone", "*"].map(ResourceName::from).to_vec();
    let request = delta::Request { subscribe: names, ..delta::Request::new(type_url::SECRET) };
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &source).expect("an answer");
    let sent: Vec<_> = response.resources().map(|resource| resource.name().to_string()).collect();
    assert_eq!((sent, response.removed()), (vec![MEMBER.into(), "a".into()], &["gone".into()][..]));
    assert_eq!(response.version(), &Version::from("one"));
    assert_eq!(response.errors(), []);
    assert!(server.poll_transmit(NOW, &source).is_none());
}

/// The name of a virtual host that does not exist is reported once, as not found and not as removed.
#[test]
fn a_nonexistent_virtual_host_is_reported_once_as_not_found() {
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let request = delta::Request { subscribe: vec!["b".into()], ..delta::Request::new(type_url::VIRTUAL_HOST) };
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &Cache::new(1)).expect("an answer");
    let not_found: Vec<_> = response.not_found().map(|name| name.as_str()).collect();
    assert_eq!((response.resources().count(), not_found, response.removed().len()), (0, vec!["b"], 0));
}

#[test]
fn a_response_has_the_error_of_a_subscribed_name() {
    let mut cache = Cache::new(1);
    cache.set_error(&"t".into(), "b", Status::new(Code::Unavailable, "not yet"));
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let request = delta::Request { subscribe: vec!["b".into()], ..delta::Request::new("t") };
    server.handle_request(NOW, request).expect("a request");
    let response = server.poll_transmit(NOW, &cache).expect("an answer");
    let errors: Vec<_> = response.errors().iter().map(|error| (error.name.as_str(), error.status.clone())).collect();
    assert_eq!(errors, [("b", Some(Status::new(Code::Unavailable, "not yet")))]);
}

#[test]
fn a_cache_reports_its_types_resources_and_published_bytes() {
    let (one, two) = (TypeUrl::from("one"), TypeUrl::from("two"));
    let mut cache = Cache::new(1);
    assert_eq!(cache.types().count(), 0);
    cache.replace(&one, [resource("a"), resource("b")]);
    cache.replace(&one, [resource("c"), resource("b")]);
    cache.set_known(&two);
    assert_eq!(cache.types().collect::<Vec<_>>(), [&one, &two]);
    let mut names: Vec<_> = cache.resources(&one).map(|resource| resource.name().as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(cache.get(&one, &"a".into()).state, State::Absent);

    // The encodings have the two present resources, an element of some ten bytes or more each.
    assert_eq!(cache.published_bytes(), 0);
    cache.publish::<Sotw>();
    let sotw = cache.published_bytes();
    let page = cache.pages(&one).next().expect("a page");
    assert!(sotw > 10 && page.encoded_bytes() == sotw, "{sotw}");
    cache.publish::<Delta>();
    assert!(cache.published_bytes() > 2 * sotw, "versions come to it");
}

/// The subscribers of a type wait until its first change, or until it is set as known.
#[test]
fn a_request_of_an_unknown_type_is_answered_once_the_type_is_known() {
    let answer = |cache: &Cache| {
        let mut server = Server::<Sotw>::new(Config::ads(), StreamId(1));
        server.handle_request(NOW, sotw::Request::new(type_url::CLUSTER)).expect("a request");
        assert!(matches!(server.poll_action(), Some(Action::Subscribed { wildcard: true, .. })));
        server.poll_transmit(NOW, cache).map(|response| response.resources().count())
    };
    let mut cache = Cache::unknown(1);
    assert!(!cache.is_known(&type_url::CLUSTER.into()));
    assert_eq!(answer(&cache), None);
    cache.set_known(&type_url::CLUSTER.into());
    assert!(cache.is_known(&type_url::CLUSTER.into()));
    assert_eq!(answer(&cache), Some(0));
    let before = cache.revision();
    cache.set_known(&type_url::CLUSTER.into());
    assert_eq!(cache.revision(), before, "nothing new");
}

/// Caches with the same history are equal.
#[test]
fn only_caches_with_the_same_history_are_equal() {
    let t = TypeUrl::from("t");
    let made = |epoch, steps: &[&dyn Fn(&mut Cache)]| {
        let mut cache = Cache::new(epoch);
        steps.iter().for_each(|step| step(&mut cache));
        cache
    };
    let a = |cache: &mut Cache| _ = cache.insert(&"t".into(), resource("a"));
    let b = |cache: &mut Cache| _ = cache.insert(&"t".into(), resource("b"));
    let no_a = |cache: &mut Cache| _ = cache.remove(&"t".into(), "a");
    let error = |cache: &mut Cache| _ = cache.set_error(&"t".into(), "a", Status::new(Code::Unavailable, "no"));
    let other = |cache: &mut Cache| _ = cache.set_error(&"t".into(), "a", Status::new(Code::Unavailable, "other"));
    let unknown = |cache: &mut Cache| _ = cache.set_unknown(&"t".into(), "a");
    let known = |cache: &mut Cache| cache.set_known(&"u".into());
    let all = [
        made(1, &[]),
        made(2, &[]),
        made(1, &[&a]),
        made(1, &[&b]),
        made(1, &[&a, &b]),
        made(1, &[&b, &a]),
        made(1, &[&a, &no_a]),
        made(1, &[&a, &no_a, &a]),
        made(1, &[&error]),
        made(1, &[&other]),
        made(1, &[&unknown]),
        made(1, &[&known]),
    ];
    for (at, one) in all.iter().enumerate() {
        for (other_at, another) in all.iter().enumerate() {
            assert_eq!(one == another, at == other_at, "{at} and {other_at}");
            assert_eq!(hash(one) == hash(another), at == other_at, "{at} and {other_at}");
        }
    }
    let mut published = made(1, &[&a]);
    published.publish::<Delta>();
    assert_eq!(published, made(1, &[&a]), "what is memoised is no difference");
    assert_eq!(made(1, &[&a, &a]), made(1, &[&a]), "the same again is no change");
    assert!(published.get(&t, &"a".into()).since > Revision(0));
}

/// An unknown resource has an error or none. Setting the same state again is no change, and neither is a query.
#[test]
fn setting_an_unknown_resource_to_the_same_state_is_no_change() {
    let t = TypeUrl::from("t");
    let mut cache = Cache::unknown(1);
    assert!(!cache.remove(&t, "a"));
    assert!(!cache.is_known(&t), "nothing was said");
    assert!(cache.set_unknown(&t, "a"));
    assert!(!cache.set_unknown(&t, "a"));
    assert!(cache.set_error(&t, "a", Status::new(Code::Unavailable, "no")));
    assert!(cache.set_unknown(&t, "a"));
    assert_eq!(cache.error(&t, &"a".into()), None);
    assert!(!cache.set_unknown(&t, "a"));
}

/// The resource at a revision, and the changes after a revision, are exact to one revision.
#[test]
fn previous_resources_and_changes_are_exact_to_one_revision() {
    let t = TypeUrl::from("t");
    let mut cache = Cache::new(1);
    cache.insert(&t, resource("b"));
    cache.insert(&t, resource("a"));
    cache.insert(&t, resource("c"));
    cache.remove(&t, "a");
    let was = |at| cache.previous(&t, &"a".into(), Revision(at)).map(|resource| resource.name().as_str());
    assert_eq!([1, 2, 3, 4].map(was), [None, Some("a"), Some("a"), None]);
    let changed = |since| cache.changes(&t, Revision(since)).count();
    assert_eq!([0, 1, 2, 3].map(changed), [2, 1, 1, 0]);
    let removed = |since| cache.removals(&t, Revision(since)).map(Iterator::count);
    assert_eq!([3, 4].map(removed), [Some(1), Some(0)]);
}

/// The cache knows the state before each of the last 1024 changes; for a name that changed again since, only that
/// before the last change of the name.
#[test]
fn a_cache_knows_the_state_before_each_of_the_last_1024_changes() {
    let t = TypeUrl::from("t");
    let was = |changes: usize| {
        let mut cache = Cache::new(1);
        for name in ["a", "b"] {
            cache.insert(&t, resource(name));
        }
        cache.remove(&t, "a");
        cache.remove(&t, "b");
        for change in 0..changes {
            cache.insert(&t, Resource::new("other", vec![change as u8, (change >> 8) as u8]));
        }
        ["a", "b"].map(|name| cache.previous(&t, &name.into(), Revision(2)).is_some())
    };
    assert_eq!(was(1022), [true, true]);
    assert_eq!(was(1023), [false, true]);
    assert_eq!(was(1024), [false, false]);
    let mut cache = Cache::new(1);
    cache.insert(&t, resource("a"));
    for _ in 0..1023 {
        cache.insert(&t, resource("other"));
        cache.remove(&t, "other");
    }
    cache.remove(&t, "a");
    assert_eq!(
        cache.previous(&t, &"a".into(), Revision(2000)),
        Some(&resource("a")),
        "that it came is forgotten, not that it went"
    );
}

/// The name of a collection has members, and the name of a member has none.
#[test]
fn only_the_name_of_a_collection_has_members() {
    let t = TypeUrl::from("t");
    let mut cache = Cache::new(1);
    assert_eq!(cache.members(&t, &GLOB.into()).count(), 0);
    cache.insert(&t, resource(MEMBER));
    assert_eq!(cache.members(&t, &GLOB.into()).count(), 1);
    assert_eq!(cache.members(&t, &MEMBER.into()).count(), 0);
}

/// The resources that replace a type are all that exist: a name that was unknown or had an error, and is not among
/// them, does not exist, and its subscribers receive that.
#[test]
fn names_missing_from_the_replacement_of_a_type_do_not_exist() {
    let t = TypeUrl::from("t");
    let mut cache = Cache::unknown(1);
    cache.set_unknown(&t, "unknown");
    cache.set_error(&t, "failing", Status::new(Code::Unavailable, "no"));
    cache.set_error(&t, "gone", Status::new(Code::NotFound, "no"));
    cache.set_error(&t, "*", Status::new(Code::Unavailable, "no"));
    let names = ["unknown", "failing", "gone", "kept"];
    let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
    let request = delta::Request { subscribe: names.map(ResourceName::from).to_vec(), ..delta::Request::new("t") };
    server.handle_request(NOW, request).expect("a request");
    let first = server.poll_transmit(NOW, &cache).expect("what is known");
    assert_eq!(first.removed(), ["gone", "kept"]);
    let ack = delta::Request { nonce: first.nonce().clone(), ..delta::Request::new("t") };
    server.handle_request(NOW, ack).expect("an answer");

    cache.replace(&t, [resource("kept")]);
    assert_eq!(cache.check_invariants(), Ok(()));
    assert!(names[..3].iter().all(|&name| cache.get(&t, &name.into()).state == State::Absent));
    assert!(["unknown", "failing", "kept", "*"].iter().all(|&name| cache.error(&t, &name.into()).is_none()));
    assert!(cache.error(&t, &"gone".into()).is_some(), "why it does not exist may be known still");
    let second = server.poll_transmit(NOW, &cache).expect("what is new");
    assert_eq!(second.resources().map(|resource| resource.name().as_str()).collect::<Vec<_>>(), ["kept"]);
    let mut removed: Vec<_> = second.removed().iter().map(ResourceName::as_str).collect();
    removed.sort_unstable();
    assert_eq!(removed, ["failing", "unknown"]);

    let before = cache.revision();
    cache.replace(&t, [resource("kept")]);
    assert_eq!(cache.revision(), before, "the same again is no change");
    // A collection with a member loses its error, and the member stays.
    cache.set_error(&t, GLOB, Status::new(Code::Unavailable, "no"));
    cache.replace(&t, [resource(MEMBER)]);
    assert_eq!((cache.error(&t, &GLOB.into()), cache.get(&t, &GLOB.into()).state), (None, State::Unknown));
    cache.replace(&t, []);
    assert_eq!(cache.get(&t, &GLOB.into()).state, State::Absent);
    let all = Cache::unknown(1).tap(|cache| cache.replace(&t, []));
    assert!(all.is_known(&t), "that there is nothing is known");
}

/// The move is the first change after the alias was new. A former target that loses the alias does not change it.
#[test]
fn a_cache_knows_the_former_target_of_an_alias_that_moved() {
    let (t, alias) = (TypeUrl::from("t"), ResourceName::from("alias"));
    let mut cache = Cache::new(1);
    cache.insert(&t, Resource::new("a", vec![1]).with_aliases(["alias"]));
    assert_eq!(cache.former_targets(&t, &alias), Some((Revision(1), &[][..])));
    cache.insert(&t, Resource::new("b", vec![1]).with_aliases(["alias"]));
    assert_eq!(cache.former_targets(&t, &alias), Some((Revision(2), &["a".into()][..])));
    cache.insert(&t, Resource::new("a", vec![1]));
    assert_eq!(cache.former_targets(&t, &alias), Some((Revision(2), &["a".into()][..])));
}

/// Every query uses the normal form of a name.
#[test]
fn cache_queries_use_the_normal_form_of_a_name() {
    let (t, name) = (TypeUrl::from("t"), "xdstp://a/T/x?b=1&a=2");
    let other = "xdstp://a/T/x?a=2&b=1";
    let mut cache = Cache::new(1);
    let status = Status::new(Code::Unavailable, "no");
    cache.set_error(&t, name, status.clone());
    assert_eq!([name, other].map(|name| cache.error(&t, &name.into())), [Some(&status); 2]);
    cache.insert(&t, Resource::new("real", vec![1]).with_aliases([name]));
    cache.remove(&t, "real");
    let former = ["real".into()];
    assert_eq!([name, other].map(|name| cache.former_targets(&t, &name.into())), [Some((Revision(3), &former[..])); 2]);
    cache.insert(&t, Resource::new(name, vec![1]));
    cache.remove(&t, name);
    let was = |name: &str| cache.previous(&t, &name.into(), Revision(4)).map(|resource| resource.name().as_str());
    assert_eq!([name, other].map(was), [Some(other); 2]);
    let (glob, other) = ("xdstp://a/T/*?b=1&a=2", "xdstp://a/T/*?a=2&b=1");
    cache.insert(&t, Resource::new(name, vec![1]));
    assert_eq!([glob, other].map(|glob| cache.members(&t, &glob.into()).count()), [1; 2]);
}

trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl<T> Tap for T {}

/// A block look-up returns the same entry for each name as a single look-up: for present and absent names, for aliases,
/// and for names whose hashes agree in the few bits that are compared first.
#[test]
fn a_block_look_up_returns_the_same_entries_as_single_look_ups() {
    let types = TypeUrl::from("t");
    let mut cache = Cache::new(1);
    (0..2000).for_each(|i| _ = cache.insert(&types, resource(&format!("there {i}"))));
    cache.insert(&types, resource("one").with_aliases(["other"]));
    cache.remove(&types, "there 7");
    cache.set_unknown(&types, "there 8");
    let names: Vec<String> = (0..2000).flat_map(|i| [format!("there {i}"), format!("not {i}")]).collect();
    let names = names.iter().map(String::as_str).chain(["one", "other", "", "one"]);
    let names: Vec<&str> = names.collect();
    let mut present = 0;
    for block in names.chunks_exact(4) {
        let entries = cache.get_block::<4>(&types, block.try_into().expect("four names"));
        for (name, entry) in block.iter().zip(entries) {
            assert_eq!(entry, cache.get_str(&types, name), "{name}");
            present += usize::from(entry.resource().is_some());
        }
    }
    assert_eq!(present, 1998 + 3);
}

/// A batch of removals larger than the limit closes no stream that was served up to it. Names that come and go between
/// two responses count: more than the limit end a stream.
#[test]
fn a_mass_removal_closes_no_current_stream() {
    use xds_machine::message::delta;
    use xds_machine::server::{Action, Config, Server, StreamId};
    use xds_machine::{Delta, Instant};

    let t = TypeUrl::from("t");
    let of = |name: usize| Resource::new(format!("r{name}"), vec![1]);
    let removed_of = |change: fn(&mut Cache, &TypeUrl), come_and_go: usize| {
        let mut cache = Cache::new(1).with_tombstones(10);
        // Removals that are older than the stream take no room from those that it needs.
        (0..60).for_each(|name| _ = cache.insert(&t, of(name)));
        (50..60).for_each(|name| _ = cache.remove(&t, format!("r{name}")));
        let mut server = Server::<Delta>::new(Config::ads(), StreamId(1));
        let request = delta::Request { subscribe: vec!["*".into()], ..delta::Request::new("t") };
        server.handle_request(Instant::EPOCH, request).expect("a request");
        let first = server.poll_transmit(Instant::EPOCH, &cache).expect("an answer");
        let ack = delta::Request { nonce: first.nonce().clone(), ..delta::Request::new("t") };
        server.handle_request(Instant::EPOCH, ack).expect("an ACK");
        for name in 0..come_and_go {
            cache.insert(&t, of(1000 + name));
            cache.remove(&t, format!("r{}", 1000 + name));
        }
        change(&mut cache, &t);
        assert_eq!(cache.check_invariants(), Ok(()));
        let removed = server.poll_transmit(Instant::EPOCH, &cache).map(|response| response.removed().len());
        let is_closed = core::iter::from_fn(|| server.poll_action()).any(|action| matches!(action, Action::Close(_)));
        assert_eq!(is_closed, removed.is_none());
        removed
    };
    let one_by_one = |cache: &mut Cache, t: &TypeUrl| (0..50).for_each(|name| _ = cache.remove(t, format!("r{name}")));
    let all_at_once = |cache: &mut Cache, t: &TypeUrl| cache.replace(t, []);
    assert_eq!(removed_of(one_by_one, 0), Some(50));
    assert_eq!(removed_of(all_at_once, 0), Some(50));
    assert_eq!(removed_of(|cache, t| cache.replace(t, [Resource::new("new", vec![1])]), 0), Some(50));
    assert_eq!(removed_of(one_by_one, 10), Some(60));
    assert_eq!(removed_of(one_by_one, 11), Some(61), "the first of eleven, and ten since");
    assert_eq!(removed_of(one_by_one, 12), None);
    assert_eq!(removed_of(|_, _| {}, 61), Some(61), "as many as the limit, and as there are names");
    assert_eq!(removed_of(|_, _| {}, 62), None);
}

/// What is remembered for a batch is forgotten once as many names came and went as the limit says.
#[test]
fn the_removals_of_a_batch_are_forgotten() {
    let t = TypeUrl::from("t");
    let mut cache = Cache::new(1).with_tombstones(10);
    let remembered = |cache: &Cache| {
        let oldest = (0..).find(|&since| cache.removals(&t, Revision(since)).is_some()).expect("a horizon");
        cache.removals(&t, Revision(oldest)).expect("removals").count()
    };
    (0..1000).for_each(|name| _ = cache.insert(&t, Resource::new(format!("r{name}"), vec![1])));
    cache.replace(&t, []);
    assert_eq!(remembered(&cache), 1000);
    for name in 1000..1010 {
        cache.insert(&t, Resource::new(format!("r{name}"), vec![1]));
        cache.remove(&t, format!("r{name}"));
    }
    assert_eq!(remembered(&cache), 1010);
    cache.insert(&t, Resource::new("last", vec![1]));
    cache.remove(&t, "last");
    assert_eq!(remembered(&cache), 11, "as many as the limit, and as there were resources");
    assert_eq!(cache.check_invariants(), Ok(()));
}

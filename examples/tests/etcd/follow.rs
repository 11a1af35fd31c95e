//! Listings, watches, compactions, outages.

use clap::Parser;
use examples::control_plane::arguments::Arguments;
use examples::control_plane::etcd::follow::Follower;
use examples::control_plane::etcd::generated::{RangeResponse, WatchResponse};
use examples::control_plane::etcd::key::Prefix;
use examples::control_plane::etcd::keys::Keys;
use examples::control_plane::news::News;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::Status;

use crate::news::{cluster, delete, key, kv, put, views};
use crate::script::{Etcd, soon};

/// A follower in a task, and its news.
pub struct Followed {
    news: mpsc::UnboundedReceiver<(&'static str, News, Vec<String>)>,
    task: JoinHandle<()>,
}

impl Followed {
    pub fn start(etcd: &[&str], more: &[&str]) -> Self {
        let etcd = etcd.join(",");
        let arguments = ["control_plane", "--etcd", &etcd].into_iter().chain(more.iter().copied());
        let arguments = Arguments::try_parse_from(arguments).expect("a command line");
        let (sender, news) = mpsc::unbounded_channel();
        let keys = Keys::new(Prefix::new(&arguments.etcd.prefix), true);
        let take = move |event, _: &Keys, news: &News| {
            let copy = News {
                complaints: news.complaints.clone(),
                complete: news.complete.clone(),
                is_there: news.is_there,
                ..News::default()
            };
            let _ = sender.send((event, copy, views(news)));
        };
        Self { news, task: tokio::spawn(Follower::new(arguments.etcd, keys, take).run()) }
    }

    async fn next(&mut self) -> (&'static str, News, Vec<String>) {
        soon("news", self.news.recv()).await.expect("the follower runs")
    }

    /// Waits for news of a change, and skips news that only report whether the etcd is there.
    pub async fn change(&mut self) -> (&'static str, Vec<String>) {
        loop {
            let (event, news, views) = self.next().await;
            if !views.is_empty() || !news.complete.is_empty() {
                return (event, views);
            }
        }
    }

    /// Waits until the news report that the etcd is there, or away.
    pub async fn is_there(&mut self, is_there: bool) {
        loop {
            let (_, news, views) = self.next().await;
            assert!(views.is_empty(), "{views:?}");
            if news.is_there == is_there {
                return;
            }
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn a_watch_starts_after_the_revision_of_the_listing() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&[&etcd.url], &[]);
    let request = etcd.list(41, vec![kv("_", "a", cluster("a", 1), 9)]).await;
    assert_eq!((&request.key[..], &request.range_end[..], request.revision), (&b"/xds/"[..], &b"/xds0"[..], 0));
    assert_eq!(followed.change().await, ("loaded", vec!["_ a=1".into()]));
    let watch = etcd.watch().await;
    let create = &watch.create;
    assert_eq!((&create.key[..], &create.range_end[..], create.start_revision), (&b"/xds/"[..], &b"/xds0"[..], 42));
    assert!(create.progress_notify && create.fragment);
    followed.is_there(true).await;
    watch.events(vec![put("_", "a", cluster("a", 2), 42), put("_", "b", cluster("b", 1), 42)]).await;
    assert_eq!(followed.change().await, ("changed", vec!["_ a=2".into(), "_ b=1".into()]), "one change");
    // A lease that expires deletes its keys.
    watch.events(vec![delete("_", "b", 43)]).await;
    assert_eq!(followed.change().await, ("changed", vec!["_ b gone".into()]));
}

#[tokio::test]
async fn a_listing_is_of_one_revision_and_starts_again_after_a_compaction() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&[&etcd.url], &[]);
    let page = |etcd: &Etcd, kvs, more| Ok(RangeResponse { header: Some(etcd.header), kvs, more });
    etcd.header.revision = 41;
    let (_, answer) = etcd.range().await;
    let _ = answer.send(page(&etcd, vec![kv("_", "a", cluster("a", 1), 9)], true));
    let (request, answer) = etcd.range().await;
    assert_eq!((request.key, request.revision), (format!("{}\0", key("_", "a")).into(), 41));
    let _ = answer.send(Err(Status::out_of_range("etcdserver: mvcc: required revision has been compacted")));
    // The listing begins again, at the current revision.
    etcd.header.revision = 50;
    let (request, answer) = etcd.range().await;
    assert_eq!((&request.key[..], request.revision), (&b"/xds/"[..], 0));
    let _ = answer.send(page(&etcd, vec![kv("_", "b", cluster("b", 1), 45)], true));
    etcd.header.revision = 60;
    let (request, answer) = etcd.range().await;
    assert_eq!(request.revision, 50);
    let _ = answer.send(page(&etcd, vec![kv("_", "c", cluster("c", 1), 46)], false));
    assert_eq!(followed.change().await, ("loaded", vec!["_ b=1".into(), "_ c=1".into()]));
    assert_eq!(etcd.watch().await.create.start_revision, 51);
}

#[tokio::test]
async fn a_page_that_is_too_large_is_requested_again_with_half_the_limit() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&[&etcd.url], &[]);
    let (whole, answer) = etcd.range().await;
    let _ = answer.send(Err(Status::out_of_range("Error, decoded message length too large")));
    let half = etcd.list(41, vec![kv("_", "a", cluster("a", 1), 9)]).await;
    assert_eq!((whole.limit, half.limit), (1000, 500));
    assert_eq!(followed.change().await, ("loaded", vec!["_ a=1".into()]));
}

#[tokio::test]
async fn fragments_of_a_revision_are_one_change() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&[&etcd.url], &[]);
    etcd.list(41, Vec::new()).await;
    assert_eq!(followed.change().await, ("loaded", Vec::new()));
    let watch = etcd.watch().await;
    let part = |fragment, name: &str| WatchResponse {
        fragment,
        events: vec![put("_", name, cluster(name, 1), 42)],
        ..WatchResponse::default()
    };
    for (fragment, name) in [(true, "a"), (true, "b"), (false, "c")] {
        watch.say(part(fragment, name)).await;
    }
    assert_eq!(followed.change().await, ("changed", vec!["_ a=1".into(), "_ b=1".into(), "_ c=1".into()]));
}

#[tokio::test]
async fn after_a_compaction_the_keys_are_listed_again_and_the_difference_is_reported() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&[&etcd.url], &[]);
    etcd.list(41, vec![kv("_", "a", cluster("a", 1), 9), kv("_", "b", cluster("b", 1), 9)]).await;
    followed.change().await;
    let watch = etcd.watch().await;
    watch.say(WatchResponse { canceled: true, compact_revision: 70, ..WatchResponse::default() }).await;
    etcd.list(80, vec![kv("_", "a", cluster("a", 1), 9), kv("_", "c", cluster("c", 1), 75)]).await;
    assert_eq!(followed.change().await, ("changed", vec!["_ b gone".into(), "_ c=1".into()]));
    assert_eq!(etcd.watch().await.create.start_revision, 81);
}

#[tokio::test]
async fn after_an_outage_the_watch_goes_on_at_another_member() {
    let (mut one, mut two) = (Etcd::start().await, Etcd::start().await);
    let mut followed = Followed::start(&[&one.url, &two.url], &[]);
    one.list(41, vec![kv("_", "a", cluster("a", 1), 9)]).await;
    followed.change().await;
    let watch = one.watch().await;
    followed.is_there(true).await;
    watch.events(vec![put("_", "b", cluster("b", 1), 44)]).await;
    followed.change().await;
    watch.say(WatchResponse { header: Some(one.header), ..WatchResponse::default() }).await;
    watch.fail(Status::unavailable("etcdserver: no leader")).await;
    drop(one);
    followed.is_there(false).await;
    two.look(60).await;
    let watch = two.watch().await;
    assert_eq!(watch.create.start_revision, 45, "nothing is listed again");
    followed.is_there(true).await;
    // An event that a member sends twice counts once.
    watch.events(vec![put("_", "b", cluster("b", 1), 44), delete("_", "a", 45)]).await;
    assert_eq!(followed.change().await, ("changed", vec!["_ a gone".into()]));
}

#[tokio::test]
async fn an_etcd_that_lost_its_history_is_listed_and_compared_completely() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&[&etcd.url], &[]);
    etcd.list(41, vec![kv("_", "a", cluster("a", 1), 9), kv("_", "b", cluster("b", 1), 9)]).await;
    followed.change().await;
    etcd.watch().await.fail(Status::unavailable("it restarts")).await;
    // Its revisions begin anew: the same revision has another value.
    etcd.look(12).await;
    etcd.list(12, vec![kv("_", "a", cluster("a", 5), 9)]).await;
    assert_eq!(followed.change().await, ("changed", vec!["_ a=5".into(), "_ b gone".into()]));
    assert_eq!(etcd.watch().await.create.start_revision, 13);
}

#[tokio::test]
async fn an_unreachable_member_is_reported_and_the_next_is_used() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&["http://127.0.0.1:1", &etcd.url], &[]);
    followed.is_there(false).await;
    etcd.list(41, vec![kv("_", "a", cluster("a", 1), 9)]).await;
    assert_eq!(followed.change().await, ("loaded", vec!["_ a=1".into()]));
}

#[tokio::test]
async fn a_canceled_watch_is_tried_again() {
    let mut etcd = Etcd::start().await;
    let mut followed = Followed::start(&[&etcd.url], &[]);
    etcd.list(41, Vec::new()).await;
    followed.change().await;
    let watch = etcd.watch().await;
    let cancel_reason = "etcdserver: permission denied".to_owned();
    watch.say(WatchResponse { canceled: true, cancel_reason, ..WatchResponse::default() }).await;
    etcd.look(41).await;
    assert_eq!(etcd.watch().await.create.start_revision, 42);
}

//! Streams of a server, without a transport and without a runtime.

use std::cell::Cell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use std::{future, thread};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use xds_machine::message::{Node, delta};
use xds_machine::proto::Wire;
use xds_machine::server::{Action, Cache, Config, Resource, Response, Revision, Server, StreamId, Variant};
use xds_machine::{Code, Delta, Instant, Sotw, Status, TypeUrl, type_url};
use xds_machine_driver::Runtime;
use xds_machine_driver::server::{Handler, Responses, Shared, serve_stream};
use xds_machine_testing::driver::{Listener, Pipe, Received, check_server_driver};

/// A clock that a test sets. Its sleeps never wake: the test polls.
#[derive(Clone, Default)]
struct Clock(Rc<Cell<Instant>>);

impl Runtime for Clock {
    type Sleep = Pin<Box<dyn Future<Output = ()>>>;

    fn now(&self) -> Instant {
        self.0.get()
    }

    fn sleep_until(&self, due: Instant) -> Self::Sleep {
        let clock = self.clone();
        Box::pin(future::poll_fn(move |_| if clock.now() >= due { Poll::Ready(()) } else { Poll::Pending }))
    }
}

/// A request, an error, or `None`: the client closes its half.
type Next = Option<Result<delta::Request, Status>>;

/// Requests that a test pushes.
#[derive(Clone, Default)]
struct Requests(Rc<Cell<VecDeque<Next>>>);

impl Requests {
    fn push(&self, request: Next) {
        let mut queue = self.0.take();
        queue.push_back(request);
        self.0.set(queue);
    }

    fn subscribe(&self, type_url: &str, name: &str) {
        let request = delta::Request { subscribe: vec![name.into()], ..delta::Request::new(type_url) };
        let node = Some(Arc::new(Node::new("n")));
        self.push(Some(Ok(delta::Request { node, ..request })));
    }

    fn ack(&self, response: &Response<Delta>) {
        let nonce = response.nonce().clone();
        self.push(Some(Ok(delta::Request { nonce, ..delta::Request::new(response.type_url().clone()) })));
    }
}

impl Stream for Requests {
    type Item = Result<delta::Request, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = self.0.take();
        let next = queue.pop_front();
        self.0.set(queue);
        next.map_or(Poll::Pending, Poll::Ready)
    }
}

type Store = Arc<Shared<Cache>>;

/// A handler that notes what it hears.
#[derive(Default)]
struct Notes {
    store: Option<Store>,
    notes: Vec<String>,
    closing: Option<Status>,
}

impl Notes {
    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

impl Handler<Delta> for Notes {
    type Store = Store;

    fn assign(&mut self, node: &Node) -> Result<Store, Status> {
        self.notes.push(format!("assign {}", node.id));
        self.store.clone().ok_or_else(|| Status::new(Code::PermissionDenied, "nobody is served"))
    }

    fn handle_request(&mut self, _: &delta::Request) {
        self.notes.push("request".into());
    }

    fn handle_action(&mut self, action: &Action) {
        let action = format!("{action:?}");
        self.notes.push(action.split([' ', '(']).next().unwrap_or_default().into());
    }

    fn handle_response(&mut self, response: &Response<Delta>) {
        self.notes.push(format!("response {}", response.nonce()));
    }

    fn handle_settled(&mut self, revision: Revision) {
        self.notes.push(format!("settled {}", revision.0));
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Status> {
        self.closing.clone().map_or(Poll::Pending, Poll::Ready)
    }
}

type Served = Responses<Delta, Requests, Notes, Clock>;

fn store() -> Store {
    let store = Shared::new(Cache::new(1));
    store.publish(|cache| cache.insert(&type_url::CLUSTER.into(), Resource::new("c", &b"one"[..])));
    Arc::new(store)
}

fn serve(store: Option<&Store>) -> (Served, Requests, Clock) {
    let (requests, clock) = (Requests::default(), Clock::default());
    let notes = Notes { store: store.cloned(), ..Notes::default() };
    let server = Arc::new(Mutex::new(Server::new(Config::ads(), StreamId(1))));
    (Responses::new(server, requests.clone(), notes, clock.clone()), requests, clock)
}

fn poll(responses: &mut Served) -> Poll<Option<Result<Response<Delta>, Status>>> {
    Pin::new(responses).poll_next(&mut Context::from_waker(Waker::noop()))
}

fn next(responses: &mut Served) -> Response<Delta> {
    match poll(responses) {
        Poll::Ready(Some(Ok(response))) => response,
        other => panic!("{other:?}"),
    }
}

/// Counts the wake-ups of a task.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_stream_is_served_from_its_first_request_to_its_end() {
    let store = store();
    let (mut responses, requests, _) = serve(Some(&store));
    assert!(poll(&mut responses).is_pending());
    assert!(responses.handler_mut().take().is_empty());
    requests.subscribe(type_url::CLUSTER, "c");
    let response = next(&mut responses);
    let expected = ["request", "Node", "Subscribed", "assign n", "response 1.1"];
    assert_eq!(responses.handler_mut().take(), expected);
    assert!(poll(&mut responses).is_pending());
    assert!(responses.handler_mut().take().is_empty(), "the client has not answered");
    requests.ack(&response);
    assert!(poll(&mut responses).is_pending());
    assert_eq!(responses.handler_mut().take(), ["request", "Ack", "settled 1"]);

    // A change wakes the task, once.
    let woken = Arc::<Woken>::default();
    let waker = woken.clone().into();
    assert!(Pin::new(&mut responses).poll_next(&mut Context::from_waker(&waker)).is_pending());
    store.publish(|cache| cache.insert(&type_url::CLUSTER.into(), Resource::new("c", &b"two"[..])));
    assert_eq!(woken.0.swap(0, Ordering::Relaxed), 1);
    assert_eq!(next(&mut responses).resources().next().expect("a cluster").body(), &b"two"[..]);

    // What was asked before the end is answered.
    requests.subscribe(type_url::ENDPOINT, "e");
    requests.push(None);
    assert_eq!(next(&mut responses).type_url().as_str(), type_url::ENDPOINT);
    assert!(matches!(poll(&mut responses), Poll::Ready(None)));
    assert!(matches!(poll(&mut responses), Poll::Ready(None)));
    store.publish(|cache| cache.insert(&type_url::CLUSTER.into(), Resource::new("c", &b"three"[..])));
    assert_eq!(woken.0.load(Ordering::Relaxed), 0, "the stream has left the list of the store");
}

#[test]
fn a_stream_ends_once_with_the_status_of_its_cause() {
    let end = |responses: &mut Served| match poll(responses) {
        Poll::Ready(Some(Err(status))) => {
            assert!(matches!(poll(responses), Poll::Ready(None)), "the status comes once");
            (status.code, status.message)
        }
        other => panic!("{other:?}"),
    };
    let (mut refused, requests, _) = serve(None);
    requests.subscribe(type_url::CLUSTER, "c");
    assert_eq!(end(&mut refused), (7, "nobody is served".into()));

    let (mut broken, requests, _) = serve(Some(&store()));
    requests.push(Some(Err(Status { code: 1, message: "gone".into() })));
    assert_eq!(end(&mut broken), (1, "gone".into()));

    let (mut rude, requests, _) = serve(Some(&store()));
    requests.subscribe("", "c");
    assert_eq!(end(&mut rude), (3, "type_url is required on an aggregated stream".into()));

    let (mut drained, ..) = serve(Some(&store()));
    assert!(poll(&mut drained).is_pending());
    drained.handler_mut().closing = Some(Status::new(Code::Unavailable, "the end"));
    assert_eq!(end(&mut drained), (14, "the end".into()));

    // A store that starts anew: the machine closes the stream.
    let store = store();
    let (mut stale, requests, _) = serve(Some(&store));
    requests.subscribe(type_url::CLUSTER, "c");
    let response = next(&mut stale);
    requests.ack(&response);
    assert!(poll(&mut stale).is_pending());
    store.change(|cache| *cache = Cache::new(2));
    assert_eq!(end(&mut stale), (14, "the source of resources started anew".into()));
    assert_eq!(stale.handler_mut().take().pop().as_deref(), Some("Close"));
}

#[test]
fn a_heartbeat_is_sent_when_its_timer_expires() {
    let store = store();
    store.publish(|cache| {
        let resource = Resource::new("t", &b""[..]).with_ttl(Duration::from_secs(10));
        cache.insert(&type_url::CLUSTER.into(), resource)
    });
    let (mut responses, requests, clock) = serve(Some(&store));
    let features = vec!["xds.config.supports-resource-ttl".into()];
    let node = Node { client_features: features, ..Node::new("n") };
    let request = delta::Request { subscribe: vec!["t".into()], ..delta::Request::new(type_url::CLUSTER) };
    requests.push(Some(Ok(delta::Request { node: Some(node.into()), ..request })));
    let response = next(&mut responses);
    requests.ack(&response);
    assert!(poll(&mut responses).is_pending());
    for _ in 0..2 {
        clock.0.set(clock.now() + Duration::from_secs(1));
        assert!(poll(&mut responses).is_pending(), "not yet");
        clock.0.set(clock.now() + Duration::from_secs(9));
        let heartbeat = next(&mut responses);
        assert_eq!(heartbeat.resources().count(), 1);
        requests.ack(&heartbeat);
        assert!(poll(&mut responses).is_pending());
    }
}

#[test]
fn a_poll_yields_after_32_requests_and_wakes_its_task() {
    let (mut responses, requests, _) = serve(Some(&store()));
    for _ in 0..1000 {
        requests.subscribe(type_url::ENDPOINT, "e");
    }
    let woken = Arc::<Woken>::default();
    let waker = woken.clone().into();
    let mut read = Vec::new();
    while read.is_empty() || woken.0.swap(0, Ordering::Relaxed) > 0 {
        let _ = Pin::new(&mut responses).poll_next(&mut Context::from_waker(&waker));
        let notes = responses.handler_mut().take();
        read.push(notes.iter().filter(|note| *note == "request").count());
    }
    assert_eq!(read, [vec![32; 31], vec![8]].concat());
}

/// A sink with as much room as a test gives it.
#[derive(Default)]
struct Room {
    room: Cell<usize>,
    taken: Cell<usize>,
    flushed: Cell<usize>,
}

impl Sink<Response<Delta>> for &Room {
    type Error = &'static str;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.room.get() > 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn start_send(self: Pin<&mut Self>, _: Response<Delta>) -> Result<(), Self::Error> {
        self.room.set(self.room.get().checked_sub(1).ok_or("no room")?);
        self.taken.set(self.taken.get() + 1);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.flushed.set(self.taken.get());
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_flush(cx)
    }
}

#[test]
fn responses_wait_until_the_sink_has_room() {
    let (mut responses, requests, _) = serve(Some(&store()));
    requests.subscribe(type_url::CLUSTER, "c");
    requests.subscribe(type_url::ENDPOINT, "e");
    requests.push(None);
    let room = Room::default();
    let mut heard = Vec::new();
    let ended = {
        let mut serving = Box::pin(serve_stream(&mut responses, &room));
        let mut cx = Context::from_waker(Waker::noop());
        for step in 1..=2 {
            assert!(serving.as_mut().poll(&mut cx).is_pending());
            heard.push(room.taken.get());
            room.room.set(1);
            assert!(step < 3);
        }
        assert!(serving.as_mut().poll(&mut cx).is_pending(), "no room for the end");
        heard.push(room.taken.get());
        room.room.set(1);
        serving.as_mut().poll(&mut cx)
    };
    assert_eq!(ended, Poll::Ready(Ok(None)));
    assert_eq!((heard, room.flushed.get()), (vec![0, 1, 2], 2));
    let notes = responses.handler_mut().take();
    let first = notes.iter().position(|note| note == "request");
    assert_eq!(first, Some(0), "requests were read once there was room");
}

// The scripted clients of the crate for tests.

static STREAMS: AtomicU64 = AtomicU64::new(1);

/// The end of a pipe that requests come from. A change of the listener's store is taken over into the stream's own.
struct Inbound {
    pipe: Pipe,
    listener: Listener,
    store: Store,
}

impl Inbound {
    fn poll<V: Wire>(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<V::Request, Status>>> {
        loop {
            match self.pipe.poll_recv(cx) {
                Poll::Ready(Received::Message(bytes)) => {
                    return Poll::Ready(Some(V::decode_request(bytes).map_err(Status::from)));
                }
                Poll::Ready(Received::Changed) => self.store.change(|cache| *cache = self.listener.store()),
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

struct Of<V>(Inbound, PhantomData<V>);

impl<V: Wire + Unpin> Stream for Of<V> {
    type Item = Result<V::Request, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().0.poll::<V>(cx)
    }
}

struct Outbound(Pipe);

impl<V: Variant> Sink<Response<V>> for Outbound {
    type Error = &'static str;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, response: Response<V>) -> Result<(), Self::Error> {
        let message: Bytes = response.chunks().collect::<Vec<_>>().concat().into();
        self.0.send(message).then_some(()).ok_or("the client is gone")
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
}

/// A handler that serves everybody.
struct All(Store);

impl<V: Variant> Handler<V> for All {
    type Store = Store;

    fn assign(&mut self, _: &Node) -> Result<Store, Status> {
        Ok(self.0.clone())
    }
}

fn drive<V: Wire + Variant + Unpin + 'static>(listener: Listener) {
    let mut threads = Vec::new();
    while let Some(pipe) = listener.accept() {
        let listener = listener.clone();
        threads.push(thread::spawn(move || {
            let store = Arc::new(Shared::new(listener.store()));
            let inbound = Inbound { pipe: pipe.clone(), listener, store: store.clone() };
            let id = StreamId(STREAMS.fetch_add(1, Ordering::Relaxed));
            let server = Arc::new(Mutex::new(Server::<V>::new(Config::ads(), id)));
            let inbound = Of::<V>(inbound, PhantomData);
            let mut responses = Responses::new(server, inbound, All(store), Clock::default());
            let _ = futures_executor::block_on(serve_stream(&mut responses, Outbound(pipe.clone())));
            pipe.close();
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn the_server_driver_passes_the_driver_check_in_both_variants() {
    check_server_driver::<Delta>(drive::<Delta>).expect("delta");
    check_server_driver::<Sotw>(drive::<Sotw>).expect("SotW");
}

#[test]
fn a_shared_store_shows_its_published_changes() {
    let (store, clusters) = (store(), TypeUrl::from(type_url::CLUSTER));
    let names = |cache: &Cache| cache.resources(&clusters).map(|of| of.name().to_string()).collect::<Vec<_>>();
    let inserted = store.publish(|cache| cache.insert(&clusters, Resource::new("d", &b""[..])));
    let read = xds_machine_driver::server::Store::with(&store, names);
    assert_eq!((inserted, read), (true, vec!["c".to_owned(), "d".to_owned()]));
}

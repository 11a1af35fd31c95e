//! The watchers of a resource type, with the Rust type erased.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use xds_machine::client::{self, Verdict};
use xds_machine::servers::Action;
use xds_machine::watch::{Subscribe, WatchId};
use xds_machine::{Misuse, ResourceName, TypeUrl};

use super::actor::Command;
use super::watch::{Shared, Watch, WatchError, XdsResource};

/// The watchers of one type.
pub(super) trait OfType: Send {
    /// Handles an action. Returns it if it is about another type or about servers.
    fn handle_action(&mut self, action: Action) -> Option<Action>;
    fn poll_verdict(&mut self) -> Option<Verdict>;
    /// Wakes the watchers that have news.
    fn wake(&mut self);
    /// Removes a watcher.
    fn unwatch(&mut self, servers: &mut dyn Subscribe, watch: WatchId);
    /// Returns whether there are no watchers.
    fn is_empty(&self) -> bool;
    fn as_any(&mut self) -> &mut dyn Any;
}

/// The watchers with the Rust type `R`, and their number.
struct Typed<R: XdsResource> {
    type_url: TypeUrl,
    shared: Arc<Shared<R>>,
    watchers: usize,
}

impl<R: XdsResource> Drop for Typed<R> {
    /// Ends all watches, each after the news that it has not returned yet.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.wakers.drain().for_each(|(_, waker)| waker.wake());
    }
}

/// [`Subscribe`] for callers that need a sized type.
struct BySize<'a>(&'a mut dyn Subscribe);

impl Subscribe for BySize<'_> {
    fn subscribe(&mut self, type_url: &TypeUrl, name: ResourceName) -> Result<(), Misuse> {
        self.0.subscribe(type_url, name)
    }

    fn unsubscribe(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.0.unsubscribe(type_url, name);
    }
}

impl<R: XdsResource> OfType for Typed<R> {
    fn handle_action(&mut self, action: Action) -> Option<Action> {
        // Resources are decoded before the lock is taken, because watchers of other threads need the lock too.
        let update = match &action {
            Action::Client { action: client::Action::Apply(update), .. } if *update.type_url() == self.type_url => {
                Some(update.clone()) // the clone shares the resources
            }
            _ => None,
        };
        let resources = || update.iter().flat_map(client::Update::resources);
        let decode = |resource: client::Resource<'_>| {
            R::decode(resource.name(), resource.body()).map(Arc::new).map_err(|error| error.to_string())
        };
        let decoded: Vec<_> = resources().map(decode).collect();
        let mut decoded = resources().zip(decoded);
        // Called in the order of the update, but not for resources without a watcher.
        let mut take = |asked: client::Resource<'_>| {
            let (_, value) = decoded.find(|(resource, _)| resource.name() == asked.name())?;
            Some(value)
        };
        let mut state = self.shared.lock();
        state.watches.handle_servers_action(action, |_, resource| take(resource).unwrap_or_else(|| decode(resource)))
    }

    fn poll_verdict(&mut self) -> Option<Verdict> {
        self.shared.lock().watches.poll_verdict()
    }

    fn wake(&mut self) {
        let mut state = self.shared.lock();
        while let Some(watch) = state.watches.poll_ready() {
            if let Some(waker) = state.wakers.remove(&watch) {
                waker.wake();
            }
        }
    }

    fn unwatch(&mut self, servers: &mut dyn Subscribe, watch: WatchId) {
        let mut state = self.shared.lock();
        state.watches.unwatch(&mut BySize(servers), watch);
        state.wakers.remove(&watch);
        self.watchers = self.watchers.saturating_sub(1);
    }

    fn is_empty(&self) -> bool {
        self.watchers == 0
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// The wish to watch a name, with the Rust type erased.
pub(super) trait Wish: Send {
    fn type_url(&self) -> TypeUrl;
    /// Makes the watchers of the type, if there are none yet.
    fn make(&self) -> Box<dyn OfType>;
    fn fulfil(self: Box<Self>, of_type: &mut dyn OfType, servers: &mut dyn Subscribe);
    fn refuse(self: Box<Self>, error: WatchError);
}

/// The wish to watch a name.
pub(super) struct Wanted<R: XdsResource> {
    pub(super) name: ResourceName,
    pub(super) commands: UnboundedSender<Command>,
    pub(super) reply: oneshot::Sender<Result<Watch<R>, WatchError>>,
}

impl<R: XdsResource> Wish for Wanted<R> {
    fn type_url(&self) -> TypeUrl {
        R::TYPE_URL.into()
    }

    fn make(&self) -> Box<dyn OfType> {
        Box::new(Typed::<R> { type_url: R::TYPE_URL.into(), shared: Arc::new(Shared::new()), watchers: 0 })
    }

    fn fulfil(self: Box<Self>, of_type: &mut dyn OfType, servers: &mut dyn Subscribe) {
        let Self { name, commands, reply } = *self;
        let Some(typed) = of_type.as_any().downcast_mut::<Typed<R>>() else {
            _ = reply.send(Err(WatchError::InUse { type_url: R::TYPE_URL.into() }));
            return;
        };
        let watched = typed.shared.lock().watches.watch(&mut BySize(servers), name);
        let watch = watched.map(|id| {
            typed.watchers += 1;
            Watch::new(typed.shared.clone(), id, commands)
        });
        // If the caller does not wait any more, the watch is dropped here, which ends it.
        _ = reply.send(watch.map_err(WatchError::Name));
    }

    fn refuse(self: Box<Self>, error: WatchError) {
        _ = self.reply.send(Err(error));
    }
}

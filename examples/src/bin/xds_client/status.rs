//! The service that shows which resources this client has (CSDS).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_machine::Sotw;
use xds_machine::client::{Client, Rejection, Update};
use xds_machine::csds::{Clock, Contents, dump, merge};
use xds_machine::{Instant, TypeUrl};
use xds_machine_tonic::client::{ClientStatusService, EncodedStatus, HasStatus, StatusRequest};

/// The number of requests that can wait for an answer.
const WAITING: usize = 16;

/// Serves the status of a client until the program ends.
///
/// # Errors
///
/// One line that says what can't be done.
pub(crate) async fn serve(address: &str, client: impl HasStatus) -> Result<(), String> {
    let error = |error| format!("can't serve the client's status on {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(error)?;
    eprintln!("xds_client: the client's status is served on {}", listener.local_addr().map_err(error)?);
    let service = ClientStatusService::new().client("", client);
    let serving = Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            eprintln!("xds_client: the client's status is no longer served: {error}");
        }
    });
    Ok(())
}

/// Returns the wall clock for machines whose current time is `now`.
pub(crate) fn clock(now: Instant) -> Clock {
    Clock::new(now, SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A request for the status, and where to answer.
type Request = (StatusRequest, oneshot::Sender<EncodedStatus>);

/// Passes requests to the loop of this program.
struct Asking(mpsc::Sender<Request>);

impl HasStatus for Asking {
    fn status(&self, request: StatusRequest) -> Pin<Box<dyn Future<Output = Option<EncodedStatus>> + Send + '_>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.0.send((request, reply)).await.ok()?;
            answer.await.ok()
        })
    }
}

/// The status of machines that the loop of this program drives itself: requests for it, and contents.
pub(crate) struct Status {
    requests: mpsc::Receiver<Request>,
    contents: Contents,
}

impl Status {
    /// Serves the status, if an address is given.
    ///
    /// # Errors
    ///
    /// As [`serve`].
    pub(crate) async fn open(address: Option<&String>) -> Result<Option<Self>, String> {
        let Some(address) = address else { return Ok(None) };
        let (sender, requests) = mpsc::channel(WAITING);
        serve(address, Asking(sender)).await?;
        Ok(Some(Self { requests, contents: Contents::new() }))
    }

    /// Notes an update that is about to be judged.
    pub(crate) fn note_update(&mut self, update: &Update) {
        self.contents.handle_update(update);
    }

    /// Notes the verdict on that update, after the machine has taken it.
    pub(crate) fn note_verdict(
        &mut self,
        (id, type_url): (u64, &TypeUrl),
        rejections: &[Rejection],
        clients: &[(&Client<Sotw>, Clock)],
    ) {
        self.contents.handle_verdict(id, type_url, rejections, |of, name| {
            clients.iter().any(|(client, _)| {
                let state = client.resources(of).state(name);
                state.is_some_and(|state| state.version.is_some())
            })
        });
    }

    /// Answers the next request. `Pending` until there is one.
    pub(crate) fn poll_answer<'a>(
        &mut self,
        cx: &mut Context<'_>,
        clients: impl FnOnce() -> Vec<(&'a Client<Sotw>, Clock)>,
    ) -> Poll<()> {
        let Poll::Ready(Some((request, reply))) = self.requests.poll_recv(cx) else { return Poll::Pending };
        let clients = clients();
        let contents = Some(&self.contents).filter(|_| request.contents());
        // Two polls may subscribe to the same name.
        let dumps = clients.iter().map(|(client, clock)| dump(client.states(), clock, contents));
        let items = merge(dumps.collect());
        let node = clients.first().map(|(client, _)| client.config().node().as_ref());
        let _ = reply.send(request.answer(node, items)); // the requester may have left
        Poll::Ready(())
    }
}

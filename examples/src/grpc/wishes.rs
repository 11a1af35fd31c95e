//! The ledgers' wishes to the client: subscriptions and verdicts.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;

use futures_util::future::join_all;
use xds_machine::watch::{News, Subscribe};
use xds_machine::{Code, Misuse, ResourceName, Status, TypeUrl};
use xds_machine_grpc::chain::{Chain, Target};
use xds_machine_grpc::ledgers::Ledgers;
use xds_machine_tonic::client::Updates;

use super::resource::Resource;

/// The names that the ledgers subscribe to and unsubscribe from, in order.
#[derive(Default)]
pub struct Wishes(VecDeque<Wish>);

struct Wish {
    type_url: TypeUrl,
    name: ResourceName,
    wants: bool,
}

impl Subscribe for Wishes {
    fn subscribe(&mut self, type_url: &TypeUrl, name: ResourceName) -> Result<(), Misuse> {
        self.0.push_back(Wish { type_url: type_url.clone(), name, wants: true });
        Ok(())
    }

    fn unsubscribe(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.0.push_back(Wish { type_url: type_url.clone(), name: name.clone(), wants: false });
    }
}

impl Wishes {
    /// Passes the ledgers' verdicts and these wishes to the client, and reports the names that can't be watched to the
    /// chain. Returns whether there was anything to pass.
    ///
    /// # Errors
    ///
    /// If the client has ended.
    pub async fn carry_out(
        self,
        ledgers: &mut Ledgers<Arc<Resource>>,
        chain: &mut Chain<Arc<Resource>>,
        updates: &Updates,
    ) -> Result<bool, String> {
        let verdicts: Vec<_> = iter::from_fn(|| ledgers.poll_verdict()).collect();
        if self.0.is_empty() && verdicts.is_empty() {
            return Ok(false);
        }
        let judged = join_all(verdicts.into_iter().map(|verdict| updates.verdict(verdict)));
        // All commands are sent before the client's task takes any, so that they are one request for each type.
        let wished = join_all(self.0.into_iter().map(|wish| wish.fulfil(updates)));
        let (judged, refused) = tokio::join!(judged, wished);
        judged.into_iter().collect::<Result<(), _>>().map_err(|error| error.to_string())?;
        for (target, why) in refused.into_iter().flatten() {
            chain.handle_news(&target, News::Changed(Err(Status::new(Code::Unavailable, why))));
        }
        Ok(true)
    }
}

impl Wish {
    /// Passes the wish to the client. Returns the target and the reason if the name can't be watched.
    async fn fulfil(self, updates: &Updates) -> Option<(Target, String)> {
        let Self { type_url, name, wants } = self;
        if !wants {
            updates.unsubscribe(type_url, [name]);
            return None;
        }
        let refused = updates.subscribe(type_url.clone(), [name.clone()]).await.err()?;
        Some((Target::of(&type_url, &name)?, refused.to_string()))
    }
}

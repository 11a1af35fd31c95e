//! A wave of clients, and the changes that they have to follow.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::folder::Folder;
use crate::good::{self, Has};
use crate::judge;
use crate::program::Program;
use crate::rude::{self, Kind};

/// The time between two changes, beside what the clients take.
const PACE: Duration = Duration::from_millis(100);

/// The time between the first connections of two rude clients: all at once they overflow the listener's backlog, and the
/// system resets those that the control plane never sees.
const RAMP: Duration = Duration::from_millis(4);

/// The time between two looks at the clients.
const LOOK: Duration = Duration::from_millis(5);

/// The time without any progress after which the control plane counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

/// What clients did, for the report.
#[derive(Default)]
pub struct Counts {
    pub visits: AtomicU64,
    pub rude: [AtomicU64; Kind::ALL.len()],
}

impl Counts {
    pub fn by_kind(&self) -> BTreeMap<Kind, u64> {
        let count = |(kind, count): (&Kind, &AtomicU64)| (*kind, count.load(Ordering::Relaxed));
        Kind::ALL.iter().zip(&self.rude).map(count).collect()
    }
}

/// The clients of a wave; they leave when it is dropped.
pub struct Wave {
    tasks: JoinSet<Result<(), String>>,
    good: Vec<Arc<Has>>,
    pub counts: Arc<Counts>,
}

impl Wave {
    /// Starts clients: a third stays and follows, a sixth comes and goes, half is rude.
    pub async fn start(at: SocketAddr, streams: usize) -> Result<Self, String> {
        let (mut tasks, counts) = (JoinSet::new(), Arc::<Counts>::default());
        let good = good::stay(at, streams.div_ceil(3), &mut tasks).await?;
        for seed in 0..streams.div_ceil(6) as u64 {
            let counts = counts.clone();
            tasks.spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed);
                sleep(RAMP * seed as u32).await;
                loop {
                    good::visit(at, &mut random).await?;
                    counts.visits.fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_millis(random.u64(..1_000))).await;
                }
            });
        }
        for seed in 0..streams.div_ceil(2) as u64 {
            let counts = counts.clone();
            tasks.spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed);
                sleep(RAMP * seed as u32).await;
                for turn in seed as usize.. {
                    let at_kind = turn % Kind::ALL.len();
                    rude::act(Kind::ALL[at_kind], at, Duration::from_millis(random.u64(200..3_000))).await?;
                    counts.rude[at_kind].fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_millis(random.u64(..500))).await;
                }
                Ok(())
            });
        }
        Ok(Self { tasks, good, counts })
    }

    /// Changes resources for some time. Returns the number of changes, and the furthest that a client was behind.
    ///
    /// # Errors
    ///
    /// If a client is starved, or does not get what there is, or is answered wrongly, or the program ends.
    pub async fn run(
        &mut self,
        time: Duration,
        folder: &mut Folder,
        program: &mut Program,
    ) -> Result<(u64, u64), String> {
        self.wait(program, "the first resources", |seen| seen.iter().all(Option::is_some)).await?;
        let (first, end, mut furthest) = (folder.round(), Instant::now() + time, 0);
        while Instant::now() < end {
            let round = folder.change()?;
            let what = format!("change {round} at half of the clients");
            let has_it =
                |seen: &[Option<u64>]| seen.iter().filter(|seen| **seen >= Some(round)).count() * 2 >= seen.len();
            self.wait(program, &what, has_it).await?;
            let seen: Vec<u64> = self.seen().into_iter().map(Option::unwrap_or_default).collect();
            if let Some(starved) = judge::starved(round, &seen) {
                return Err(starved);
            }
            furthest = furthest.max(seen.iter().map(|seen| round.saturating_sub(*seen)).max().unwrap_or_default());
            sleep(PACE).await;
        }
        let expected = folder.expected();
        let what = format!("the last change, {},", folder.round());
        // The marker is one of the events of a response; the others follow.
        let good = self.good.clone();
        let has_all = move |_: &[Option<u64>]| good.iter().all(|has| has.clusters() == expected);
        let converged = self.wait(program, &what, has_all).await;
        converged.map_err(|error| format!("{error}; {}", self.behind(folder)))?;
        Ok((folder.round() - first, furthest))
    }

    /// Says who lacks what.
    fn behind(&self, folder: &Folder) -> String {
        let expected = folder.expected();
        let differs = |has: &Arc<Has>| {
            let clusters = has.clusters();
            let wrong = expected.iter().filter(|(name, round)| clusters.get(*name) != Some(round)).count();
            let more = clusters.keys().filter(|name| !expected.contains_key(*name)).count();
            (wrong + more > 0).then(|| format!("{wrong} wrong or missing and {more} that are removed"))
        };
        let behind: Vec<String> = self.good.iter().filter_map(differs).collect();
        format!("{} of {} clients have not: {:?}", behind.len(), self.good.len(), behind.first())
    }

    fn seen(&self) -> Vec<Option<u64>> {
        self.good.iter().map(|has| has.round()).collect()
    }

    /// Waits until a condition holds on the changes that the clients have; `None` is a client without resources.
    async fn wait(
        &mut self,
        program: &mut Program,
        what: &str,
        is_so: impl Fn(&[Option<u64>]) -> bool,
    ) -> Result<(), String> {
        let end = Instant::now() + STUCK;
        while !is_so(&self.seen()) {
            while let Some(ended) = self.tasks.try_join_next() {
                ended.map_err(|error| error.to_string())??;
            }
            if Instant::now() > end {
                program.alive()?;
                return Err(format!("{what}: not there after {STUCK:?}"));
            }
            sleep(LOOK).await;
        }
        program.alive()
    }
}

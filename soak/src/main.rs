//! Holds the control plane under load for some time, and checks that nothing is left of the clients that have gone:
//! `cargo xtask soak [MINUTES] [STREAMS]`.

mod folder;
mod good;
mod judge;
mod load;
mod program;
mod rude;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::folder::Folder;
use crate::judge::Reading;
use crate::load::Wave;
use crate::program::Program;

/// The time of the first wave, after which the heap has its size, and threads have been started.
const WARM_UP: Duration = Duration::from_secs(15);

/// The time that the control plane may take to end, with clients that stall.
const END: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (minutes, streams) = match &arguments[..] {
        [] => (Ok(1.0), Ok(300)),
        [minutes] => (minutes.parse(), Ok(300)),
        [minutes, streams] => (minutes.parse::<f64>(), streams.parse::<usize>()),
        _ => return usage(),
    };
    let (Ok(minutes), Ok(streams)) = (minutes, streams) else { return usage() };
    let Ok(time) = Duration::try_from_secs_f64(60.0 * minutes) else { return usage() };
    let start = Instant::now();
    match soak(time, streams).await {
        Ok(()) => {
            println!("soak: ok, {:.0?} in all", start.elapsed());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("soak: FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: soak [MINUTES] [STREAMS]");
    ExitCode::from(2)
}

async fn soak(time: Duration, streams: usize) -> Result<(), String> {
    rlimit::increase_nofile_limit(u64::MAX).map_err(|error| format!("the limit of open files: {error}"))?;
    let dir = std::env::temp_dir().join(format!("xds-soak-{}", std::process::id()));
    let result = within(&dir, time, streams).await;
    let _ = std::fs::remove_dir_all(&dir); // it is the system's to clean up
    result
}

async fn within(dir: &Path, time: Duration, streams: usize) -> Result<(), String> {
    let resources = dir.join("resources");
    let mut folder = Folder::create(&resources)?;
    let mut program = Program::start(&resources, dir.join("complaints")).await?;
    let idle = program.read_when(|_| true).await?;
    report("without clients", &idle);

    let before = wave("warm-up", WARM_UP.min(time), streams, &mut folder, &mut program, &idle).await?;
    let warm = Reading { resident: before.resident, ..idle };
    judge(&warm, &before)?;
    let after = wave("load", time, streams, &mut folder, &mut program, &before).await?;
    judge(&before, &after)?;

    let wave = Wave::start(program.address, streams).await?;
    sleep(Duration::from_secs(3)).await; // so that each kind is there
    let start = Instant::now();
    let status = program.terminate(END).await?;
    if !status.success() {
        return Err(format!("the control plane ended with {status} after SIGTERM"));
    }
    println!("soak: ended {:.1?} after SIGTERM, with {streams} clients", start.elapsed());
    drop(wave);
    Ok(())
}

/// Runs a wave of clients, and returns what is there once they have left.
async fn wave(
    name: &str,
    time: Duration,
    streams: usize,
    folder: &mut Folder,
    program: &mut Program,
    before: &Reading,
) -> Result<Reading, String> {
    let mut wave = Wave::start(program.address, streams).await?;
    let ran = wave.run(time, folder, program).await;
    let (changes, furthest) = ran.map_err(|error| format!("{name}: {error}{}", program.last_words()))?;
    report(&format!("{name}, under load"), &program.read_when(|_| true).await?);
    let counts = wave.counts.clone();
    println!("soak: {name}: {changes} changes, no client more than {furthest} behind, and all have the last one");
    println!("soak: {name}: {} visits; {:?}", counts.visits.load(Ordering::Relaxed), counts.by_kind());
    drop(wave);
    let is_quiet = |now: &Reading| judge::leaks(before, now).iter().all(|leak| leak.starts_with("resident"));
    let after = program.read_when(is_quiet).await?;
    report(&format!("{name}, when all have left"), &after);
    Ok(after)
}

fn judge(before: &Reading, after: &Reading) -> Result<(), String> {
    let leaks = judge::leaks(before, after);
    if leaks.is_empty() { Ok(()) } else { Err(leaks.join("; ")) }
}

fn report(when: &str, reading: &Reading) {
    let Reading { resident, threads, files, streams } = reading;
    println!("soak: {when}: {resident} KiB resident, {threads} threads, {files} open files, {streams} streams");
}

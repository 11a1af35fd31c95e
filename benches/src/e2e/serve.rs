//! The process that serves: `serve ours|bare|tonic delta|sotw N`. It prints its port, changes a resource for each line
//! that it reads, and ends with its input.

use std::error::Error;
use std::io::{BufRead as _, stdin};
use std::time::Instant;

use tokio::net::TcpListener;
use xds_machine::{Delta, Sotw};

use super::frames::Template;
use super::{bare, behind_tonic, ours};
use crate::stream::Wire;

/// Serves until the input ends.
///
/// # Errors
///
/// If the arguments are none of the above, or there is no port.
pub fn serve(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [kind, variant, n] = arguments[..] else { return Err("serve ours|bare|tonic delta|sotw N".into()) };
    let n = n.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let mut changed: Box<dyn FnMut()> = match (kind, variant) {
        ("ours", _) => {
            let group = ours::group(n);
            runtime.spawn(ours::serve(listener, group.clone()));
            let mut round = 0_u8;
            Box::new(move || {
                round = round.wrapping_add(1);
                ours::change(&group, round);
            })
        }
        (_, "sotw") => bare::<Sotw>(&runtime, listener, n, kind),
        _ => bare::<Delta>(&runtime, listener, n, kind),
    };
    println!("{}", address.port());
    obey(|| {
        changed();
        Instant::now()
    });
    Ok(())
}

fn bare<V>(runtime: &tokio::runtime::Runtime, listener: TcpListener, n: usize, kind: &str) -> Box<dyn FnMut()>
where
    V: Wire + xds_machine::proto::Wire + 'static,
{
    let (mut template, all) = Template::<V>::new(n);
    let shared = bare::Shared::new(all);
    match kind {
        "tonic" => drop(runtime.spawn(behind_tonic::serve(listener, shared.clone()))),
        _ => drop(runtime.spawn(bare::serve(listener, shared.clone()))),
    }
    Box::new(move || shared.change(template.change()))
}

/// Takes a step for each line, and prints how many nanoseconds passed until the moment that the step returns.
pub fn obey(mut step: impl FnMut() -> Instant) {
    for _ in stdin().lock().lines().map_while(Result::ok) {
        let start = Instant::now();
        println!("{}", (step() - start).as_nanos());
    }
}

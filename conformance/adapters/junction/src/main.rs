//! A driver of `junction-core` 0.3.2, which uses delta: `junction-driver PORT` looks up the Kubernetes services of the
//! namespace `kit` whose names it reads, a line each, so that junction asks for their clusters and endpoints.
//!
//! It is no adapter of the kit: junction takes a cluster only if its name is `HOST:PORT`, and the kit's names have no
//! port. `tap.sh` runs it through the judging proxy instead.

use std::error::Error;
use std::io::stdin;
use std::time::{Duration, Instant};

use http::HeaderMap;
use junction_api::Service;
use junction_core::{Client, LbContext, Url};

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("the port is missing")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let client = runtime.block_on(Client::build(format!("http://127.0.0.1:{port}"), "kit".into(), "kit".into()))?;
    for name in stdin().lines() {
        let (name, client) = (name?, client.clone());
        let backend = Service::kube("kit", &name)?.as_backend_id(80);
        runtime.spawn(async move {
            let url: Url = format!("http://{}/", backend.name()).parse().expect("a URL");
            let headers = HeaderMap::new();
            let context = LbContext::from_parts(&url, &headers);
            let deadline = Some(Instant::now() + Duration::from_secs(3));
            match client.select_endpoint(&backend, context, deadline).await {
                Ok(selected) => println!("{name}: {}", selected.addr),
                Err(error) => println!("{name}: {error}"),
            }
        });
    }
    Ok(())
}

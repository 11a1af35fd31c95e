//! The services about the program: `grpc.health.v1.Health`, and `grpc.reflection` in both versions.

use std::sync::{Arc, LazyLock};

use http::{Request, Response};
use tonic::body::Body;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};
use tonic_reflection::server::Builder;
use tower::ServiceExt;
use xds_machine::service::{self, ClientStatusMethod, Method};

use super::health::Health;
use crate::reader::{DESCRIPTORS, ENCODED};

/// The paths of the health service.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// The paths of reflection.
const REFLECTION: &str = "/grpc.reflection.";

/// The names of xDS services that the program has.
static SERVICES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let is_served = |path: &str| {
        Method::of_path(path).is_some() || ClientStatusMethod::of_path(path).is_some() || path == service::LOAD_REPORTS
    };
    let services = DESCRIPTORS.services().filter(|service| {
        service.methods().any(|method| is_served(&format!("/{}/{}", service.full_name(), method.name())))
    });
    services.map(|service| service.full_name().to_owned()).collect()
});

/// Reflection, made at its first use: it reads the descriptors of all of Envoy's API.
static REFLECTED: LazyLock<Routes> = LazyLock::new(|| {
    let builder = || {
        let named = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"].map(str::to_owned);
        let names = SERVICES.iter().cloned().chain(named);
        let configured = Builder::configure()
            .register_encoded_file_descriptor_set(ENCODED)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
        names.fold(configured, Builder::with_service_name)
    };
    let checked = "a descriptor set, checked by tests";
    Routes::new(builder().build_v1().expect(checked)).add_service(builder().build_v1alpha().expect(checked)).prepare()
});

/// Answers the calls of services about the program. Cheap to clone.
#[derive(Clone)]
pub struct About {
    health: Routes,
}

impl About {
    /// Creates the services, and the task that tells the health service of the program's: of `/readyz`, until `end`
    /// completes.
    pub fn start(health: &Arc<Health>, end: impl Future<Output = ()> + Send + 'static) -> Self {
        let (reporter, server) = health_reporter();
        tokio::spawn(report(reporter, health.clone(), end));
        Self { health: Routes::new(server).prepare() }
    }

    /// Returns whether a path is that of a service about the program.
    pub fn has(path: &str) -> bool {
        path.starts_with(HEALTH) || path.starts_with(REFLECTION)
    }

    pub async fn answer(self, request: Request<Body>) -> Response<Body> {
        let routes = if request.uri().path().starts_with(HEALTH) {
            self.health
        } else {
            // The first use takes its time, which holds up no stream.
            match tokio::task::spawn_blocking(|| REFLECTED.clone()).await {
                Ok(routes) => routes,
                Err(error) => return tonic::Status::internal(error.to_string()).into_http(),
            }
        };
        match routes.oneshot(request).await {
            Ok(response) => response.map(Body::new),
            Err(never) => match never {},
        }
    }
}

/// Tells the health service whether the program is ready. At the end it is not, and who watches is told so.
async fn report(reporter: HealthReporter, health: Arc<Health>, end: impl Future<Output = ()>) {
    let mut ready = health.watch();
    let follow = async {
        loop {
            let status = if *ready.borrow_and_update() { ServingStatus::Serving } else { ServingStatus::NotServing };
            tell(&reporter, status).await;
            if ready.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = follow => {}
        () = end => {}
    }
    tell(&reporter, ServingStatus::NotServing).await;
}

async fn tell(reporter: &HealthReporter, status: ServingStatus) {
    reporter.set_service_status("", status).await;
    for service in &*SERVICES {
        reporter.set_service_status(service, status).await;
    }
}

//! The metrics, and the page that has them.

mod streams;

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use xds_machine::service::{self, Method, Variant};

pub use self::streams::Measured;

const STREAMS: &str = "xds_streams";
const REQUESTS: &str = "xds_requests_total";
const RESPONSES: &str = "xds_responses_total";
const ACKS: &str = "xds_acks_total";
const NACKS: &str = "xds_nacks_total";
const RESOURCES: &str = "xds_resources";
const CHANGE_TO_ACK: &str = "xds_change_to_ack_seconds";
const SENT_BYTES: &str = "xds_sent_bytes_total";
const REFUSED: &str = "xds_refused_streams_total";
const SOURCE_UP: &str = "xds_source_up";

/// Upper bounds of the buckets, in seconds.
const BUCKETS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The time between two transfers of measured values into the buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// The metrics of the program.
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    requests: Counter,
    responses: Counter,
    sent_bytes: Counter,
    refused: Counter,
    change_to_ack: Histogram,
}

impl Metrics {
    /// Creates the metrics, each at zero for all known types.
    ///
    /// # Errors
    ///
    /// If the exporter refuses its configuration.
    pub fn new() -> Result<Self, BuildError> {
        let builder = PrometheusBuilder::new();
        let recorder = builder.set_buckets_for_metric(Matcher::Full(CHANGE_TO_ACK.into()), &BUCKETS)?.build_recorder();
        let handle = recorder.handle();
        let (requests, responses, sent_bytes, refused, change_to_ack) = with_local_recorder(&recorder, || {
            describe();
            let totals = (counter!(REQUESTS), counter!(RESPONSES), counter!(SENT_BYTES), counter!(REFUSED));
            (totals.0, totals.1, totals.2, totals.3, histogram!(CHANGE_TO_ACK))
        });
        let metrics = Self { recorder, handle, requests, responses, sent_bytes, refused, change_to_ack };
        for type_url in service::types() {
            metrics.acks(type_url).increment(0);
            metrics.nacks(type_url).increment(0);
            metrics.resources(type_url).set(0.0);
        }
        for type_url in service::types().map(Some).chain([None]) {
            for variant in [Variant::Sotw, Variant::Delta] {
                metrics.streams(Method { variant, type_url }).set(0.0);
            }
        }
        Ok(metrics)
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Keeps measured values from piling up between two requests for the page.
    pub async fn keep_up(&self) {
        let mut times = tokio::time::interval(UPKEEP);
        loop {
            times.tick().await;
            self.handle.run_upkeep();
        }
    }

    /// Returns the gauge of whether the source of resources is there.
    pub fn source_up(&self, source: &str) -> Gauge {
        with_local_recorder(&self.recorder, || gauge!(SOURCE_UP, "source" => source.to_owned()))
    }

    /// Returns the gauge of the number of resources of a type.
    pub fn resources(&self, type_url: &str) -> Gauge {
        with_local_recorder(&self.recorder, || gauge!(RESOURCES, "type" => type_url.to_owned()))
    }

    fn streams(&self, method: Method) -> Gauge {
        let variant = match method.variant {
            Variant::Sotw => "sotw",
            Variant::Delta => "delta",
        };
        let scope = method.type_url.unwrap_or("ads");
        with_local_recorder(&self.recorder, || gauge!(STREAMS, "type" => scope, "variant" => variant))
    }

    // The types of these have resources, because the server sent responses of them: a client can't invent a type.

    fn acks(&self, type_url: &str) -> Counter {
        with_local_recorder(&self.recorder, || counter!(ACKS, "type" => type_url.to_owned()))
    }

    fn nacks(&self, type_url: &str) -> Counter {
        with_local_recorder(&self.recorder, || counter!(NACKS, "type" => type_url.to_owned()))
    }
}

fn describe() {
    describe_gauge!(STREAMS, "Streams that are open now; the type of an aggregated stream is ads");
    describe_counter!(REQUESTS, "Requests that were received");
    describe_counter!(RESPONSES, "Responses that were sent");
    describe_counter!(ACKS, "Responses that clients accepted");
    describe_counter!(NACKS, "Responses that clients rejected");
    describe_gauge!(RESOURCES, "Resources that are served, of all groups together");
    describe_histogram!(CHANGE_TO_ACK, "Time from a change of a resource to the ACK of a client");
    describe_counter!(SENT_BYTES, "Bytes of the responses that were sent");
    describe_counter!(REFUSED, "Streams that were refused");
    describe_gauge!(SOURCE_UP, "Whether the source of the resources can be read");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_is_exported_from_the_start() {
        let metrics = Metrics::new().expect("good buckets");
        metrics.source_up("dir").set(1.0);
        let page = metrics.render();
        for (name, kind, samples) in [
            (STREAMS, "gauge", 22),
            (REQUESTS, "counter", 1),
            (RESPONSES, "counter", 1),
            (ACKS, "counter", 10),
            (NACKS, "counter", 10),
            (RESOURCES, "gauge", 10),
            (CHANGE_TO_ACK, "histogram", BUCKETS.len() + 3),
            (SENT_BYTES, "counter", 1),
            (REFUSED, "counter", 1),
            (SOURCE_UP, "gauge", 1),
        ] {
            assert!(page.contains(&format!("# TYPE {name} {kind}\n")), "{name}\n{page}");
            assert!(page.contains(&format!("# HELP {name} ")), "{name}\n{page}");
            let of = page.lines().filter(|line| line.split(['{', ' ']).next().is_some_and(|of| of.starts_with(name)));
            assert_eq!(of.count(), samples, "{name}\n{page}");
        }
        let cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
        assert!(page.contains(&format!("xds_acks_total{{type=\"{cds}\"}} 0\n")), "{page}");
        assert!(page.contains("xds_streams{type=\"ads\",variant=\"delta\"} 0\n"), "{page}");
    }
}

//! The messages of load reports on the wire.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use prost::Message;

use super::{DecodeError, generated, node};
use crate::load::{
    ClusterStats, Dropped, EndpointStats, Interval, Load, LocalityStats, Metric, NamedMetric, Request, Response, Sum,
};
use crate::message::Locality;

/// Decodes a `LoadStatsRequest`. A window that is not positive counts as none, and a metric whose value is not finite
/// is left out.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_request(bytes: Bytes) -> Result<Request, DecodeError> {
    let request = generated::LoadStatsRequest::decode(bytes).map_err(DecodeError::new("LoadStatsRequest"))?;
    Ok(Request {
        node: request.node.as_ref().map(node::decode).transpose()?.map(Arc::new),
        clusters: request.cluster_stats.into_iter().map(cluster).collect(),
    })
}

/// Encodes a `LoadStatsRequest`.
pub fn encode_request(request: &Request) -> Vec<u8> {
    generated::LoadStatsRequest {
        node: request.node.as_deref().map(node::encode),
        cluster_stats: request.clusters.iter().map(cluster_out).collect(),
    }
    .encode_to_vec()
}

/// Decodes a `LoadStatsResponse`.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn decode_response(bytes: Bytes) -> Result<Response, DecodeError> {
    let response = generated::LoadStatsResponse::decode(bytes).map_err(DecodeError::new("LoadStatsResponse"))?;
    let interval = |generated::Duration { seconds, nanos }| Interval { seconds, nanos };
    Ok(Response {
        clusters: super::names(response.clusters),
        send_all_clusters: response.send_all_clusters,
        interval: response.load_reporting_interval.map(interval),
        endpoint_granularity: response.report_endpoint_granularity,
    })
}

/// Encodes a `LoadStatsResponse`.
pub fn encode_response(response: &Response) -> Vec<u8> {
    generated::LoadStatsResponse {
        clusters: super::names_out(&response.clusters),
        load_reporting_interval: response.interval.map(interval_out),
        report_endpoint_granularity: response.endpoint_granularity,
        send_all_clusters: response.send_all_clusters,
    }
    .encode_to_vec()
}

fn interval_out(Interval { seconds, nanos }: Interval) -> generated::Duration {
    generated::Duration { seconds, nanos }
}

fn cluster(stats: generated::ClusterStats) -> ClusterStats {
    let dropped =
        |dropped: generated::DroppedRequests| Dropped { category: dropped.category, count: dropped.dropped_count };
    let window = |generated::Duration { seconds, nanos }| Interval { seconds, nanos }.to_duration();
    ClusterStats {
        cluster: stats.cluster_name.into(),
        service: stats.cluster_service_name.into(),
        window: stats.load_report_interval.map(window).filter(|window| !window.is_zero()),
        localities: stats.upstream_locality_stats.into_iter().map(locality).collect(),
        dropped: stats.total_dropped_requests,
        drops: stats.dropped_requests.into_iter().map(dropped).collect(),
    }
}

fn cluster_out(stats: &ClusterStats) -> generated::ClusterStats {
    let dropped = |dropped: &Dropped| generated::DroppedRequests {
        category: dropped.category.clone(),
        dropped_count: dropped.count,
    };
    let window = |window: Duration| interval_out(window.into());
    generated::ClusterStats {
        cluster_name: stats.cluster.as_str().into(),
        upstream_locality_stats: stats.localities.iter().map(locality_out).collect(),
        total_dropped_requests: stats.dropped,
        load_report_interval: stats.window.map(window),
        dropped_requests: stats.drops.iter().map(dropped).collect(),
        cluster_service_name: stats.service.as_str().into(),
    }
}

fn locality(stats: generated::UpstreamLocalityStats) -> LocalityStats {
    let generated::Locality { region, zone, sub_zone } = stats.locality.unwrap_or_default();
    LocalityStats {
        locality: Locality { region, zone, sub_zone }.into(),
        priority: stats.priority,
        load: Load {
            issued: stats.total_issued_requests,
            ok: stats.total_successful_requests,
            error: stats.total_error_requests,
            in_progress: stats.total_requests_in_progress,
            metrics: metrics(stats.load_metric_stats),
        },
        cpu: stats.cpu_utilization.and_then(unnamed),
        mem: stats.mem_utilization.and_then(unnamed),
        application: stats.application_utilization.and_then(unnamed),
        endpoints: stats.upstream_endpoint_stats.into_iter().map(endpoint).collect(),
    }
}

fn locality_out(stats: &LocalityStats) -> generated::UpstreamLocalityStats {
    let Locality { region, zone, sub_zone } = Locality::clone(&stats.locality);
    generated::UpstreamLocalityStats {
        // An unknown locality is present, and empty (R-LRS-30).
        locality: Some(generated::Locality { region, zone, sub_zone }),
        total_successful_requests: stats.load.ok,
        total_requests_in_progress: stats.load.in_progress,
        total_error_requests: stats.load.error,
        load_metric_stats: stats.load.metrics.iter().map(metric_out).collect(),
        priority: stats.priority,
        upstream_endpoint_stats: stats.endpoints.iter().map(endpoint_out).collect(),
        total_issued_requests: stats.load.issued,
        cpu_utilization: stats.cpu.map(unnamed_out),
        mem_utilization: stats.mem.map(unnamed_out),
        application_utilization: stats.application.map(unnamed_out),
    }
}

fn endpoint(stats: generated::UpstreamEndpointStats) -> EndpointStats {
    EndpointStats {
        address: stats.address,
        load: Load {
            issued: stats.total_issued_requests,
            ok: stats.total_successful_requests,
            error: stats.total_error_requests,
            in_progress: stats.total_requests_in_progress,
            metrics: metrics(stats.load_metric_stats),
        },
    }
}

fn endpoint_out(stats: &EndpointStats) -> generated::UpstreamEndpointStats {
    generated::UpstreamEndpointStats {
        address: stats.address.clone(),
        total_successful_requests: stats.load.ok,
        total_requests_in_progress: stats.load.in_progress,
        total_error_requests: stats.load.error,
        load_metric_stats: stats.load.metrics.iter().map(metric_out).collect(),
        total_issued_requests: stats.load.issued,
    }
}

fn metrics(metrics: Vec<generated::EndpointLoadMetricStats>) -> Vec<NamedMetric> {
    let named = |metric: generated::EndpointLoadMetricStats| {
        let total = Sum::new(metric.total_metric_value)?;
        let calls = metric.num_requests_finished_with_metric;
        Some(NamedMetric { name: metric.metric_name, metric: Metric { calls, total } })
    };
    metrics.into_iter().filter_map(named).collect()
}

fn metric_out(NamedMetric { name, metric }: &NamedMetric) -> generated::EndpointLoadMetricStats {
    generated::EndpointLoadMetricStats {
        metric_name: name.clone(),
        num_requests_finished_with_metric: metric.calls,
        total_metric_value: metric.total.value(),
    }
}

fn unnamed(metric: generated::UnnamedEndpointLoadMetricStats) -> Option<Metric> {
    let total = Sum::new(metric.total_metric_value)?;
    Some(Metric { calls: metric.num_requests_finished_with_metric, total })
}

fn unnamed_out(metric: Metric) -> generated::UnnamedEndpointLoadMetricStats {
    generated::UnnamedEndpointLoadMetricStats {
        num_requests_finished_with_metric: metric.calls,
        total_metric_value: metric.total.value(),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::message::Node;

    fn metric(calls: u64, total: f64) -> Metric {
        Metric { calls, total: Sum::new(total).expect("finite") }
    }

    fn report() -> Request {
        let load = |issued| Load {
            issued,
            ok: 2,
            error: 3,
            in_progress: 4,
            metrics: vec![NamedMetric { name: "m".into(), metric: metric(1, -0.5) }],
        };
        let locality = Locality { region: "r".into(), zone: "z".into(), sub_zone: "s".into() };
        let at = LocalityStats {
            locality: locality.into(),
            priority: 7,
            load: load(5),
            cpu: Some(metric(2, 0.25)),
            mem: Some(metric(3, 0.5)),
            application: Some(metric(4, 1.5)),
            endpoints: vec![EndpointStats { address: Bytes::from_static(b"\x0a\x00"), load: load(6) }],
        };
        let stats = ClusterStats {
            window: Some(Duration::new(1, 2)),
            localities: vec![at, LocalityStats::default()],
            dropped: 9,
            drops: vec![Dropped { category: "c".into(), count: 8 }],
            ..ClusterStats::new("c1", "s1")
        };
        Request { node: Some(Node::new("n").into()), clusters: vec![stats, ClusterStats::new("c2", "")] }
    }

    #[test]
    fn encoded_messages_decode_to_the_original() {
        let report = report();
        assert_eq!(decode_request(encode_request(&report).into()), Ok(report));
        assert_eq!(encode_request(&Request::default()), []);
        let response = Response {
            clusters: vec!["a".into(), "b".into()],
            send_all_clusters: true,
            interval: Some(Interval { seconds: -1, nanos: -2 }),
            endpoint_granularity: true,
        };
        assert_eq!(decode_response(encode_response(&response).into()), Ok(response));
        let unset = Response::default();
        assert_eq!(decode_response(Bytes::new()), Ok(unset.clone()));
        let zero = Response { interval: Some(Interval::default()), ..unset };
        assert_eq!(decode_response(encode_response(&zero).into()), Ok(zero));
    }

    /// The field numbers, by a message that C-core 1.85 sent, and by one made by hand.
    #[test]
    fn field_numbers_are_those_of_the_protos() {
        let locality = LocalityStats { cpu: Some(metric(1, 2.0)), ..LocalityStats::default() };
        let stats = ClusterStats { localities: vec![locality], ..ClusterStats::new("c", "s") };
        let request = Request { node: None, clusters: vec![stats] };
        let two = [0x11, 0, 0, 0, 0, 0, 0, 0, 0x40];
        let cpu = [&[0x62, 11, 0x08, 1][..], &two].concat();
        let locality = [&[0x12, 15, 0x0a, 0][..], &cpu].concat();
        let expected = [&[0x12, 23, 0x0a, 1, b'c'][..], &locality, &[0x32, 1, b's']].concat();
        assert_eq!(encode_request(&request), expected);
        let response = [0x0a, 1, b'c', 0x12, 2, 0x08, 1, 0x18, 1, 0x20, 1];
        let decoded = decode_response(Bytes::copy_from_slice(&response)).expect("a response");
        let interval = Some(Interval { seconds: 1, nanos: 0 });
        let clusters = vec!["c".into()];
        assert_eq!(decoded, Response { clusters, send_all_clusters: true, interval, endpoint_granularity: true });
    }

    /// R-LRS-58: hostile windows are none, and metrics that are not finite are left out.
    #[test]
    fn invalid_windows_and_metrics_are_dropped_when_decoding() {
        let named = |value| generated::EndpointLoadMetricStats {
            metric_name: "m".into(),
            num_requests_finished_with_metric: 1,
            total_metric_value: value,
        };
        let unnamed = generated::UnnamedEndpointLoadMetricStats {
            num_requests_finished_with_metric: 1,
            total_metric_value: f64::NAN,
        };
        let locality = generated::UpstreamLocalityStats {
            load_metric_stats: vec![named(f64::NAN), named(f64::NEG_INFINITY), named(1.0)],
            cpu_utilization: Some(unnamed),
            ..generated::UpstreamLocalityStats::default()
        };
        for (seconds, nanos) in [(-1, 0), (0, 0), (0, -1), (i64::MIN, i32::MIN)] {
            let stats = generated::ClusterStats {
                upstream_locality_stats: vec![locality.clone()],
                load_report_interval: Some(generated::Duration { seconds, nanos }),
                ..generated::ClusterStats::default()
            };
            let request = generated::LoadStatsRequest { node: None, cluster_stats: vec![stats] };
            let read = decode_request(request.encode_to_vec().into()).expect("a message");
            let stats = &read.clusters[0];
            assert_eq!((stats.window, stats.localities[0].cpu), (None, None));
            assert_eq!(stats.localities[0].load.metrics, [NamedMetric { name: "m".into(), metric: metric(1, 1.0) }]);
        }
        assert!(decode_request(Bytes::from_static(&[0x12, 9])).is_err());
        assert!(decode_request(Bytes::from_static(&[0x0a, 1, 0xff])).is_err(), "the node is read too");
        assert!(decode_response(Bytes::from_static(&[0x0a, 1, 0xff])).is_err());
    }
}

//! Encoding of metrics as an OTLP request.

use std::time::SystemTime;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberMessage;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use prost::Message as _;

use super::{ResourceAttributes, SCHEMA_URL, scope, string_attribute, unix_nanoseconds};
use crate::metric_family::{HistogramPoint, MetricFamily, MetricNumber, MetricPoint, MetricPoints};

/// Namespaces of names. The first that matches counts. Words after a namespace stay joined by `_`.
const NAMESPACES: [&str; 10] = [
    "toolbay_audit_",
    "toolbay_call_stage_",
    "toolbay_call_",
    "toolbay_catalog_",
    "toolbay_http_",
    "toolbay_memory_",
    "toolbay_otel_",
    "toolbay_plugin_",
    "toolbay_",
    "process_",
];

/// Families that have another name in OpenTelemetry's semantic conventions.
const CONVENTIONAL_NAMES: [(&str, &str); 6] = [
    ("process_cpu_seconds", "process.cpu.time"),
    ("process_resident_memory_bytes", "process.memory.usage"),
    ("process_virtual_memory_bytes", "process.memory.virtual"),
    ("process_threads", "process.thread.count"),
    ("process_open_fds", "process.unix.file_descriptor.count"),
    ("process_max_fds", "process.unix.file_descriptor.limit"),
];

/// The period of cumulative values, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
struct MetricPeriod {
    start: u64,
    end: u64,
}

/// Encodes metrics as a request. Counters and histograms are cumulative since `started`.
pub(crate) fn encode_metrics(
    resource: &ResourceAttributes,
    families: Vec<MetricFamily>,
    started: SystemTime,
    now: SystemTime,
) -> Vec<u8> {
    let period = MetricPeriod {
        start: unix_nanoseconds(started),
        end: unix_nanoseconds(now.max(started)),
    };
    let metrics = families
        .into_iter()
        .filter_map(|family| encode_family(family, period))
        .collect();
    let scope_metrics = ScopeMetrics {
        scope: Some(scope()),
        metrics,
        schema_url: SCHEMA_URL.to_owned(),
    };
    let resource_metrics = ResourceMetrics {
        resource: Some(resource.to_message()),
        scope_metrics: vec![scope_metrics],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![resource_metrics],
    }
    .encode_to_vec()
}

/// Encodes a family; `None` if it has no samples.
fn encode_family(family: MetricFamily, period: MetricPeriod) -> Option<Metric> {
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match family.points {
        MetricPoints::Counter(points) if !points.is_empty() => Data::Sum(Sum {
            data_points: points
                .into_iter()
                .map(|point| number_point(point, period))
                .collect(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        MetricPoints::Gauge(points) if !points.is_empty() => {
            // A gauge has no start time.
            let gauge_period = MetricPeriod { start: 0, ..period };
            Data::Gauge(Gauge {
                data_points: points
                    .into_iter()
                    .map(|point| number_point(point, gauge_period))
                    .collect(),
            })
        }
        MetricPoints::Histogram(points) if !points.is_empty() => Data::Histogram(Histogram {
            data_points: points
                .into_iter()
                .map(|point| histogram_point(point, period))
                .collect(),
            aggregation_temporality: temporality,
        }),
        MetricPoints::Counter(_) | MetricPoints::Gauge(_) | MetricPoints::Histogram(_) => {
            return None;
        }
    };
    let description = family.help.to_owned();
    let unit = unit(family.name).to_owned();
    Some(Metric {
        name: otlp_name(family.name),
        description,
        unit,
        metadata: Vec::new(),
        data: Some(data),
    })
}

/// Returns the name of a family in OpenTelemetry: with dots after namespaces, and without the unit.
fn otlp_name(family: &str) -> String {
    if let Some((_, name)) = CONVENTIONAL_NAMES
        .iter()
        .find(|(conventional, _)| *conventional == family)
    {
        return (*name).to_owned();
    }
    let name = family
        .strip_suffix("_seconds")
        .or_else(|| family.strip_suffix("_bytes"))
        .unwrap_or(family);
    let namespaced = NAMESPACES
        .iter()
        .find_map(|namespace| Some((namespace, name.strip_prefix(namespace)?)));
    match namespaced {
        Some((namespace, rest)) => format!("{}{rest}", namespace.replace('_', ".")),
        None => name.to_owned(),
    }
}

/// Returns the UCUM unit of a family. Counts have no unit, because backends display the unit `1` as
/// a ratio.
fn unit(name: &str) -> &'static str {
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    }
}

fn encode_labels(labels: Vec<(&'static str, String)>) -> Vec<KeyValue> {
    labels
        .into_iter()
        .map(|(name, value)| string_attribute(name, value))
        .collect()
}

fn number_point(point: MetricPoint<MetricNumber>, period: MetricPeriod) -> NumberDataPoint {
    let value = match point.value {
        MetricNumber::Integer(count) => {
            NumberMessage::AsInt(i64::try_from(count).unwrap_or(i64::MAX))
        }
        MetricNumber::Float(number) => NumberMessage::AsDouble(number),
    };
    NumberDataPoint {
        attributes: encode_labels(point.labels),
        start_time_unix_nano: period.start,
        time_unix_nano: period.end,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn histogram_point(point: MetricPoint<HistogramPoint>, period: MetricPeriod) -> HistogramDataPoint {
    let HistogramPoint {
        sum,
        count,
        buckets,
    } = point.value;
    HistogramDataPoint {
        attributes: encode_labels(point.labels),
        start_time_unix_nano: period.start,
        time_unix_nano: period.end,
        count,
        sum: Some(sum),
        bucket_counts: buckets.iter().map(|(_, count)| *count).collect(),
        // OTLP does not encode the infinite bound of the last bucket.
        explicit_bounds: buckets
            .iter()
            .map(|(bound, _)| *bound)
            .filter(|bound| bound.is_finite())
            .collect(),
        ..HistogramDataPoint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_namespaces_and_no_units() {
        for (family, name) in [
            ("toolbay_calls", "toolbay.calls"),
            ("toolbay_calls_running", "toolbay.calls_running"),
            ("toolbay_call_duration_seconds", "toolbay.call.duration"),
            (
                "toolbay_call_stage_duration_seconds",
                "toolbay.call.stage.duration",
            ),
            ("toolbay_call_memory_peak_bytes", "toolbay.call.memory_peak"),
            ("toolbay_memory_limit_bytes", "toolbay.memory.limit"),
            (
                "toolbay_http_requests_in_flight",
                "toolbay.http.requests_in_flight",
            ),
            ("process_cpu_seconds", "process.cpu.time"),
            ("process_start_time_seconds", "process.start_time"),
            ("other_bytes", "other"),
        ] {
            assert_eq!(otlp_name(family), name);
        }
    }
}

//! Encoding of metrics as an OTLP request.

use std::time::SystemTime;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as NumberMessage;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};
use prost::Message as _;

use super::{ResourceAttributes, SCHEMA_URL, scope, string_attribute, unix_nanoseconds};
use crate::metric_family::{HistogramPoint, MetricFamily, MetricNumber, MetricPoint, MetricPoints};

/// The period of cumulative values, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
struct MetricPeriod {
    from: u64,
    to: u64,
}

/// Encodes metrics as a request. Counters and histograms are cumulative since `started`.
pub(crate) fn encode_metrics(
    resource: &ResourceAttributes,
    families: Vec<MetricFamily>,
    started: SystemTime,
    now: SystemTime,
) -> Vec<u8> {
    let period = MetricPeriod { from: unix_nanoseconds(started), to: unix_nanoseconds(now.max(started)) };
    let metrics = families.into_iter().filter_map(|family| encode_family(family, period)).collect();
    let scoped = ScopeMetrics { scope: Some(scope()), metrics, schema_url: SCHEMA_URL.to_owned() };
    let of_resource = ResourceMetrics {
        resource: Some(resource.to_message()),
        scope_metrics: vec![scoped],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportMetricsServiceRequest { resource_metrics: vec![of_resource] }.encode_to_vec()
}

/// Encodes a family; `None` if it has no samples.
fn encode_family(family: MetricFamily, period: MetricPeriod) -> Option<Metric> {
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match family.points {
        MetricPoints::Counter(points) if !points.is_empty() => Data::Sum(Sum {
            data_points: points.into_iter().map(|point| number_point(point, period)).collect(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        MetricPoints::Gauge(points) if !points.is_empty() => {
            // A gauge has no start time.
            let now = MetricPeriod { from: 0, ..period };
            Data::Gauge(Gauge { data_points: points.into_iter().map(|point| number_point(point, now)).collect() })
        }
        MetricPoints::Histogram(points) if !points.is_empty() => Data::Histogram(Histogram {
            data_points: points.into_iter().map(|point| histogram_point(point, period)).collect(),
            aggregation_temporality: temporality,
        }),
        MetricPoints::Counter(_) | MetricPoints::Gauge(_) | MetricPoints::Histogram(_) => return None,
    };
    let (name, description, unit) = (family.name.to_owned(), family.help.to_owned(), unit(family.name).to_owned());
    Some(Metric { name, description, unit, metadata: Vec::new(), data: Some(data) })
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
    labels.into_iter().map(|(name, value)| string_attribute(name, value)).collect()
}

fn number_point(point: MetricPoint<MetricNumber>, period: MetricPeriod) -> NumberDataPoint {
    let value = match point.value {
        MetricNumber::Integer(count) => NumberMessage::AsInt(i64::try_from(count).unwrap_or(i64::MAX)),
        MetricNumber::Float(number) => NumberMessage::AsDouble(number),
    };
    NumberDataPoint {
        attributes: encode_labels(point.labels),
        start_time_unix_nano: period.from,
        time_unix_nano: period.to,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn histogram_point(point: MetricPoint<HistogramPoint>, period: MetricPeriod) -> HistogramDataPoint {
    let HistogramPoint { sum, count, buckets } = point.value;
    HistogramDataPoint {
        attributes: encode_labels(point.labels),
        start_time_unix_nano: period.from,
        time_unix_nano: period.to,
        count,
        sum: Some(sum),
        bucket_counts: buckets.iter().map(|(_, count)| *count).collect(),
        // OTLP does not encode the infinite bound of the last bucket.
        explicit_bounds: buckets.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite()).collect(),
        ..HistogramDataPoint::default()
    }
}

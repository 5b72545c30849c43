//! Validates spans, log records and metrics against the OTLP specification.

use std::collections::BTreeSet;
use std::iter;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, HistogramDataPoint, Metric, NumberDataPoint,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

/// Valid timestamps, in nanoseconds since the Unix epoch: from September 2020, which is before
/// every test, to 2200.
const VALID_TIMESTAMPS: std::ops::Range<u64> = 1_600_000_000_000_000_000..7_258_000_000_000_000_000;

fn is_id(id: &[u8], length: usize) -> bool {
    id.len() == length && id.iter().any(|byte| *byte != 0)
}

/// Returns the problems with a span.
pub(super) fn check_span(span: &Span) -> Vec<String> {
    let of = |what: &str, is_right: bool| {
        (!is_right).then(|| format!("span {:?}: {what}: {span:#?}", span.name))
    };
    let within = |time: u64| (span.start_time_unix_nano..=span.end_time_unix_nano).contains(&time);
    let status = span.status.clone().unwrap_or_default();
    let names = unique_names(&span.attributes);
    [
        of("its trace has no id", is_id(&span.trace_id, 16)),
        of("it has no id", is_id(&span.span_id, 8)),
        of(
            "its parent has no id",
            span.parent_span_id.is_empty() || is_id(&span.parent_span_id, 8),
        ),
        of("it is its own parent", span.parent_span_id != span.span_id),
        of("it has no name", !span.name.is_empty()),
        of(
            "it has no kind",
            SpanKind::try_from(span.kind).is_ok_and(|kind| kind != SpanKind::Unspecified),
        ),
        of(
            "its times are not in order",
            span.start_time_unix_nano <= span.end_time_unix_nano,
        ),
        of(
            "it is of another time",
            VALID_TIMESTAMPS.contains(&span.start_time_unix_nano),
        ),
        of(
            "an event is outside of it",
            span.events.iter().all(|event| within(event.time_unix_nano)),
        ),
        of(
            "an event has no name",
            span.events.iter().all(|event| !event.name.is_empty()),
        ),
        of("its flags are reserved ones", span.flags < 1 << 10),
        of("names are there twice", names.is_some()),
        of(
            "its status is unknown",
            StatusCode::try_from(status.code).is_ok(),
        ),
        of(
            "only an error has a description",
            status.message.is_empty() || status.code == StatusCode::Error as i32,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the problems with a log record.
pub(super) fn check_log_record(record: &LogRecord) -> Vec<String> {
    let of =
        |what: &str, is_right: bool| (!is_right).then(|| format!("log line: {what}: {record:#?}"));
    let both = record.trace_id.is_empty() && record.span_id.is_empty();
    [
        of(
            "its ids are wrong",
            both || is_id(&record.trace_id, 16) && is_id(&record.span_id, 8),
        ),
        of(
            "it has no severity",
            (1..=24).contains(&record.severity_number),
        ),
        of("it has no text", record.body.is_some()),
        of(
            "it is of another time",
            VALID_TIMESTAMPS.contains(&record.time_unix_nano),
        ),
        of(
            "names are there twice",
            unique_names(&record.attributes).is_some(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the problems with a metric.
pub(super) fn check_metric(metric: &Metric) -> Vec<String> {
    let name = &metric.name;
    let wrong = |what: String| format!("metric {name}: {what}");
    let named = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte));
    let mut faults: Vec<String> = iter::once("its name")
        .filter(|_| !named)
        .map(str::to_owned)
        .collect();
    let is_cumulative = |temporality: i32| temporality == AggregationTemporality::Cumulative as i32;
    let mut sets = BTreeSet::new();
    let mut once = |attributes: &[KeyValue]| {
        unique_names(attributes).is_some() && sets.insert(format!("{attributes:?}"))
    };
    match &metric.data {
        Some(Data::Gauge(gauge)) => {
            for point in &gauge.data_points {
                faults.extend(check_number_point(point, false).map(str::to_owned));
                faults.extend(
                    (!once(&point.attributes)).then(|| "a point is there twice".to_owned()),
                );
            }
        }
        Some(Data::Sum(sum)) => {
            faults.extend(
                (!is_cumulative(sum.aggregation_temporality)).then(|| "its temporality".to_owned()),
            );
            faults.extend((!sum.is_monotonic).then(|| "it may decrease".to_owned()));
            for point in &sum.data_points {
                faults.extend(check_number_point(point, true).map(str::to_owned));
                faults.extend(
                    (!once(&point.attributes)).then(|| "a point is there twice".to_owned()),
                );
            }
        }
        Some(Data::Histogram(histogram)) => {
            faults.extend(
                (!is_cumulative(histogram.aggregation_temporality))
                    .then(|| "its temporality".to_owned()),
            );
            for point in &histogram.data_points {
                faults.extend(check_histogram_point(point).map(str::to_owned));
                faults.extend(
                    (!once(&point.attributes)).then(|| "a point is there twice".to_owned()),
                );
            }
        }
        other => faults.push(format!("its type: {other:?}")),
    }
    faults.into_iter().map(wrong).collect()
}

fn check_number_point(point: &NumberDataPoint, is_sum: bool) -> Option<&'static str> {
    let begins = if is_sum {
        VALID_TIMESTAMPS.contains(&point.start_time_unix_nano)
    } else {
        point.start_time_unix_nano == 0
    };
    if !begins
        || point.start_time_unix_nano > point.time_unix_nano
        || !VALID_TIMESTAMPS.contains(&point.time_unix_nano)
    {
        return Some("its times");
    }
    point.value.is_none().then_some("it has no value")
}

fn check_histogram_point(point: &HistogramDataPoint) -> Option<&'static str> {
    if !VALID_TIMESTAMPS.contains(&point.start_time_unix_nano)
        || point.start_time_unix_nano > point.time_unix_nano
    {
        return Some("its times");
    }
    if point.bucket_counts.len() != point.explicit_bounds.len() + 1 {
        return Some("the number of its bounds");
    }
    if point.bucket_counts.iter().sum::<u64>() != point.count {
        return Some("the sum of its counts");
    }
    let ascending = point
        .explicit_bounds
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a < b));
    (!ascending).then_some("the order of its bounds")
}

/// Returns the names of attributes, or `None` if a name is duplicated or empty.
fn unique_names(attributes: &[KeyValue]) -> Option<BTreeSet<&str>> {
    let names: BTreeSet<&str> = attributes.iter().map(|pair| pair.key.as_str()).collect();
    (names.len() == attributes.len() && !names.contains("")).then_some(names)
}

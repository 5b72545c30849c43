//! Encoding of OTLP requests and decoding of OTLP responses in protobuf, with the messages of
//! `opentelemetry-proto`.

mod logs;
mod metrics;
mod spans;

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1;
use prost::Message as _;

pub(crate) use self::logs::encode_logs;
pub(crate) use self::metrics::encode_metrics;
pub(crate) use self::spans::encode_spans;
use crate::attribute::{AttributeMap, AttributeValue};
use crate::signal::SignalKind;

/// Schema URL of the semantic conventions that the attribute names follow.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.42.0";

/// The resource attributes, which describe the server in every request.
#[derive(Clone, Debug)]
pub(crate) struct ResourceAttributes(v1::Resource);

impl ResourceAttributes {
    pub(crate) fn new(attributes: &[(String, String)]) -> Self {
        let attributes = attributes
            .iter()
            .map(|(name, value)| string_attribute(name, value.clone()))
            .collect();
        Self(v1::Resource {
            attributes,
            ..v1::Resource::default()
        })
    }

    fn to_message(&self) -> v1::Resource {
        self.0.clone()
    }
}

/// Returns the number of items that a receiver rejected in a successful response, and its reason.
/// Returns `None` if it accepted all items or the response is malformed.
pub(crate) fn decode_rejection(signal: SignalKind, response: &[u8]) -> Option<(u64, String)> {
    let (count, why) = match signal {
        SignalKind::Traces => {
            let partial = ExportTraceServiceResponse::decode(response)
                .ok()?
                .partial_success?;
            (partial.rejected_spans, partial.error_message)
        }
        SignalKind::Metrics => {
            let partial = ExportMetricsServiceResponse::decode(response)
                .ok()?
                .partial_success?;
            (partial.rejected_data_points, partial.error_message)
        }
        SignalKind::Logs => {
            let partial = ExportLogsServiceResponse::decode(response)
                .ok()?
                .partial_success?;
            (partial.rejected_log_records, partial.error_message)
        }
    };
    u64::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .map(|count| (count, why))
}

/// Returns the instrumentation scope.
fn scope() -> InstrumentationScope {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    InstrumentationScope {
        name: "toolbay".to_owned(),
        version,
        ..InstrumentationScope::default()
    }
}

/// Converts a time to nanoseconds since 1970.
fn unix_nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Decodes a hexadecimal id.
fn decode_id(digits: &str) -> Vec<u8> {
    hex::decode(digits).unwrap_or_default()
}

fn encode_attributes(attributes: AttributeMap) -> Vec<KeyValue> {
    attributes
        .into_iter()
        .map(|(name, value)| key_value(&name, encode_value(value)))
        .collect()
}

fn string_attribute(name: &str, value: String) -> KeyValue {
    key_value(name, Any::StringValue(value))
}

fn key_value(name: &str, value: Any) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn encode_value(value: AttributeValue) -> Any {
    match value {
        AttributeValue::Text(text) => Any::StringValue(text),
        AttributeValue::Integer(whole) => Any::IntValue(whole),
        AttributeValue::Float(real) => Any::DoubleValue(real),
        AttributeValue::Bool(flag) => Any::BoolValue(flag),
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;

    #[test]
    fn rejection_is_decoded_and_other_responses_are_ignored() {
        let partial = |rejected_spans, error_message: &str| {
            let partial = ExportTracePartialSuccess {
                rejected_spans,
                error_message: error_message.to_owned(),
            };
            ExportTraceServiceResponse {
                partial_success: Some(partial),
            }
            .encode_to_vec()
        };
        for signal in SignalKind::ALL {
            // The responses of all three signals have the same structure.
            assert_eq!(
                decode_rejection(signal, &partial(3, "too old")),
                Some((3, "too old".to_owned()))
            );
            for nothing in [
                partial(0, "a hint"),
                partial(-1, ""),
                Vec::new(),
                b"<html>".to_vec(),
                vec![0xff; 100],
            ] {
                assert_eq!(decode_rejection(signal, &nothing), None);
            }
        }
    }
}

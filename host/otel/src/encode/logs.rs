//! Encoding of log lines as an OTLP request.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message as _;

use super::{
    ResourceAttributes, SCHEMA_URL, decode_id, encode_attributes, scope, unix_nanoseconds,
};
use crate::log_event::LogEvent;

/// Encodes log lines as a request.
pub(crate) fn encode_logs(resource: &ResourceAttributes, records: Vec<LogEvent>) -> Vec<u8> {
    let log_records = records.into_iter().map(encode_record).collect();
    let scope_logs = ScopeLogs {
        scope: Some(scope()),
        log_records,
        schema_url: SCHEMA_URL.to_owned(),
    };
    let resource_logs = ResourceLogs {
        resource: Some(resource.to_message()),
        scope_logs: vec![scope_logs],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportLogsServiceRequest {
        resource_logs: vec![resource_logs],
    }
    .encode_to_vec()
}

fn encode_record(record: LogEvent) -> LogRecord {
    let LogEvent {
        at,
        severity,
        message,
        attributes,
        span,
    } = record;
    let time_unix_nano = unix_nanoseconds(at);
    let (trace_id, span_id) = span
        .map(|(trace, span)| (decode_id(&trace), decode_id(&span)))
        .unwrap_or_default();
    LogRecord {
        time_unix_nano,
        observed_time_unix_nano: time_unix_nano,
        severity_number: severity.number(),
        severity_text: severity.as_str().to_owned(),
        body: Some(AnyValue {
            value: Some(Any::StringValue(message)),
        }),
        attributes: encode_attributes(attributes),
        trace_id,
        span_id,
        ..LogRecord::default()
    }
}

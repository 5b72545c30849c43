//! Encoding of spans as an OTLP request.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::span::{Event as EventMessage, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span as SpanMessage, SpanFlags, Status as StatusMessage,
};
use prost::Message as _;

use super::{
    ResourceAttributes, SCHEMA_URL, decode_id, encode_attributes, scope, unix_nanoseconds,
};
use crate::span::{FinishedSpan, SpanEvent, SpanSide, SpanStatus};

/// Maximum length of a `tracestate` that is sent. W3C Trace Context requires that at least this
/// length is propagated.
const MAX_TRACE_STATE_BYTES: usize = 512;

/// Encodes spans as a request.
pub(crate) fn encode_spans(resource: &ResourceAttributes, spans: Vec<FinishedSpan>) -> Vec<u8> {
    let spans = spans.into_iter().map(encode_span).collect();
    let scoped = ScopeSpans {
        scope: Some(scope()),
        spans,
        schema_url: SCHEMA_URL.to_owned(),
    };
    let of_resource = ResourceSpans {
        resource: Some(resource.to_message()),
        scope_spans: vec![scoped],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportTraceServiceRequest {
        resource_spans: vec![of_resource],
    }
    .encode_to_vec()
}

fn encode_span(span: FinishedSpan) -> SpanMessage {
    let FinishedSpan {
        context: own,
        parent,
        parent_is_remote,
        name,
        kind,
        started_at: began,
        ended_at: ended,
        attributes: known,
        events,
        status,
    } = span;
    let kind = match kind {
        SpanSide::Server => SpanKind::Server,
        SpanSide::Client => SpanKind::Client,
        SpanSide::Internal => SpanKind::Internal,
    };
    let status = match status {
        SpanStatus::Unset => None,
        SpanStatus::Error(message) => Some(StatusMessage {
            message,
            code: StatusCode::Error.into(),
        }),
    };
    let event = |SpanEvent { at, name }: SpanEvent| EventMessage {
        time_unix_nano: unix_nanoseconds(at),
        name: name.to_owned(),
        ..EventMessage::default()
    };
    let remote = if parent_is_remote {
        SpanFlags::ContextIsRemoteMask as u32
    } else {
        0
    };
    SpanMessage {
        trace_id: decode_id(&own.trace),
        span_id: decode_id(&own.span),
        trace_state: own
            .state
            .clone()
            .filter(|state| state.len() <= MAX_TRACE_STATE_BYTES)
            .unwrap_or_default(),
        parent_span_id: parent.as_deref().map(decode_id).unwrap_or_default(),
        flags: u32::from(own.flags()) | SpanFlags::ContextHasIsRemoteMask as u32 | remote,
        name,
        kind: kind.into(),
        start_time_unix_nano: unix_nanoseconds(began),
        // The clock can be set back during a span.
        end_time_unix_nano: unix_nanoseconds(ended.max(began)),
        attributes: encode_attributes(known),
        events: events.into_iter().map(event).collect(),
        status,
        ..SpanMessage::default()
    }
}

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
    let scope_spans = ScopeSpans {
        scope: Some(scope()),
        spans,
        schema_url: SCHEMA_URL.to_owned(),
    };
    let resource_spans = ResourceSpans {
        resource: Some(resource.to_message()),
        scope_spans: vec![scope_spans],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportTraceServiceRequest {
        resource_spans: vec![resource_spans],
    }
    .encode_to_vec()
}

fn encode_span(span: FinishedSpan) -> SpanMessage {
    let FinishedSpan {
        context,
        parent,
        parent_is_remote,
        name,
        kind,
        started_at,
        ended_at,
        attributes,
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
    let encode_event = |SpanEvent { at, name }: SpanEvent| EventMessage {
        time_unix_nano: unix_nanoseconds(at),
        name: name.to_owned(),
        ..EventMessage::default()
    };
    let remote_flag = if parent_is_remote {
        SpanFlags::ContextIsRemoteMask as u32
    } else {
        0
    };
    SpanMessage {
        trace_id: decode_id(&context.trace_id),
        span_id: decode_id(&context.span_id),
        trace_state: context
            .state
            .clone()
            .filter(|state| state.len() <= MAX_TRACE_STATE_BYTES)
            .unwrap_or_default(),
        parent_span_id: parent.as_deref().map(decode_id).unwrap_or_default(),
        flags: u32::from(context.flags()) | SpanFlags::ContextHasIsRemoteMask as u32 | remote_flag,
        name,
        kind: kind.into(),
        start_time_unix_nano: unix_nanoseconds(started_at),
        // The clock can be set back during a span.
        end_time_unix_nano: unix_nanoseconds(ended_at.max(started_at)),
        attributes: encode_attributes(attributes),
        events: events.into_iter().map(encode_event).collect(),
        status,
        ..SpanMessage::default()
    }
}

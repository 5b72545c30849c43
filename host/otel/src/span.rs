//! Finished spans.

use std::time::SystemTime;

use toolbay_model::TraceContext;

use crate::attribute::{AttributeMap, size};

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct FinishedSpan {
    /// Trace id and span id.
    pub context: TraceContext,
    /// Id of the parent span: 16 hexadecimal digits. `None` for the root of a trace.
    pub parent: Option<String>,
    /// True if the parent span belongs to another program.
    pub parent_is_remote: bool,
    /// Name of the operation, which must have low cardinality.
    pub name: String,
    /// Side of a request that the span represents.
    pub kind: SpanSide,
    /// Start time.
    pub started_at: SystemTime,
    /// End time.
    pub ended_at: SystemTime,
    /// Attributes of the span.
    pub attributes: AttributeMap,
    /// Events during the span.
    pub events: Vec<SpanEvent>,
    /// Status of the span.
    pub status: SpanStatus,
}

/// The side of a request that a span represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanSide {
    /// The span handles a request.
    Server,
    /// The span sends a request and waits for the response.
    Client,
    /// The span is internal to the program.
    Internal,
}

/// An event at one moment of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanEvent {
    /// Time of the event.
    pub at: SystemTime,
    /// Name of the event.
    pub name: &'static str,
}

/// The status of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpanStatus {
    /// No error occurred.
    #[default]
    Unset,
    /// The operation failed. The reason may be empty.
    Error(String),
}

impl FinishedSpan {
    /// Returns the approximate memory size, in bytes. Never too small.
    pub(crate) fn memory_size(&self) -> usize {
        let texts = [&self.context.trace_id, &self.context.span_id, &self.name]
            .map(String::len)
            .iter()
            .sum::<usize>();
        let optional = [&self.parent, &self.context.state, &self.context.baggage];
        let optional: usize = optional
            .iter()
            .map(|text| text.as_ref().map_or(0, String::len))
            .sum();
        let status = if let SpanStatus::Error(why) = &self.status {
            why.len()
        } else {
            0
        };
        let events = self.events.capacity() * size_of::<SpanEvent>();
        size_of::<Self>() + texts + optional + status + events + size(&self.attributes)
    }
}

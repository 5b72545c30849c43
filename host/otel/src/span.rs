//! A span: a piece of work in a trace, with its beginning and its end.

use std::time::SystemTime;

use toolbay_model::TraceContext;

use crate::value::{AttributeMap, size};

/// A piece of work that has ended.
#[derive(Clone, Debug)]
pub struct FinishedSpan {
    /// Its trace and its own id.
    pub own: TraceContext,
    /// The span that it is a part of: 16 hexadecimal digits. `None` for the first one of a trace.
    pub parent: Option<String>,
    /// Whether that one is another program's.
    pub parent_is_remote: bool,
    /// What is done. There must be few names.
    pub name: String,
    /// Which side of a request it is.
    pub kind: SpanSide,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// What is known of it.
    pub attributes: AttributeMap,
    /// What happened during it.
    pub events: Vec<SpanEvent>,
    /// How it ended.
    pub status: SpanStatus,
}

/// Which side of a request a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanSide {
    /// It answers a request.
    Server,
    /// It sends one, and waits for the response.
    Client,
    /// None.
    Internal,
}

/// Something that happened at one moment of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanEvent {
    /// When it happened.
    pub at: SystemTime,
    /// What it is.
    pub name: &'static str,
}

/// How a span ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpanStatus {
    /// Nothing went wrong.
    #[default]
    Unset,
    /// It failed, for this reason, which may be empty.
    Error(String),
}

impl FinishedSpan {
    /// Bytes that it takes in memory, or a little more.
    pub(crate) fn size(&self) -> usize {
        let texts = [&self.own.trace, &self.own.span, &self.name].map(String::len).iter().sum::<usize>();
        let optional = [&self.parent, &self.own.state, &self.own.baggage];
        let optional: usize = optional.iter().map(|text| text.as_ref().map_or(0, String::len)).sum();
        let status = if let SpanStatus::Error(why) = &self.status { why.len() } else { 0 };
        let events = self.events.capacity() * size_of::<SpanEvent>();
        size_of::<Self>() + texts + optional + status + events + size(&self.attributes)
    }
}

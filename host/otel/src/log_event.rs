//! Log events to export.

use std::time::SystemTime;

use crate::attribute::{AttributeMap, size};

/// A log event.
#[derive(Clone, Debug)]
pub struct LogEvent {
    /// Time of the event.
    pub at: SystemTime,
    /// Severity of the event.
    pub severity: LogSeverity,
    /// Text of the event.
    pub message: String,
    /// Fields of the event.
    pub attributes: AttributeMap,
    /// The trace id and span id that the event belongs to, as 32 and 16 hexadecimal digits; `None`
    /// if it has no span.
    pub span: Option<(String, String)>,
}

/// The severity of a log event, as defined by OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSeverity {
    /// Fine-grained steps.
    Trace,
    /// Details.
    Debug,
    /// Normal operation.
    Info,
    /// A possible problem.
    Warn,
    /// An error.
    Error,
}

impl LogSeverity {
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Trace => 1,
            Self::Debug => 5,
            Self::Info => 9,
            Self::Warn => 13,
            Self::Error => 17,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

impl LogEvent {
    /// Returns the approximate memory size, in bytes. Never too small.
    pub(crate) fn memory_size(&self) -> usize {
        let ids = self
            .span
            .as_ref()
            .map_or(0, |(trace, span)| trace.len() + span.len());
        size_of::<Self>() + self.message.len() + ids + size(&self.attributes)
    }
}

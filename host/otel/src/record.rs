//! A line of the log as a record.

use std::time::SystemTime;

use crate::value::{AttributeMap, size};

/// A line of the log.
#[derive(Clone, Debug)]
pub struct LogEvent {
    /// When it was written.
    pub at: SystemTime,
    /// How bad it is.
    pub severity: LogSeverity,
    /// Its text.
    pub message: String,
    /// Its fields.
    pub attributes: AttributeMap,
    /// The trace and the span that it belongs to, as 32 and 16 hexadecimal digits; `None` if it belongs to none.
    pub span: Option<(String, String)>,
}

/// How bad something is, as OpenTelemetry numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSeverity {
    /// Every step.
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
    /// Bytes that it takes in memory, or a little more.
    pub(crate) fn size(&self) -> usize {
        let ids = self.span.as_ref().map_or(0, |(trace, span)| trace.len() + span.len());
        size_of::<Self>() + self.message.len() + ids + size(&self.attributes)
    }
}

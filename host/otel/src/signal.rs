//! The three kinds of telemetry.

/// A kind of telemetry. Each is sent for itself: one that fails holds up no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// Spans.
    Traces,
    /// What is measured.
    Metrics,
    /// Lines of the log.
    Logs,
}

impl SignalKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    /// The word for it: in metrics, and in the path that OTLP gives it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// What one of it is called in messages.
    pub(crate) const fn items(self) -> &'static str {
        match self {
            Self::Traces => "spans",
            Self::Metrics => "reports of metrics",
            Self::Logs => "log lines",
        }
    }
}

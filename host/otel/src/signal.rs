//! The three signals of OpenTelemetry.

/// A kind of telemetry. Each kind is sent independently: a failure of one does not delay the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalKind {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
    /// Log lines.
    Logs,
}

impl SignalKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    /// Returns the name of the signal in metrics and in the OTLP path.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// Returns the plural noun for its items in messages.
    pub(crate) const fn item_noun(self) -> &'static str {
        match self {
            Self::Traces => "spans",
            Self::Metrics => "reports of metrics",
            Self::Logs => "log lines",
        }
    }
}

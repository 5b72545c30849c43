//! Current values that other parts of the server provide on request.

use toolbay_mcp::TransportTraffic;
use toolbay_otel::SignalKind;
use toolbay_sandbox::CompileCounts;

use super::process_metrics::ProcessGauges;

/// Current values that other parts of the server provide.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerGauges {
    /// Calls that compute, and the maximum.
    pub(crate) running: (u64, u64),
    /// Calls that wait for something outside the server.
    pub(crate) suspended: u64,
    /// Calls that wait for admission.
    pub(crate) waiting: u64,
    /// Bytes of memory that running calls have reserved, and the maximum for all calls.
    pub(crate) reserved: (u64, u64),
    /// Number of published snapshots.
    pub(crate) published_snapshots: u64,
    /// Plugins by status.
    pub(crate) plugins: [(&'static str, u64); 4],
    /// Offered items by kind.
    pub(crate) offered: [(&'static str, u64); 5],
    /// Counts of compilations.
    pub(crate) compilations: CompileCounts,
    /// Open connections, requests and sessions; `None` if nothing is served over HTTP.
    pub(crate) traffic: Option<TransportTraffic>,
    /// Size of the plugins' state in bytes; `None` if there is none.
    pub(crate) state: Option<u64>,
    /// Lines that the audit log lost; `None` if there is no log.
    pub(crate) lost_audit_lines: Option<u64>,
    /// Amount of each signal that was lost; `None` if telemetry is off.
    pub(crate) lost_telemetry: Option<[(SignalKind, u64); 3]>,
    /// Figures of the process; `None` if the system does not provide them.
    pub(crate) process: Option<ProcessGauges>,
}

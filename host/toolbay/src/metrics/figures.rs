//! What other parts know of themselves, at the moment somebody asks.

use toolbay_mcp::TransportTraffic;
use toolbay_otel::SignalKind;
use toolbay_sandbox::CompileCounts;

use super::process::ProcessFigures;

/// What other parts know of themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFigures {
    /// Calls that compute, and how many may.
    pub(crate) running: (u64, u64),
    /// Calls that wait for something outside.
    pub(crate) suspended: u64,
    /// Calls that wait for their turn.
    pub(crate) waiting: u64,
    /// Bytes of memory that the running calls may hold, and how many all calls may.
    pub(crate) reserved: (u64, u64),
    /// Snapshots that were published.
    pub(crate) reloads: u64,
    /// Plugins by their status.
    pub(crate) plugins: [(&'static str, u64); 4],
    /// What is offered, by its kind.
    pub(crate) offered: [(&'static str, u64); 5],
    /// What was compiled.
    pub(crate) compilations: CompileCounts,
    /// What clients have open; `None` if nothing is served over HTTP.
    pub(crate) traffic: Option<TransportTraffic>,
    /// Bytes of the state of plugins; `None` if there is none.
    pub(crate) state: Option<u64>,
    /// Lines that the audit log lost; `None` if there is no log.
    pub(crate) lost: Option<u64>,
    /// How much of each signal was lost; `None` if none is sent.
    pub(crate) unsent: Option<[(SignalKind, u64); 3]>,
    /// The process; `None` if the system does not say.
    pub(crate) process: Option<ProcessFigures>,
}

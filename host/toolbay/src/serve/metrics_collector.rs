//! Collects the server's metrics: its own counters and the current values of its parts.

use toolbay_catalog::{PluginFileStatus, Snapshot};
use toolbay_mcp::{MetricsForm, TransportTraffic};
use toolbay_otel::MetricFamily;

use crate::call::service::CallService;
use crate::observe::metrics::{ProcessGauges, ServerGauges, collect_families, render};
use crate::observe::server_audit::ServerAudit;

/// Returns the metrics as text, or `None` if metrics are off. Blocks on reads of system files.
pub(crate) fn render_metrics(
    service: &CallService,
    form: MetricsForm,
    traffic: TransportTraffic,
) -> Option<String> {
    render(collect_metrics(service, Some(traffic))?, form)
}

/// Returns the metric families, or `None` if metrics are off. Blocks on reads of system files.
pub(crate) fn collect_metrics(
    service: &CallService,
    traffic: Option<TransportTraffic>,
) -> Option<Vec<MetricFamily>> {
    let observers = service.observers();
    let metrics = observers.metrics()?;
    let snapshot = service.catalog().snapshot();
    let permits = service.admission().permits();
    let gauges = ServerGauges {
        running: permits.running_calls(),
        suspended: permits.suspended_count(),
        waiting: permits.queued_count(),
        reserved: permits.reserved_memory(),
        published_snapshots: snapshot.generation,
        plugins: count_by_status(&snapshot),
        offered: [
            ("tool", snapshot.tools.len() as u64),
            ("prompt", snapshot.prompts.len() as u64),
            ("resource", snapshot.resources.len() as u64),
            ("template", snapshot.templates.len() as u64),
            ("skill", snapshot.skills.len() as u64),
        ],
        compilations: service.sandbox().compile_counts(),
        traffic,
        state: observers.state_size(),
        lost_audit_lines: observers.audit().map(ServerAudit::lost_lines),
        lost_telemetry: observers
            .telemetry()
            .map(toolbay_otel::Telemetry::lost_items),
        process: ProcessGauges::read(),
    };
    Some(collect_families(metrics, &gauges))
}

/// Counts plugins by status.
fn count_by_status(snapshot: &Snapshot) -> [(&'static str, u64); 4] {
    [
        (PluginFileStatus::Loading, "loading"),
        (PluginFileStatus::Ready, "ready"),
        (PluginFileStatus::Stale, "stale"),
        (PluginFileStatus::Refused, "refused"),
    ]
    .map(|(status, label)| {
        let count = snapshot
            .plugins
            .values()
            .filter(|report| report.status == status)
            .count();
        (label, count as u64)
    })
}

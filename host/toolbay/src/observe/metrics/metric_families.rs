//! Assembles counters and figures into metric families, which every exporter uses.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use toolbay_mcp::TransportTraffic;
use toolbay_otel::{HistogramPoint, MetricFamily, MetricNumber, MetricPoint, MetricPoints};
use toolbay_sandbox::CompileCounts;

use super::counters::ServerMetrics;
use super::gauges::ServerGauges;
use super::process_metrics::ProcessGauges;
use super::tool_counters::ToolMeter;

/// The labels of a sample. Names are constants; values are this program's words or tool names.
type SampleLabels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Returns all families. Names of counters lack the suffix `_total`.
pub(crate) fn collect_families(
    metrics: &ServerMetrics,
    figures: &ServerGauges,
) -> Vec<MetricFamily> {
    let mut families = FamilyCollector(Vec::new());
    add_tool_families(metrics, &mut families);
    add_call_families(metrics, figures, &mut families);
    add_catalog_families(metrics, figures, &mut families);
    add_server_families(figures, &mut families);
    add_process_families(metrics, figures, &mut families);
    families.0
}

/// Adds the metrics per tool.
fn add_tool_families(metrics: &ServerMetrics, families: &mut FamilyCollector) {
    let meters: Vec<Arc<ToolMeter>> = metrics.tools.meters();
    // Meters without calls have no samples.
    let read = meters
        .iter()
        .map(|meter| (Arc::clone(meter), ServerMetrics::call_times(meter)));
    let called: Vec<_> = read.filter(|(_, times)| times.count > 0).collect();
    let outcomes = meters.iter().flat_map(|meter| {
        meter.outcomes().map(|(outcome, count)| {
            (
                [("tool", meter.name.as_str()), ("outcome", outcome.as_str())],
                count,
            )
        })
    });
    families.add_counter(
        "toolbay_calls",
        "Calls that ended, by tool and outcome.",
        outcomes,
    );
    let times = called
        .iter()
        .map(|(meter, times)| ([("tool", meter.name.as_str())], times.clone()));
    let help = "Time from finding a call's plugin until its result is checked, by tool.";
    families.add_histogram("toolbay_call_duration_seconds", help, times);
    let fuel = called
        .iter()
        .map(|(meter, _)| ([("tool", meter.name.as_str())], meter.fuel()));
    families.add_counter("toolbay_call_fuel", "Fuel that calls used, by tool.", fuel);
    let peaks = called
        .iter()
        .map(|(meter, _)| ([("tool", meter.name.as_str())], meter.peak()));
    families.add_gauge(
        "toolbay_call_memory_peak_bytes",
        "Highest memory usage of a call's guest, by tool.",
        peaks,
    );
}

/// Adds the metrics over all calls.
fn add_call_families(
    metrics: &ServerMetrics,
    figures: &ServerGauges,
    families: &mut FamilyCollector,
) {
    let stages = metrics
        .stages()
        .map(|(stage, took)| ([("stage", stage.as_str())], took));
    families.add_histogram(
        "toolbay_call_stage_duration_seconds",
        "Time that calls spent in each stage.",
        stages,
    );
    let help = "Peak memory usage of the guests of calls.";
    families.add_histogram("toolbay_call_memory_bytes", help, [([], metrics.memory())]);
    let ServerGauges {
        running,
        suspended,
        waiting,
        reserved,
        ..
    } = figures;
    families.add_gauge(
        "toolbay_calls_running",
        "Running calls, without those that wait for something outside the server.",
        [([], running.0)],
    );
    families.add_gauge(
        "toolbay_calls_suspended",
        "Calls that wait for a clock, a response or a connection, and have released their permits.",
        [([], *suspended)],
    );
    families.add_gauge(
        "toolbay_calls_queued",
        "Calls that wait for admission.",
        [([], *waiting)],
    );
    families.add_gauge(
        "toolbay_calls_max",
        "Maximum number of running calls.",
        [([], running.1)],
    );
    families.add_gauge(
        "toolbay_memory_reserved_bytes",
        "Memory reserved by running and suspended calls.",
        [([], reserved.0)],
    );
    families.add_gauge(
        "toolbay_memory_limit_bytes",
        "Maximum memory that all calls together can reserve.",
        [([], reserved.1)],
    );
    let denials = metrics
        .denials()
        .map(|(kind, count)| ([("kind", kind.as_str())], count));
    families.add_counter(
        "toolbay_denials",
        "Reported denials of guest operations, by kind.",
        denials,
    );
    let limits = metrics.limits();
    let limits = limits
        .iter()
        .map(|(key, count)| ([("limit", *key)], *count));
    families.add_counter(
        "toolbay_limits_reached",
        "Limits that calls reached, by the key that raises them.",
        limits,
    );
}

/// Adds the metrics of plugins and the catalog.
fn add_catalog_families(
    metrics: &ServerMetrics,
    figures: &ServerGauges,
    families: &mut FamilyCollector,
) {
    let ServerGauges {
        published_snapshots: reloads,
        plugins,
        offered,
        compilations,
        ..
    } = figures;
    let CompileCounts {
        compiled,
        failed,
        total_time: time,
        cache_hits: found,
        cache_misses: missed,
    } = *compilations;
    families.add_counter(
        "toolbay_catalog_updates",
        "Snapshots of the catalog that were published.",
        [([], *reloads)],
    );
    let changes = metrics
        .changes()
        .map(|(change, count)| ([("change", change.as_str())], count));
    families.add_counter(
        "toolbay_plugin_changes",
        "Changes of plugins, by kind.",
        changes,
    );
    let by_status = plugins
        .iter()
        .map(|(status, count)| ([("status", *status)], *count));
    families.add_gauge("toolbay_plugins", "Plugins, by status.", by_status);
    let by_kind = offered
        .iter()
        .map(|(kind, count)| ([("kind", *kind)], *count));
    families.add_gauge(
        "toolbay_catalog_items",
        "Items offered to clients, by kind.",
        by_kind,
    );
    let results = [
        ([("result", "ok")], compiled),
        ([("result", "failed")], failed),
    ];
    families.add_counter(
        "toolbay_compiles",
        "Compilations of components, by result.",
        results,
    );
    families.add_counter(
        "toolbay_compile_seconds",
        "Time that compilations took.",
        [([], time.as_secs_f64())],
    );
    let results = [([("result", "hit")], found), ([("result", "miss")], missed)];
    families.add_counter(
        "toolbay_compile_cache_lookups",
        "Lookups of components in the compile cache, by result.",
        results,
    );
}

/// Adds the metrics of the server.
fn add_server_families(figures: &ServerGauges, families: &mut FamilyCollector) {
    let ServerGauges {
        traffic,
        state,
        lost_audit_lines: lost,
        lost_telemetry: unsent,
        ..
    } = figures;
    let one = |of: fn(TransportTraffic) -> usize| traffic.map(|traffic| ([], of(traffic)));
    let open = one(|traffic| traffic.connections);
    families.add_gauge(
        "toolbay_http_connections",
        "HTTP connections that are open.",
        open,
    );
    let open = one(|traffic| traffic.requests);
    families.add_gauge(
        "toolbay_http_requests_in_flight",
        "Open requests of callers, including streams.",
        open,
    );
    families.add_gauge(
        "toolbay_sessions",
        "Sessions that are open.",
        one(|traffic| traffic.sessions),
    );
    let state = state.map(|size| ([], size));
    families.add_gauge(
        "toolbay_state_bytes",
        "Size of the file with the state of plugins.",
        state,
    );
    let lost = lost.map(|lines| ([], lines));
    families.add_counter(
        "toolbay_audit_lost_lines",
        "Lines that the audit log lost.",
        lost,
    );
    let unsent = unsent
        .iter()
        .flatten()
        .map(|(signal, count)| ([("signal", signal.as_str())], *count));
    let help = "Spans, metric reports and log lines that could not be exported, by signal.";
    families.add_counter("toolbay_otel_lost", help, unsent);
    let version = [([("version", env!("CARGO_PKG_VERSION"))], 1_u64)];
    families.add_gauge("toolbay_build_info", "The version of Toolbay.", version);
}

/// Adds the metrics of the process, under the names that Prometheus clients share.
fn add_process_families(
    metrics: &ServerMetrics,
    figures: &ServerGauges,
    families: &mut FamilyCollector,
) {
    let started = metrics
        .started
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    let help = "When the server started, in seconds since 1970.";
    families.add_gauge("process_start_time_seconds", help, [([], started)]);
    let process = figures.process;
    let one = |of: fn(ProcessGauges) -> u64| process.map(|process| ([], of(process)));
    let cpu = process.map(|process| ([], process.cpu.as_secs_f64()));
    families.add_counter(
        "process_cpu_seconds",
        "CPU time of the server, without its compiler processes.",
        cpu,
    );
    families.add_gauge(
        "process_resident_memory_bytes",
        "Resident memory.",
        one(|process| process.resident),
    );
    families.add_gauge(
        "process_virtual_memory_bytes",
        "Address space.",
        one(|process| process.virtual_memory),
    );
    families.add_gauge(
        "process_threads",
        "Threads.",
        one(|process| process.threads),
    );
    let open = process.and_then(|process| Some(([], process.descriptors?)));
    families.add_gauge("process_open_fds", "Open file descriptors.", open);
    let most = process.and_then(|process| Some(([], process.most_descriptors?)));
    families.add_gauge(
        "process_max_fds",
        "Maximum number of open file descriptors.",
        most,
    );
}

/// Builder of a list of metric families.
struct FamilyCollector(Vec<MetricFamily>);

impl FamilyCollector {
    /// Adds a counter family. `name` lacks the suffix of its samples.
    fn add_counter<'l, const N: usize, V: Into<MetricNumber>>(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (SampleLabels<'l, N>, V)>,
    ) {
        self.0.push(MetricFamily {
            name,
            help,
            points: MetricPoints::Counter(to_points(samples)),
        });
    }

    /// Adds a gauge family.
    fn add_gauge<'l, const N: usize, V: Into<MetricNumber>>(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (SampleLabels<'l, N>, V)>,
    ) {
        self.0.push(MetricFamily {
            name,
            help,
            points: MetricPoints::Gauge(to_points(samples)),
        });
    }

    /// Adds a histogram family.
    fn add_histogram<'l, const N: usize>(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (SampleLabels<'l, N>, HistogramPoint)>,
    ) {
        self.0.push(MetricFamily {
            name,
            help,
            points: MetricPoints::Histogram(to_points(samples)),
        });
    }
}

fn to_points<'l, const N: usize, V: Into<W>, W>(
    samples: impl IntoIterator<Item = (SampleLabels<'l, N>, V)>,
) -> Vec<MetricPoint<W>> {
    let point = |(labels, value): (SampleLabels<'l, N>, V)| MetricPoint {
        labels: labels
            .into_iter()
            .map(|(name, value)| (name, value.to_owned()))
            .collect(),
        value: value.into(),
    };
    samples.into_iter().map(point).collect()
}

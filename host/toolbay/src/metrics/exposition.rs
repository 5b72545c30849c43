//! Metrics as text, in the format of Prometheus or in OpenMetrics.
//!
//! `prometheus-client` writes OpenMetrics. In the older format the family of a counter has the name of its samples, and
//! there is no end mark; all else is the same for both.

use std::fmt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use toolbay_mcp::{MetricsForm, Traffic};
use toolbay_sandbox::CompileCounts;

use super::counts::Metrics;
use super::figures::Figures;
use super::histogram::Distribution;
use super::process::Process;
use super::tools::ToolMeter;

/// The labels of a sample: names that are written here, and values that are words of this program or names of tools.
type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// What is counted and what other parts know, as text; `None` if it cannot be written.
pub(crate) fn write(metrics: Arc<Metrics>, figures: Figures, form: MetricsForm) -> Option<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { metrics, figures, form }));
    let mut text = String::new();
    encode_registry(&mut text, &registry).ok()?;
    if form == MetricsForm::OpenMetrics {
        encode_eof(&mut text).ok()?;
    }
    Some(text)
}

#[derive(Debug)]
struct Scrape {
    metrics: Arc<Metrics>,
    figures: Figures,
    form: MetricsForm,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families { encoder, form: self.form };
        self.tools(&mut families)?;
        self.calls(&mut families)?;
        self.catalog(&mut families)?;
        self.server(&mut families)?;
        self.process(&mut families)
    }
}

impl Scrape {
    /// What is known of each tool.
    fn tools(&self, families: &mut Families<'_>) -> fmt::Result {
        let meters: Vec<Arc<ToolMeter>> = self.metrics.tools.all();
        // Those that nobody called have nothing to say.
        let read = meters.iter().map(|meter| (Arc::clone(meter), Metrics::times(meter)));
        let called: Vec<_> = read.filter(|(_, times)| times.count > 0).collect();
        let outcomes = meters.iter().flat_map(|meter| {
            meter
                .outcomes()
                .map(|(outcome, count)| ([("tool", meter.name.as_str()), ("outcome", outcome.as_str())], count))
        });
        families.counter("toolbay_calls", "Calls that ended, by tool and outcome.", outcomes)?;
        let times = called.iter().map(|(meter, times)| ([("tool", meter.name.as_str())], times));
        let help = "Time from finding a call's plugin until its result is checked, by tool.";
        families.histogram("toolbay_call_seconds", help, times)?;
        let fuel = called.iter().map(|(meter, _)| ([("tool", meter.name.as_str())], meter.fuel()));
        families.counter("toolbay_call_fuel", "Fuel that calls used, by tool.", fuel)?;
        let peaks = called.iter().map(|(meter, _)| ([("tool", meter.name.as_str())], meter.peak()));
        families.gauge("toolbay_call_memory_peak_bytes", "The most memory that a call's guest had, by tool.", peaks)
    }

    /// What is known of all calls together.
    fn calls(&self, families: &mut Families<'_>) -> fmt::Result {
        let stages: Vec<_> = self.metrics.stages().collect();
        let stages = stages.iter().map(|(stage, took)| ([("stage", stage.as_str())], took));
        families.histogram("toolbay_call_stage_seconds", "Time that calls spent in each stage.", stages)?;
        let memory = self.metrics.memory();
        let help = "The most memory that the guests of calls had.";
        families.histogram("toolbay_call_memory_bytes", help, [([], &memory)])?;
        let Figures { running, waiting, reserved, .. } = &self.figures;
        families.gauge("toolbay_calls_running", "Calls that run.", [([], running.0)])?;
        families.gauge("toolbay_calls_waiting", "Calls that wait for their turn.", [([], *waiting)])?;
        families.gauge("toolbay_calls_max", "Calls that can run at once.", [([], running.1)])?;
        let help = "Memory that the running calls have reserved.";
        families.gauge("toolbay_memory_reserved_bytes", help, [([], reserved.0)])?;
        let help = "Memory that calls can reserve together.";
        families.gauge("toolbay_memory_reservable_bytes", help, [([], reserved.1)])?;
        let denials = self.metrics.denials().map(|(kind, count)| ([("use", kind.as_str())], count));
        let help = "Uses that were denied to guests and reported, by kind.";
        families.counter("toolbay_denied_uses", help, denials)?;
        let limits = self.metrics.limits();
        let limits = limits.iter().map(|(key, count)| ([("limit", *key)], *count));
        families.counter("toolbay_limits_reached", "Limits that calls reached, by the key that raises them.", limits)
    }

    /// What is known of plugins.
    fn catalog(&self, families: &mut Families<'_>) -> fmt::Result {
        let Figures { reloads, plugins, offered, compilations, .. } = &self.figures;
        let CompileCounts { compiled, failed, time, found, missed } = *compilations;
        families.counter("toolbay_reloads", "Snapshots of the catalog that were published.", [([], *reloads)])?;
        let changes = self.metrics.changes().map(|(change, count)| ([("change", change.as_str())], count));
        families.counter("toolbay_plugin_changes", "Changes of plugins, by kind.", changes)?;
        let by_status = plugins.iter().map(|(status, count)| ([("status", *status)], *count));
        families.gauge("toolbay_plugins", "Plugins, by status.", by_status)?;
        let by_kind = offered.iter().map(|(kind, count)| ([("kind", *kind)], *count));
        families.gauge("toolbay_offered", "What clients are offered, by kind.", by_kind)?;
        let results = [([("result", "ok")], compiled), ([("result", "failed")], failed)];
        families.counter("toolbay_compiles", "Compilations of components, by result.", results)?;
        families.counter("toolbay_compile_seconds", "Time that compilations took.", [([], time.as_secs_f64())])?;
        let results = [([("result", "hit")], found), ([("result", "miss")], missed)];
        families.counter("toolbay_compile_cache_lookups", "Components sought in the compile cache, by result.", results)
    }

    /// What is known of the server.
    fn server(&self, families: &mut Families<'_>) -> fmt::Result {
        let Figures { traffic, state, lost, .. } = &self.figures;
        let Traffic { connections, requests, sessions } = *traffic;
        families.gauge("toolbay_http_connections", "HTTP connections that are open.", [([], connections)])?;
        families.gauge(
            "toolbay_http_requests",
            "Requests of callers that are open, with streams.",
            [([], requests)],
        )?;
        families.gauge("toolbay_sessions", "Sessions that are open.", [([], sessions)])?;
        let state = state.map(|size| ([], size));
        families.gauge("toolbay_state_bytes", "Size of the file with the state of plugins.", state)?;
        let lost = lost.map(|lines| ([], lines));
        families.counter("toolbay_audit_lost_lines", "Lines that the audit log lost.", lost)?;
        let version = [([("version", env!("CARGO_PKG_VERSION"))], 1_u64)];
        families.gauge("toolbay_build_info", "The version of Toolbay.", version)
    }

    /// What is known of the process, under the names that all programs use.
    fn process(&self, families: &mut Families<'_>) -> fmt::Result {
        let started = self.metrics.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let help = "When the server started, in seconds since 1970.";
        families.gauge("process_start_time_seconds", help, [([], started)])?;
        let process = self.figures.process;
        let one = |of: fn(Process) -> u64| process.map(|process| ([], of(process)));
        let cpu = process.map(|process| ([], process.cpu.as_secs_f64()));
        families.counter("process_cpu_seconds", "Time on processors, of the server without its compilers.", cpu)?;
        let resident = one(|process| process.resident);
        families.gauge("process_resident_memory_bytes", "Resident memory.", resident)?;
        let virtual_memory = one(|process| process.virtual_memory);
        families.gauge("process_virtual_memory_bytes", "Address space.", virtual_memory)?;
        families.gauge("process_threads", "Threads.", one(|process| process.threads))?;
        let open = process.and_then(|process| Some(([], process.descriptors?)));
        families.gauge("process_open_fds", "Descriptors that are open.", open)?;
        let most = process.and_then(|process| Some(([], process.most_descriptors?)));
        families.gauge("process_max_fds", "Descriptors that can be open.", most)
    }
}

/// Writes families of samples, one after the other.
struct Families<'a> {
    encoder: DescriptorEncoder<'a>,
    form: MetricsForm,
}

impl Families<'_> {
    /// Writes counters. `name` is without the suffix of its samples.
    fn counter<'l, const N: usize, V: EncodeCounterValue + EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, V)>,
    ) -> fmt::Result {
        if self.form == MetricsForm::OpenMetrics {
            let family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            return each(family, samples, |sample, value| sample.encode_counter::<NoLabelSet, V, u64>(value, None));
        }
        let name = format!("{name}_total");
        let family = self.encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
        each(family, samples, gauge)
    }

    /// Writes gauges.
    fn gauge<'l, const N: usize, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, V)>,
    ) -> fmt::Result {
        let family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        each(family, samples, gauge)
    }

    /// Writes histograms.
    fn histogram<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, &'l Distribution)>,
    ) -> fmt::Result {
        let family = self.encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        each(family, samples, |sample, Distribution { sum, count, buckets }| {
            sample.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
        })
    }
}

fn gauge<V: EncodeGaugeValue>(sample: &mut MetricEncoder<'_>, value: &V) -> fmt::Result {
    sample.encode_gauge(value)
}

/// Writes each sample of a family, with its labels if it has any.
fn each<'l, const N: usize, V>(
    mut family: MetricEncoder<'_>,
    samples: impl IntoIterator<Item = (Labels<'l, N>, V)>,
    write: impl Fn(&mut MetricEncoder<'_>, &V) -> fmt::Result,
) -> fmt::Result {
    for (labels, value) in samples {
        if N == 0 {
            write(&mut family, &value)?;
        } else {
            write(&mut family.encode_family(&labels)?, &value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::{Change, Stage};
    use crate::outcome::Outcome;

    fn metrics() -> Arc<Metrics> {
        let metrics = Metrics::default();
        metrics.ended(None, "nobody's", Outcome::Ok);
        metrics.stage(Stage::Guest, Duration::from_millis(2));
        metrics.changed(Change::Load);
        metrics.limited("limits.fuel");
        Arc::new(metrics)
    }

    /// The lines that begin with this.
    fn lines(form: MetricsForm, beginning: &str) -> Vec<String> {
        let text = write(metrics(), Figures::default(), form).unwrap();
        text.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect()
    }

    #[test]
    fn a_counter_is_named_as_its_format_wants_it() {
        let of = |form| {
            let about = ["# HELP toolbay_limits_reached", "# TYPE toolbay_limits_reached", "toolbay_limits_reached"];
            about.map(|beginning| lines(form, beginning)).concat().join("\n")
        };
        insta::assert_snapshot!(of(MetricsForm::Prometheus), @r#"
        # HELP toolbay_limits_reached_total Limits that calls reached, by the key that raises them.
        # TYPE toolbay_limits_reached_total counter
        toolbay_limits_reached_total{limit="limits.fuel"} 1
        "#);
        insta::assert_snapshot!(of(MetricsForm::OpenMetrics), @r#"
        # HELP toolbay_limits_reached Limits that calls reached, by the key that raises them.
        # TYPE toolbay_limits_reached counter
        toolbay_limits_reached_total{limit="limits.fuel"} 1
        "#);
        assert_eq!(lines(MetricsForm::OpenMetrics, "# EOF").len(), 1);
        assert!(lines(MetricsForm::Prometheus, "# EOF").is_empty());
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let guest = lines(MetricsForm::Prometheus, "toolbay_call_stage_seconds");
        let guest: Vec<String> = guest.into_iter().filter(|line| line.contains("stage=\"guest\"")).collect();
        insta::assert_snapshot!(guest.join("\n"), @r#"
        toolbay_call_stage_seconds_sum{stage="guest"} 0.002
        toolbay_call_stage_seconds_count{stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="0.00001",stage="guest"} 0
        toolbay_call_stage_seconds_bucket{le="0.00003",stage="guest"} 0
        toolbay_call_stage_seconds_bucket{le="0.0001",stage="guest"} 0
        toolbay_call_stage_seconds_bucket{le="0.0003",stage="guest"} 0
        toolbay_call_stage_seconds_bucket{le="0.001",stage="guest"} 0
        toolbay_call_stage_seconds_bucket{le="0.003",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="0.01",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="0.03",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="0.1",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="0.3",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="1.0",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="3.0",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="10.0",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="30.0",stage="guest"} 1
        toolbay_call_stage_seconds_bucket{le="+Inf",stage="guest"} 1
        "#);
    }

    #[test]
    fn a_sample_without_labels_has_no_braces() {
        assert_eq!(lines(MetricsForm::Prometheus, "toolbay_calls_running"), ["toolbay_calls_running 0"]);
        assert!(!write(metrics(), Figures::default(), MetricsForm::OpenMetrics).unwrap().contains("{}"));
    }
}

//! Text exposition of metrics, in the Prometheus or the OpenMetrics format.
//!
//! `prometheus-client` writes OpenMetrics. In the older Prometheus format, a counter's family has
//! the name of its samples, and there is no end marker. Everything else is the same.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use toolbay_mcp::MetricsForm;
use toolbay_otel::{HistogramPoint, MetricFamily, MetricNumber, MetricPoint, MetricPoints};

/// Returns the metrics as text, or `None` if they cannot be encoded.
pub(crate) fn render(families: Vec<MetricFamily>, form: MetricsForm) -> Option<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(MetricsScrape { families, form }));
    let mut text = String::new();
    encode_registry(&mut text, &registry).ok()?;
    if form == MetricsForm::OpenMetrics {
        encode_eof(&mut text).ok()?;
    }
    Some(text)
}

#[derive(Debug)]
struct MetricsScrape {
    families: Vec<MetricFamily>,
    form: MetricsForm,
}

impl Collector for MetricsScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for MetricFamily { name, help, points } in &self.families {
            match points {
                MetricPoints::Counter(points) if self.form == MetricsForm::OpenMetrics => {
                    let family =
                        encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
                    encode_points(family, points, encode_counter)?;
                }
                MetricPoints::Counter(points) => {
                    let name = format!("{name}_total");
                    let family =
                        encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
                    encode_points(family, points, encode_gauge)?;
                }
                MetricPoints::Gauge(points) => {
                    encode_points(
                        encoder.encode_descriptor(name, help, None, MetricType::Gauge)?,
                        points,
                        encode_gauge,
                    )?;
                }
                MetricPoints::Histogram(points) => {
                    encode_points(
                        encoder.encode_descriptor(name, help, None, MetricType::Histogram)?,
                        points,
                        encode_histogram,
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn encode_counter(sample: &mut MetricEncoder<'_>, value: &MetricNumber) -> fmt::Result {
    match value {
        MetricNumber::Integer(count) => sample.encode_counter::<NoLabelSet, u64, u64>(count, None),
        MetricNumber::Float(number) => sample.encode_counter::<NoLabelSet, f64, u64>(number, None),
    }
}

fn encode_gauge(sample: &mut MetricEncoder<'_>, value: &MetricNumber) -> fmt::Result {
    match value {
        MetricNumber::Integer(count) => sample.encode_gauge(count),
        MetricNumber::Float(number) => sample.encode_gauge(number),
    }
}

fn encode_histogram(sample: &mut MetricEncoder<'_>, value: &HistogramPoint) -> fmt::Result {
    sample.encode_histogram::<NoLabelSet>(value.sum, value.count, &value.buckets, None)
}

/// Writes each sample of a family, with its labels, if any.
fn encode_points<V>(
    mut family: MetricEncoder<'_>,
    points: &[MetricPoint<V>],
    write: fn(&mut MetricEncoder<'_>, &V) -> fmt::Result,
) -> fmt::Result {
    for MetricPoint { labels, value } in points {
        if labels.is_empty() {
            write(&mut family, value)?;
        } else {
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            write(&mut family.encode_family(&labels)?, value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::observe::call_outcome::OutcomeLabel;
    use crate::observe::metrics::{
        CallStage, PluginChange, ServerGauges, ServerMetrics, collect_families,
    };

    fn measured() -> Vec<MetricFamily> {
        let metrics = ServerMetrics::default();
        metrics.count_call(None, "nobody's", OutcomeLabel::Ok);
        metrics.record_stage(CallStage::Guest, Duration::from_millis(2));
        metrics.count_change(PluginChange::Load);
        metrics.count_limit("limits.fuel");
        collect_families(&metrics, &ServerGauges::default())
    }

    /// Returns the lines that start with `beginning`.
    fn lines(form: MetricsForm, beginning: &str) -> Vec<String> {
        let text = render(measured(), form).unwrap();
        text.lines()
            .filter(|line| line.starts_with(beginning))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_counter_is_named_as_its_format_wants_it() {
        let of = |form| {
            let about = [
                "# HELP toolbay_limits_reached",
                "# TYPE toolbay_limits_reached",
                "toolbay_limits_reached",
            ];
            about
                .map(|beginning| lines(form, beginning))
                .concat()
                .join("\n")
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
        let guest = lines(
            MetricsForm::Prometheus,
            "toolbay_call_stage_duration_seconds",
        );
        let guest: Vec<String> = guest
            .into_iter()
            .filter(|line| line.contains("stage=\"guest\""))
            .collect();
        insta::assert_snapshot!(guest.join("\n"), @r#"
        toolbay_call_stage_duration_seconds_sum{stage="guest"} 0.002
        toolbay_call_stage_duration_seconds_count{stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="0.00001",stage="guest"} 0
        toolbay_call_stage_duration_seconds_bucket{le="0.00003",stage="guest"} 0
        toolbay_call_stage_duration_seconds_bucket{le="0.0001",stage="guest"} 0
        toolbay_call_stage_duration_seconds_bucket{le="0.0003",stage="guest"} 0
        toolbay_call_stage_duration_seconds_bucket{le="0.001",stage="guest"} 0
        toolbay_call_stage_duration_seconds_bucket{le="0.003",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="0.01",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="0.03",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="0.1",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="0.3",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="1.0",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="3.0",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="10.0",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="30.0",stage="guest"} 1
        toolbay_call_stage_duration_seconds_bucket{le="+Inf",stage="guest"} 1
        "#);
    }

    #[test]
    fn a_sample_without_labels_has_no_braces() {
        assert_eq!(
            lines(MetricsForm::Prometheus, "toolbay_calls_running"),
            ["toolbay_calls_running 0"]
        );
        assert!(
            !render(measured(), MetricsForm::OpenMetrics)
                .unwrap()
                .contains("{}")
        );
    }
}

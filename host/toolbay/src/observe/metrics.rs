//! Metrics for operators, and their text format.
//!
//! When a call ends, it adds to atomics, without a lock, an allocation or a clock read. Readers
//! lock only briefly, to list the called tools. Values that other parts already count are not
//! counted again: they are collected as [`ServerGauges`] when metrics are read.

mod counters;
mod duration_histogram;
mod exposition;
mod gauges;
mod histogram;
mod metric_families;
mod process_metrics;
mod tool_counters;

pub(crate) use self::counters::{CallStage, PluginChange, ServerMetrics};
pub(crate) use self::exposition::render;
pub(crate) use self::gauges::ServerGauges;
pub(crate) use self::metric_families::collect_families;
pub(crate) use self::process_metrics::ProcessGauges;
pub(crate) use self::tool_counters::{PluginMeters, ToolMeter, ToolMeters};

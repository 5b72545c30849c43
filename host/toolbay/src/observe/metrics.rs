//! Metrics for operators, and their text format.
//!
//! A call adds to atomics when it ends: no lock is taken, nothing is allocated and no clock is read
//! for that. Reading them takes no lock either, but for a moment to find the tools that were
//! called. What other parts count anyway is not counted twice: it is a [`ServerFigures`] when
//! somebody asks.

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
pub(crate) use self::gauges::ServerFigures;
pub(crate) use self::metric_families::collect_families;
pub(crate) use self::process_metrics::ProcessFigures;
pub(crate) use self::tool_counters::{PluginMeters, ToolMeter, ToolMeters};

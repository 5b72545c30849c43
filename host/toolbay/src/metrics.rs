//! Metrics for operators, and their text format.
//!
//! A call adds to atomics when it ends: no lock is taken, nothing is allocated and no clock is read for that. Reading them
//! takes no lock either, but for a moment to find the tools that were called. What other parts count anyway is not counted
//! twice: it is a [`ServerFigures`] when somebody asks.

mod counts;
mod exposition;
mod families;
mod figures;
mod histogram;
mod process;
mod times;
mod tools;

pub(crate) use self::counts::{CallStage, PluginChange, ServerMetrics};
pub(crate) use self::exposition::render;
pub(crate) use self::families::collect_families;
pub(crate) use self::figures::ServerFigures;
pub(crate) use self::process::ProcessFigures;
pub(crate) use self::tools::{PluginMeters, ToolMeter};

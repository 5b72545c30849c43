//! `toolbay bench`: makes one call many times, and prints how long it takes and what it uses.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;
use toolbay_model::text::format_thousands;
use toolbay_model::{CallUsage, NoopObserver};

use super::call::{CallCommand, unknown_tool_message};
use super::common::{Common, Listen, block_on};
use super::load_progress::{command_server, wait_until_loaded};
use super::output::{complain, print, print_json};
use super::result::print_answer;

/// The calls to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct BenchOptions {
    /// Number of calls.
    pub(super) calls: u32,
    /// Print JSON.
    pub(super) json: bool,
}

/// The measured calls, in the order of their durations.
struct Measurement {
    durations: Vec<Duration>,
    total: Duration,
    max_fuel: u64,
    max_memory: u64,
}

/// Makes the calls one after another, after one that is not measured.
pub(super) fn run(
    common: &Common,
    CallCommand { tool, arguments }: CallCommand,
    options: BenchOptions,
) -> anyhow::Result<ExitCode> {
    let config = common.load_config(true, &Listen::default())?;
    block_on(async {
        let server = command_server(config).start()?;
        let snapshot = wait_until_loaded(&server).await;
        let Some(offer) = snapshot.tools.get(&tool) else {
            bail!(unknown_tool_message(&tool, &snapshot))
        };
        if offer.approval_policy().is_some() {
            bail!(
                "a person must allow calls of {tool:?} (require_approval), so they cannot be made many times"
            );
        }
        let schema = serde_json::from_str(offer.tool.input_schema.get())?;
        let arguments = arguments.into_object(&schema)?;
        let call = async || {
            let started = Instant::now();
            let observer = Arc::new(NoopObserver);
            let answer = server.call(tool.clone(), arguments.clone(), observer).await;
            (started.elapsed(), answer)
        };
        let (_, first) = call().await;
        if first.result.is_err() {
            return Ok(print_answer(first, options.json));
        }
        let mut measured = Measurement {
            durations: Vec::new(),
            total: Duration::ZERO,
            max_fuel: 0,
            max_memory: 0,
        };
        let started = Instant::now();
        for number in 1..=options.calls {
            let (duration, answer) = call().await;
            if answer.result.is_err() {
                complain(&format!(
                    "call {number} of {} failed, and the one before did not",
                    options.calls
                ));
                return Ok(print_answer(answer, options.json));
            }
            measured.add(duration, answer.usage);
        }
        measured.total = started.elapsed();
        measured.durations.sort_unstable();
        if options.json {
            print_json(&measured.to_json(&tool))?;
        } else {
            print(&measured.to_text(&tool));
        }
        Ok(ExitCode::SUCCESS)
    })
}

impl Measurement {
    fn add(&mut self, duration: Duration, usage: Option<CallUsage>) {
        self.durations.push(duration);
        if let Some(usage) = usage {
            self.max_fuel = self.max_fuel.max(usage.fuel);
            self.max_memory = self.max_memory.max(usage.memory);
        }
    }

    /// Returns the duration that this share of the calls does not exceed, in milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.durations.len() * percent).div_ceil(100).max(1);
        let duration = self.durations.get(rank - 1).copied();
        duration.unwrap_or_default().as_secs_f64() * 1000.0
    }

    fn per_second(&self) -> f64 {
        let seconds = self.total.as_secs_f64();
        if seconds > 0.0 {
            f64::from(u32::try_from(self.durations.len()).unwrap_or(u32::MAX)) / seconds
        } else {
            0.0
        }
    }

    fn to_json(&self, tool: &str) -> serde_json::Value {
        json!({
            "tool": tool,
            "calls": self.durations.len(),
            "median_ms": self.percentile(50),
            "p95_ms": self.percentile(95),
            "p99_ms": self.percentile(99),
            "max_ms": self.percentile(100),
            "calls_per_second": self.per_second(),
            "max_fuel": self.max_fuel,
            "max_memory": self.max_memory,
        })
    }

    fn to_text(&self, tool: &str) -> String {
        format!(
            "{} calls of {tool}, one after another: {:.0} per second\n\
             time    median {:.2} ms, 95 % {:.2} ms, 99 % {:.2} ms, longest {:.2} ms\n\
             fuel    at most {}\n\
             memory  at most {}\n",
            self.durations.len(),
            self.per_second(),
            self.percentile(50),
            self.percentile(95),
            self.percentile(99),
            self.percentile(100),
            format_thousands(self.max_fuel),
            bytesize::ByteSize::b(self.max_memory).display().iec()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_durations() {
        let measured = Measurement {
            durations: (1..=200).map(Duration::from_millis).collect(),
            total: Duration::from_secs(2),
            max_fuel: 1_234,
            max_memory: 65_536,
        };
        insta::assert_snapshot!(measured.to_text("echo"), @r"
        200 calls of echo, one after another: 100 per second
        time    median 100.00 ms, 95 % 190.00 ms, 99 % 198.00 ms, longest 200.00 ms
        fuel    at most 1,234
        memory  at most 64.0 KiB
        ");
        let one = Measurement {
            durations: vec![Duration::from_millis(7)],
            ..measured
        };
        assert!((one.percentile(50) - 7.0).abs() < 1e-9);
    }
}

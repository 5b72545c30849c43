//! Counters of call outcomes since the server started, for the log and for metrics. They are a few
//! atomics without a lock.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use toolbay_model::ErrorKind;

use crate::approval::call_target::CallTarget;
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_outcome::{OutcomeLabel, limit_key};
use crate::observe::guest_run::GuestRun;
use crate::observe::metrics::{PluginMeters, ServerMetrics, ToolMeter, ToolMeters};
use crate::observe::stage_times::StageTimes;

/// Counters of call outcomes since the server started.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    succeeded: AtomicU64,
    failed: [AtomicU64; ErrorKind::ALL.len()],
    /// Calls that ended because of an error in the server.
    internal_errors: AtomicU64,
    metrics: Option<Arc<ServerMetrics>>,
}

/// A call that has not been counted yet. Dropping it counts the call.
#[derive(Debug)]
pub(crate) struct PendingCount {
    counters: Arc<CallCounters>,
    tool: String,
    /// The meter of the call's tool, once the tool was found.
    meter: Option<Arc<ToolMeter>>,
    ended: bool,
}

impl CallCounters {
    /// Creates counters at zero. Calls are also counted in `metrics`.
    pub(crate) fn new(metrics: Option<Arc<ServerMetrics>>) -> Self {
        Self {
            metrics,
            ..Self::default()
        }
    }

    /// Starts to track a call of `tool`.
    pub(crate) fn begin(self: &Arc<Self>, tool: &str) -> PendingCount {
        PendingCount {
            counters: Arc::clone(self),
            tool: tool.to_owned(),
            meter: None,
            ended: false,
        }
    }

    fn counter(&self, kind: ErrorKind) -> Option<&AtomicU64> {
        self.failed
            .get(ErrorKind::ALL.iter().position(|known| *known == kind)?)
    }

    fn increment(&self, kind: ErrorKind) -> u64 {
        self.counter(kind)
            .map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the number of guest crashes.
    pub(crate) fn trap_count(&self) -> u64 {
        self.counter(ErrorKind::Trap)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Logs the counts.
    pub(crate) fn log(&self) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let succeeded = read(&self.succeeded);
        let internal_errors = read(&self.internal_errors);
        let mut kinds = String::new();
        let mut failed = 0;
        let mut cancelled = 0;
        for (kind, count) in ErrorKind::ALL.iter().zip(&self.failed) {
            let count = read(count);
            if *kind == ErrorKind::Cancelled {
                cancelled = count;
                continue;
            }
            failed += count;
            if count > 0 {
                let _ = write!(
                    kinds,
                    "{}{kind} {count}",
                    if kinds.is_empty() { "" } else { ", " }
                );
            }
        }
        let calls = succeeded + failed + cancelled + internal_errors;
        tracing::info!(
            calls,
            succeeded,
            failed,
            kinds,
            cancelled,
            internal_errors,
            "shut down"
        );
    }
}

impl PendingCount {
    /// Records the resources that the guest used.
    fn record_run(&self, run: &GuestRun) {
        if let (Some(metrics), Some(meter), Some(_)) =
            (&self.counters.metrics, &self.meter, run.entered)
        {
            metrics.record_usage(meter, &run.usage);
            if run.log_dropped > 0 {
                metrics.count_limit("limits.log");
            }
        }
    }

    /// Records how long the stages of the call took.
    fn record_times(&self, times: &StageTimes, now: Instant) {
        if let (Some(metrics), Some(meter)) = (&self.counters.metrics, &self.meter) {
            meter.times.record_time(times.total(now));
            for (stage, took) in times.stages(now).into_iter().flatten() {
                metrics.record_stage(stage, took);
            }
        }
    }

    /// Counts the call, and the limit that it reached, under the key that raises it.
    fn finish(&mut self, outcome: OutcomeLabel, limit: Option<&'static str>) {
        self.ended = true;
        match outcome {
            OutcomeLabel::Ok | OutcomeLabel::InputRequired => {
                self.counters.succeeded.fetch_add(1, Ordering::Relaxed);
            }
            OutcomeLabel::Failed(kind) => drop(self.counters.increment(kind)),
        }
        self.count_in_metrics(outcome);
        if let (Some(metrics), Some(limit)) = (&self.counters.metrics, limit) {
            metrics.count_limit(limit);
        }
    }

    fn count_in_metrics(&self, outcome: OutcomeLabel) {
        if let Some(metrics) = &self.counters.metrics {
            metrics.count_call(self.meter.as_deref(), &self.tool, outcome);
        }
    }
}

impl CallSink for PendingCount {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            CallEvent::Refused(rejection) => self.finish(
                OutcomeLabel::Failed(rejection.reason.kind()),
                rejection.reason.key(),
            ),
            CallEvent::StoredResultFound => {
                self.meter = self
                    .counters
                    .metrics
                    .as_ref()
                    .map(|metrics| Arc::clone(&metrics.tools.resources));
            }
            CallEvent::Resolved {
                target,
                meters,
                is_completion,
                ..
            } => {
                let tools = self.counters.metrics.as_ref().map(|metrics| &metrics.tools);
                self.meter = tools.map(|tools| find_meter(tools, target, meters, *is_completion));
            }
            CallEvent::GuestReturned(run) => self.record_run(run),
            CallEvent::StagesEnded { times, now } => self.record_times(times, *now),
            CallEvent::Ended(answer) => {
                self.finish(OutcomeLabel::from_answer(answer), limit_key(answer));
            }
            _ => {}
        }
    }
}

/// Returns the meter of a call's target.
fn find_meter(
    tools: &ToolMeters,
    target: &CallTarget,
    meters: &PluginMeters,
    is_completion: bool,
) -> Arc<ToolMeter> {
    match target {
        _ if is_completion => Arc::clone(&tools.completions),
        CallTarget::Tool(offer) => meters.tool_meter(&offer.tool, tools),
        CallTarget::Prompt(_) => Arc::clone(&tools.prompts),
        CallTarget::Resource(_) => Arc::clone(&tools.resources),
    }
}

/// Counts the denials of all calls.
impl CallSink for &ServerMetrics {
    fn record(&mut self, event: &CallEvent<'_>) {
        if let CallEvent::Denied { kind, .. } = event {
            self.count_denial(*kind);
        }
    }
}

impl Drop for PendingCount {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The code that catches the panic does not have the call's data.
        if std::thread::panicking() {
            let internal_errors = self
                .counters
                .internal_errors
                .fetch_add(1, Ordering::Relaxed)
                + 1;
            tracing::error!(
                tool = self.tool,
                internal_errors,
                "a call ended because of an error in the server"
            );
            self.count_in_metrics(OutcomeLabel::Failed(ErrorKind::Internal));
        } else {
            tracing::info!(tool = self.tool, "call cancelled");
            self.counters.increment(ErrorKind::Cancelled);
            self.count_in_metrics(OutcomeLabel::Failed(ErrorKind::Cancelled));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn every_end_is_counted_once() {
        let metrics = Arc::<ServerMetrics>::default();
        let tally = Arc::new(CallCounters::new(Some(Arc::clone(&metrics))));
        tally.begin("a").finish(OutcomeLabel::Ok, None);
        for count in 1..=2 {
            tally
                .begin("a")
                .finish(OutcomeLabel::Failed(ErrorKind::Trap), None);
            assert_eq!(tally.trap_count(), count);
        }
        tally
            .begin("a")
            .finish(OutcomeLabel::Failed(ErrorKind::Fuel), Some("limits.fuel"));
        drop(tally.begin("a"));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _running = tally.begin("a");
            panic!("a fault");
        }));
        assert!(panicked.is_err());
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let failed: u64 = tally.failed.iter().map(read).sum();
        assert_eq!(
            (read(&tally.succeeded), failed, read(&tally.internal_errors)),
            (1, 4, 1)
        );
        assert_eq!(tally.counter(ErrorKind::Cancelled).map(read), Some(1));
        let metered = metrics.tools.existing_meter("a");
        let metered: Vec<_> = metered
            .outcomes()
            .map(|(outcome, count)| (outcome.as_str(), count))
            .collect();
        assert_eq!(
            metered,
            [
                ("ok", 1),
                ("fuel", 1),
                ("trap", 2),
                ("cancelled", 1),
                ("internal", 1)
            ]
        );
        assert_eq!(metrics.limits(), [("limits.fuel", 1)]);
    }
}

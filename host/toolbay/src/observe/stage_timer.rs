//! Timing of the stages of one call.

use std::time::{Duration, Instant};

use toolbay_sandbox::FinishedCall;

use crate::limits::short_calls::LatencyClass;
use crate::observe::call_span::{CallSpan, FinishedStages};
use crate::observe::metrics::{CallStage, ServerMetrics, ToolMeter};

/// Times the stages of a call, from the lookup of its plugin. Dropping it records the times,
/// however the call ends.
///
/// It reads the clock at the start and at the end. All other times are measured elsewhere anyway.
pub(crate) struct StageTimer<'a> {
    pace: &'a LatencyClass,
    /// The metrics that count the call, if metrics are on.
    metered: Option<(&'a ServerMetrics, &'a ToolMeter)>,
    /// The span of the call, if there is one.
    span: Option<&'a CallSpan>,
    began: Instant,
    admitted: Option<Instant>,
    /// Time at which the guest's store was ready, and how long the guest ran.
    guest: Option<(Instant, Duration)>,
    waited: Duration,
    idled: bool,
}

impl<'a> StageTimer<'a> {
    /// Starts timing a call of a plugin with this pace.
    pub(crate) fn start(
        pace: &'a LatencyClass,
        metered: Option<(&'a ServerMetrics, &'a ToolMeter)>,
        span: Option<&'a CallSpan>,
    ) -> Self {
        let (began, waited) = (Instant::now(), Duration::ZERO);
        Self {
            pace,
            metered,
            span,
            began,
            admitted: None,
            guest: None,
            waited,
            idled: false,
        }
    }

    /// Records that the call was admitted.
    pub(crate) fn record_admission(&mut self, at: Instant) {
        self.admitted = Some(at);
    }

    /// Records that the guest returned, or could not be entered.
    pub(crate) fn record_finish<T>(&mut self, finished: &FinishedCall<T>) {
        self.waited += finished.waited;
        self.idled |= finished.idled;
        let Some(entered) = finished.entered else {
            return;
        };
        self.guest = Some((entered, finished.usage.wall));
        if let Some((metrics, meter)) = self.metered {
            metrics.record_usage(meter, &finished.usage);
            if finished.log_dropped > 0 {
                metrics.count_limit("limits.log");
            }
        }
    }

    /// Returns the durations of the stages at `now`. The last one may still be running.
    fn stages(&self, now: Instant) -> FinishedStages {
        let queue = self
            .admitted
            .unwrap_or(now)
            .saturating_duration_since(self.began);
        let Some(admitted) = self.admitted else {
            return [Some((CallStage::Queue, queue)), None, None, None];
        };
        let prepared = self.guest.map_or(now, |(entered, _)| entered);
        let prepare = prepared.saturating_duration_since(admitted);
        let guest = self.guest.map(|(_, wall)| (CallStage::Guest, wall));
        let check = self.guest.map(|(entered, wall)| {
            (
                CallStage::Check,
                now.saturating_duration_since(entered + wall),
            )
        });
        [
            Some((CallStage::Queue, queue)),
            Some((CallStage::Prepare, prepare)),
            guest,
            check,
        ]
    }

    /// Formats the stages so far for the log, in milliseconds with three decimals.
    pub(crate) fn log_summary(&self) -> String {
        let stages = self.stages(Instant::now()).into_iter().flatten();
        let told: Vec<String> = stages
            .map(|(stage, took)| format!("{} {:.3} ms", stage.as_str(), took.as_secs_f64() * 1e3))
            .collect();
        told.join(", ")
    }
}

impl Drop for StageTimer<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.began);
        self.pace
            .record_call(took.saturating_sub(self.waited), self.idled);
        if let Some(span) = self.span {
            span.record_stages(self.began, self.stages(now));
        }
        let Some((metrics, meter)) = self.metered else {
            return;
        };
        meter.times.record_time(took);
        for (stage, took) in self.stages(now).into_iter().flatten() {
            metrics.record_stage(stage, took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_a_call_are_those_that_it_reached_and_add_up() {
        let (pace, second) = (LatencyClass::default(), Duration::from_secs(1));
        let mut course = StageTimer::start(&pace, None, None);
        let of = |course: &StageTimer<'_>, seconds| {
            let stages = course.stages(course.began + seconds * second);
            stages
                .into_iter()
                .flatten()
                .map(|(stage, took)| (stage.as_str(), took.as_secs()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&course, 2), [("queue", 2)]);
        course.record_admission(course.began + second);
        assert_eq!(of(&course, 3), [("queue", 1), ("prepare", 2)]);
        course.guest = Some((course.began + 3 * second, 4 * second));
        assert_eq!(
            of(&course, 12),
            [("queue", 1), ("prepare", 2), ("guest", 4), ("check", 5)]
        );
    }
}

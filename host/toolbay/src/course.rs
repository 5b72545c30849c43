//! The course of one call: how long each of its stages took.

use std::time::{Duration, Instant};

use toolbay_sandbox::Finished;

use crate::call_span::{CallSpan, Stages};
use crate::metrics::{Metrics, Stage, ToolMeter};
use crate::pace::Pace;

/// The course of a call, from the moment its plugin is found. Dropping it takes note of it, however the call ends.
///
/// It reads the clock when it begins and when it ends; all other times are known for other reasons.
pub(crate) struct Course<'a> {
    pace: &'a Pace,
    /// Where it is counted, if anywhere.
    metered: Option<(&'a Metrics, &'a ToolMeter)>,
    /// The span of the call, if there is one.
    span: Option<&'a CallSpan>,
    began: Instant,
    admitted: Option<Instant>,
    /// When the guest's store was ready, and how long the guest had it.
    guest: Option<(Instant, Duration)>,
    waited: Duration,
    idled: bool,
}

impl<'a> Course<'a> {
    /// The course of a call of a plugin with this pace.
    pub(crate) fn begin(
        pace: &'a Pace,
        metered: Option<(&'a Metrics, &'a ToolMeter)>,
        span: Option<&'a CallSpan>,
    ) -> Self {
        let (began, waited) = (Instant::now(), Duration::ZERO);
        Self { pace, metered, span, began, admitted: None, guest: None, waited, idled: false }
    }

    /// Its turn came.
    pub(crate) fn admitted(&mut self, at: Instant) {
        self.admitted = Some(at);
    }

    /// The guest was left, or could not be entered.
    pub(crate) fn left<T>(&mut self, finished: &Finished<T>) {
        self.waited += finished.waited;
        self.idled |= finished.idled;
        let Some(entered) = finished.entered else { return };
        self.guest = Some((entered, finished.usage.wall));
        if let Some((metrics, meter)) = self.metered {
            metrics.used(meter, &finished.usage);
            if finished.log_dropped > 0 {
                metrics.limited("limits.log");
            }
        }
    }

    /// What the stages took that are over, of a call that goes on at `now`. The last one is the one that it is in.
    fn stages(&self, now: Instant) -> Stages {
        let queue = self.admitted.unwrap_or(now).saturating_duration_since(self.began);
        let Some(admitted) = self.admitted else { return [Some((Stage::Queue, queue)), None, None, None] };
        let prepared = self.guest.map_or(now, |(entered, _)| entered);
        let prepare = prepared.saturating_duration_since(admitted);
        let guest = self.guest.map(|(_, wall)| (Stage::Guest, wall));
        let check = self.guest.map(|(entered, wall)| (Stage::Check, now.saturating_duration_since(entered + wall)));
        [Some((Stage::Queue, queue)), Some((Stage::Prepare, prepare)), guest, check]
    }

    /// The stages so far, for the log: in milliseconds with three decimals.
    pub(crate) fn told(&self) -> String {
        let stages = self.stages(Instant::now()).into_iter().flatten();
        let told: Vec<String> =
            stages.map(|(stage, took)| format!("{} {:.3} ms", stage.as_str(), took.as_secs_f64() * 1e3)).collect();
        told.join(", ")
    }
}

impl Drop for Course<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.began);
        self.pace.note(took.saturating_sub(self.waited), self.idled);
        if let Some(span) = self.span {
            span.staged(self.began, self.stages(now));
        }
        let Some((metrics, meter)) = self.metered else { return };
        meter.times.record_time(took);
        for (stage, took) in self.stages(now).into_iter().flatten() {
            metrics.stage(stage, took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_a_call_are_those_that_it_reached_and_add_up() {
        let (pace, second) = (Pace::default(), Duration::from_secs(1));
        let mut course = Course::begin(&pace, None, None);
        let of = |course: &Course<'_>, seconds| {
            let stages = course.stages(course.began + seconds * second);
            stages.into_iter().flatten().map(|(stage, took)| (stage.as_str(), took.as_secs())).collect::<Vec<_>>()
        };
        assert_eq!(of(&course, 2), [("queue", 2)]);
        course.admitted(course.began + second);
        assert_eq!(of(&course, 3), [("queue", 1), ("prepare", 2)]);
        course.guest = Some((course.began + 3 * second, 4 * second));
        assert_eq!(of(&course, 12), [("queue", 1), ("prepare", 2), ("guest", 4), ("check", 5)]);
    }
}

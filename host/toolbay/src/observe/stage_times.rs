//! The times of the stages of one call.

use std::time::{Duration, Instant};

use crate::observe::guest_run::GuestRun;
use crate::observe::metrics::CallStage;

/// The finished stages of a call, with their durations.
pub(crate) type FinishedStages = [Option<(CallStage, Duration)>; 4];

/// The times of the stages of a call, from the lookup of its plugin.
///
/// The clock is read at the start and at the end. All other times are measured elsewhere anyway.
#[derive(Debug)]
pub(crate) struct StageTimes {
    /// Time at which the call looked up its plugin.
    pub(crate) began: Instant,
    admitted: Option<Instant>,
    /// Time at which the guest's store was ready, and how long the guest ran.
    guest: Option<(Instant, Duration)>,
    waited: Duration,
    idled: bool,
}

impl StageTimes {
    /// Starts to time a call.
    pub(crate) fn start() -> Self {
        Self {
            began: Instant::now(),
            admitted: None,
            guest: None,
            waited: Duration::ZERO,
            idled: false,
        }
    }

    /// Records that the call was admitted.
    pub(crate) fn record_admission(&mut self, at: Instant) {
        self.admitted = Some(at);
    }

    /// Records that the guest returned, or could not be entered.
    pub(crate) fn record_run(&mut self, run: &GuestRun) {
        self.waited += run.waited;
        self.idled |= run.idled;
        if let Some(entered) = run.entered {
            self.guest = Some((entered, run.usage.wall));
        }
    }

    /// Returns the time until `now`.
    pub(crate) fn total(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// Returns the part of the time until `now` in which the call computed, and whether its guest
    /// waited for an external event.
    pub(crate) fn computed(&self, now: Instant) -> (Duration, bool) {
        (self.total(now).saturating_sub(self.waited), self.idled)
    }

    /// Returns the durations of the stages at `now`. The last one may still be running.
    pub(crate) fn stages(&self, now: Instant) -> FinishedStages {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_of_a_call_are_those_that_it_reached_and_add_up() {
        let second = Duration::from_secs(1);
        let mut course = StageTimes::start();
        let of = |course: &StageTimes, seconds| {
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

//! The report of a call from the lookup of its plugin to its checked result: passes its events to
//! its sinks, and times its stages.

use std::time::Instant;

use toolbay_model::{CallError, CallRejection, CallReply};

use crate::approval::call_target::CallTarget;
use crate::limits::short_calls::LatencyClass;
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_sinks::CallSinks;
use crate::observe::guest_run::GuestRun;
use crate::observe::stage_times::StageTimes;

/// Reports the events of a call to its sinks, and times its stages. Dropping it records the times,
/// however the call ends.
pub(crate) struct CallReport<'a> {
    sinks: &'a mut CallSinks,
    /// The latency class of the plugin, which the durations of its calls determine.
    latency_class: &'a LatencyClass,
    times: StageTimes,
}

impl<'a> CallReport<'a> {
    /// Starts the report of a call of a plugin with this pace.
    pub(crate) fn start(sinks: &'a mut CallSinks, pace: &'a LatencyClass) -> Self {
        Self {
            sinks,
            latency_class: pace,
            times: StageTimes::start(),
        }
    }

    /// Returns the sinks.
    pub(crate) fn sinks(&mut self) -> &mut CallSinks {
        self.sinks
    }

    /// Records that the call was admitted.
    pub(crate) fn record_admission(&mut self, at: Instant) {
        self.times.record_admission(at);
    }

    /// Records the final outcome of the guest.
    pub(crate) fn record_outcome(
        &mut self,
        target: &CallTarget,
        result: &Result<Option<CallReply>, CallError>,
        run: &GuestRun,
    ) {
        self.sinks.record(&CallEvent::GuestFinished {
            target,
            result,
            run,
            times: &self.times,
        });
    }
}

impl CallSink for CallReport<'_> {
    fn record(&mut self, event: &CallEvent<'_>) {
        if let CallEvent::GuestReturned(run) = event {
            self.times.record_run(run);
        }
        self.sinks.record(event);
    }

    async fn commit(&mut self, event: &CallEvent<'_>) -> Result<(), CallRejection> {
        self.sinks.commit(event).await
    }
}

impl Drop for CallReport<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let (took, idled) = self.times.computed(now);
        self.latency_class.record_call(took, idled);
        self.sinks.record(&CallEvent::StagesEnded {
            times: &self.times,
            now,
        });
    }
}

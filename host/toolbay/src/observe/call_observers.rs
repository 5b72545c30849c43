//! Observers of one call: counters, audit log, console and span.

use toolbay_model::CallResult;

use crate::observe::audit_records::CallLine;
use crate::observe::call_outcome::{CallEnding, limit_key};
use crate::observe::call_span::CallSpan;
use crate::observe::console_report::ConsoleSink;
use crate::observe::outcome_counters::PendingCount;

/// Observers of one call. Each records the call, however it ends.
#[derive(Debug)]
pub(crate) struct CallObservers {
    /// The count of the call.
    pub(crate) counted: PendingCount,
    /// The call's line in the audit log, if there is one.
    pub(crate) line: Option<CallLine>,
    /// The call's report to the console, if there is one.
    pub(crate) noticed: Option<ConsoleSink>,
    /// The call's span, if spans are exported.
    pub(crate) span: Option<CallSpan>,
}

impl CallObservers {
    /// Records the answer with each observer. Waits for capacity in the audit log, for a short
    /// time.
    pub(crate) async fn finish(&mut self, answer: &CallResult) {
        if let Some(line) = &mut self.line {
            line.finish(answer).await;
        }
        self.counted
            .finish(CallEnding::from_answer(answer), limit_key(answer));
        if let Some(noticed) = &mut self.noticed {
            noticed.finish(answer);
        }
        if let Some(span) = &mut self.span {
            span.record_end(answer);
        }
    }
}

//! What is noted of one call, however it ends.

use toolbay_model::CallResult;

use crate::audited::CallLine;
use crate::call_span::CallSpan;
use crate::noticed::ConsoleSink;
use crate::outcome::{EndedAs, limit};
use crate::tally::PendingCount;

/// What is noted of one call, however it ends.
#[derive(Debug)]
pub(crate) struct CallObservers {
    /// It is counted.
    pub(crate) counted: PendingCount,
    /// It has a line in the audit log, if there is one.
    pub(crate) line: Option<CallLine>,
    /// The console is told of it, if there is one.
    pub(crate) noticed: Option<ConsoleSink>,
    /// It is a span, if spans are sent.
    pub(crate) span: Option<CallSpan>,
}

impl CallObservers {
    /// Takes note of the answer. Waits for room in the audit log, for a short time.
    pub(crate) async fn end(&mut self, answer: &CallResult) {
        if let Some(line) = &mut self.line {
            line.end(answer).await;
        }
        self.counted.end(EndedAs::of(answer), limit(answer));
        if let Some(noticed) = &mut self.noticed {
            noticed.end(answer);
        }
        if let Some(span) = &mut self.span {
            span.end(answer);
        }
    }
}

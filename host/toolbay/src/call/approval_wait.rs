//! Calls that are suspended until a person approves them.

use std::sync::Arc;
use std::time::SystemTime;

use toolbay_catalog::Catalog;
use toolbay_console::ApprovalOutcome;
use toolbay_model::{Digest, ErrorKind, QuestionSubject};

use crate::approval::call_target::CallTarget;
use crate::approval::ruling::ApprovalDecision;
use crate::call::admission::CallAdmission;
use crate::call::resolve::edition_digest;
use crate::observe::call_event::{CallEvent, CallSink as _};
use crate::observe::call_sinks::CallSinks;
use crate::observe::server_observers::ServerObservers;

/// Records a call that ended while it waited for a person's approval: its client cancelled it or
/// disconnected. Each sink reports the cancellation when it is dropped.
pub(crate) fn record_withdrawn(
    catalog: &Catalog,
    admission: &CallAdmission,
    observers: &Arc<ServerObservers>,
    caller: &str,
    subject: &QuestionSubject,
    began: SystemTime,
) {
    let mut sinks = CallSinks::start(observers, caller, &subject.tool);
    let snapshot = catalog.snapshot();
    let offer = snapshot
        .tools
        .get(&subject.tool)
        .filter(|offer| offer.plugin.id == subject.plugin);
    if let Some(offer) = offer {
        sinks.record(&CallEvent::Resolved {
            target: &CallTarget::Tool(Arc::clone(offer)),
            meters: &admission.activity(&offer.plugin).meters,
            is_completion: false,
            trace: None,
        });
    }
    let decision = ApprovalDecision {
        outcome: ErrorKind::Cancelled.as_str(),
        waited: began.elapsed().ok(),
        operator: None,
    };
    sinks.record(&CallEvent::ApprovalWithdrawn {
        subject,
        caller,
        decision: &decision,
    });
}

/// Returns whether a call that was just approved can still run. Since the question, the plugin or
/// its grant may have changed, or the plugin may have been suspended.
pub(crate) fn check_allowed(
    catalog: &Catalog,
    admission: &CallAdmission,
    plugin: &str,
    tool: &str,
    asked: Option<Digest>,
) -> ApprovalOutcome {
    let snapshot = catalog.snapshot();
    match snapshot.tools.get(tool).map(|offer| &offer.plugin) {
        Some(now) if now.id == plugin && asked.is_none_or(|asked| asked == edition_digest(now)) => {
            if admission.activity(now).suspension.is_suspended() {
                ApprovalOutcome::Suspended
            } else {
                ApprovalOutcome::Done
            }
        }
        _ => ApprovalOutcome::Outdated,
    }
}

//! Lists and stops the running calls of a server, for `toolbay ps` of the same user.

use std::time::SystemTime;

use rustix::process::geteuid;
use serde_json::{Value, json};
use toolbay_console::{CallControl, RunningCall};

use crate::call::service::{CallService, plugins_by_id};

/// Maximum number of calls in a list.
const MAX_CALLS: usize = 1_000;

/// Access to the running calls of a server.
pub(super) struct RunningCallControl {
    service: CallService,
}

impl RunningCallControl {
    pub(super) fn new(service: &CallService) -> Self {
        Self {
            service: service.clone(),
        }
    }
}

impl CallControl for RunningCallControl {
    fn running_calls(&self) -> String {
        let table = self.service.observers().running_calls();
        let (calls, total) = table.map_or_else(Default::default, |table| table.oldest(MAX_CALLS));
        let calls: Vec<Value> = calls.iter().map(call_json).collect();
        json!({"calls": calls, "total": total}).to_string()
    }

    fn stop_call(&self, id: u64) -> bool {
        // Only processes of the server's user can connect.
        let operator = format!("uid:{}", geteuid().as_raw());
        let Some(call) = stop_call(&self.service, &operator, id) else {
            return false;
        };
        tracing::info!(tool = %call.tool, caller = %call.caller, "a call was stopped with `toolbay ps`");
        true
    }
}

/// Stops a running call for an operator, and returns it. Returns `None` if it has ended.
pub(super) fn stop_call(service: &CallService, operator: &str, id: u64) -> Option<RunningCall> {
    let observers = service.observers();
    let call = observers.running_calls()?.stop(id)?;
    if let Some(audit) = observers.audit() {
        let snapshot = service.catalog().snapshot();
        let plugins = plugins_by_id(&snapshot);
        let plugin = call
            .plugin
            .as_deref()
            .and_then(|id| plugins.get(id).copied());
        audit.record_operator_action(operator, "stop-call", plugin, true);
    }
    Some(call)
}

fn call_json(call: &RunningCall) -> Value {
    let age = SystemTime::now()
        .duration_since(call.started_at)
        .unwrap_or_default();
    json!({
        "call": call.id,
        "tool": call.tool,
        "plugin": call.plugin,
        "caller": call.caller,
        "started": humantime::format_rfc3339_millis(call.started_at).to_string(),
        "age_ms": u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        "progress": call.progress,
    })
}

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
        let observers = self.service.observers();
        let Some(call) = observers.running_calls().and_then(|table| table.stop(id)) else {
            return false;
        };
        if let Some(audit) = observers.audit() {
            let snapshot = self.service.catalog().snapshot();
            let plugins = plugins_by_id(&snapshot);
            let plugin = call
                .plugin
                .as_deref()
                .and_then(|id| plugins.get(id).copied());
            // Only processes of the server's user can connect.
            let caller = format!("uid:{}", geteuid().as_raw());
            audit.record_operator_action(&caller, "stop-call", plugin, true);
        }
        tracing::info!(tool = %call.tool, caller = %call.caller, "a call was stopped with `toolbay ps`");
        true
    }
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

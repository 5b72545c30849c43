//! A tool call from its name to its checked result: look up, validate, admit, run, validate.
//!
//! It knows neither JSON-RPC nor wasmtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolbay_catalog::{Catalog, Offer, Plugin, Snapshot};
use toolbay_mcp::{Call, Options};
use toolbay_model::text::{duration, line};
use toolbay_model::{Answer, CallError, Failure, LogLevel, Observer, Output, Progress, Trace};
use toolbay_sandbox::{Entry, Finished, Sandbox};
use tracing::Instrument as _;

use crate::activity::Activity;
use crate::admission::{Admission, ClientPermits};
use crate::breaker::BreakerRules;
use crate::by_plugin::ByPlugin;
use crate::config::Config;
use crate::record::Record;
use crate::tally::Tally;
use crate::views::Views;

/// How long a call of an unknown tool waits for plugins that are still loading at startup.
const FIRST_CALL: Duration = Duration::from_secs(10);

/// Longest failure that is logged, in bytes: parts of it come from guests.
const LOGGED: usize = 1_000;

/// Everything that a session needs to handle requests: catalog, sandbox, admission and configuration. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    catalog: Catalog,
    sandbox: Sandbox,
    admission: Admission,
    activities: ByPlugin<Activity>,
    views: Views,
    tally: Arc<Tally>,
    breaker: BreakerRules,
    options: Options,
    /// How long the first `tools/list` waits for plugins that are still loading at startup.
    first_list: Duration,
}

impl Service {
    /// A service of these parts.
    pub(crate) fn new(catalog: Catalog, sandbox: Sandbox, config: &Config) -> Self {
        let inner = Inner {
            catalog,
            admission: Admission::new(&config.server, sandbox.calls(), config.client_rate_limit),
            sandbox,
            activities: ByPlugin::default(),
            views: Views::default(),
            tally: Arc::default(),
            breaker: config.breaker,
            options: config.protocol(),
            first_list: config.server.first_list,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The catalog of tools.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    /// The tool list as callers see it.
    pub(crate) fn views(&self) -> &Views {
        &self.inner.views
    }

    /// The sandbox in which calls run.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.inner.sandbox
    }

    /// Admission of calls.
    pub(crate) fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    /// How the protocol is served.
    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Counts of how calls ended.
    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.inner.tally
    }

    /// Calls a tool for a client. Must run on the guests' runtime. Dropping the future cancels the call.
    pub(crate) async fn answer(&self, client: &ClientPermits, call: Call, observer: Arc<dyn Observer>) -> Answer {
        let failed = |failure| Answer { result: Err(failure), usage: None };
        let ready = |snapshot: &Snapshot| snapshot.complete || snapshot.tools.contains_key(&call.tool);
        let snapshot = self.snapshot_within(FIRST_CALL, ready).await;
        let offer = snapshot.tools.get(&call.tool).filter(|_| call.permitted);
        let Some(offer) = offer.map(Arc::clone) else { return failed(Failure::UnknownTool(call.tool)) };
        // Nothing of the snapshot but this tool is needed from here on.
        drop(snapshot);
        let missing = |needed: &(&String, &Value)| !call.capabilities.contains_key(needed.0);
        let missing: Map<_, _> = offer.definition.needs.iter().filter(missing).map(owned).collect();
        if !missing.is_empty() {
            return failed(Failure::MissingCapabilities(missing));
        }
        let arguments = Value::Object(call.arguments);
        let violations = offer.definition.input.violations(&arguments);
        if !violations.is_empty() {
            return failed(Failure::InvalidArguments(violations));
        }
        let (plugin, name) = (&offer.plugin, &offer.definition.tool.name);
        let (activity, environment) = (self.activity(plugin), plugin.environment(name));
        let record = client.records.of(plugin, || Record::of(plugin));
        let concurrency = plugin.terms.environment.limits.concurrency;
        let (admission, memory) = (&self.inner.admission, environment.limits.memory);
        let permit = match admission.admit(client, &activity, &record, name, concurrency, memory).await {
            Ok(permit) => permit,
            Err(rejection) => return failed(Failure::Rejected(rejection)),
        };
        let Some(prepared) = &plugin.component.prepared else {
            return failed(Failure::Call(CallError::Internal("the plugin has no code".to_owned())));
        };
        // Serialized again: the guest reads exactly what was validated, even if keys were duplicated.
        let arguments = arguments.to_string();
        let observer: Arc<dyn Observer> = Arc::new(Logged { inner: observer, offer: Arc::clone(&offer) });
        let trace = call.trace.as_ref().map(child);
        let span = match (&call.trace, &trace) {
            (Some(parent), Some(own)) => {
                tracing::info_span!("call", trace_id = own.trace, parent_id = parent.span, span_id = own.span)
            }
            _ => tracing::Span::none(),
        };
        let entry = Entry { environment, trace: trace.as_ref(), observer };
        let finished = self.inner.sandbox.call(prepared, entry, name, &arguments).instrument(span.clone()).await;
        drop(permit);
        activity.usage.note(finished.usage, matches!(finished.result, Err(CallError::Limit { .. })));
        let crashed = matches!(finished.result, Err(CallError::Trap { .. }));
        if record.breaker.note(crashed, self.inner.breaker) {
            let BreakerRules { crashes, rest } = self.inner.breaker;
            let (rest, caller) = (duration(rest), &client.name);
            tracing::warn!(
                plugin = plugin.id,
                caller,
                "disabled for {rest} after {crashes} crashes in a row in the calls of this caller (breaker)"
            );
        }
        let result = finished.result.and_then(|output| check_output(&offer, output));
        let result = result.map_err(|error| own_limit(error, plugin, name));
        let finished = Finished { result, ..finished };
        span.in_scope(|| self.log_end(&offer, &finished));
        Answer { result: finished.result.map_err(Failure::Call), usage: Some(finished.usage) }
    }

    /// What the calls of all callers do with this version of a plugin.
    fn activity(&self, plugin: &Arc<Plugin>) -> Arc<Activity> {
        self.inner.activities.of(plugin, || Activity::of(plugin))
    }

    /// Logs how a call ended.
    fn log_end(&self, offer: &Offer, finished: &Finished<Output>) {
        let (plugin, tool, usage) = (&offer.plugin.id, &offer.tool.name, finished.usage);
        for (stream, text) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
            if !text.is_empty() {
                tracing::debug!(plugin, tool, stream, text);
            }
        }
        if finished.log_dropped > 0 {
            let limit = offer.plugin.environment(&offer.definition.tool.name).limits.log.display().iec();
            tracing::warn!(
                plugin,
                tool,
                dropped = finished.log_dropped,
                "dropped log messages beyond {limit} (limits.log)"
            );
        }
        let wall_ms = (usage.wall.as_secs_f64() * 10_000.0).round() / 10.0;
        let Err(error) = &finished.result else {
            tracing::debug!(plugin, tool, wall_ms, fuel = usage.fuel, memory = usage.memory, "call succeeded");
            return;
        };
        let said = line(&error.to_string(), LOGGED);
        match error {
            CallError::Limit { .. } => tracing::warn!(plugin, tool, wall_ms, "call stopped: {said}"),
            CallError::Trap { .. } => {
                // This crash is counted only when the answer is.
                let traps = self.inner.tally.traps() + 1;
                tracing::warn!(plugin, tool, wall_ms, traps, "call crashed: {said}");
            }
            _ => tracing::info!(plugin, tool, wall_ms, "call failed: {said}"),
        }
    }

    /// Logs, for each plugin that was called, the limits that would have sufficed for its recent calls.
    pub(crate) fn log_suggestions(&self) {
        let snapshot = self.inner.catalog.snapshot();
        // A plugin can have several tools.
        let plugins: BTreeMap<&str, &Arc<Plugin>> =
            snapshot.tools.values().map(|offer| (offer.plugin.id.as_str(), &offer.plugin)).collect();
        for (plugin, suggestion) in
            plugins.iter().filter_map(|(id, plugin)| Some((id, self.activity(plugin).usage.suggest()?)))
        {
            tracing::info!(plugin, "suggested limits: {suggestion}");
        }
    }

    async fn snapshot_within(&self, wait: Duration, ready: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let now = self.inner.catalog.snapshot();
        if ready(&now) {
            return now;
        }
        let waited = tokio::time::timeout(wait, self.inner.catalog.wait_for(ready)).await;
        waited.unwrap_or_else(|_| self.inner.catalog.snapshot())
    }

    /// Waits for the plugins that were there at start, as long as the first `tools/list` may.
    pub(crate) async fn complete(&self) {
        let snapshot = self.snapshot_within(self.inner.first_list, |snapshot| snapshot.complete).await;
        if !snapshot.complete {
            let wait = duration(self.inner.first_list);
            let loading = snapshot.plugins.values().filter(|report| report.is_loading()).count();
            tracing::warn!(
                loading,
                "answered tools/list while plugins were still loading, after {wait} (server.first_list)"
            );
        }
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// A new span of the trace, for the call. Without random bytes the parent stands for it.
fn child(parent: &Trace) -> Trace {
    let mut id = [0; 8];
    parent.child(if getrandom::fill(&mut id).is_ok() { id } else { [0; 8] })
}

/// Names the tool in the error if the limit is set for this tool only, because the key to raise then differs.
fn own_limit(error: CallError, plugin: &Plugin, name: &str) -> CallError {
    match error {
        CallError::Limit { limit, .. } if plugin.is_limit_of_tool(name, limit) => {
            CallError::Limit { limit, tool: Some(name.to_owned()) }
        }
        error => error,
    }
}

/// Checks structured content against the tool's output schema, if there is one.
fn check_output(offer: &Offer, output: Output) -> Result<Output, CallError> {
    let Some(schema) = &offer.definition.output else { return Ok(output) };
    let Some(structured) = &output.structured else {
        return Err(CallError::InvalidOutput(
            "structured content is missing, but the tool has an output schema".into(),
        ));
    };
    let violations: Vec<String> = schema.violations(structured).iter().map(ToString::to_string).collect();
    if violations.is_empty() { Ok(output) } else { Err(CallError::InvalidOutput(violations.join("; "))) }
}

/// Also writes a guest's log lines to the host's log.
struct Logged {
    inner: Arc<dyn Observer>,
    offer: Arc<Offer>,
}

impl Observer for Logged {
    fn log(&self, level: LogLevel, message: &str) {
        let (plugin, tool) = (&self.offer.plugin.id, &self.offer.tool.name);
        match level {
            LogLevel::Debug => tracing::debug!(plugin, tool, "{message}"),
            LogLevel::Info | LogLevel::Notice => tracing::info!(plugin, tool, "{message}"),
            LogLevel::Warning => tracing::warn!(plugin, tool, "{message}"),
            LogLevel::Error | LogLevel::Critical | LogLevel::Alert | LogLevel::Emergency => {
                tracing::error!(plugin, tool, "{message}");
            }
        }
        self.inner.log(level, message);
    }

    fn progress(&self, progress: Progress) {
        self.inner.progress(progress);
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

//! A tool call from its name to its checked result: look up, admit, validate, run, validate.
//!
//! It knows neither JSON-RPC nor wasmtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use toolbay_audit::ArgumentsRecord;
use toolbay_catalog::{Catalog, Offer, Plugin, Snapshot};
use toolbay_mcp::{Call, Listings, Options};
use toolbay_model::text::{duration, line};
use toolbay_model::{
    Answer, CallError, Failure, Interrupt, Limit, LogLevel, Observer, Output, Progress, Trace, Violation,
};
use toolbay_sandbox::{Entry, Finished, Sandbox, Unchecked};
use toolbay_schema::Schema;
use tracing::Instrument as _;

use crate::activity::Activity;
use crate::admission::{Admission, ClientPermits, Permit};
use crate::audited::{Audited, CallLine, Denials, Recorder};
use crate::breaker::BreakerRules;
use crate::by_plugin::ByPlugin;
use crate::config::Config;
use crate::learn::Learner;
use crate::offload::{Offload, OffloadShare, TooLate};
use crate::record::Record;
use crate::tally::Tally;
use crate::views::Views;

/// How long a call of an unknown tool waits for plugins that are still loading at startup.
const FIRST_CALL: Duration = Duration::from_secs(10);

/// Largest result that is checked on a guests' thread, in bytes. Cleaning and parsing it takes half a millisecond or so;
/// a guest gives way every 2 ms.
const AT_ONCE: usize = 64 << 10;

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
    offload: Offload,
    activities: ByPlugin<Activity>,
    views: Views,
    listings: Listings,
    tally: Arc<Tally>,
    breaker: BreakerRules,
    /// Proposes grants; `None` unless the operator asked for that.
    learner: Option<Arc<Learner>>,
    audited: Option<Audited>,
    options: Options,
    /// How long `tools/list` waits for plugins that are still loading at startup.
    first_list: Duration,
}

impl Service {
    /// A service of these parts. Must be called on the runtime whose threads do what takes long.
    pub(crate) fn new(
        catalog: Catalog,
        sandbox: Sandbox,
        learner: Option<Learner>,
        audited: Option<Audited>,
        config: &Config,
    ) -> Self {
        let inner = Inner {
            catalog,
            admission: Admission::new(&config.server, sandbox.calls(), config.client_rate_limit),
            sandbox,
            offload: Offload::new(),
            activities: ByPlugin::default(),
            views: Views::default(),
            listings: Listings::default(),
            tally: Arc::default(),
            breaker: config.breaker,
            learner: learner.map(Arc::new),
            audited,
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

    /// The pages of the tool list that were written.
    pub(crate) fn listings(&self) -> &Listings {
        &self.inner.listings
    }

    /// The sandbox in which calls run.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.inner.sandbox
    }

    /// Admission of calls.
    pub(crate) fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    /// The threads for what takes long.
    pub(crate) fn offload(&self) -> &Offload {
        &self.inner.offload
    }

    /// How the protocol is served.
    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Counts of how calls ended.
    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.inner.tally
    }

    /// Ends learning from denials: what was learned is written.
    pub(crate) fn finish_learning(&self) {
        if let Some(learner) = &self.inner.learner {
            learner.finish();
        }
    }

    /// Begins the line of a call in the audit log; `None` if there is no log.
    pub(crate) fn line(&self, client: &ClientPermits, tool: &str) -> Option<CallLine> {
        Some(self.inner.audited.as_ref()?.call(&client.name, tool))
    }

    /// Calls a tool for a client, and tells its line in the audit log what becomes known of it. Must run
    /// on the guests' runtime. Dropping the future cancels the call.
    pub(crate) async fn answer(
        &self,
        client: &ClientPermits,
        threads: &OffloadShare,
        mut call: Call,
        observer: Arc<dyn Observer>,
        mut line: Option<&mut CallLine>,
    ) -> Answer {
        let failed = |failure| Answer { result: Err(failure), usage: None };
        let ready = |snapshot: &Snapshot| snapshot.complete || snapshot.tools.contains_key(&call.tool);
        let snapshot = self.snapshot_within(FIRST_CALL, ready).await;
        let offer = snapshot.tools.get(&call.tool).filter(|_| call.permitted);
        let Some(offer) = offer.map(Arc::clone) else { return failed(Failure::UnknownTool(call.tool)) };
        // From here on, only this tool of the snapshot is needed.
        drop(snapshot);
        if let Some(line) = &mut line {
            line.found(&offer, call.trace.as_ref());
        }
        let missing = |needed: &(&String, &Value)| !call.capabilities.contain(needed.0);
        let missing: Map<_, _> = offer.definition.needs.iter().filter(missing).map(owned).collect();
        if !missing.is_empty() {
            return failed(Failure::MissingCapabilities(missing));
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
        // From here on, whatever is computed for the call is within its time, and holds its permit.
        let deadline = Instant::now() + environment.limits.timeout;
        let work = Work { offload: &self.inner.offload, threads, permit: Arc::new(permit), deadline };
        let recorder = match &line {
            Some(line) => Some(line.audited().recorder(&environment.secrets, client.identity.as_ref(), deadline).await),
            None => None,
        };
        let checked = work.check_arguments(&offer, Value::Object(call.arguments), recorder).await;
        let Ok(Checked { text: arguments, violations, record: of_arguments }) = checked else {
            let error = own_limit(CallError::limit(Limit::Deadline(environment.limits.timeout)), plugin, name);
            tracing::warn!(plugin = plugin.id, tool = offer.tool.name, "call stopped: {error}");
            return failed(Failure::Call(error));
        };
        if let (Some(line), Some(of_arguments)) = (&mut line, of_arguments) {
            line.arguments(of_arguments);
        }
        // Only their text is left.
        call.held.shrink_to(arguments.len());
        if !violations.is_empty() {
            return failed(Failure::InvalidArguments(violations));
        }
        let Some(prepared) = &plugin.component.prepared else {
            return failed(Failure::Call(CallError::Internal("the plugin has no code".to_owned())));
        };
        let learner = self.inner.learner.clone();
        let denials = line.map(|line| line.denials());
        let observer: Arc<dyn Observer> =
            Arc::new(Logged { inner: observer, offer: Arc::clone(&offer), learner, denials });
        let trace = call.trace.as_ref().map(child);
        let span = match (&call.trace, &trace) {
            (Some(parent), Some(own)) => {
                tracing::info_span!("call", trace_id = own.trace, parent_id = parent.span, span_id = own.span)
            }
            _ => tracing::Span::none(),
        };
        let entry = Entry { environment, caller: client.identity.as_ref(), trace: trace.as_ref(), observer, deadline };
        let entered = self.inner.sandbox.call(prepared, entry, name, &arguments).instrument(span.clone()).await;
        let crashed = matches!(entered.result, Err(CallError::Trap { .. }));
        let result = match entered.result {
            Ok(returned) => work.check_output(&offer, returned).instrument(span.clone()).await,
            Err(error) => Err(error),
        };
        let result = match entered.hindered {
            Some(hindrance) => result.map_err(|error| hindrance.explain(error)),
            None => result,
        };
        drop(work);
        activity.usage.note(entered.usage, matches!(result, Err(CallError::Limit { .. })));
        if record.breaker.note(crashed, self.inner.breaker) {
            let BreakerRules { crashes, rest } = self.inner.breaker;
            let (rest, caller) = (duration(rest), &client.name);
            tracing::warn!(
                plugin = plugin.id,
                caller,
                "disabled for {rest} after {crashes} crashes in a row in the calls of this caller (breaker)"
            );
        }
        let result = result.map_err(|error| own_limit(error, plugin, name));
        let Finished { usage, stdout, stderr, log_dropped, .. } = entered;
        let finished = Finished { result, usage, stdout, stderr, log_dropped, hindered: None };
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
                // The tally counts this crash only when the response is sent.
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

    /// Waits for the plugins that existed at startup, for at most `server.first_list`.
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

/// What the host computes for one call: with its permit, until its deadline, and what takes long elsewhere.
struct Work<'a> {
    offload: &'a Offload,
    threads: &'a OffloadShare,
    permit: Arc<Permit>,
    deadline: Instant,
}

/// Arguments that were checked.
struct Checked {
    /// Their JSON text: what the guest reads. Empty if they do not match and nobody records them.
    text: String,
    violations: Vec<Violation>,
    /// What the audit log says of them.
    record: Option<ArgumentsRecord>,
}

impl Work<'_> {
    /// The arguments as text, how they do not match the tool's input schema, and what `recorder` records of them.
    ///
    /// # Errors
    ///
    /// That was not known at the deadline.
    async fn check_arguments(
        &self,
        offer: &Arc<Offer>,
        arguments: Value,
        recorder: Option<Recorder>,
    ) -> Result<Checked, TooLate> {
        // Serialized again: the guest reads exactly what was validated, even if keys were duplicated.
        let glance = offer.definition.input.glance(&arguments).map(|violations| {
            let wanted = violations.is_empty() || recorder.is_some();
            (if wanted { arguments.to_string() } else { String::new() }, violations)
        });
        let glance = match glance {
            Some((text, violations)) if recorder.is_none() || text.len() <= AT_ONCE => {
                let record = recorder.map(|recorder| recorder.record(&text));
                return Ok(Checked { text, violations, record });
            }
            longer => longer,
        };
        let offer = Arc::clone(offer);
        let checked = self.offload.run(self.threads, &self.permit, self.deadline, move |interrupt| {
            let (text, violations) = if let Some(known) = glance {
                known
            } else {
                let violations = offer.definition.input.violations_until(&arguments, interrupt);
                (arguments.to_string(), violations.map_err(|_| TooLate)?)
            };
            let record = recorder.map(|recorder| recorder.record(&text));
            Ok(Checked { text, violations, record })
        });
        checked.await?
    }

    /// What a tool returned, checked against its bounds, the contract and the tool's output schema.
    async fn check_output(&self, offer: &Arc<Offer>, returned: Unchecked) -> Result<Output, CallError> {
        let environment = offer.plugin.environment(&offer.definition.tool.name);
        let output = if returned.size() <= AT_ONCE {
            let output = returned.check(&environment.limits, &Interrupt::at(self.deadline))?;
            match structured(offer, &output)? {
                None => return Ok(output),
                Some((schema, structured)) => {
                    if let Some(violations) = schema.glance(structured) {
                        return judged(output, &violations);
                    }
                }
            }
            Ok(output)
        } else {
            Err(returned)
        };
        let offer = Arc::clone(offer);
        let checked = self.offload.run(self.threads, &self.permit, self.deadline, move |interrupt| {
            let environment = offer.plugin.environment(&offer.definition.tool.name);
            let output = output.or_else(|returned| returned.check(&environment.limits, interrupt))?;
            let Some((schema, structured)) = structured(&offer, &output)? else { return Ok(output) };
            let violations = schema.violations_until(structured, interrupt);
            let violations = violations.map_err(|_| CallError::limit(Limit::Deadline(environment.limits.timeout)))?;
            judged(output, &violations)
        });
        checked.await.unwrap_or_else(|TooLate| Err(CallError::limit(Limit::Deadline(environment.limits.timeout))))
    }
}

/// The tool's output schema and what it is about; `None` if the tool has none.
fn structured<'a>(offer: &'a Offer, output: &'a Output) -> Result<Option<(&'a Schema, &'a Value)>, CallError> {
    match (&offer.definition.output, &output.structured) {
        (None, _) => Ok(None),
        (Some(schema), Some(structured)) => Ok(Some((schema, structured))),
        (Some(_), None) => {
            Err(CallError::InvalidOutput("structured content is missing, but the tool has an output schema".into()))
        }
    }
}

fn judged(output: Output, violations: &[Violation]) -> Result<Output, CallError> {
    if violations.is_empty() {
        return Ok(output);
    }
    let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Err(CallError::InvalidOutput(violations.join("; ")))
}

/// Also writes a guest's log lines to the host's log.
struct Logged {
    inner: Arc<dyn Observer>,
    offer: Arc<Offer>,
    learner: Option<Arc<Learner>>,
    denials: Option<Denials>,
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

    fn denied(&self, what: &str, lines: Option<&str>) {
        let (plugin, tool) = (&self.offer.plugin.id, &self.offer.tool.name);
        if let (Some(learner), Some(lines)) = (&self.learner, lines) {
            learner.note(plugin, lines);
        }
        let line = lines.map(|lines| lines.replace('\n', " and "));
        let remedy = line.map(|line| format!(" To allow it, add to [permissions] in {plugin}.toml: {line}"));
        let remedy = remedy.as_deref().unwrap_or_default();
        tracing::info!(target: "toolbay::denied", plugin, tool, "denied: {what}{remedy}");
        if let Some(denials) = &self.denials {
            denials.note(what, lines);
        }
        self.inner.denied(what, lines);
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

//! A tool call from its name to its checked result: look up, validate, admit, run, validate.
//!
//! Knows neither JSON-RPC nor wasmtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tracing::Instrument as _;

use crate::access::Caller;
use crate::admission::{Admission, Refused};
use crate::catalog::{Catalog, Snapshot, Tool};
use crate::config::Config;
use crate::content::Output;
use crate::plugin::Plugin;
use crate::sandbox::{CallError, Entry, Finished, LogLevel, Observer, Progress, Sandbox, Usage};
use crate::schema::Violation;
use crate::tally::Tally;
use crate::text;
use crate::trace::Trace;

/// How long a question about tools waits for the plugins that were there at
/// start. Clients that list once and never again would otherwise see none; a
/// plugin that hangs delays the first list by no more than this.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// How long a call of an unknown tool waits for them: it would fail otherwise.
const FIRST_CALL: Duration = Duration::from_secs(10);

/// How much of a failure goes into the log, in bytes: guests write these words.
const LOGGED: usize = 1_000;

/// Everything a session needs to serve requests.
pub struct Service {
    catalog: Catalog,
    sandbox: Sandbox,
    admission: Admission,
    tally: Tally,
    config: Config,
}

/// A call as it came from a client.
pub struct Request {
    /// The tool's name, with its prefix.
    pub tool: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// What the client says that it can do.
    pub capabilities: Map<String, Value>,
    /// Where the call belongs in a trace.
    pub trace: Option<Trace>,
}

impl Request {
    /// A call that did not come from a client.
    pub fn local(tool: String, arguments: Map<String, Value>) -> Self {
        Self { tool, arguments, capabilities: Map::new(), trace: None }
    }
}

/// Why a call has no output.
#[derive(Debug)]
pub enum Failure {
    /// There is no such tool.
    UnknownTool(String),
    /// The client did not declare these capabilities, which the tool needs.
    Incapable(Map<String, Value>),
    /// The arguments do not fit the tool's input schema.
    BadArguments(Vec<Violation>),
    /// It was not let in.
    Refused(Refused),
    /// It was run and failed.
    Call(CallError),
}

impl Failure {
    /// The word by which it is counted.
    fn kind(&self) -> &'static str {
        match self {
            Self::UnknownTool(_) => "unknown-tool",
            Self::Incapable(_) => "incapable",
            Self::BadArguments(_) => "invalid-arguments",
            Self::Refused(refused) => refused.why.kind(),
            Self::Call(error) => match error {
                CallError::InvalidArguments(_) => "invalid-arguments",
                CallError::Failed(_) | CallError::Cancelled => "failed",
                // The peer is told that these are traps as well; they are no crashes.
                CallError::Limit(limit) if limit.kind() == "trap" => "limit",
                CallError::Limit(limit) => limit.kind(),
                CallError::Trap { .. } => "trap",
                CallError::InvalidOutput(_) => "invalid-output",
                CallError::Internal(_) => "internal",
            },
        }
    }
}

/// How a call ended.
#[derive(Debug)]
pub struct Answer {
    /// The output, or why there is none.
    pub result: Result<Output, Failure>,
    /// What it used, if a guest was entered.
    pub usage: Option<Usage>,
}

impl Service {
    /// Puts the parts together.
    pub fn new(catalog: Catalog, sandbox: Sandbox, config: Config) -> Self {
        let admission = Admission::new(&config.server, config.client_rate_limit);
        Self { catalog, sandbox, admission, tally: Tally::default(), config }
    }

    /// What is offered.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Where calls run.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Who may run them now.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// What became of the calls so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The configuration that is in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether every plugin that was there at start has been tried.
    pub fn is_complete(&self) -> bool {
        self.catalog.snapshot().complete
    }

    /// The snapshot to list: while the server starts, it waits a little for the plugins that are there.
    pub async fn listing(&self) -> Arc<Snapshot> {
        self.snapshot_within(FIRST_LOOK, |snapshot| snapshot.complete).await
    }

    /// Calls a tool. The future must run on the guests' runtime; dropping it cancels the call.
    pub async fn call(&self, caller: &Caller, request: Request, observer: Arc<dyn Observer>) -> Answer {
        let running = self.tally.begin(&request.tool);
        let answer = self.answer(caller, request, observer).await;
        running.end(answer.result.as_ref().err().map(Failure::kind));
        answer
    }

    async fn answer(&self, caller: &Caller, request: Request, observer: Arc<dyn Observer>) -> Answer {
        let ready = |snapshot: &Snapshot| snapshot.complete || snapshot.tools.contains_key(&request.tool);
        let snapshot = self.snapshot_within(FIRST_CALL, ready).await;
        // What a caller may not use is not there for it.
        let tool = snapshot.tools.get(&request.tool).filter(|tool| caller.may_use(&tool.name));
        let Some(tool) = tool.map(Arc::clone) else {
            return Answer { result: Err(Failure::UnknownTool(request.tool)), usage: None };
        };
        // Nothing of the snapshot but this tool is needed from here on.
        drop(snapshot);
        let missing = |needed: &(&String, &Value)| !request.capabilities.contains_key(needed.0);
        let missing: Map<_, _> = tool.definition.needs.iter().filter(missing).map(owned).collect();
        if !missing.is_empty() {
            return Answer { result: Err(Failure::Incapable(missing)), usage: None };
        }
        let arguments = Value::Object(request.arguments);
        let violations = tool.definition.input.violations(&arguments);
        if !violations.is_empty() {
            return Answer { result: Err(Failure::BadArguments(violations)), usage: None };
        }
        let permit = match self.admission.admit(&caller.client, &tool.plugin, &tool.definition.name).await {
            Ok(permit) => permit,
            Err(refused) => return Answer { result: Err(Failure::Refused(refused)), usage: None },
        };
        let plugin = &tool.plugin;
        // Written anew and not passed on as it came: what the guest reads is
        // what was checked, even where keys were doubled.
        let arguments = arguments.to_string();
        let observer: Arc<dyn Observer> = Arc::new(Logged { inner: observer, tool: Arc::clone(&tool) });
        let name = &tool.definition.name;
        let trace = request.trace.as_ref().map(Trace::child);
        let span = match (&request.trace, &trace) {
            (Some(parent), Some(own)) => {
                tracing::info_span!("call", trace_id = own.trace, parent_id = parent.span, span_id = own.span)
            }
            _ => tracing::Span::none(),
        };
        let entry = Entry { environment: plugin.environment(name), trace: trace.as_ref(), observer };
        let finished =
            self.sandbox.call(&plugin.component.prepared, entry, name, &arguments).instrument(span.clone()).await;
        drop(permit);
        plugin.usage.note(finished.usage, matches!(finished.result, Err(CallError::Limit(_))));
        let crashed = matches!(finished.result, Err(CallError::Trap { .. }));
        if plugin.breaker.note(crashed, plugin.terms.breaker) {
            let rest = humantime::format_duration(plugin.terms.breaker.rest);
            tracing::warn!(plugin = plugin.id, "crashed call after call and rests for {rest}");
        }
        let result = finished.result.and_then(|output| check_output(&tool, output));
        let finished = Finished { result, ..finished };
        span.in_scope(|| self.log_end(&tool, &finished));
        Answer { result: finished.result.map_err(Failure::Call), usage: Some(finished.usage) }
    }

    /// What the operator should know of a call that ended.
    fn log_end(&self, tool: &Tool, finished: &Finished<Output>) {
        let (plugin, tool, usage) = (&tool.plugin.id, &tool.name, finished.usage);
        for (stream, text) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
            if !text.is_empty() {
                tracing::debug!(plugin, tool, stream, text);
            }
        }
        let wall_ms = (usage.wall.as_secs_f64() * 10_000.0).round() / 10.0;
        let Err(error) = &finished.result else {
            tracing::debug!(plugin, tool, wall_ms, fuel = usage.fuel, memory = usage.memory, "done");
            return;
        };
        let said = text::line(&error.to_string(), LOGGED);
        match error {
            CallError::Limit(_) => tracing::warn!(plugin, tool, wall_ms, "{said}"),
            CallError::Trap { .. } => {
                let traps = self.tally.trap();
                tracing::warn!(plugin, tool, wall_ms, traps, "crashed: {said}");
            }
            _ => tracing::info!(plugin, tool, wall_ms, "failed: {said}"),
        }
    }

    /// Logs, for each plugin that was called, which limits its last calls would have kept.
    pub fn log_suggestions(&self) {
        let snapshot = self.catalog.snapshot();
        // A plugin has several tools, which are not beside each other.
        let plugins: BTreeMap<&str, &Arc<Plugin>> =
            snapshot.tools.values().map(|tool| (tool.plugin.id.as_str(), &tool.plugin)).collect();
        for (plugin, suggestion) in plugins.iter().filter_map(|(id, plugin)| Some((id, plugin.usage.suggest()?))) {
            tracing::info!(plugin, "suggested limits: {suggestion}");
        }
    }

    async fn snapshot_within(&self, wait: Duration, ready: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let now = self.catalog.snapshot();
        if ready(&now) {
            return now;
        }
        let waited = tokio::time::timeout(wait, self.catalog.wait_for(ready)).await;
        waited.unwrap_or_else(|_| self.catalog.snapshot())
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// A tool with an output schema must return structured content that fits it.
fn check_output(tool: &Tool, output: Output) -> Result<Output, CallError> {
    let Some(schema) = &tool.definition.output else { return Ok(output) };
    let Some(structured) = &output.structured else {
        return Err(CallError::InvalidOutput("no structured content, which the tool's output schema asks for".into()));
    };
    let violations: Vec<String> = schema.violations(structured).iter().map(ToString::to_string).collect();
    if violations.is_empty() { Ok(output) } else { Err(CallError::InvalidOutput(violations.join("; "))) }
}

/// Puts a guest's log lines into the host's log as well.
struct Logged {
    inner: Arc<dyn Observer>,
    tool: Arc<Tool>,
}

impl Observer for Logged {
    fn log(&self, level: LogLevel, message: &str) {
        let (plugin, tool) = (&self.tool.plugin.id, &self.tool.name);
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

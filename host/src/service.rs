//! A tool call from its name to its checked result: look up, validate, admit, run, validate.
//!
//! Knows neither JSON-RPC nor wasmtime.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::admission::{Admission, Client, Refused};
use crate::catalog::{Catalog, Snapshot, Tool};
use crate::config::Config;
use crate::content::Output;
use crate::sandbox::{CallError, Finished, LogLevel, Observer, Progress, Sandbox, Usage};
use crate::schema::Violation;
use crate::tally::Tally;
use crate::text;

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
}

/// Why a call has no output.
#[derive(Debug)]
pub enum Failure {
    /// There is no such tool.
    UnknownTool(String),
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
    pub async fn call(&self, client: &Client, request: Request, observer: Arc<dyn Observer>) -> Answer {
        let running = self.tally.begin(&request.tool);
        let answer = self.answer(client, request, observer).await;
        running.end(answer.result.as_ref().err().map(Failure::kind));
        answer
    }

    async fn answer(&self, client: &Client, request: Request, observer: Arc<dyn Observer>) -> Answer {
        let ready = |snapshot: &Snapshot| snapshot.complete || snapshot.tools.contains_key(&request.tool);
        let snapshot = self.snapshot_within(FIRST_CALL, ready).await;
        let Some(tool) = snapshot.tools.get(&request.tool).map(Arc::clone) else {
            return Answer { result: Err(Failure::UnknownTool(request.tool)), usage: None };
        };
        // Nothing of the snapshot but this tool is needed from here on.
        drop(snapshot);
        let arguments = Value::Object(request.arguments);
        let violations = tool.definition.input.violations(&arguments);
        if !violations.is_empty() {
            return Answer { result: Err(Failure::BadArguments(violations)), usage: None };
        }
        let permit = match self.admission.admit(client, &tool.plugin, &tool.definition.name).await {
            Ok(permit) => permit,
            Err(refused) => return Answer { result: Err(Failure::Refused(refused)), usage: None },
        };
        let plugin = &tool.plugin;
        // Written anew and not passed on as it came: what the guest reads is
        // what was checked, even where keys were doubled.
        let arguments = arguments.to_string();
        let observer: Arc<dyn Observer> = Arc::new(Logged { inner: observer, tool: Arc::clone(&tool) });
        let name = &tool.definition.name;
        let finished =
            self.sandbox.call(&plugin.component.prepared, plugin.environment(name), observer, name, &arguments).await;
        drop(permit);
        let crashed = matches!(finished.result, Err(CallError::Trap { .. }));
        if plugin.breaker.note(crashed, plugin.terms.breaker) {
            let rest = humantime::format_duration(plugin.terms.breaker.rest);
            tracing::warn!(plugin = plugin.id, "crashed call after call and rests for {rest}");
        }
        let result = finished.result.and_then(|output| check_output(&tool, output));
        let finished = Finished { result, ..finished };
        self.log_end(&tool, &finished);
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

    async fn snapshot_within(&self, wait: Duration, ready: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let now = self.catalog.snapshot();
        if ready(&now) {
            return now;
        }
        let waited = tokio::time::timeout(wait, self.catalog.wait_for(ready)).await;
        waited.unwrap_or_else(|_| self.catalog.snapshot())
    }
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

//! The span of a call: from its place in the queue until its response is written.
//!
//! Attributes have the names of OpenTelemetry's semantic conventions for MCP, and `dev.toolbay.` before what these do not
//! know. Neither arguments nor results are among them, nor whatever else a client makes up.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use toolbay_mcp::{ClientCall, RequestWire};
use toolbay_model::text::line;
use toolbay_model::{CallRequest, CallResult, CallUsage, ErrorKind, TraceContext};
use toolbay_otel::{AttributeMap, AttributeValue, FinishedSpan, SpanEvent, SpanSide, SpanStatus};

use crate::metrics::CallStage;
use crate::outcome::{EndedAs, limit};
use crate::target::CallTarget;
use crate::tracer::SpanTracer;

/// Longest id of a request, in bytes: the client has chosen it.
const LONGEST: usize = 64;

/// How a tool's result says that it failed, in the conventions.
const TOOL_ERROR: &str = "tool_error";

/// The stages of a call that are over, and what each took.
pub(crate) type FinishedStages = [Option<(CallStage, Duration)>; 4];

/// The span of a call. It is passed on when it is dropped, however the call ended.
#[derive(Debug)]
pub(crate) struct CallSpan {
    tracer: SpanTracer,
    caller: Option<String>,
    began: SystemTime,
    clock: Instant,
    own: Option<TraceContext>,
    parent: Option<String>,
    /// What is known before the call is made. Empty if the span is not recorded.
    known: Option<SpanFields>,
    /// Set when the course of the call ends, which only borrows this.
    stages: Mutex<Option<(Duration, FinishedStages)>>,
    ending: Option<SpanEnd>,
    /// The code of the response if that is an error.
    error: Option<i32>,
}

#[derive(Debug)]
struct SpanFields {
    method: &'static str,
    /// The name of the tool or the prompt.
    target: Option<String>,
    attributes: AttributeMap,
}

#[derive(Clone, Copy, Debug)]
struct SpanEnd {
    outcome: EndedAs,
    limit: Option<&'static str>,
    usage: Option<CallUsage>,
}

impl CallSpan {
    /// The span of a call of this caller, which has its place in the queue.
    pub(crate) fn queued(tracer: &SpanTracer, caller: &str) -> Self {
        Self {
            tracer: tracer.clone(),
            caller: tracer.name(caller),
            began: SystemTime::now(),
            clock: Instant::now(),
            own: None,
            parent: None,
            known: None,
            stages: Mutex::default(),
            ending: None,
            error: None,
        }
    }

    /// The call is made.
    pub(crate) fn begin(&mut self, call: &ClientCall) {
        let Some(own) = self.tracer.begin(call.trace.as_ref()) else { return };
        self.parent = call.trace.as_ref().map(|parent| parent.span.clone());
        if own.is_sampled() {
            self.known = Some(self.known(call));
        }
        self.own = Some(own);
    }

    fn known(&mut self, call: &ClientCall) -> SpanFields {
        let method = match &call.request {
            CallRequest::Tool { .. } => "tools/call",
            CallRequest::Prompt { .. } => "prompts/get",
            CallRequest::Resource { .. } => "resources/read",
            CallRequest::Completion(_) => "completion/complete",
        };
        let mut attributes: AttributeMap = vec![("mcp.method.name".into(), method.into())];
        if matches!(call.request, CallRequest::Tool { .. }) {
            attributes.push(("gen_ai.operation.name".into(), "execute_tool".into()));
        }
        if let Some(RequestWire { id, revision, is_local }) = call.wire.as_deref() {
            let transport = if *is_local { "pipe" } else { "tcp" };
            attributes.push(("mcp.protocol.version".into(), (*revision).into()));
            attributes.push(("jsonrpc.request.id".into(), line(id, LONGEST).into()));
            attributes.push(("network.transport".into(), transport.into()));
            if !is_local {
                attributes.push(("network.protocol.name".into(), "http".into()));
            }
        }
        let session = call.session.map(|number| ("mcp.session.id".into(), self.tracer.session(number).into()));
        attributes.extend(session);
        attributes.extend(self.caller.take().map(|caller| ("enduser.id".into(), caller.into())));
        SpanFields { method, target: None, attributes }
    }

    /// It is known what is called.
    pub(crate) fn found(&mut self, target: &CallTarget) {
        let Some(known) = &mut self.known else { return };
        let name = match target {
            CallTarget::Tool(_) => "gen_ai.tool.name",
            CallTarget::Prompt(_) => "gen_ai.prompt.name",
            // Of many, it is their template: what a client puts into it are arguments.
            CallTarget::Resource(_) => "mcp.resource.uri",
        };
        if !matches!(target, CallTarget::Resource(_)) {
            known.target = Some(target.shown().to_owned());
        }
        known.attributes.push((name.into(), target.shown().into()));
        known.attributes.push(("dev.toolbay.plugin".into(), target.plugin().id.as_str().into()));
    }

    /// The span, if there is one.
    pub(crate) fn own(&self) -> Option<&TraceContext> {
        self.own.as_ref()
    }

    /// The span for the log, whose lines name it.
    pub(crate) fn logged(&self) -> tracing::Span {
        match (&self.own, &self.parent) {
            (Some(own), Some(parent)) => {
                tracing::info_span!("call", trace_id = own.trace, parent_id = parent, span_id = own.span)
            }
            (Some(own), None) => tracing::info_span!("call", trace_id = own.trace, span_id = own.span),
            (None, _) => tracing::Span::none(),
        }
    }

    /// The course of the call is over, which had begun at `began`.
    pub(crate) fn staged(&self, began: Instant, stages: FinishedStages) {
        if self.known.is_some() {
            let after = began.saturating_duration_since(self.clock);
            *self.stages.lock().unwrap_or_else(PoisonError::into_inner) = Some((after, stages));
        }
    }

    /// The call has ended.
    pub(crate) fn end(&mut self, answer: &CallResult) {
        self.ending = Some(SpanEnd { outcome: EndedAs::of(answer), limit: limit(answer), usage: answer.usage });
    }

    /// The response is written; `error` is its code if it is an error.
    pub(crate) fn encoded(mut self, error: Option<i32>) {
        self.error = error;
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        let (Some(own), Some(SpanFields { method, target, mut attributes })) = (self.own.take(), self.known.take())
        else {
            return;
        };
        let given_up = if std::thread::panicking() { ErrorKind::Internal } else { ErrorKind::Cancelled };
        let ended = self.ending.unwrap_or(SpanEnd { outcome: EndedAs::Failed(given_up), limit: None, usage: None });
        let events = self.stages.lock().unwrap_or_else(PoisonError::into_inner).take();
        let events = events.map(|(after, stages)| course(self.began + after, &stages, &mut attributes));
        let error = failure(method, ended.outcome, self.error);
        attributes.push(("dev.toolbay.outcome".into(), ended.outcome.as_str().into()));
        attributes.extend(ended.limit.map(|key| ("dev.toolbay.limit".into(), key.into())));
        attributes.extend(ended.usage.iter().flat_map(used));
        attributes.extend(self.error.map(|code| ("rpc.response.status_code".into(), code.to_string().into())));
        let status = if error.is_some() { SpanStatus::Error(String::new()) } else { SpanStatus::Unset };
        attributes.extend(error.map(|error| ("error.type".into(), error.into_owned().into())));
        let name = target.map_or_else(|| method.to_owned(), |target| format!("{method} {target}"));
        let parent = self.parent.take();
        self.tracer.ended(FinishedSpan {
            own,
            parent_is_remote: parent.is_some(),
            parent,
            name,
            kind: SpanSide::Server,
            began: self.began,
            ended: self.began + self.clock.elapsed(),
            attributes,
            events: events.unwrap_or_default(),
            status,
        });
    }
}

/// When each stage began, of those that began at `at`; what they took becomes attributes.
fn course(mut at: SystemTime, stages: &FinishedStages, attributes: &mut AttributeMap) -> Vec<SpanEvent> {
    let mut events = Vec::new();
    for (stage, took) in stages.iter().flatten() {
        let (event, wall) = match stage {
            CallStage::Queue => ("dev.toolbay.queue", "dev.toolbay.queue.wall_ms"),
            CallStage::Prepare => ("dev.toolbay.prepare", "dev.toolbay.prepare.wall_ms"),
            CallStage::Guest => ("dev.toolbay.guest", "dev.toolbay.guest.wall_ms"),
            CallStage::Check => ("dev.toolbay.check", "dev.toolbay.check.wall_ms"),
        };
        events.push(SpanEvent { at, name: event });
        attributes.push((wall.into(), AttributeValue::Real(took.as_secs_f64() * 1e3)));
        at += *took;
    }
    events
}

/// What a call used.
fn used(usage: &CallUsage) -> AttributeMap {
    let CallUsage { fuel, memory, http_requests, tcp_connections, .. } = *usage;
    let mut used: AttributeMap = vec![
        ("dev.toolbay.fuel".into(), AttributeValue::count(fuel)),
        ("dev.toolbay.memory.peak".into(), AttributeValue::count(memory)),
    ];
    let network = [("dev.toolbay.http.requests", http_requests), ("dev.toolbay.tcp.connections", tcp_connections)];
    used.extend(network.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.into(), AttributeValue::count(n))));
    used
}

/// The kind of error that a call ended with, in the words of the conventions; `None` if it ended with none.
fn failure(method: &str, outcome: EndedAs, code: Option<i32>) -> Option<Cow<'static, str>> {
    match (outcome, code) {
        (_, Some(code)) => Some(code.to_string().into()),
        (EndedAs::Failed(kind @ (ErrorKind::Cancelled | ErrorKind::Internal)), None) => Some(kind.as_str().into()),
        (EndedAs::Failed(_), None) if method == "tools/call" => Some(TOOL_ERROR.into()),
        (EndedAs::Failed(kind), None) => Some(kind.as_str().into()),
        (EndedAs::Ok | EndedAs::Asked, None) => None,
    }
}

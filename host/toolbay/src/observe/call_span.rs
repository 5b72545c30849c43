//! Span of a call, from its arrival in the queue until its response is written.
//!
//! Attributes follow OpenTelemetry's semantic conventions for MCP. Names that these do not define
//! start with `dev.toolbay.`. The attributes contain no arguments, results or other free text of a
//! client.

use std::borrow::Cow;
use std::time::{Duration, Instant, SystemTime};

use toolbay_mcp::{ClientCall, RequestMetadata};
use toolbay_model::text::clean_line;
use toolbay_model::{CallRequest, CallUsage, ErrorKind, TraceContext};
use toolbay_otel::{AttributeMap, AttributeValue, FinishedSpan, SpanEvent, SpanSide, SpanStatus};

use crate::approval::call_target::CallTarget;
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_outcome::{OutcomeLabel, limit_key};
use crate::observe::metrics::CallStage;
use crate::observe::stage_times::FinishedStages;
use crate::observe::tracer::SpanTracer;

/// Maximum length of a request ID, which the client chooses, in bytes.
const MAX_REQUEST_ID_BYTES: usize = 64;

/// Error type of a failed tool result, as defined by the conventions.
const TOOL_ERROR_TYPE: &str = "tool_error";

/// The span of a call. Exported on drop, however the call ended.
#[derive(Debug)]
pub(crate) struct CallSpan {
    tracer: SpanTracer,
    caller: Option<String>,
    began: SystemTime,
    clock: Instant,
    context: Option<TraceContext>,
    parent: Option<String>,
    /// Attributes known before the call starts; `None` if the span is not recorded.
    fields: Option<SpanFields>,
    /// The stages, and the time from the start of the span to the first of them.
    stages: Option<(Duration, FinishedStages)>,
    ending: Option<SpanEnd>,
    /// The code of the response, if it is an error.
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
    outcome: OutcomeLabel,
    limit: Option<&'static str>,
    usage: Option<CallUsage>,
}

impl CallSpan {
    /// Creates the span of a queued call of this caller.
    pub(crate) fn new(tracer: &SpanTracer, caller: &str) -> Self {
        Self {
            tracer: tracer.clone(),
            caller: tracer.caller_name(caller),
            began: SystemTime::now(),
            clock: Instant::now(),
            context: None,
            parent: None,
            fields: None,
            stages: None,
            ending: None,
            error: None,
        }
    }

    /// Starts the call.
    fn start(&mut self, call: &ClientCall) {
        let Some(own) = self.tracer.begin(call.trace.as_ref()) else {
            return;
        };
        self.parent = call.trace.as_ref().map(|parent| parent.span_id.clone());
        if own.is_sampled() {
            self.fields = Some(self.span_fields(call));
        }
        self.context = Some(own);
    }

    fn span_fields(&mut self, call: &ClientCall) -> SpanFields {
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
        if let Some(RequestMetadata {
            id,
            revision,
            is_local,
        }) = call.metadata.as_deref()
        {
            let transport = if *is_local { "pipe" } else { "tcp" };
            attributes.push(("mcp.protocol.version".into(), (*revision).into()));
            attributes.push((
                "jsonrpc.request.id".into(),
                clean_line(id, MAX_REQUEST_ID_BYTES).into(),
            ));
            attributes.push(("network.transport".into(), transport.into()));
            if !is_local {
                attributes.push(("network.protocol.name".into(), "http".into()));
            }
        }
        let session = call.session.map(|number| {
            (
                "mcp.session.id".into(),
                self.tracer.session_label(number).into(),
            )
        });
        attributes.extend(session);
        attributes.extend(
            self.caller
                .take()
                .map(|caller| ("enduser.id".into(), caller.into())),
        );
        SpanFields {
            method,
            target: None,
            attributes,
        }
    }

    /// Records the target of the call.
    fn set_target(&mut self, target: &CallTarget) {
        let Some(known) = &mut self.fields else {
            return;
        };
        let name = match target {
            CallTarget::Tool(_) => "gen_ai.tool.name",
            CallTarget::Prompt(_) => "gen_ai.prompt.name",
            // For a templated resource, this is the template: its parameters are arguments.
            CallTarget::Resource(_) => "mcp.resource.uri",
        };
        if !matches!(target, CallTarget::Resource(_)) {
            known.target = Some(target.public_name().to_owned());
        }
        known
            .attributes
            .push((name.into(), target.public_name().into()));
        known.attributes.push((
            "dev.toolbay.plugin".into(),
            target.plugin().id.as_str().into(),
        ));
    }

    /// Returns the trace context of the span, if there is one.
    pub(crate) fn context(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    /// Returns the span that the call's log lines refer to.
    pub(crate) fn log_span(&self) -> tracing::Span {
        match (&self.context, &self.parent) {
            (Some(own), Some(parent)) => {
                tracing::info_span!(
                    "call",
                    trace_id = own.trace_id,
                    parent_id = parent,
                    span_id = own.span_id
                )
            }
            (Some(own), None) => {
                tracing::info_span!("call", trace_id = own.trace_id, span_id = own.span_id)
            }
            (None, _) => tracing::Span::none(),
        }
    }

    /// Exports the span, if it is recorded. Later calls do nothing.
    fn export(&mut self) {
        let (
            Some(own),
            Some(SpanFields {
                method,
                target,
                mut attributes,
            }),
        ) = (self.context.take(), self.fields.take())
        else {
            return;
        };
        let given_up = if std::thread::panicking() {
            ErrorKind::Internal
        } else {
            ErrorKind::Cancelled
        };
        let ended = self.ending.unwrap_or(SpanEnd {
            outcome: OutcomeLabel::Failed(given_up),
            limit: None,
            usage: None,
        });
        let stages = self.stages.take();
        let events = stages
            .map(|(after, stages)| stage_events(self.began + after, &stages, &mut attributes));
        let error = error_type(method, ended.outcome, self.error);
        attributes.push(("dev.toolbay.outcome".into(), ended.outcome.as_str().into()));
        attributes.extend(
            ended
                .limit
                .map(|key| ("dev.toolbay.limit".into(), key.into())),
        );
        attributes.extend(ended.usage.iter().flat_map(usage_attributes));
        attributes.extend(
            self.error
                .map(|code| ("rpc.response.status_code".into(), code.to_string().into())),
        );
        let status = if error.is_some() {
            SpanStatus::Error(String::new())
        } else {
            SpanStatus::Unset
        };
        attributes.extend(error.map(|error| ("error.type".into(), error.into_owned().into())));
        let name = target.map_or_else(|| method.to_owned(), |target| format!("{method} {target}"));
        let parent = self.parent.take();
        self.tracer.export(FinishedSpan {
            context: own,
            parent_is_remote: parent.is_some(),
            parent,
            name,
            kind: SpanSide::Server,
            started_at: self.began,
            ended_at: self.began + self.clock.elapsed(),
            attributes,
            events: events.unwrap_or_default(),
            status,
        });
    }
}

impl CallSink for CallSpan {
    fn record(&mut self, event: &CallEvent<'_>) {
        match event {
            CallEvent::Started(call) => self.start(call),
            CallEvent::Resolved { target, .. } => self.set_target(target),
            CallEvent::StagesEnded { times, now } if self.fields.is_some() => {
                let after = times.began.saturating_duration_since(self.clock);
                self.stages = Some((after, times.stages(*now)));
            }
            CallEvent::Ended(answer) => {
                self.ending = Some(SpanEnd {
                    outcome: OutcomeLabel::from_answer(answer),
                    limit: limit_key(answer),
                    usage: answer.usage,
                });
            }
            CallEvent::Responded(error) => {
                self.error = *error;
                self.export();
            }
            _ => {}
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        self.export();
    }
}

/// Returns the start of each stage as an event. The first one started at `at`. Adds the durations
/// to the attributes.
fn stage_events(
    mut at: SystemTime,
    stages: &FinishedStages,
    attributes: &mut AttributeMap,
) -> Vec<SpanEvent> {
    let mut events = Vec::new();
    for (stage, took) in stages.iter().flatten() {
        let (event, duration) = match stage {
            CallStage::Queue => (
                "dev.toolbay.stage.queue",
                "dev.toolbay.stage.queue.duration",
            ),
            CallStage::Prepare => (
                "dev.toolbay.stage.prepare",
                "dev.toolbay.stage.prepare.duration",
            ),
            CallStage::Guest => (
                "dev.toolbay.stage.guest",
                "dev.toolbay.stage.guest.duration",
            ),
            CallStage::Check => (
                "dev.toolbay.stage.check",
                "dev.toolbay.stage.check.duration",
            ),
        };
        events.push(SpanEvent { at, name: event });
        attributes.push((duration.into(), AttributeValue::Float(took.as_secs_f64())));
        at += *took;
    }
    events
}

/// Returns the resource usage of a call as attributes.
fn usage_attributes(usage: &CallUsage) -> AttributeMap {
    let CallUsage {
        fuel,
        memory,
        http_requests,
        tcp_connections,
        ..
    } = *usage;
    let mut used: AttributeMap = vec![
        ("dev.toolbay.fuel".into(), AttributeValue::from_count(fuel)),
        (
            "dev.toolbay.memory.peak".into(),
            AttributeValue::from_count(memory),
        ),
    ];
    let network = [
        ("dev.toolbay.http.request_count", http_requests),
        ("dev.toolbay.tcp.connection_count", tcp_connections),
    ];
    used.extend(
        network
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| (name.into(), AttributeValue::from_count(n))),
    );
    used
}

/// Returns the error type of a call as defined by the conventions; `None` if it succeeded.
fn error_type(method: &str, outcome: OutcomeLabel, code: Option<i32>) -> Option<Cow<'static, str>> {
    match (outcome, code) {
        (_, Some(code)) => Some(code.to_string().into()),
        (OutcomeLabel::Failed(kind @ (ErrorKind::Cancelled | ErrorKind::Internal)), None) => {
            Some(kind.as_str().into())
        }
        (OutcomeLabel::Failed(_), None) if method == "tools/call" => Some(TOOL_ERROR_TYPE.into()),
        (OutcomeLabel::Failed(kind), None) => Some(kind.as_str().into()),
        (OutcomeLabel::Ok | OutcomeLabel::InputRequired, None) => None,
    }
}

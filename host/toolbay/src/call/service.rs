//! Runs a request from its name to its checked result: lookup, admission, validation, execution,
//! validation.
//!
//! This module depends neither on JSON-RPC nor on wasmtime.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use bytesize::ByteSize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout_at;
use toolbay_audit::ArgumentsRecord;
use toolbay_catalog::{
    Catalog, MatchBudget, MatchBudgetExhausted, Plugin, Snapshot, ToolOffer, VIEW_LINKS,
};
use toolbay_console::{ApprovalNote, ApprovalOutcome, DenialNote, ServerActivity};
use toolbay_mcp::{
    ClientCall, PageCache, ProtocolOptions, RequestStates, ResourceUpdates, TaskTable,
    TrafficSource, TransportTraffic,
};
use toolbay_model::text::{clean_line, format_duration};
use toolbay_model::{
    ArgumentCheck, CallError, CallFailure, CallJournal, CallObserver, CallReply, CallRequest,
    CallResult, CallerIdentity, CompletionReference, CompletionRequest, DenialKind, Digest,
    ErrorKind, HttpExchange, Interrupt, Limit, Limits, LogLevel, ProgressUpdate, Question,
    QuestionKind, QuestionKindSet, QuestionRound, QuestionSubject, ResourceItem, SchemaViolation,
    TargetKind, ToolOutput, TraceContext,
};
use toolbay_otel::Telemetry;
use toolbay_sandbox::{CallContext, FinishedCall, PluginRequest, Sandbox, UncheckedReply};
use toolbay_schema::ValueConversion;
use toolbay_state::StateDatabase;
use tracing::Instrument as _;

use crate::approval::call_target::{
    CallTarget, PlainTarget, TOO_EXPENSIVE_MESSAGE, empty_completions,
};
use crate::approval::ruling::{
    self, ApprovalCase, ApprovalDecision, ApprovalRuling, ApprovalScope, ApprovalStep,
    ApprovalValidity, REMEMBERED_OUTCOME, WaitingApprovals,
};
use crate::call::admission::{CallAdmission, ClientPermits};
use crate::call::argument_conversion::{self, ConvertedArguments};
use crate::call::call_recording::{RecordedRun, RecordingSink};
use crate::call::caller_state::CallerRecord;
use crate::call::learn::GrantLearner;
use crate::call::list_digests::ViewDigests;
use crate::call::offload::{OffloadPool, OffloadShare, TooLate};
use crate::call::output_validation::{pair_with_schema, reject_violations};
use crate::call::plugin_activity::PluginActivity;
use crate::call::stored_results::{
    ResultCapacity, ResultRead, StoredResults, truncate_message, truncate_output,
};
use crate::config::Config;
use crate::limits::breaker::BreakerRules;
use crate::limits::call_permit::CallPermit;
use crate::limits::plugin_table::ByPlugin;
use crate::observe::audit_records::{ArgumentRecorder, AuditSink, CallLine, DenialRecorder};
use crate::observe::call_observers::CallObservers;
use crate::observe::call_span::CallSpan;
use crate::observe::console_report::ConsoleSink;
use crate::observe::metrics::{ServerMetrics, ToolMeter};
use crate::observe::outcome_counters::CallCounters;
use crate::observe::stage_timer::StageTimer;
use crate::observe::tracer::SpanTracer;

/// Maximum time that a call of an unknown tool waits for plugins that are still loading at startup.
const FIRST_CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a result that is checked on a guests' thread, in bytes. Cleaning and parsing it
/// takes about half a millisecond; a guest yields every 2 ms.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// Maximum time that reading a stored result waits for a thread.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Memory for reading a result, in multiples of its size: the text and its JSON, in which some
/// characters are longer.
const ENCODED_SIZE_FACTOR: u64 = 3;

/// Maximum length of a logged failure, in bytes: parts of it come from guests.
const MAX_LOGGED_BYTES: usize = 1_000;

/// Shared state for handling requests: catalog, sandbox, admission and configuration. Cheap to
/// clone.
#[derive(Clone)]
pub(crate) struct CallService {
    inner: Arc<ServiceState>,
}

struct ServiceState {
    catalog: Catalog,
    sandbox: Sandbox,
    admission: CallAdmission,
    offload: OffloadPool,
    activities: ByPlugin<PluginActivity>,
    views: ViewDigests,
    listings: PageCache,
    updates: ResourceUpdates,
    request_states: RequestStates,
    tasks: TaskTable,
    results: StoredResults,
    tally: Arc<CallCounters>,
    metrics: Option<Arc<ServerMetrics>>,
    /// State of plugins, of which only the size is queried here.
    state: Option<StateDatabase>,
    breaker: BreakerRules,
    /// Default check of arguments, if neither the caller nor the grant specifies one.
    arguments: ArgumentCheck,
    /// Proposes grants; `None` unless the operator enabled it.
    learner: Option<Arc<GrantLearner>>,
    audited: Option<AuditSink>,
    /// Data source of the console, once there is one.
    watch: OnceLock<Arc<ServerActivity>>,
    /// Calls that wait for an approval in the console; `None` if there can be no console.
    waiting: Option<WaitingApprovals>,
    /// True if the contents of calls are reported to the console.
    contents: bool,
    recorded: Option<RecordingSink>,
    telemetry: Option<Telemetry>,
    tracer: Option<SpanTracer>,
    /// Source of the counts of what clients have open over HTTP.
    traffic: Mutex<Option<TrafficSource>>,
    options: ProtocolOptions,
    /// The operator's instructions for models. Replaced when the configuration changes.
    instructions: ArcSwap<String>,
    /// Maximum time that `tools/list` waits for plugins that are still loading at startup.
    startup_wait: Duration,
}

/// Observers of calls; `None` for those that are disabled.
#[derive(Default)]
pub(crate) struct ServiceObservers {
    /// Proposes grants from denials.
    pub(crate) learner: Option<GrantLearner>,
    /// Writes the audit log.
    pub(crate) audited: Option<AuditSink>,
    /// Counts calls for operators.
    pub(crate) metrics: Option<Arc<ServerMetrics>>,
    /// Reports calls to the console.
    pub(crate) watch: Option<Arc<ServerActivity>>,
    /// Records calls.
    pub(crate) recorded: Option<RecordingSink>,
    /// Exports telemetry to a collector.
    pub(crate) telemetry: Option<Telemetry>,
}

/// State of the protocol layer that its host owns.
pub(crate) struct ProtocolState {
    /// Subscriptions to changes of resources.
    pub(crate) updates: ResourceUpdates,
    /// Sealing of the states of calls that wait for answers.
    pub(crate) request_states: RequestStates,
}

impl CallService {
    /// Creates a service from these parts. Must be called on the runtime whose threads run slow
    /// computations.
    pub(crate) fn new(
        catalog: Catalog,
        sandbox: Sandbox,
        seen: ServiceObservers,
        protocol: ProtocolState,
        config: &Config,
    ) -> Self {
        let ServiceObservers {
            learner,
            audited,
            metrics,
            watch,
            recorded,
            telemetry,
        } = seen;
        let ProtocolState {
            updates,
            request_states,
        } = protocol;
        let inner = ServiceState {
            catalog,
            admission: CallAdmission::new(
                &config.server,
                sandbox.max_calls(),
                config.caller_rate_limit,
                config.http.listen.is_some(),
            ),
            sandbox,
            offload: OffloadPool::new(),
            activities: ByPlugin::default(),
            views: ViewDigests::default(),
            listings: PageCache::default(),
            updates,
            request_states,
            tasks: TaskTable::new(config.tasks.options()),
            results: StoredResults::new(config.results),
            tally: Arc::new(CallCounters::new(metrics.clone())),
            metrics,
            state: config.database(),
            breaker: config.circuit_breaker,
            arguments: config.server.arguments,
            learner: learner.map(Arc::new),
            audited,
            watch: watch.map_or_else(OnceLock::new, OnceLock::from),
            waiting: config
                .console
                .is_possible(&config.http)
                .then(WaitingApprovals::default),
            contents: config.console.contents,
            recorded,
            tracer: telemetry
                .as_ref()
                .and_then(|telemetry| SpanTracer::new(telemetry, &config.otel)),
            telemetry,
            traffic: Mutex::default(),
            options: config.protocol_options(),
            instructions: ArcSwap::from_pointee(config.server.instructions.clone()),
            startup_wait: config.server.startup_wait,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the catalog of tools.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    /// Returns the digests of the lists, per rights of callers.
    pub(crate) fn views(&self) -> &ViewDigests {
        &self.inner.views
    }

    /// Returns the cached pages of the tool list.
    pub(crate) fn listings(&self) -> &PageCache {
        &self.inner.listings
    }

    /// Returns the subscriptions to changes of resources.
    pub(crate) fn updates(&self) -> &ResourceUpdates {
        &self.inner.updates
    }

    /// Returns the sealing of the states of calls that wait for answers.
    pub(crate) fn request_states(&self) -> &RequestStates {
        &self.inner.request_states
    }

    /// Returns the calls that continue as tasks.
    pub(crate) fn tasks(&self) -> &TaskTable {
        &self.inner.tasks
    }

    /// Returns the sandbox in which calls run.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.inner.sandbox
    }

    /// Returns the admission of calls.
    pub(crate) fn admission(&self) -> &CallAdmission {
        &self.inner.admission
    }

    /// Returns the threads for slow computations.
    pub(crate) fn offload(&self) -> &OffloadPool {
        &self.inner.offload
    }

    /// Returns the options of the protocol.
    pub(crate) fn options(&self) -> &ProtocolOptions {
        &self.inner.options
    }

    /// Returns the operator's instructions for models.
    pub(crate) fn instructions(&self) -> Arc<String> {
        self.inner.instructions.load_full()
    }

    /// Replaces the operator's instructions for models.
    pub(crate) fn set_instructions(&self, text: String) {
        self.inner.instructions.store(Arc::new(text));
    }

    /// Returns the counts of call outcomes.
    pub(crate) fn tally(&self) -> &Arc<CallCounters> {
        &self.inner.tally
    }

    /// Returns the metrics, if they are enabled.
    pub(crate) fn metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.inner.metrics.as_ref()
    }

    /// Returns the telemetry, if it is enabled.
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.inner.telemetry.as_ref()
    }

    /// Returns the tracer, if spans are exported.
    pub(crate) fn tracer(&self) -> Option<&SpanTracer> {
        self.inner.tracer.as_ref()
    }

    /// Returns what clients have open over HTTP, or `None` if HTTP is not served.
    pub(crate) fn traffic(&self) -> Option<TransportTraffic> {
        self.lock_traffic_source()
            .as_ref()
            .and_then(|source| source())
    }

    /// Registers the source of these counts.
    pub(crate) fn set_traffic_source(&self, source: TrafficSource) {
        *self.lock_traffic_source() = Some(source);
    }

    // Held while a few counts are read for metrics.
    fn lock_traffic_source(&self) -> MutexGuard<'_, Option<TrafficSource>> {
        self.inner
            .traffic
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the audit log, if there is one.
    pub(crate) fn audited(&self) -> Option<&AuditSink> {
        self.inner.audited.as_ref()
    }

    /// Returns the number of lines that the audit log lost, or `None` if there is no log.
    pub(crate) fn lost_lines(&self) -> Option<u64> {
        self.inner.audited.as_ref().map(AuditSink::lost_lines)
    }

    /// Returns the size of the plugins' state in bytes, or `None` if there is none. Blocks.
    pub(crate) fn state_size(&self) -> Option<u64> {
        self.inner.state.as_ref()?.size()
    }

    /// Ends learning from denials, and writes the proposals.
    pub(crate) fn finish_learning(&self) {
        if let Some(learner) = &self.inner.learner {
            learner.finish();
        }
    }

    /// Starts the audit log line of a call. Returns `None` if there is no log.
    pub(crate) fn start_audit_line(&self, client: &ClientPermits, tool: &str) -> Option<CallLine> {
        Some(self.inner.audited.as_ref()?.start_line(&client.name, tool))
    }

    /// Starts the report of a call to the console. Returns `None` if there is no console.
    pub(crate) fn start_console_sink(
        &self,
        client: &ClientPermits,
        tool: &str,
    ) -> Option<ConsoleSink> {
        Some(ConsoleSink::start(
            self.watch()?,
            &client.name,
            tool,
            self.inner.contents,
        ))
    }

    /// Returns the data source of the console, or `None` if there is no console.
    pub(crate) fn watch(&self) -> Option<&Arc<ServerActivity>> {
        self.inner.watch.get()
    }

    /// Attaches a console, which receives events from this point on. There is at most one.
    pub(crate) fn set_watch(&self, watch: &Arc<ServerActivity>) {
        drop(self.inner.watch.set(Arc::clone(watch)));
    }

    /// Returns the calls that wait for an approval in the console, or `None` if there can be no
    /// console.
    pub(crate) fn waiting_approvals(&self) -> Option<&WaitingApprovals> {
        self.inner.waiting.as_ref()
    }

    /// Runs a call for a client and reports it to its observers. Must run on the guests' runtime.
    /// Dropping the future cancels the call. The call's permit is left in `held`, because the
    /// caller must hold it until it has encoded the answer as JSON.
    #[expect(
        clippy::too_many_lines,
        reason = "the steps of a call in their order, each of them a line or two"
    )]
    pub(crate) async fn run_call(
        &self,
        client: &ClientPermits,
        threads: &OffloadShare,
        mut call: ClientCall,
        observer: Arc<dyn CallObserver>,
        noted: &mut CallObservers,
        held: &mut Option<Arc<CallPermit>>,
    ) -> CallResult {
        let CallObservers {
            counted,
            line,
            noticed,
            span,
        } = noted;
        let mut line = line.as_mut();
        let failed = |failure| CallResult {
            result: Err(failure),
            usage: None,
        };
        let unknown = |request: &CallRequest| {
            failed(CallFailure::Unknown(
                request.kind(),
                request.target().to_owned(),
            ))
        };
        if !call.permitted {
            // Neither the answer nor its timing reveals whether the target exists.
            return unknown(&call.request);
        }
        let quick = |snapshot: &Snapshot| {
            CallTarget::find(
                snapshot,
                &call.request,
                &mut MatchBudget::new(MatchBudget::MAX_INLINE),
            )
        };
        let ready =
            |snapshot: &Snapshot| snapshot.complete || matches!(quick(snapshot), Ok(Some(_)));
        let snapshot = self.wait_for_snapshot(FIRST_CALL_TIMEOUT, ready).await;
        let target = match quick(&snapshot) {
            Ok(target) => target,
            Err(MatchBudgetExhausted) => {
                self.find_resource(threads, Arc::clone(&snapshot), &call.request)
                    .await
            }
        };
        // The rest of the snapshot is no longer needed.
        drop(snapshot);
        let Some(target) = target else {
            return unknown(&call.request);
        };
        let target = Arc::new(target);
        if let Some(span) = span {
            span.set_target(&target);
        }
        let span = span.as_ref();
        let own = span.and_then(CallSpan::context);
        if let Some(line) = &mut line {
            line.set_plugin(target.plugin(), own.or(call.trace.as_ref()));
        }
        if let Some(noticed) = noticed {
            noticed.set_plugin(&target.plugin().id);
        }
        let plugin = target.plugin();
        let activity = self.activity(plugin);
        let meter = counted.set_meter(self.find_meter(&target, &call.request, &activity));
        let metered = self.inner.metrics.as_deref().zip(meter);
        let missing = missing_capabilities(&target, &call);
        if !missing.is_empty() {
            return failed(CallFailure::MissingCapabilities(missing));
        }
        let (name, edition, environment) =
            (target.name(), edition_digest(plugin), target.environment());
        if call.journal.edition.is_some_and(|known| known != edition) {
            return failed(CallFailure::Outdated);
        }
        let lenient = self
            .inner
            .arguments
            .with_overrides([call.arguments, plugin.terms.argument_check])
            == ArgumentCheck::Lenient;
        if let Some(violations) = take_form_violations(&mut call, lenient) {
            let example = target.example().map(str::to_owned);
            return failed(CallFailure::InvalidArguments {
                violations,
                example,
            });
        }
        if !activity.pace.is_quick() {
            self.inner.sandbox.move_to_guest_runtime().await;
        }
        let mut course = StageTimer::start(&activity.pace, metered, span);
        let record = client
            .records
            .get_or_insert_with(plugin, || CallerRecord::new(plugin));
        let memory = environment.limits.memory;
        let permit = match self
            .inner
            .admission
            .admit(client, &activity, &record, (target.kind(), name), memory)
            .await
        {
            Ok(permit) => permit,
            Err(rejection) => return failed(CallFailure::Rejected(rejection)),
        };
        // From here on, all computation for the call counts toward its deadline and holds its
        // permit.
        let permit = Arc::clone(held.insert(Arc::new(permit)));
        let work = self.host_work(client, threads, permit, &environment.limits);
        course.record_admission(work.admitted);
        let identity = client.identity.as_ref();
        let full = line
            .as_ref()
            .is_some_and(|line| line.sink().records_full_arguments());
        let contents = noticed.as_ref().is_some_and(ConsoleSink::includes_contents);
        let recorder = if line.is_some() || contents {
            Some(
                ArgumentRecorder::open(
                    full || contents,
                    &environment.secrets,
                    identity,
                    work.deadline,
                )
                .await,
            )
        } else {
            None
        };
        let plain = target.static_answer(&call.request);
        let checked = work
            .check_request(&target, call.request, recorder, lenient)
            .await;
        let Ok(CheckedRequest {
            request,
            violations,
            record: of_arguments,
            converted,
        }) = checked
        else {
            let error = with_tool_of_limit(
                CallError::limit(Limit::Deadline(work.timeout)),
                plugin,
                name,
            );
            tracing::warn!(
                plugin = plugin.id,
                target = target.public_name(),
                "call stopped: {error}"
            );
            return failed(CallFailure::Call(error));
        };
        let digest = of_arguments
            .as_ref()
            .and_then(|of_arguments| of_arguments.digest);
        if let Some(of_arguments) = of_arguments {
            if let Some(noticed) = noticed {
                noticed.set_arguments(&of_arguments);
            }
            if let Some(line) = &mut line {
                line.set_arguments(of_arguments);
            }
        }
        // Only the text of the request and the data of an earlier run remain.
        call.held.shrink_to(request.size() + call.journal.size());
        if !violations.is_empty() {
            let example = target.example().map(str::to_owned);
            return failed(CallFailure::InvalidArguments {
                violations,
                example,
            });
        }
        let converted = argument_conversion::with_corrections(&call.corrected, converted);
        if !converted.is_empty() {
            let (tool, caller, changed) = (
                target.public_name(),
                &client.name,
                argument_conversion::describe_conversions(&converted),
            );
            tracing::info!(
                plugin = plugin.id,
                tool,
                caller,
                "arguments converted: {changed}"
            );
            if let Some(line) = &mut line {
                line.set_conversions(&converted);
            }
        }
        // All checks that can reject a call without a guest or a person are done.
        if let Some(line) = &mut line
            && let Err(rejection) = line.admit(work.deadline).await
        {
            return failed(CallFailure::Rejected(rejection));
        }
        if let Some(plain) = plain {
            let observer = self.log_observer(
                observer,
                &target,
                line.as_deref().map(CallLine::denial_recorder),
            );
            let result = work.read_file(plain, request, &target).await;
            return CallResult {
                result: result.map(|reply| apply_view_grant(&target, reply, &*observer)),
                usage: None,
            };
        }
        let Some(code) = &plugin.component.code else {
            return failed(CallFailure::Call(CallError::Internal(
                "the plugin has no code".to_owned(),
            )));
        };
        let case = ApprovalCase::for_target(
            &target,
            &record.approvals,
            ApprovalScope::for_request(call.session, identity),
            call.answerable,
        );
        let told = (line.as_deref_mut(), self.watch().map(Arc::as_ref));
        let journal = match work
            .approve(case, call.journal, (request.text(), digest), client, told)
            .await
        {
            Ok(journal) => journal,
            Err(result) => {
                return CallResult {
                    result: result.map(|reply| with_edition(reply, edition)),
                    usage: None,
                };
            }
        };
        let observer = self.log_observer(
            observer,
            &target,
            line.as_deref().map(CallLine::denial_recorder),
        );
        // A call with its own span has that in the log from the start.
        let (trace, span) = own.map_or_else(
            || start_trace(call.trace.as_ref()),
            |own| (Some(own.clone()), tracing::Span::none()),
        );
        let taping =
            self.start_recording(&target, &request, &journal, call.answerable, work.room.kept);
        let entry = CallContext {
            environment,
            caller: identity,
            trace: trace.as_ref(),
            observer: Arc::clone(&observer),
            answerable: call.answerable,
            journal,
            deadline: work.deadline,
            tape: taping.as_ref().map(RecordedRun::tape).unwrap_or_default(),
            place: Some(&*work.permit),
        };
        let asked = request.guest_request(name);
        let running = async {
            match code.open(work.deadline, environment.limits.timeout).await {
                Ok(prepared) => self.inner.sandbox.call(&prepared, entry, asked).await,
                Err(error) => FinishedCall::without_guest(Err(error)),
            }
        };
        let entered = running.instrument(span.clone()).await;
        course.record_finish(&entered);
        let crashed = matches!(entered.result, Err(CallError::Trap { .. }));
        let (result, size) = work
            .check_result(&target, entered.result)
            .instrument(span.clone())
            .await;
        if let Some(taping) = taping.filter(|_| entered.entered.is_some()) {
            taping.finish(&result, size, entered.usage);
        }
        let result = match entered.hindered {
            Some(hindrance) => result.map_err(|error| hindrance.explain(error)),
            None => result,
        };
        activity.usage.record(
            entered.usage,
            matches!(result, Err(CallError::Limit { .. })),
        );
        self.record_crash(&record, &activity, crashed, &plugin.id, &client.name);
        let result = result.map_err(|error| with_tool_of_limit(error, plugin, name));
        let FinishedCall {
            usage,
            entered,
            waited,
            idled,
            stdout,
            stderr,
            log_dropped,
            ..
        } = entered;
        let finished = FinishedCall {
            result,
            usage,
            entered,
            waited,
            idled,
            stdout,
            stderr,
            log_dropped,
            hindered: None,
        };
        span.in_scope(|| self.log_end(&target, &finished, &course));
        let mut result = work
            .finish_reply(&target, &request, finished.result, size, &*observer)
            .await;
        if let Ok(CallReply::Tool(output)) = &mut result {
            argument_conversion::add_to_meta(&mut output.meta, &converted);
        }
        CallResult {
            result: result.map(|reply| with_edition(reply, edition)),
            usage: Some(usage),
        }
    }

    /// Returns the context of the host's computations for one call. Its deadline starts now.
    fn host_work<'a>(
        &'a self,
        client: &'a ClientPermits,
        threads: &'a OffloadShare,
        permit: Arc<CallPermit>,
        limits: &Limits,
    ) -> HostWork<'a> {
        let (offload, results, timeout) =
            (&self.inner.offload, &self.inner.results, limits.timeout);
        let room = results.capacity(client, limits);
        let admitted = Instant::now();
        HostWork {
            offload,
            threads,
            permit,
            admitted,
            deadline: admitted + timeout,
            timeout,
            results,
            client,
            room,
        }
    }

    /// Starts to record a call, if its tool is recorded.
    fn start_recording(
        &self,
        target: &CallTarget,
        request: &ReadyRequest,
        journal: &Arc<CallJournal>,
        answerable: QuestionKindSet,
        kept: Option<ByteSize>,
    ) -> Option<RecordedRun> {
        let (Some(recorded), CallTarget::Tool(offer)) = (&self.inner.recorded, target) else {
            return None;
        };
        recorded.start_call(offer, request.text(), journal, answerable, kept)
    }

    /// Returns the meter of a call's target, if metrics are enabled.
    fn find_meter(
        &self,
        target: &CallTarget,
        request: &CallRequest,
        activity: &PluginActivity,
    ) -> Option<Arc<ToolMeter>> {
        let tools = &self.inner.metrics.as_ref()?.tools;
        Some(match (target, request) {
            (_, CallRequest::Completion(_)) => Arc::clone(&tools.completions),
            (CallTarget::Tool(offer), _) => activity.meters.tool_meter(&offer.tool, tools),
            (CallTarget::Prompt(_), _) => Arc::clone(&tools.prompts),
            (CallTarget::Resource(_), _) => Arc::clone(&tools.resources),
        })
    }

    /// Records a call that ended while it waited for a person's approval: its client cancelled it
    /// or disconnected.
    pub(crate) fn record_withdrawn(
        &self,
        caller: &str,
        asked: &QuestionSubject,
        began: SystemTime,
    ) {
        let QuestionSubject {
            plugin,
            tool,
            arguments,
        } = asked;
        let word = ErrorKind::Cancelled.as_str();
        tracing::info!(plugin, tool, caller, "approval: {word}");
        let snapshot = self.catalog().snapshot();
        let offer = snapshot
            .tools
            .get(tool)
            .filter(|offer| offer.plugin.id == *plugin);
        let meter = offer
            .zip(self.inner.metrics.as_ref())
            .map(|(offer, metrics)| {
                self.activity(&offer.plugin)
                    .meters
                    .tool_meter(&offer.tool, &metrics.tools)
            });
        // Each observer reports the cancellation when it is dropped.
        self.tally().begin(tool).set_meter(meter);
        if let Some(audited) = self.audited() {
            let mut line = audited.start_line(caller, tool);
            if let Some(offer) = offer {
                line.set_plugin(&offer.plugin, None);
            }
            line.set_arguments(ArgumentsRecord {
                digest: Some(*arguments),
                ..ArgumentsRecord::default()
            });
            line.record_withdrawal(ApprovalDecision {
                word,
                waited: began.elapsed().ok(),
                by: None,
            });
        }
        let Some(watch) = self.watch() else { return };
        ConsoleSink::start(watch, caller, tool, false).set_plugin(plugin);
        watch.record_approval(ApprovalNote {
            at: SystemTime::now(),
            caller: caller.to_owned(),
            plugin: plugin.clone(),
            tool: tool.clone(),
            status: word,
            by: None,
            arguments: Some(*arguments),
            time_limit: Duration::ZERO,
        });
    }

    /// Returns the state of a call whose approval was just given. By now, the plugin or its grant
    /// can have changed, or the plugin can be suspended.
    pub(crate) fn check_allowed(
        &self,
        plugin: &str,
        tool: &str,
        asked: Option<Digest>,
    ) -> ApprovalOutcome {
        let snapshot = self.catalog().snapshot();
        match snapshot.tools.get(tool).map(|offer| &offer.plugin) {
            Some(now)
                if now.id == plugin && asked.is_none_or(|asked| asked == edition_digest(now)) =>
            {
                if self.activity(now).suspension.is_suspended() {
                    ApprovalOutcome::Suspended
                } else {
                    ApprovalOutcome::Done
                }
            }
            _ => ApprovalOutcome::Outdated,
        }
    }

    /// Returns the stored result that a request reads, if it is one that was too large for its
    /// client.
    pub(crate) fn find_stored_result(
        &self,
        client: &ClientPermits,
        request: &CallRequest,
    ) -> Option<ResultRead> {
        let CallRequest::Resource { uri } = request else {
            return None;
        };
        self.inner.results.find(&client.name, uri)
    }

    /// Reads such a result, once `start_audit_line` has room for it. The permit is left in `held`,
    /// as by [`CallService::run_call`].
    pub(crate) async fn read_stored_result(
        &self,
        client: &ClientPermits,
        threads: &OffloadShare,
        reading: ResultRead,
        line: Option<&mut CallLine>,
        held: &mut Option<Arc<CallPermit>>,
    ) -> CallResult {
        self.inner.sandbox.move_to_guest_runtime().await;
        let size = reading.size();
        // Once as read, and once as encoded.
        let memory = ByteSize::b(size as u64)
            .as_u64()
            .saturating_mul(ENCODED_SIZE_FACTOR);
        let permit = match self
            .inner
            .admission
            .admit_host(client, ByteSize::b(memory))
            .await
        {
            Ok(permit) => permit,
            Err(rejection) => {
                return CallResult {
                    result: Err(CallFailure::Rejected(rejection)),
                    usage: None,
                };
            }
        };
        let permit = Arc::clone(held.insert(Arc::new(permit)));
        let deadline = Instant::now() + READ_TIMEOUT;
        if let Some(line) = line
            && let Err(rejection) = line.admit(deadline).await
        {
            return CallResult {
                result: Err(CallFailure::Rejected(rejection)),
                usage: None,
            };
        }
        let read = if size <= MAX_INLINE_BYTES {
            Ok(reading.read())
        } else {
            self.inner
                .offload
                .run(threads, &permit, deadline, move |_| reading.read())
                .await
        };
        let result = match read {
            Ok(Ok(items)) => Ok(CallReply::Resource(items)),
            Ok(Err(why)) => Err(CallError::InvalidArguments(why.to_string())),
            Err(TooLate) => Err(CallError::limit(Limit::Deadline(READ_TIMEOUT))),
        };
        CallResult {
            result: result.map_err(CallFailure::Call),
            usage: None,
        }
    }

    /// Wraps an observer with one that also logs what the call reports and the uses that it was
    /// denied.
    fn log_observer(
        &self,
        inner: Arc<dyn CallObserver>,
        target: &Arc<CallTarget>,
        denials: Option<DenialRecorder>,
    ) -> Arc<dyn CallObserver> {
        let (learner, metrics) = (self.inner.learner.clone(), self.inner.metrics.clone());
        let (watch, tracer) = (self.watch().cloned(), self.inner.tracer.clone());
        Arc::new(LogObserver {
            inner,
            target: Arc::clone(target),
            learner,
            metrics,
            watch,
            tracer,
            denials,
            steps: Mutex::new(MatchBudget::new(MatchBudget::PER_URI)),
        })
    }

    /// Records whether a call crashed. Logs a warning if that disables the plugin for its caller.
    fn record_crash(
        &self,
        record: &CallerRecord,
        activity: &PluginActivity,
        crashed: bool,
        plugin: &str,
        caller: &str,
    ) {
        if record.breaker.record_outcome(crashed, self.inner.breaker) {
            let BreakerRules {
                crashes,
                disable_duration,
            } = self.inner.breaker;
            activity
                .suspension
                .record_disabled(caller, disable_duration);
            let duration = format_duration(disable_duration);
            tracing::warn!(
                plugin,
                caller,
                "disabled for {duration} after {crashes} crashes in a row in the calls of this caller (circuit_breaker)"
            );
        }
    }

    /// Returns the state that all callers of this version of a plugin share.
    pub(crate) fn activity(&self, plugin: &Arc<Plugin>) -> Arc<PluginActivity> {
        self.inner.activities.get_or_insert_with(plugin, || {
            PluginActivity::new(plugin, self.inner.admission.new_plugin_places(plugin))
        })
    }

    /// Logs the end of a call.
    fn log_end(
        &self,
        target: &CallTarget,
        finished: &FinishedCall<Option<CallReply>>,
        course: &StageTimer<'_>,
    ) {
        let (plugin, tool, usage) = (&target.plugin().id, target.public_name(), finished.usage);
        for (stream, text) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
            if !text.is_empty() {
                tracing::debug!(plugin, tool, stream, text);
            }
        }
        if finished.log_dropped > 0 {
            let limit = target.environment().limits.log.display().iec();
            tracing::warn!(
                plugin,
                tool,
                dropped = finished.log_dropped,
                "dropped log messages beyond {limit} (limits.log)"
            );
        }
        let wall_ms = (usage.wall.as_secs_f64() * 10_000.0).round() / 10.0;
        let Err(error) = &finished.result else {
            let (fuel, memory) = (usage.fuel, usage.memory);
            tracing::debug!(
                plugin,
                tool,
                wall_ms,
                fuel,
                memory,
                stages = course.log_summary(),
                "call succeeded"
            );
            return;
        };
        let said = clean_line(&error.to_string(), MAX_LOGGED_BYTES);
        match error {
            CallError::Limit { .. } => {
                tracing::warn!(plugin, tool, wall_ms, "call stopped: {said}");
            }
            CallError::Trap { .. } => {
                // The counters include this crash only when the response is sent.
                let traps = self.inner.tally.trap_count() + 1;
                tracing::warn!(plugin, tool, wall_ms, traps, "call crashed: {said}");
            }
            _ => tracing::info!(plugin, tool, wall_ms, "call failed: {said}"),
        }
    }

    /// Logs, for each plugin that was called, the limits that would have sufficed for its recent
    /// calls.
    pub(crate) fn log_suggestions(&self) {
        let snapshot = self.inner.catalog.snapshot();
        let plugins = plugins_by_id(&snapshot);
        for (plugin, suggestion) in plugins
            .iter()
            .filter_map(|(id, plugin)| Some((id, self.activity(plugin).usage.suggest()?)))
        {
            tracing::info!(plugin, "suggested limits: {suggestion}");
        }
    }

    async fn wait_for_snapshot(
        &self,
        wait: Duration,
        ready: impl Fn(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        let now = self.inner.catalog.snapshot();
        if ready(&now) {
            return now;
        }
        let waited = tokio::time::timeout(wait, self.inner.catalog.wait_for(ready)).await;
        waited.unwrap_or_else(|_| self.inner.catalog.snapshot())
    }

    /// Finds the resource of a request whose URI takes long to compare with the templates, on
    /// another thread.
    async fn find_resource(
        &self,
        threads: &OffloadShare,
        snapshot: Arc<Snapshot>,
        request: &CallRequest,
    ) -> Option<CallTarget> {
        let uri = request.target().to_owned();
        let compare = move || {
            let found = snapshot.find_resource(&uri, &mut MatchBudget::new(MatchBudget::PER_URI));
            found
                .unwrap_or_else(|MatchBudgetExhausted| {
                    tracing::debug!("{TOO_EXPENSIVE_MESSAGE}");
                    None
                })
                .cloned()
                .map(CallTarget::Resource)
        };
        self.offload().run_bounded(threads, compare).await.flatten()
    }

    /// Waits until the tool with this name is available, like a call does.
    pub(crate) async fn wait_for_tool(&self, tool: &str) {
        drop(
            self.wait_for_snapshot(FIRST_CALL_TIMEOUT, |snapshot| {
                snapshot.complete || snapshot.tools.contains_key(tool)
            })
            .await,
        );
    }

    /// Waits for the plugins that existed at startup, for at most `server.startup_wait`.
    pub(crate) async fn wait_until_complete(&self) {
        let snapshot = self
            .wait_for_snapshot(self.inner.startup_wait, |snapshot| snapshot.complete)
            .await;
        if !snapshot.complete {
            let wait = format_duration(self.inner.startup_wait);
            let loading = snapshot
                .plugins
                .values()
                .filter(|report| report.is_loading())
                .count();
            tracing::warn!(
                loading,
                "answered a list while plugins were still loading, after {wait} (server.startup_wait)"
            );
        }
    }
}

/// Returns the plugins that offer anything, by id.
pub(crate) fn plugins_by_id(snapshot: &Snapshot) -> BTreeMap<&str, &Arc<Plugin>> {
    let tools = snapshot.tools.values().map(|offer| &offer.plugin);
    let prompts = snapshot.prompts.values().map(|offer| &offer.plugin);
    let resources = snapshot
        .resources
        .values()
        .chain(snapshot.templates.values())
        .map(|offer| &offer.plugin);
    // A plugin can have several of each.
    tools
        .chain(prompts)
        .chain(resources)
        .map(|plugin| (plugin.id.as_str(), plugin))
        .collect()
}

fn clone_entry((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Returns the reply, with the edition of the plugin that must handle the answers to its questions.
fn with_edition(reply: CallReply, edition: Digest) -> CallReply {
    match reply {
        CallReply::Questions(mut interview) => {
            interview.journal.edition = Some(edition);
            CallReply::Questions(interview)
        }
        reply => reply,
    }
}

/// Returns what was wrong with the arguments when the request was read, as far as it counts.
fn take_form_violations(call: &mut ClientCall, lenient: bool) -> Option<Vec<SchemaViolation>> {
    let mut violations: Vec<SchemaViolation> = call
        .unreadable
        .take()
        .map(|violation| *violation)
        .into_iter()
        .collect();
    if !lenient {
        violations.append(&mut call.corrected);
    }
    (!violations.is_empty()).then_some(violations)
}

/// Returns the capabilities that a target requires and the client of a call did not declare.
fn missing_capabilities(target: &CallTarget, call: &ClientCall) -> Map<String, Value> {
    target
        .required_capabilities()
        .iter()
        .filter(|(name, _)| !call.capabilities.contains(name))
        .map(clone_entry)
        .collect()
}

/// Restricts what a reply says about views. For a view that was read, removes what the grant does
/// not allow it to access. In a tool's result, removes references to views.
fn apply_view_grant(
    target: &CallTarget,
    mut reply: CallReply,
    observer: &dyn CallObserver,
) -> CallReply {
    if let CallReply::Tool(output) = &mut reply {
        remove_view_links(output);
    }
    let (CallTarget::Resource(offer), CallReply::Resource(items)) = (target, &mut reply) else {
        return reply;
    };
    let grant = &offer.plugin.terms.context.permissions.ui;
    for ResourceItem { resource, meta } in items {
        for denied in offer.entry.limit_meta(&resource.uri, meta, grant) {
            let what = format!(
                "The view {} may not have {denied}.",
                clean_line(&resource.uri, MAX_LOGGED_BYTES)
            );
            observer.denied(DenialKind::View, &what, Some(&denied.remedy()));
        }
        if resource.mime_type.is_none() {
            resource.mime_type.clone_from(&offer.resource().mime_type);
        }
    }
    reply
}

/// Removes the members that name a view from a result. The tool's definition has them, after it was
/// checked that the plugin owns the view.
fn remove_view_links(output: &mut ToolOutput) {
    for member in VIEW_LINKS {
        output.meta.remove(member);
    }
}

/// Creates the trace of a call within that of its request, and a log span with the ids of both.
fn start_trace(parent: Option<&TraceContext>) -> (Option<TraceContext>, tracing::Span) {
    let Some(parent) = parent else {
        return (None, tracing::Span::none());
    };
    let own = child_trace(parent);
    let span = tracing::info_span!(
        "call",
        trace_id = own.trace,
        parent_id = parent.span,
        span_id = own.span
    );
    (Some(own), span)
}

/// Creates a new span of the trace for the call. Without random bytes, the parent's span is used.
fn child_trace(parent: &TraceContext) -> TraceContext {
    let mut id = [0; 8];
    parent.child(if getrandom::fill(&mut id).is_ok() {
        id
    } else {
        [0; 8]
    })
}

/// Adds the tool's name to the error if the limit is set for this tool only, because that changes
/// the key to raise.
fn with_tool_of_limit(error: CallError, plugin: &Plugin, name: &str) -> CallError {
    match error {
        CallError::Limit { limit, .. } if plugin.is_limit_of_tool(name, limit) => {
            CallError::Limit {
                limit,
                tool: Some(name.to_owned()),
            }
        }
        error => error,
    }
}

/// Context of the host's computations for one call: its permit, its deadline, and threads for slow
/// ones.
struct HostWork<'a> {
    offload: &'a OffloadPool,
    threads: &'a OffloadShare,
    permit: Arc<CallPermit>,
    /// Time of admission.
    admitted: Instant,
    deadline: Instant,
    /// Maximum duration of the call.
    timeout: Duration,
    results: &'a StoredResults,
    client: &'a ClientPermits,
    /// Sizes that the call's result may have.
    room: ResultCapacity,
}

/// A request whose arguments were checked.
struct CheckedRequest {
    request: ReadyRequest,
    violations: Vec<SchemaViolation>,
    /// Record of the arguments for the audit log.
    record: Option<ArgumentsRecord>,
    /// Arguments that were converted because their form did not match the schema.
    converted: Vec<ValueConversion>,
}

/// A request in the form that a guest receives.
enum ReadyRequest {
    /// A tool, with its arguments as JSON text. Empty if they do not match and are not recorded.
    Tool(String),
    /// A prompt, with its arguments by name.
    Prompt(BTreeMap<String, String>),
    /// A resource.
    Resource(String),
    /// A completion. Its reference has the prompt's name within the plugin, or the resource's
    /// template.
    Completion(CompletionRequest),
}

impl ReadyRequest {
    /// Returns the size of the remaining data of the request, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Tool(text) | Self::Resource(text) => text.len(),
            Self::Prompt(arguments) => total_size(arguments),
            Self::Completion(asked) => asked.value.len() + total_size(&asked.context),
        }
    }

    /// Returns the arguments of a tool as JSON text.
    fn text(&self) -> &str {
        match self {
            Self::Tool(arguments) => arguments,
            Self::Prompt(_) | Self::Resource(_) | Self::Completion(_) => "",
        }
    }

    /// Returns the request to the guest, with the target's name within the plugin.
    fn guest_request<'a>(&'a self, name: &'a str) -> PluginRequest<'a> {
        match self {
            Self::Tool(arguments) => PluginRequest::Tool { name, arguments },
            Self::Prompt(arguments) => PluginRequest::Prompt { name, arguments },
            Self::Resource(uri) => PluginRequest::Resource { uri },
            Self::Completion(request) => PluginRequest::Completion(request),
        }
    }
}

fn total_size(texts: &BTreeMap<String, String>) -> usize {
    texts
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}

impl HostWork<'_> {
    /// Returns the request in the form that a guest receives, the violations of its arguments, and
    /// their record by `recorder`.
    ///
    /// # Errors
    ///
    /// The check did not complete before the deadline.
    async fn check_request(
        &self,
        target: &Arc<CallTarget>,
        request: CallRequest,
        recorder: Option<ArgumentRecorder>,
        lenient: bool,
    ) -> Result<CheckedRequest, TooLate> {
        let (request, violations) = match (request, &**target) {
            (CallRequest::Tool { arguments, .. }, CallTarget::Tool(offer)) => {
                return self
                    .check_arguments(offer, Value::Object(arguments), recorder, lenient)
                    .await;
            }
            (CallRequest::Prompt { arguments, .. }, CallTarget::Prompt(offer)) => {
                let violations = offer.entry.violations(&arguments);
                (ReadyRequest::Prompt(arguments), violations)
            }
            (CallRequest::Resource { uri }, _) => (ReadyRequest::Resource(uri), Vec::new()),
            (CallRequest::Completion(asked), target) => {
                let reference = match asked.reference {
                    CompletionReference::Prompt(_) => {
                        CompletionReference::Prompt(target.name().to_owned())
                    }
                    CompletionReference::Resource(_) => {
                        CompletionReference::Resource(target.name().to_owned())
                    }
                };
                (
                    ReadyRequest::Completion(CompletionRequest { reference, ..asked }),
                    Vec::new(),
                )
            }
            // The lookup returns no other targets for these requests.
            (CallRequest::Tool { .. } | CallRequest::Prompt { .. }, _) => {
                (ReadyRequest::Tool(String::new()), Vec::new())
            }
        };
        let converted = Vec::new();
        let Some(recorder) = recorder else {
            return Ok(CheckedRequest {
                request,
                violations,
                record: None,
                converted,
            });
        };
        let size = request.size();
        let checked = move || {
            let record = Some(recorder.record(&audit_text(&request)));
            CheckedRequest {
                request,
                violations,
                record,
                converted,
            }
        };
        if size <= MAX_INLINE_BYTES {
            return Ok(checked());
        }
        self.offload
            .run(
                self.threads,
                &self.permit,
                self.deadline,
                move |_: &Interrupt| checked(),
            )
            .await
    }

    /// Returns the arguments as text, the violations of the tool's input schema, and their record
    /// by `recorder`.
    ///
    /// # Errors
    ///
    /// The check did not complete before the deadline.
    async fn check_arguments(
        &self,
        offer: &Arc<ToolOffer>,
        mut arguments: Value,
        recorder: Option<ArgumentRecorder>,
        lenient: bool,
    ) -> Result<CheckedRequest, TooLate> {
        // Serialized again: the guest reads exactly what was validated, even if keys were
        // duplicated.
        let input = &offer.definition.input;
        let glance = input.quick_violations(&arguments).and_then(|violations| {
            // Arguments that match are never changed.
            let meant = if lenient && !violations.is_empty() {
                ConvertedArguments::convert(input, &arguments)
            } else {
                None
            };
            let (violations, converted) = match meant {
                Some(ConvertedArguments { value, converted })
                    if input.quick_violations(&value)?.is_empty() =>
                {
                    arguments = value;
                    (Vec::new(), converted)
                }
                _ => (violations, Vec::new()),
            };
            let wanted = violations.is_empty() || recorder.is_some();
            Some((
                if wanted {
                    arguments.to_string()
                } else {
                    String::new()
                },
                violations,
                converted,
            ))
        });
        let glance = match glance {
            Some((text, violations, converted))
                if recorder.is_none() || text.len() <= MAX_INLINE_BYTES =>
            {
                let record = recorder.map(|recorder| recorder.record(&text));
                return Ok(CheckedRequest {
                    request: ReadyRequest::Tool(text),
                    violations,
                    record,
                    converted,
                });
            }
            longer => longer,
        };
        let offer = Arc::clone(offer);
        let checked = self.offload.run(
            self.threads,
            &self.permit,
            self.deadline,
            move |interrupt| {
                let (text, violations, converted) = if let Some(known) = glance {
                    known
                } else {
                    let input = &offer.definition.input;
                    let violations = input
                        .violations_until(&arguments, interrupt)
                        .map_err(|_| TooLate)?;
                    if lenient && !violations.is_empty() {
                        let written = if recorder.is_some() {
                            arguments.to_string()
                        } else {
                            String::new()
                        };
                        match input.convert(&mut arguments) {
                            Some(converted)
                                if input
                                    .violations_until(&arguments, interrupt)
                                    .map_err(|_| TooLate)?
                                    .is_empty() =>
                            {
                                (arguments.to_string(), Vec::new(), converted)
                            }
                            _ => (written, violations, Vec::new()),
                        }
                    } else {
                        (arguments.to_string(), violations, Vec::new())
                    }
                };
                let record = recorder.map(|recorder| recorder.record(&text));
                Ok(CheckedRequest {
                    request: ReadyRequest::Tool(text),
                    violations,
                    record,
                    converted,
                })
            },
        );
        checked.await?
    }

    /// Returns the journal with which to enter the guest, if the call needs no approval or has one.
    /// Logs and records the decision.
    ///
    /// # Errors
    ///
    /// The question to the user, or the failure that ends the call.
    async fn approve(
        &self,
        case: Option<ApprovalCase<'_>>,
        journal: Arc<CallJournal>,
        (arguments, known): (&str, Option<Digest>),
        client: &ClientPermits,
        (line, watch): (Option<&mut CallLine>, Option<&ServerActivity>),
    ) -> Result<Arc<CallJournal>, Result<CallReply, CallFailure>> {
        let Some(case) = case else { return Ok(journal) };
        let own_limit =
            |error| with_tool_of_limit(error, &case.offer.plugin, &case.offer.definition.tool.name);
        let ApprovalRuling { step, decision } = case.decide(Arc::unwrap_or_clone(journal));
        // For a remembered approval, the console has no waiting call to update.
        let watch = watch.filter(|_| {
            decision
                .as_ref()
                .is_some_and(|decision| decision.word != REMEMBERED_OUTCOME)
        });
        let digest = if matches!(step, ApprovalStep::Ask(..)) || watch.is_some() {
            Some(
                self.arguments_digest(arguments, known)
                    .await
                    .map_err(|error| Err(CallFailure::Call(own_limit(error))))?,
            )
        } else {
            None
        };
        let result = match step {
            ApprovalStep::Enter(journal) => Ok(Arc::new(journal)),
            ApprovalStep::End(failure) => Err(Err(failure)),
            ApprovalStep::Ask(mut journal, asks) => {
                let (plugin, tool) = (&case.offer.plugin.id, &case.offer.tool.name);
                let (plugin, tool) = (plugin.clone(), tool.clone());
                journal.subject = digest.map(|arguments| {
                    Box::new(QuestionSubject {
                        plugin,
                        tool,
                        arguments,
                    })
                });
                let counts = ApprovalValidity::from_policy(asks, case.scope);
                match self
                    .approval_question(case.offer, arguments, client.identity.as_ref(), counts)
                    .await
                {
                    Ok(question) => Err(Ok(CallReply::Questions(QuestionRound {
                        questions: vec![question],
                        journal,
                    }))),
                    // The user is not asked then.
                    Err(error) => return Err(Err(CallFailure::Call(own_limit(error)))),
                }
            }
        };
        if let Some(decision) = decision {
            let (plugin, tool, caller, word) = (
                &case.offer.plugin.id,
                &case.offer.tool.name,
                &client.name,
                decision.word,
            );
            let by = decision.by.clone();
            tracing::info!(plugin, tool, caller, by, "approval: {word}");
            if let Some(line) = line {
                line.record_approval(decision).await;
            }
            if let Some(watch) = watch {
                watch.record_approval(ApprovalNote {
                    at: SystemTime::now(),
                    caller: caller.clone(),
                    plugin: plugin.clone(),
                    tool: tool.clone(),
                    status: word,
                    by,
                    arguments: digest,
                    time_limit: case
                        .offer
                        .plugin
                        .tool_context(&case.offer.definition.tool.name)
                        .limits
                        .ask_timeout,
                });
            }
        }
        result
    }

    /// Returns the SHA-256 digest of the arguments, unless it is already `known`.
    ///
    /// # Errors
    ///
    /// The digest was not computed before the deadline.
    async fn arguments_digest(
        &self,
        arguments: &str,
        known: Option<Digest>,
    ) -> Result<Digest, CallError> {
        let hash = |text: &str| Digest::new(Sha256::digest(text).into());
        match known {
            Some(known) => Ok(known),
            None if arguments.len() <= MAX_INLINE_BYTES => Ok(hash(arguments)),
            None => {
                let arguments = arguments.to_owned();
                let hashed = self.offload.run(
                    self.threads,
                    &self.permit,
                    self.deadline,
                    move |_: &Interrupt| hash(&arguments),
                );
                hashed
                    .await
                    .map_err(|TooLate| CallError::limit(Limit::Deadline(self.timeout)))
            }
        }
    }

    /// Returns the question to the user whether to allow a call with these arguments, without
    /// secrets.
    async fn approval_question(
        &self,
        offer: &Arc<ToolOffer>,
        arguments: &str,
        caller: Option<&CallerIdentity>,
        counts: ApprovalValidity,
    ) -> Result<Question, CallError> {
        let late = || CallError::limit(Limit::Deadline(self.timeout));
        let vault = &offer
            .plugin
            .tool_context(&offer.definition.tool.name)
            .secrets;
        // A secret can be in a file, and a file system can hang.
        let opened = timeout_at(self.deadline.into(), vault.open(caller))
            .await
            .map_err(|_| late())?;
        let opened = opened.map_err(CallError::Internal)?;
        if arguments.len() <= MAX_INLINE_BYTES {
            return Ok(ruling::approval_question(
                offer,
                arguments,
                &opened.filter,
                counts,
            ));
        }
        let (offer, arguments) = (Arc::clone(offer), arguments.to_owned());
        let ask = move |_: &Interrupt| {
            ruling::approval_question(&offer, &arguments, &opened.filter, counts)
        };
        self.offload
            .run(self.threads, &self.permit, self.deadline, ask)
            .await
            .map_err(|TooLate| late())
    }

    /// Reads the reply from a file, without a guest.
    async fn read_file(
        &self,
        plain: PlainTarget,
        request: ReadyRequest,
        target: &CallTarget,
    ) -> Result<CallReply, CallFailure> {
        let (file, arguments) = match (plain, request) {
            (PlainTarget::Nothing, _) => return Ok(CallReply::Completion(empty_completions())),
            (file, ReadyRequest::Prompt(arguments)) => (file, arguments),
            (file, _) => (file, BTreeMap::new()),
        };
        let most = target.environment().limits.output;
        let read = self.offload.run(
            self.threads,
            &self.permit,
            self.deadline,
            move |_| match file {
                PlainTarget::Prompt(prompt) => prompt
                    .render(&arguments, most)
                    .map(|output| Some(CallReply::Prompt(output))),
                PlainTarget::Resource(file) => {
                    Ok(file.read(most)?.map(|item| CallReply::Resource(vec![item])))
                }
                PlainTarget::Nothing => Ok(Some(CallReply::Completion(empty_completions()))),
            },
        );
        match read
            .await
            .unwrap_or_else(|TooLate| Err(CallError::limit(Limit::Deadline(self.timeout))))
        {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(CallFailure::Unknown(
                target.kind(),
                target.public_name().to_owned(),
            )),
            Err(error) => Err(CallFailure::Call(with_tool_of_limit(
                error,
                target.plugin(),
                target.name(),
            ))),
        }
    }

    /// Checks the result of a guest. Also returns the number of bytes that the guest returned.
    async fn check_result(
        &self,
        target: &Arc<CallTarget>,
        entered: Result<UncheckedReply, CallError>,
    ) -> (Result<Option<CallReply>, CallError>, usize) {
        match entered {
            Ok(returned) => {
                let size = returned.size();
                (self.check_output(target, returned).await, size)
            }
            Err(error) => (Err(error), 0),
        }
    }

    /// Converts a checked result of `size` bytes, or a failure, into what the client receives.
    async fn finish_reply(
        &self,
        target: &CallTarget,
        request: &ReadyRequest,
        result: Result<Option<CallReply>, CallError>,
        size: usize,
        observer: &dyn CallObserver,
    ) -> Result<CallReply, CallFailure> {
        let shown = self.room.shown;
        match result {
            Ok(Some(reply)) => {
                let reply = apply_view_grant(target, reply, observer);
                self.truncate_reply(target, reply, shown.filter(|most| size > *most))
                    .await
            }
            Ok(None) => Err(unknown_target(request, target)),
            Err(CallError::Incapable(kinds)) => Err(unanswerable(request, &kinds)),
            Err(error) => Err(CallFailure::Call(truncate_error(error, shown))),
        }
    }

    /// Truncates a tool's result to at most `most` bytes, if it is larger, and stores the whole
    /// result.
    ///
    /// # Errors
    ///
    /// Structured content that the output schema requires does not fit, or the deadline passed.
    async fn truncate_reply(
        &self,
        target: &CallTarget,
        reply: CallReply,
        most: Option<usize>,
    ) -> Result<CallReply, CallFailure> {
        let (output, most, offer) = match (reply, most, target) {
            (CallReply::Tool(output), Some(most), CallTarget::Tool(offer)) => (output, most, offer),
            (reply, ..) => return Ok(reply),
        };
        let promised = offer.definition.output.is_some();
        let fitted = self
            .offload
            .run(self.threads, &self.permit, self.deadline, move |_| {
                truncate_output(output, most, promised)
            });
        match fitted.await {
            Ok(Ok(fitted)) => {
                let broken = promised && fitted.is_unstructured;
                let shown = fitted.into_output(target.public_name(), |whole| {
                    self.results.store(&self.client.name, whole)
                });
                // A client would not accept such a result as successful.
                if broken {
                    Err(CallFailure::Oversized(Box::new(shown)))
                } else {
                    Ok(CallReply::Tool(shown))
                }
            }
            Ok(Err(output)) => Ok(CallReply::Tool(*output)),
            Err(TooLate) => {
                let error = CallError::limit(Limit::Deadline(self.timeout));
                Err(CallFailure::Call(with_tool_of_limit(
                    error,
                    target.plugin(),
                    target.name(),
                )))
            }
        }
    }

    /// Checks a guest's result against its bounds, the contract and a tool's output schema. Returns
    /// `None` if there is no such resource.
    async fn check_output(
        &self,
        target: &Arc<CallTarget>,
        returned: UncheckedReply,
    ) -> Result<Option<CallReply>, CallError> {
        let kept = self.room.kept;
        let limits = &target.environment().limits;
        let reply = if returned.size() <= MAX_INLINE_BYTES {
            let reply = returned.check(limits, kept, &Interrupt::with_deadline(self.deadline))?;
            match pair_with_schema(target.output_schema(), reply.as_ref())? {
                None => return Ok(reply),
                Some((schema, structured)) => {
                    if let Some(violations) = schema.quick_violations(structured) {
                        return reject_violations(reply, &violations);
                    }
                }
            }
            Ok(reply)
        } else {
            Err(returned)
        };
        let target = Arc::clone(target);
        let timeout = limits.timeout;
        let checked = self.offload.run(
            self.threads,
            &self.permit,
            self.deadline,
            move |interrupt| {
                let reply = reply.or_else(|returned| {
                    returned.check(&target.environment().limits, kept, interrupt)
                })?;
                let Some((schema, structured)) =
                    pair_with_schema(target.output_schema(), reply.as_ref())?
                else {
                    return Ok(reply);
                };
                let violations = schema.violations_until(structured, interrupt);
                let violations =
                    violations.map_err(|_| CallError::limit(Limit::Deadline(timeout)))?;
                reject_violations(reply, &violations)
            },
        );
        checked
            .await
            .unwrap_or_else(|TooLate| Err(CallError::limit(Limit::Deadline(timeout))))
    }
}

/// Truncates the message of a failure to at most `most` bytes.
fn truncate_error(mut error: CallError, most: Option<usize>) -> CallError {
    if let (CallError::Failed(text) | CallError::InvalidArguments(text), Some(most)) =
        (&mut error, most)
    {
        truncate_message(text, most);
    }
    error
}

/// Returns the audit log's text of a request's arguments.
fn audit_text(request: &ReadyRequest) -> String {
    match request {
        ReadyRequest::Tool(text) => text.clone(),
        ReadyRequest::Prompt(arguments) => json!(arguments).to_string(),
        ReadyRequest::Resource(uri) => json!({"uri": uri}).to_string(),
        ReadyRequest::Completion(asked) => {
            json!({"argument": asked.argument, "value": asked.value, "context": asked.context})
                .to_string()
        }
    }
}

/// Returns the failure of a plugin that requires an answer that it cannot receive.
fn unanswerable(request: &ReadyRequest, kinds: &[QuestionKind]) -> CallFailure {
    match request {
        // MCP does not allow questions here, whatever the client supports.
        ReadyRequest::Completion(_) => CallFailure::Call(CallError::Failed(
            "a completion cannot ask its caller anything".to_owned(),
        )),
        _ => CallFailure::MissingCapabilities(QuestionKind::capabilities(kinds)),
    }
}

/// Returns the failure for a target that the plugin does not have.
fn unknown_target(request: &ReadyRequest, target: &CallTarget) -> CallFailure {
    match request {
        ReadyRequest::Resource(uri) => CallFailure::Unknown(TargetKind::Resource, uri.clone()),
        _ => CallFailure::Unknown(target.kind(), target.public_name().to_owned()),
    }
}

/// Returns a digest that identifies a plugin with its grant. A call that asks its caller a question
/// must continue with the same edition.
fn edition_digest(plugin: &Plugin) -> Digest {
    let mut hash = Sha256::new();
    hash.update(plugin.component.digest.bytes());
    if let Some(grant) = &plugin.terms.grant_digest {
        hash.update(grant.bytes());
    }
    Digest::new(hash.finalize().into())
}

/// Observer that also writes a guest's log lines and denials to the host's log.
struct LogObserver {
    inner: Arc<dyn CallObserver>,
    target: Arc<CallTarget>,
    learner: Option<Arc<GrantLearner>>,
    metrics: Option<Arc<ServerMetrics>>,
    watch: Option<Arc<ServerActivity>>,
    tracer: Option<SpanTracer>,
    denials: Option<DenialRecorder>,
    /// Remaining budget for matching the URIs of changed resources that the call names.
    steps: Mutex<MatchBudget>,
}

impl CallObserver for LogObserver {
    fn log(&self, level: LogLevel, message: &str) {
        let (plugin, tool) = (&self.target.plugin().id, self.target.public_name());
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

    fn progress(&self, progress: ProgressUpdate) {
        self.inner.progress(progress);
    }

    fn denied(&self, kind: DenialKind, what: &str, lines: Option<&str>) {
        if let Some(metrics) = &self.metrics {
            metrics.count_denial(kind);
        }
        let (plugin, tool) = (&self.target.plugin().id, self.target.public_name());
        if let (Some(learner), Some(lines)) = (&self.learner, lines) {
            learner.record_denial(plugin, lines);
        }
        let line = lines.map(|lines| lines.replace('\n', " and "));
        let remedy =
            line.map(|line| format!(" To allow it, add to [permissions] in {plugin}.toml: {line}"));
        let remedy = remedy.as_deref().unwrap_or_default();
        tracing::info!(target: "toolbay::denied", plugin, tool, "denied: {what}{remedy}");
        if let Some(denials) = &self.denials {
            denials.record_denial(what, lines);
        }
        if let Some(watch) = &self.watch {
            watch.record_denial(DenialNote {
                at: SystemTime::now(),
                plugin: plugin.clone(),
                tool: tool.to_owned(),
                what: what.to_owned(),
                remedy: lines.map(str::to_owned),
            });
        }
        self.inner.denied(kind, what, lines);
    }

    fn resource_updated(&self, uri: &str) {
        // A plugin may only report changes of its own resources.
        let is_own = {
            let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
            self.target.plugin().offers_resource(uri, &mut steps)
        };
        if is_own {
            self.inner.resource_updated(uri);
        }
    }

    fn start_http_span(&self, call: &TraceContext) -> Option<TraceContext> {
        self.tracer.as_ref()?.begin_request(call)
    }

    fn http_exchange_ended(&self, exchange: HttpExchange) {
        if let Some(tracer) = &self.tracer {
            tracer.export_exchange(exchange);
        }
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

#[cfg(test)]
mod tests;

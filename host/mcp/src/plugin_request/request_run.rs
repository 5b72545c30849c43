//! A request that enters a plugin, from its parameters to the encoded response. Implements
//! `tools/call`, `prompts/get`, `resources/read` and `completion/complete`.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::FutureExt as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolbay_model::{
    ArgumentCheck, CallError, CallFailure, CallJournal, CallObserver, CallRejection, CallReply,
    CallRequest as Wanted, CallResult, CapacityLimit, CompletionRequest, Question, QuestionKind,
    QuestionKindSet, QuestionRound, RejectionReason, SchemaViolation, TargetKind, TraceContext,
};

use crate::exchange::in_flight::RegisteredRequest;
use crate::exchange::observer::PeerObserver;
use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::exchange::quota::{QuotaExhausted, QuotaPortion};
use crate::host::caller::Caller;
use crate::host::interface::{ClientCall, QueuePlace, RequestWire};
use crate::host::operator_answers::{AnsweredElsewhere, OperatorAnswer, PendingQuestions};
use crate::host::request_state::{EntryTicket, InvalidState, RequestBinding, TicketRefused};
use crate::plugin_request::elicitation::{self, InterviewEnd, QuestionStream};
use crate::plugin_request::input_responses::RetriedRequest;
use crate::plugin_request::task_decision::TaskMode;
use crate::protocol::json_memory;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST, Request, RequestId};
use crate::protocol::message_context::RequestContext;
use crate::protocol::revision::Revision;
use crate::protocol::sent_arguments::{self, PromptArguments};
use crate::response::call_response::{self, MISSING_CAPABILITY};
use crate::session::client_session::Session;
use crate::tasks::{LiveTask, TaskPhase};

/// Delay after which a request that was rejected for lack of memory may be retried. Calls are
/// short.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Minimum delay before a call that has its answers is queued again after a rejection.
const MIN_REQUEUE_DELAY: Duration = Duration::from_millis(10);

/// The parsed parameters of a request.
pub(crate) struct EntryParams {
    /// The requested target and its arguments.
    pub(crate) request: Wanted,
    /// The `_meta` of the request.
    pub(crate) meta: RequestMeta,
    /// `task`, not yet parsed.
    pub(crate) task: Option<Box<RawValue>>,
    /// The part of the arguments that cannot be read, if any. The arguments are incomplete in that
    /// case.
    pub(crate) unreadable: Option<Box<SchemaViolation>>,
    /// The arguments as a string that may contain them, if they were sent as one. They are empty
    /// until the string is parsed.
    pub(crate) packed: Option<String>,
    /// What was wrong with the form of the arguments and was corrected.
    pub(crate) corrected: Vec<SchemaViolation>,
}

impl EntryParams {
    /// Creates parameters whose arguments, if there are any, were read completely.
    pub(crate) fn new(request: Wanted, meta: RequestMeta) -> Self {
        Self {
            request,
            meta,
            task: None,
            unreadable: None,
            packed: None,
            corrected: Vec::new(),
        }
    }

    /// Sets the arguments of a request for a prompt.
    pub(crate) fn set_prompt_arguments(&mut self, read: PromptArguments) {
        if let Wanted::Prompt { arguments, .. } = &mut self.request {
            *arguments = read.values;
        }
        self.corrected.extend(read.corrected);
        self.unreadable = read.unreadable.map(Box::new);
    }

    /// Parses the string that the arguments were sent as.
    fn unpack(&mut self, text: &str) {
        match &mut self.request {
            Wanted::Tool { arguments, .. } => match sent_arguments::parse_tool(text) {
                Ok(read) => *arguments = read,
                Err(violation) => self.unreadable = Some(Box::new(violation)),
            },
            Wanted::Prompt { .. } => self.set_prompt_arguments(sent_arguments::parse_prompt(text)),
            // These have no arguments.
            Wanted::Resource { .. } | Wanted::Completion(_) => {}
        }
        self.corrected.insert(0, sent_arguments::packed_violation());
        if self.unreadable.is_some() {
            // Says what is wrong with the string.
            self.corrected.clear();
        }
    }
}

/// The part of the parameters to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadExtent {
    /// All parameters.
    Whole,
    /// Only the target: the request is rejected regardless of its arguments.
    Target,
}

/// Function that reads the parameters of a method.
pub(crate) type ParamsReader = fn(Option<&RawValue>, ReadExtent) -> Result<EntryParams, Error>;

/// The members of `_meta` that affect how a request is handled.
#[derive(Default, Deserialize)]
pub(crate) struct RequestMeta {
    #[serde(rename = "progressToken")]
    progress_token: Option<RequestId>,
    #[serde(default, deserialize_with = "lenient_text")]
    traceparent: Option<String>,
    #[serde(default, deserialize_with = "lenient_text")]
    tracestate: Option<String>,
    #[serde(default, deserialize_with = "lenient_text")]
    baggage: Option<String>,
}

/// Deserializes a string and ignores any other value: an invalid trace context does not fail a
/// request.
fn lenient_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// A registered call, which can be cancelled.
pub(crate) struct PendingCall {
    request: RegisteredRequest,
    rules: RequestContext,
    /// Boxed to keep this type small: a call that waits for its caller's answers has no `Call`.
    call: Box<ClientCall>,
    progress_token: Option<RequestId>,
    place: Result<Box<dyn QueuePlace>, Box<CallRejection>>,
    /// `None` if the client answers no questions. In that case the plugin asks none.
    kept: Option<RetainedRequest>,
    /// Boxed because few calls have one.
    retry: Option<Box<RetriedRequest>>,
    wish: TaskMode,
    /// Cancelled when the authorization of the caller is withdrawn.
    revoked: CancellationToken,
}

/// Retained request data while the plugin runs and the user considers a question. The text takes
/// less memory than parsed values.
struct RetainedRequest {
    params: Option<Box<RawValue>>,
    read: ParamsReader,
    /// Reservation for the bytes of the text.
    _held: QuotaPortion,
}

/// A completed call and its place in the client's queue.
pub(crate) struct CompletedCall {
    /// `None` if the call was cancelled.
    pub(crate) told: Option<CallResponse>,
    pub(crate) place: Option<Box<dyn QueuePlace>>,
}

/// The result of a call, as sent to the client.
pub(crate) struct CallResponse {
    /// The result, without the members that all results of the revision have.
    pub(crate) result: Result<Map<String, Value>, Error>,
    retry_after: Option<Duration>,
}

/// A call that has ended. Its id stays in use, and the client can still cancel it, until its
/// response is queued.
pub(crate) struct EncodedCall {
    request: RegisteredRequest,
    /// `None` if the client has cancelled the call.
    answer: Option<OutgoingMessage>,
    place: Option<Box<dyn QueuePlace>>,
}

/// Parses and registers a call with the rights of `caller`. `read` reads the parameters of its
/// method.
///
/// # Errors
///
/// The request is malformed; the error has its id.
pub(crate) fn begin_call(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    read: ParamsReader,
    rules: RequestContext,
) -> Result<Box<PendingCall>, Error> {
    read_call(session, caller, request, read, rules).map_err(|error| error.with_id(&request.id))
}

fn read_call(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    read: ParamsReader,
    mut rules: RequestContext,
) -> Result<Box<PendingCall>, Error> {
    let (mut asked, held) = match reserve_for_params(session, caller, request.params)? {
        Ok(held) => (read(request.params, ReadExtent::Whole)?, Ok(held)),
        Err(rejection) => (read(request.params, ReadExtent::Target)?, Err(rejection)),
    };
    let held = match held {
        Ok(held) => unpack_arguments(session, request.params, &mut asked, held)?,
        rejected @ Err(_) => rejected,
    };
    let EntryParams {
        request: wanted,
        meta,
        task,
        unreadable,
        packed: _,
        corrected,
    } = asked;
    let wish = TaskMode::from_request(session, caller, &wanted, task.as_deref(), &rules)?;
    let wanted = with_listed_uri(session, restrict_to_revision(wanted, &rules));
    let answerable = answerable_kinds(&wanted, &rules);
    let retry = match answerable {
        Some(_) if rules.revision.features().input_requests => {
            Some(RetriedRequest::read(request.params)?)
        }
        _ => None,
    };
    let retry = retry
        .filter(|retry| *retry != RetriedRequest::default())
        .map(Box::new);
    let RequestMeta {
        progress_token,
        traceparent,
        tracestate,
        baggage,
    } = meta;
    // The transport may have a trace context too. The one in the message takes precedence.
    let trace = traceparent
        .and_then(|parent| TraceContext::parse(&parent, tracestate, baggage))
        .or(rules.trace.take().map(|trace| *trace));
    let registered = session
        .in_flight
        .register(&request.id, session.life.ended.child_token());
    let registered = registered.ok_or_else(|| {
        Error::new(
            INVALID_REQUEST,
            "a request with this id is already in progress",
        )
    })?;
    let asks = answerable.is_some_and(|answerable| answerable != QuestionKindSet::default());
    let kept = if asks || wish != TaskMode::None {
        RetainedRequest::retain(session, caller, request.params, read).map(Some)
    } else {
        Ok(None)
    };
    let target = wanted.target();
    let (place, held, kept) = match held.and_then(|held| Ok((held, kept?))) {
        Ok((held, kept)) => (caller.client.enqueue(target).map_err(Box::new), held, kept),
        Err(rejection) => {
            caller.client.record_rejection(target, rejection);
            (Err(Box::new(rejection)), QuotaPortion::default(), None)
        }
    };
    let call = ClientCall {
        permitted: caller.may_use(target),
        request: wanted,
        unreadable,
        corrected,
        capabilities: rules.capabilities.clone(),
        answerable: answerable.unwrap_or_default(),
        journal: Arc::default(),
        session: session.number_for(&rules),
        trace,
        wire: trace_metadata(session, caller, &request.id, &rules),
        arguments: caller.preferences.arguments,
        held,
    };
    let call = Box::new(call);
    let revoked = caller.revoked.clone();
    Ok(Box::new(PendingCall {
        request: registered,
        rules,
        call,
        progress_token,
        place,
        kept,
        retry,
        wish,
        revoked,
    }))
}

/// Replaces the URI of a resource by the URI under which it is listed, because rights are compared
/// with the listed URI.
fn with_listed_uri(session: &Session, wanted: Wanted) -> Wanted {
    match wanted {
        Wanted::Resource { uri } => Wanted::Resource {
            uri: session.host.listed_uri(&uri).unwrap_or(uri),
        },
        other => other,
    }
}

/// Returns the request metadata for tracing, if tracing is on.
fn trace_metadata(
    session: &Session,
    caller: &Caller,
    id: &RequestId,
    rules: &RequestContext,
) -> Option<Box<RequestWire>> {
    let is_local = caller.name == Caller::LOCAL;
    let wire = || {
        Box::new(RequestWire {
            id: id.to_string(),
            revision: rules.revision.as_str(),
            is_local,
        })
    };
    session.host.options().traced.then(wire)
}

/// Returns the kinds of questions that the client answers during this request; `None` if the
/// protocol allows no questions in it.
fn answerable_kinds(wanted: &Wanted, rules: &RequestContext) -> Option<QuestionKindSet> {
    if matches!(wanted, Wanted::Completion(_)) {
        return None;
    }
    Some(rules.capabilities.answerable(rules.revision))
}

/// Removes the parts of a request that the revision does not define.
fn restrict_to_revision(wanted: Wanted, rules: &RequestContext) -> Wanted {
    match wanted {
        Wanted::Completion(request) if !rules.revision.features().completion_context => {
            Wanted::Completion(CompletionRequest {
                context: BTreeMap::new(),
                ..request
            })
        }
        wanted => wanted,
    }
}

/// Reserves the bytes that the parameters take once they are parsed.
///
/// # Errors
///
/// The parameters exceed the limit for one request. The inner error: they exceed the memory that is
/// available now.
fn reserve_for_params(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
) -> Result<Result<QuotaPortion, CallRejection>, Error> {
    let bytes = params.map_or(0, |params| json_memory::decoded_size(params.get()));
    check_decoded_size(session, bytes)?;
    Ok(session
        .intake
        .try_reserve(&caller.name, bytes)
        .map_err(busy_rejection))
}

/// Parses arguments that were sent as a string, and reserves the bytes that they take, before that,
/// in addition to those of the string.
///
/// # Errors
///
/// As [`reserve_for_params`].
fn unpack_arguments(
    session: &Session,
    params: Option<&RawValue>,
    asked: &mut EntryParams,
    mut held: QuotaPortion,
) -> Result<Result<QuotaPortion, CallRejection>, Error> {
    let Some(text) = asked.packed.take() else {
        return Ok(Ok(held));
    };
    let bytes = json_memory::decoded_size(&text);
    let all = params
        .map_or(0, |params| json_memory::decoded_size(params.get()))
        .saturating_add(bytes);
    check_decoded_size(session, all)?;
    if let Err(exhausted) = held.grow(bytes) {
        return Ok(Err(busy_rejection(exhausted)));
    }
    asked.unpack(&text);
    Ok(Ok(held))
}

/// Checks that the decoded values of a request may take this much.
///
/// # Errors
///
/// They exceed the limit for one request.
fn check_decoded_size(session: &Session, bytes: usize) -> Result<(), Error> {
    let most = session.host.options().max_request_bytes();
    if bytes > most {
        let [bytes, most] =
            [bytes, most].map(|bytes| ByteSize::b(bytes as u64).display().iec().to_string());
        let what = format!(
            "the values in the request would take {bytes}, and those of one request may take {most}, a quarter of \
             server.request_memory: send fewer values"
        );
        return Err(Error::new(INVALID_REQUEST, what));
    }
    Ok(())
}

/// Returns the rejection of a request for which there is no memory now.
pub(crate) fn busy_rejection(exhausted: QuotaExhausted) -> CallRejection {
    CallRejection {
        reason: RejectionReason::Busy {
            limit: CapacityLimit::Requests,
            capacity: exhausted.limit(),
        },
        retry_after: Some(BUSY_RETRY_DELAY),
    }
}

impl RetainedRequest {
    fn retain(
        session: &Session,
        caller: &Caller,
        params: Option<&RawValue>,
        read: ParamsReader,
    ) -> Result<Self, CallRejection> {
        let held = session
            .intake
            .try_reserve(&caller.name, params.map_or(0, |params| params.get().len()))
            .map_err(busy_rejection)?;
        Ok(Self {
            params: params.map(ToOwned::to_owned),
            read,
            _held: held,
        })
    }

    /// Parses the retained request again and reserves the bytes that it takes. Also returns what
    /// was corrected in its arguments.
    fn parse_again(
        &self,
        session: &Session,
    ) -> Result<(Wanted, Vec<SchemaViolation>, QuotaPortion), CallFailure> {
        let params = self.params.as_deref();
        // It was parsed before, so it is not malformed.
        let weighed =
            reserve_for_params(session, &session.opener, params).map_err(internal_failure)?;
        let held = weighed.map_err(CallFailure::Rejected)?;
        let mut read = (self.read)(params, ReadExtent::Whole).map_err(internal_failure)?;
        let held = unpack_arguments(session, params, &mut read, held).map_err(internal_failure)?;
        let held = held.map_err(CallFailure::Rejected)?;
        Ok((with_listed_uri(session, read.request), read.corrected, held))
    }
}

fn internal_failure(error: Error) -> CallFailure {
    CallFailure::Call(CallError::Internal(error.message))
}

/// The state that all entries of one call share. It stays in memory while a person thinks, and is
/// therefore small.
struct CallDriver<'a> {
    session: &'a Session,
    way: ReplyChannel<'a>,
    rules: RequestContext,
    cancelled: &'a CancellationToken,
    observer: Arc<dyn CallObserver>,
    kept: Option<RetainedRequest>,
    /// Reservation for the bytes of the journal while the client is asked, and afterwards.
    journaled: Vec<QuotaPortion>,
    /// If set, an entry was admitted. The request state that the client sent is then used up,
    /// however the call ends.
    was_admitted: bool,
    target: TargetKind,
    permitted: bool,
    arguments: Option<ArgumentCheck>,
    trace: Option<Box<TraceContext>>,
    wire: Option<Box<RequestWire>>,
}

/// The channel on which a call asks its client questions.
#[derive(Clone, Copy)]
enum ReplyChannel<'a> {
    /// On the stream of its request.
    Reply(&'a Outbox),
    /// In the task, when the client polls it.
    Task(&'a LiveTask),
}

/// The outcome of one entry or of a whole call.
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved at once, and the answer is the common one"
)]
enum CallOutcome {
    /// The client has cancelled the call.
    Cancelled,
    Answered(CallResult),
    /// A guest panicked, or the server has another internal error. The text is for the log.
    Panicked(String),
}

impl CallOutcome {
    /// Returns whether it is a rejection. A plugin does not observe a rejected entry.
    fn is_rejection(&self) -> bool {
        matches!(
            self,
            Self::Answered(CallResult {
                result: Err(CallFailure::Rejected(_)),
                ..
            })
        )
    }
}

/// The next step of a call that has not ended with its entry.
enum DriverStep {
    /// Asks the client.
    Ask(Box<QuestionRound>),
    /// Waits, and then enters the plugin again.
    Wait(CallRejection),
}

impl PendingCall {
    /// Frees the box: within an asynchronous function, the box would stay allocated until the call
    /// ends.
    fn unboxed(self: Box<Self>) -> Self {
        *self
    }

    /// Returns the registration of the call.
    pub(crate) fn registration(&self) -> &RegisteredRequest {
        &self.request
    }

    /// Returns the revision of the request.
    pub(crate) fn revision(&self) -> Revision {
        self.rules.revision
    }

    /// Returns the task mode of the call.
    pub(crate) fn task_mode(&self) -> TaskMode {
        self.wish
    }

    /// Waits, if necessary, until the task mode of the call is known: tools declare their task
    /// support when their plugins are loaded.
    ///
    /// # Errors
    ///
    /// The call does not match the task support of the tool. The call has ended; `None` if its
    /// client has cancelled it.
    pub(crate) async fn resolve_task_mode(
        mut self: Box<Self>,
        session: &Session,
    ) -> Result<Box<Self>, Option<Error>> {
        if self.place.is_err() {
            // The call was rejected, so its mode is irrelevant.
            self.wish = TaskMode::None;
            return Ok(self);
        }
        let settled = tokio::select! {
            biased;
            // The call ends in this case.
            () = self.request.cancelled.cancelled() => Ok(TaskMode::None),
            () = session.life.stopped.cancelled() => Ok(TaskMode::None),
            settled = self.wish.resolve(session, self.call.request.target(), &self.rules) => settled,
        };
        match settled {
            Ok(wish) => {
                self.wish = wish;
                Ok(self)
            }
            Err(error) => {
                let is_wanted = session.in_flight.finish(&self.request);
                Err(is_wanted.then(|| error.with_id(&self.request.id)))
            }
        }
    }

    /// Returns the observer that sends log messages and progress to the client.
    pub(crate) fn observer(
        &self,
        session: &Session,
        reply: &Outbox,
        cancelled: CancellationToken,
    ) -> PeerObserver {
        let (target, token) = (self.call.request.target(), self.progress_token.clone());
        PeerObserver::new(
            reply.clone(),
            target,
            &self.rules,
            token,
            cancelled,
            session.host.updates().clone(),
        )
    }

    /// Runs the call. Log messages, progress and questions go to `reply`.
    pub(crate) async fn run(self: Box<Self>, session: &Session, reply: &Outbox) -> EncodedCall {
        let observer = Arc::new(self.observer(session, reply, self.request.cancelled.clone()));
        let cancelled = self.request.cancelled.clone();
        let revision = self.rules.revision;
        let (request, traveling) =
            self.into_driver(session, ReplyChannel::Reply(reply), observer, &cancelled);
        let CompletedCall { told, place } = traveling.await;
        let error = told.as_ref().and_then(CallResponse::error_code);
        let answer = told.map(|told| told.encode(session, &request.id, revision));
        let mut called = EncodedCall::new(request, answer, place);
        called.mark_encoded(error);
        called
    }

    /// Runs the call as `live`, which is, or may become, a task.
    pub(crate) async fn run_as_task(
        self: Box<Self>,
        session: &Session,
        live: &LiveTask,
        observer: Arc<dyn CallObserver>,
    ) -> CompletedCall {
        let cancelled = live.cancellation().clone();
        let (_request, traveling) =
            self.into_driver(session, ReplyChannel::Task(live), observer, &cancelled);
        traveling.await
    }

    /// Returns the registration and a future that drives the call.
    fn into_driver<'a>(
        self: Box<Self>,
        session: &'a Session,
        way: ReplyChannel<'a>,
        observer: Arc<dyn CallObserver>,
        cancelled: &'a CancellationToken,
    ) -> (
        RegisteredRequest,
        impl Future<Output = CompletedCall> + Send + 'a,
    ) {
        let Self {
            request,
            rules,
            call,
            place,
            kept,
            retry,
            revoked,
            ..
        } = self.unboxed();
        let mut journey = CallDriver {
            session,
            way,
            rules,
            cancelled,
            observer,
            kept,
            journaled: Vec::new(),
            was_admitted: false,
            target: call.request.kind(),
            permitted: call.permitted,
            arguments: call.arguments,
            trace: call.trace.clone().map(Box::new),
            wire: call.wire.clone(),
        };
        // A call whose caller's authorization is withdrawn must not enter a plugin any more,
        // whether it waits in a queue, for an approval or for an answer.
        let driving = async move {
            let mut driving = pin!(journey.drive(call, place, retry));
            tokio::select! {
                biased;
                () = revoked.cancelled() => cancelled.cancel(),
                done = driving.as_mut() => return done,
            }
            driving.await
        };
        (request, driving)
    }
}

/// Restores the journal of an earlier run into a call, with the answers to its questions.
async fn restore_state(
    session: &Session,
    call: &mut ClientCall,
    retry: Box<RetriedRequest>,
) -> Result<Option<EntryTicket>, Error> {
    let RetriedRequest {
        mut responses,
        state,
    } = *retry;
    let Some(state) = state else {
        call.journal = Arc::new(CallJournal {
            answers: responses,
            ..CallJournal::default()
        });
        return Ok(None);
    };
    let (states, caller) = (session.host.request_states(), &session.opener.name);
    let opened = states
        .unseal(&state, RequestBinding::new(caller, &call.request))
        .map_err(call_response::invalid_state_error)?;
    states
        .redeem(opened.ticket, caller)
        .await
        .map_err(|refused| match refused {
            TicketRefused::Used => call_response::invalid_state_error(InvalidState::Used),
            TicketRefused::Lost => call_response::invalid_state_error(InvalidState::Unrecorded),
            TicketRefused::Full => {
                Error::new(INVALID_REQUEST, format!("{refused}: try again later"))
            }
            TicketRefused::Unwritten(_) => call_response::internal_error(&refused.to_string()),
        })?;
    let mut journal = opened.journal;
    // Accepting answers to questions that were not asked could change answers that the call has
    // already acted on.
    let answers = opened
        .asked
        .into_iter()
        .filter_map(|key| responses.remove_entry(&key));
    journal.answers.extend(answers);
    call.journal = Arc::new(journal);
    Ok(Some(opened.ticket))
}

impl CallDriver<'_> {
    /// Drives the call from the journal of an earlier run to the response for the client.
    async fn drive(
        &mut self,
        mut call: Box<ClientCall>,
        place: Result<Box<dyn QueuePlace>, Box<CallRejection>>,
        retry: Option<Box<RetriedRequest>>,
    ) -> CompletedCall {
        let place = match place {
            Ok(place) => place,
            Err(rejection) => {
                return CompletedCall {
                    told: self.build_response(failed(CallFailure::Rejected(*rejection))),
                    place: None,
                };
            }
        };
        let Some(retry) = retry else {
            let (end, place) = self.run_to_end(call, place).await;
            return CompletedCall {
                told: self.build_response(end),
                place,
            };
        };
        // Boxed with its state, because few calls resume.
        let resumed = async {
            let ticket = match restore_state(self.session, &mut call, retry).await {
                Ok(ticket) => ticket,
                Err(error) => {
                    return CompletedCall {
                        told: Some(CallResponse::from_error(error)),
                        place: Some(place),
                    };
                }
            };
            let (end, place) = self.run_to_end(call, place).await;
            if let (Some(ticket), true) = (ticket, end.is_rejection() && !self.was_admitted) {
                // The plugin was never entered, so the client can send the same answers again.
                self.session.host.request_states().restore(ticket).await;
            }
            CompletedCall {
                told: self.build_response(end),
                place,
            }
        };
        Box::pin(resumed).await
    }

    /// Enters the plugin, and enters it again with the answers each time it has asked the client of
    /// a session a question.
    async fn run_to_end(
        &mut self,
        mut call: Box<ClientCall>,
        mut place: Box<dyn QueuePlace>,
    ) -> (CallOutcome, Option<Box<dyn QueuePlace>>) {
        // Only a task waits for capacity before it has asked anything. It continues with its
        // initial journal.
        let resumed = matches!(self.way, ReplyChannel::Task(_)).then(|| Arc::clone(&call.journal));
        let mut answered: Option<Arc<CallJournal>> = None;
        loop {
            // Boxed, and dropped with its state while a person thinks.
            let end = Box::pin(self.enter_plugin(call, &mut *place)).await;
            self.was_admitted |= !end.is_rejection();
            let next = match self.next_step(end, answered.as_deref()) {
                Ok(next) => next,
                Err(end) => return (end, Some(place)),
            };
            drop(place);
            let next = match next {
                DriverStep::Ask(interview) => Box::pin(self.ask_client(interview)).await,
                DriverStep::Wait(rejection) => {
                    let journal = answered
                        .as_ref()
                        .or(resumed.as_ref())
                        .cloned()
                        .unwrap_or_default();
                    match self.reserve_journal(&journal) {
                        Ok(()) => Box::pin(self.wait_to_requeue(rejection))
                            .await
                            .map(|()| journal),
                        Err(ended) => Err(ended),
                    }
                }
            };
            let again = match next {
                Ok(journal) => Box::pin(self.requeue(answered.insert(journal))).await,
                Err(ended) => Err(ended),
            };
            (call, place) = match again {
                Ok(again) => again,
                Err(InterviewEnd::Cancelled) => return (CallOutcome::Cancelled, None),
                Err(InterviewEnd::Failed(failure)) => return (failed(failure), None),
            };
        }
    }

    /// Returns the next step of the call after an entry.
    ///
    /// # Errors
    ///
    /// The call has ended. The error is its outcome.
    #[expect(
        clippy::result_large_err,
        reason = "the end is the common case, and is moved at once"
    )]
    fn next_step(
        &self,
        end: CallOutcome,
        answered: Option<&CallJournal>,
    ) -> Result<DriverStep, CallOutcome> {
        match end {
            CallOutcome::Answered(CallResult {
                result: Ok(CallReply::Questions(interview)),
                ..
            }) if self.asks_client() => Ok(DriverStep::Ask(Box::new(interview))),
            CallOutcome::Answered(CallResult {
                result: Err(CallFailure::Rejected(rejection)),
                ..
            }) if self.should_requeue(rejection, answered) => Ok(DriverStep::Wait(rejection)),
            end => Err(end),
        }
    }

    /// Runs the call in the plugin as soon as it is admitted.
    async fn enter_plugin(&self, call: Box<ClientCall>, place: &mut dyn QueuePlace) -> CallOutcome {
        let calling = place.call(*call, Arc::clone(&self.observer));
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => CallOutcome::Cancelled,
            () = self.session.life.stopped.cancelled() => failed(CallFailure::Call(CallError::Cancelled)),
            // A panic in a call fails only that call.
            answer = AssertUnwindSafe(calling).catch_unwind() => {
                answer.map_or_else(|panic| CallOutcome::Panicked(panic_message(&panic)), CallOutcome::Answered)
            }
        }
    }

    /// Returns whether the call waits for the answers to its questions. Otherwise its response
    /// contains the questions.
    fn asks_client(&self) -> bool {
        match self.way {
            ReplyChannel::Reply(_) => !self.rules.revision.features().input_requests,
            ReplyChannel::Task(live) => live.decide_phase(TaskPhase::Given) == TaskPhase::Kept,
        }
    }

    /// Returns whether a rejected call waits and tries again. Only a call that has answers and a
    /// task do.
    fn should_requeue(&self, rejection: CallRejection, answered: Option<&CallJournal>) -> bool {
        match (self.way, answered) {
            (_, Some(journal)) => is_in_time(rejection, journal),
            // A task can wait until its time to live ends.
            (ReplyChannel::Task(live), None) => {
                matches!(rejection.reason, RejectionReason::Busy { .. })
                    && live.phase() == TaskPhase::Kept
            }
            (ReplyChannel::Reply(_), None) => false,
        }
    }

    /// Asks the client of a session, and returns the journal with the answers. The journal's bytes
    /// count against the caller until the call has ended.
    async fn ask_client(
        &mut self,
        mut interview: Box<QuestionRound>,
    ) -> Result<Arc<CallJournal>, InterviewEnd> {
        let questions = std::mem::take(&mut interview.questions);
        if self.kept.is_none() || questions.is_empty() {
            return Err(InterviewEnd::Failed(unanswerable_failure(
                &questions,
                self.target,
            )));
        }
        let revision = self.rules.revision;
        self.check_capabilities(&questions)
            .map_err(InterviewEnd::Failed)?;
        // Replaces the reservation for the journal of the previous round.
        self.journaled.clear();
        self.reserve_journal(&interview.journal)?;
        let (intake, name) = (&self.session.intake, &self.session.opener.name);
        let put = PendingQuestions {
            caller: name,
            questions: &questions,
            journal: &interview.journal,
        };
        let mut elsewhere = self.session.host.operator_answer(put);
        if let Some(waiting) = elsewhere.as_mut().filter(|waiting| waiting.is_open()) {
            // The copy of the questions for the operator counts against the caller as well. Without
            // memory for it, only the client can answer.
            match intake.try_reserve(
                name,
                questions
                    .iter()
                    .map(|question| question.params.get().len())
                    .sum(),
            ) {
                Ok(room) => self.journaled.push(room),
                Err(_full) => waiting.leave_to_client(),
            }
        }
        let (session, cancelled, journal) = (self.session, self.cancelled, &mut interview.journal);
        // If the answer comes from an operator, the question is withdrawn from the client.
        let answered = match self.way {
            ReplyChannel::Reply(reply) => {
                let stream = QuestionStream {
                    session,
                    reply,
                    revision,
                    cancelled,
                    task: None,
                };
                tokio::select! {
                    biased;
                    answered = OperatorAnswer::wait_for_answer(&mut elsewhere) => Err(answered),
                    held = elicitation::ask_client(&stream, questions, journal) => Ok(held?),
                }
            }
            ReplyChannel::Task(live) => {
                let waiting = Box::pin(elicitation::wait_for_task_answers(
                    session, live, questions, journal,
                ));
                tokio::select! {
                    biased;
                    answered = OperatorAnswer::wait_for_answer(&mut elsewhere) => Err(answered),
                    held = waiting => Ok(held?),
                }
            }
        };
        let answered = match answered {
            Ok(held) => {
                self.journaled.extend(held);
                // An operator who answered at the same moment was notified that the answer counts.
                elsewhere.and_then(OperatorAnswer::close)
            }
            Err(answered) => Some(answered),
        };
        if let Some(AnsweredElsewhere { key, answer, by }) = answered {
            interview.journal.answers.insert(key, answer);
            interview.journal.operator = Some(by);
        }
        Ok(Arc::new(interview.journal))
    }

    /// Reserves the bytes of the journal in the caller's share, unless they are reserved already.
    fn reserve_journal(&mut self, journal: &CallJournal) -> Result<(), InterviewEnd> {
        if self.journaled.is_empty() {
            let room = self
                .session
                .intake
                .try_reserve(&self.session.opener.name, journal.size());
            // Exact capacity: few calls need more, and many calls wait.
            self.journaled = vec![room.map_err(|none| {
                InterviewEnd::Failed(CallFailure::Rejected(busy_rejection(none)))
            })?];
        }
        Ok(())
    }

    /// Queues the call again with the answers, and returns it with its new place in the client's
    /// queue.
    async fn requeue(
        &self,
        journal: &Arc<CallJournal>,
    ) -> Result<(Box<ClientCall>, Box<dyn QueuePlace>), InterviewEnd> {
        loop {
            match self.try_requeue(journal) {
                Err(CallFailure::Rejected(rejection)) if is_in_time(rejection, journal) => {
                    self.wait_to_requeue(rejection).await?;
                }
                again => return again.map_err(InterviewEnd::Failed),
            }
        }
    }

    fn try_requeue(
        &self,
        journal: &Arc<CallJournal>,
    ) -> Result<(Box<ClientCall>, Box<dyn QueuePlace>), CallFailure> {
        let Some(kept) = &self.kept else {
            return Err(unanswerable_failure(&[], self.target));
        };
        let (wanted, corrected, held) = kept.parse_again(self.session)?;
        let place = self
            .session
            .opener
            .client
            .enqueue(wanted.target())
            .map_err(CallFailure::Rejected)?;
        let call = ClientCall {
            request: wanted,
            // An entered call had readable arguments.
            unreadable: None,
            corrected,
            permitted: self.permitted,
            capabilities: self.rules.capabilities.clone(),
            answerable: self.rules.capabilities.answerable(self.rules.revision),
            journal: Arc::clone(journal),
            session: self.session.number_for(&self.rules),
            trace: self.trace.as_deref().cloned(),
            wire: self.wire.clone(),
            arguments: self.arguments,
            held,
        };
        Ok((Box::new(call), place))
    }

    /// Waits until a call that has its answers can be queued again. Its answers are not lost
    /// because other calls take the capacity.
    async fn wait_to_requeue(&self, rejection: CallRejection) -> Result<(), InterviewEnd> {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Err(InterviewEnd::Cancelled),
            () = self.session.life.closing.cancelled() => Err(InterviewEnd::Failed(CallFailure::Call(CallError::Cancelled))),
            () = tokio::time::sleep(rejection.retry_after.unwrap_or_default().max(MIN_REQUEUE_DELAY)) => Ok(()),
        }
    }

    /// Checks that the client answers questions of these kinds. The sandbox asks no others.
    fn check_capabilities(&self, questions: &[Question]) -> Result<(), CallFailure> {
        let answerable = self.rules.capabilities.answerable(self.rules.revision);
        let missing: Vec<_> = questions
            .iter()
            .map(|question| question.kind)
            .filter(|kind| !answerable.contains(*kind))
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(CallFailure::MissingCapabilities(
                QuestionKind::capabilities(&missing),
            ))
        }
    }

    /// Builds the response for the client; `None` if the client has cancelled the call.
    fn build_response(&self, end: CallOutcome) -> Option<CallResponse> {
        let (session, revision) = (self.session, self.rules.revision);
        let with_usage = session.host.options().usage;
        let mut retry_after = None;
        let result = match end {
            CallOutcome::Cancelled => return None,
            CallOutcome::Panicked(panic) => Err(call_response::internal_error(&panic)),
            CallOutcome::Answered(CallResult {
                result: Ok(CallReply::Questions(interview)),
                usage,
            }) => match self.input_required(interview) {
                Ok((questions, state)) => call_response::input_required_result(
                    &questions,
                    state,
                    usage.filter(|_| with_usage),
                    revision,
                ),
                Err(failure) => call_response::to_response(
                    CallResult {
                        result: Err(failure),
                        usage,
                    },
                    self.target,
                    revision,
                    with_usage,
                ),
            },
            CallOutcome::Answered(answer) => {
                if let Err(CallFailure::Rejected(rejection)) = &answer.result {
                    retry_after = rejection.retry_after;
                }
                call_response::to_response(answer, self.target, revision, with_usage)
            }
        };
        Some(CallResponse {
            result,
            retry_after,
        })
    }

    /// Returns the questions for a client without a session, and the sealed state that the client
    /// sends back with the answers.
    fn input_required(
        &self,
        interview: QuestionRound,
    ) -> Result<(Vec<Question>, String), CallFailure> {
        let QuestionRound { questions, journal } = interview;
        let (Some(kept), false) = (&self.kept, questions.is_empty()) else {
            return Err(unanswerable_failure(&questions, self.target));
        };
        self.check_capabilities(&questions)?;
        let (wanted, _corrected, _held) = kept.parse_again(self.session)?;
        let binding = RequestBinding::new(&self.session.opener.name, &wanted);
        let asked = questions
            .iter()
            .map(|question| question.key.clone())
            .collect();
        let state = self
            .session
            .host
            .request_states()
            .seal(binding, asked, journal);
        Ok((
            questions,
            state.map_err(|what| CallFailure::Call(CallError::Internal(what)))?,
        ))
    }
}

/// Returns whether a rejected call can still run before the time for its answers ends.
fn is_in_time(rejection: CallRejection, journal: &CallJournal) -> bool {
    rejection
        .retry_after
        .is_some_and(|wait| wait.max(MIN_REQUEUE_DELAY) < elicitation::remaining_time(journal))
}

/// Returns the failure for questions to a client that answers none. The sandbox has the client's
/// capabilities and should not have passed the questions on.
fn unanswerable_failure(questions: &[Question], kind: TargetKind) -> CallFailure {
    let keys: Vec<&str> = questions
        .iter()
        .map(|question| question.key.as_str())
        .collect();
    let what = format!(
        "a {kind} asked nothing, or a client that answers no questions: {}",
        keys.join(", ")
    );
    CallFailure::Call(CallError::Internal(what))
}

impl CallResponse {
    /// Creates the response of a call that ended with this error.
    pub(crate) fn from_error(error: Error) -> Self {
        Self {
            result: Err(error),
            retry_after: None,
        }
    }

    /// Returns the code of the error, if the result is an error.
    fn error_code(&self) -> Option<i32> {
        self.result.as_ref().err().map(|error| error.code)
    }

    /// Encodes the response to the request with this id.
    pub(crate) fn encode(
        self,
        session: &Session,
        id: &RequestId,
        revision: Revision,
    ) -> OutgoingMessage {
        let outgoing = match self.result {
            Ok(result) => session.encode_result(id, result, Some(revision)),
            Err(error) if error.code == MISSING_CAPABILITY => {
                session.encode_rejection(&error.with_id(id))
            }
            Err(error) => OutgoingMessage::response(session.encode_error(&error.with_id(id))),
        };
        OutgoingMessage {
            retry_after: self.retry_after,
            ..outgoing
        }
    }
}

impl EncodedCall {
    /// Creates an ended call from its encoded response and its place in the client's queue.
    pub(crate) fn new(
        request: RegisteredRequest,
        answer: Option<OutgoingMessage>,
        place: Option<Box<dyn QueuePlace>>,
    ) -> Self {
        Self {
            request,
            answer,
            place,
        }
    }

    /// The response is written: nothing more is computed for the call. `error_code` is its code if
    /// it is an error.
    fn mark_encoded(&mut self, error: Option<i32>) {
        if let Some(place) = &mut self.place {
            place.response_encoded(error);
        }
    }

    /// Queues the response as soon as there is capacity, unless the client cancels the call before
    /// that. The place in the client's queue is held until then. Returns whether a response was
    /// queued.
    pub(crate) async fn send(self, session: &Session, reply: &Outbox) -> bool {
        let cancelled = self.request.cancelled.clone();
        let bytes = self.bytes();
        let capacity = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            capacity = reply.reserve(bytes) => capacity,
        };
        let (answer, _place) = self.finish(session);
        let (Some(capacity), Some(answer)) = (capacity, answer) else {
            return false;
        };
        capacity.send(answer);
        true
    }

    /// Returns the length of the response, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |answer| answer.text.len())
    }

    /// Frees the id. Returns the response, unless the client has cancelled the call, and the place
    /// in the client's queue. Do not await anything before the response is queued: another request
    /// may already have the id.
    pub(crate) fn finish(
        self,
        session: &Session,
    ) -> (Option<OutgoingMessage>, Option<Box<dyn QueuePlace>>) {
        let Self {
            request,
            answer,
            place,
        } = self;
        let is_wanted = session.in_flight.finish(&request);
        (answer.filter(|_| is_wanted), place)
    }
}

fn failed(failure: CallFailure) -> CallOutcome {
    CallOutcome::Answered(CallResult {
        result: Err(failure),
        usage: None,
    })
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a call panicked: {}", message.unwrap_or("no message"))
}

#[cfg(test)]
mod tests;

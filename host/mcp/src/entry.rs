//! A request that enters a plugin, from its parameters to the encoded response: the mechanism of `tools/call`,
//! `prompts/get`, `resources/read` and `completion/complete`.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::FutureExt as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolbay_model::{
    Answer, Answerable, ArgumentCheck, Bound, CallError, CompletionRequest, Failure, Interview, Journal, Observer,
    Question, QuestionKind, Reason, Rejection, Reply, Request as Wanted, TargetKind, Trace, Violation,
};

use crate::caller::Caller;
use crate::elsewhere::{AnsweredElsewhere, Elsewhere, Put};
use crate::host::{Call, Place, Wire};
use crate::in_flight::Registered;
use crate::interview::{self, Ended, Stream};
use crate::jsonrpc::{Error, INVALID_REQUEST, Id, Request};
use crate::observer::PeerObserver;
use crate::outbox::{Outbox, Outgoing};
use crate::outcome::{self, MISSING_CAPABILITY};
use crate::quota::{Exhausted, Portion};
use crate::request_state::{Binding, Invalid, Refused, Ticket};
use crate::retry::Retry;
use crate::revision::Revision;
use crate::rules::Rules;
use crate::session::Session;
use crate::tasks::{Live, Phase};
use crate::weight;
use crate::wish::Wish;

/// When a request that found no room for its arguments may be tried again. Calls are short.
const RETRY: Duration = Duration::from_secs(1);

/// How soon a call that has its answers is queued again after it was rejected.
const SOONEST: Duration = Duration::from_millis(10);

/// What the parameters of a request say.
pub(crate) struct Asked {
    /// What the client asks for.
    pub(crate) request: Wanted,
    /// How it wants to be served.
    pub(crate) meta: Meta,
    /// `task`, not yet parsed.
    pub(crate) task: Option<Box<RawValue>>,
    /// What of the arguments cannot be read: then they are empty.
    pub(crate) unreadable: Option<Box<Violation>>,
}

/// How much of the parameters is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of them.
    Whole,
    /// Only what is asked for: the request is rejected whatever its arguments are.
    Target,
}

/// Reads the parameters of a method.
pub(crate) type Read = fn(Option<&RawValue>, Extent) -> Result<Asked, Error>;

/// What the `_meta` of a request says of how it is to be served.
#[derive(Default, Deserialize)]
pub(crate) struct Meta {
    #[serde(rename = "progressToken")]
    progress_token: Option<Id>,
    #[serde(default, deserialize_with = "text")]
    traceparent: Option<String>,
    #[serde(default, deserialize_with = "text")]
    tracestate: Option<String>,
    #[serde(default, deserialize_with = "text")]
    baggage: Option<String>,
}

/// A text; whatever else it is, is ignored: a trace context that is not valid does not fail a request.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// A registered call, which can be cancelled.
pub(crate) struct Calling {
    request: Registered,
    rules: Rules,
    /// Boxed, as what waits for its caller's answers has none, and is kept small.
    call: Box<Call>,
    progress_token: Option<Id>,
    place: Result<Box<dyn Place>, Box<Rejection>>,
    /// `None` if the client answers no questions: then the plugin asks none.
    kept: Option<Kept>,
    /// Boxed, as few have one.
    retry: Option<Box<Retry>>,
    wish: Wish,
}

/// What is kept of a request while its plugin runs and its caller thinks: text takes less than values.
struct Kept {
    params: Option<Box<RawValue>>,
    read: Read,
    /// Bytes of the text.
    _held: Portion,
}

/// The end of a call, and its place in the client's queue.
pub(crate) struct Arrived {
    /// `None` if the call was cancelled.
    pub(crate) told: Option<Told>,
    pub(crate) place: Option<Box<dyn Place>>,
}

/// How a call ended, as the client is told.
pub(crate) struct Told {
    /// The result, without what all results of the revision have.
    pub(crate) result: Result<Map<String, Value>, Error>,
    retry_after: Option<Duration>,
}

/// A call that has ended. Its id stays taken, and the client can still cancel it, until its response is queued.
pub(crate) struct Called {
    request: Registered,
    /// `None` if the client has cancelled the call.
    answer: Option<Outgoing>,
    place: Option<Box<dyn Place>>,
}

/// Parses and registers a call with the rights of `caller`. `read` reads the parameters of its method.
///
/// # Errors
///
/// The request is malformed; the error has its id.
pub(crate) fn begin(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    read: Read,
    rules: Rules,
) -> Result<Box<Calling>, Error> {
    read_call(session, caller, request, read, rules).map_err(|error| error.of(&request.id))
}

fn read_call(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    read: Read,
    mut rules: Rules,
) -> Result<Box<Calling>, Error> {
    let (asked, held) = match weigh(session, caller, request.params)? {
        Ok(held) => (read(request.params, Extent::Whole)?, Ok(held)),
        Err(rejection) => (read(request.params, Extent::Target)?, Err(rejection)),
    };
    let Asked { request: wanted, meta, task, unreadable } = asked;
    let wish = Wish::of(session, caller, &wanted, task.as_deref(), &rules)?;
    let wanted = spelled(session, in_revision(wanted, &rules));
    let answerable = answerable(&wanted, &rules);
    let retry = match answerable {
        Some(_) if rules.revision.features().input_requests => Some(Retry::read(request.params)?),
        _ => None,
    };
    let retry = retry.filter(|retry| *retry != Retry::default()).map(Box::new);
    let Meta { progress_token, traceparent, tracestate, baggage } = meta;
    // The transport may have a trace context too; that of the message takes precedence.
    let trace = traceparent
        .and_then(|parent| Trace::parse(&parent, tracestate, baggage))
        .or(rules.trace.take().map(|trace| *trace));
    let registered = session.in_flight.begin(&request.id, session.life.ended.child_token());
    let registered =
        registered.ok_or_else(|| Error::new(INVALID_REQUEST, "a request with this id is already in progress"))?;
    let asks = answerable.is_some_and(|answerable| answerable != Answerable::default());
    let kept =
        if asks || wish != Wish::None { Kept::of(session, caller, request.params, read).map(Some) } else { Ok(None) };
    let target = wanted.target();
    let (place, held, kept) = match held.and_then(|held| Ok((held, kept?))) {
        Ok((held, kept)) => (caller.client.queue(target).map_err(Box::new), held, kept),
        Err(rejection) => {
            caller.client.rejected(target, rejection);
            (Err(Box::new(rejection)), Portion::default(), None)
        }
    };
    let call = Call {
        permitted: caller.may_use(target),
        request: wanted,
        unreadable,
        capabilities: rules.capabilities.clone(),
        answerable: answerable.unwrap_or_default(),
        journal: Arc::default(),
        session: session.number_in(&rules),
        trace,
        wire: wire(session, caller, &request.id, &rules),
        arguments: caller.preferences.arguments,
        held,
    };
    let call = Box::new(call);
    Ok(Box::new(Calling { request: registered, rules, call, progress_token, place, kept, retry, wish }))
}

/// The request for a resource by the URI under which it is offered: rights are compared with that one.
fn spelled(session: &Session, wanted: Wanted) -> Wanted {
    match wanted {
        Wanted::Resource { uri } => Wanted::Resource { uri: session.host.spelling(&uri).unwrap_or(uri) },
        other => other,
    }
}

/// What whoever traces the call wants to know, if anybody does.
fn wire(session: &Session, caller: &Caller, id: &Id, rules: &Rules) -> Option<Box<Wire>> {
    let is_local = caller.name == Caller::LOCAL;
    let wire = || Box::new(Wire { id: id.to_string(), revision: rules.revision.as_str(), is_local });
    session.host.options().traced.then(wire)
}

/// The kinds of questions that the client answers during this request; `None` if the protocol allows no questions then.
fn answerable(wanted: &Wanted, rules: &Rules) -> Option<Answerable> {
    if matches!(wanted, Wanted::Completion(_)) {
        return None;
    }
    Some(rules.capabilities.answerable(rules.revision))
}

/// What a client asks for, without what the revision does not know.
fn in_revision(wanted: Wanted, rules: &Rules) -> Wanted {
    match wanted {
        Wanted::Completion(request) if !rules.revision.features().completion_context => {
            Wanted::Completion(CompletionRequest { context: BTreeMap::new(), ..request })
        }
        wanted => wanted,
    }
}

/// Takes the bytes that the parameters will take once they are parsed.
///
/// # Errors
///
/// They would be more than one request may ever take. The inner error: there is no room for them now.
fn weigh(session: &Session, caller: &Caller, params: Option<&RawValue>) -> Result<Result<Portion, Rejection>, Error> {
    let bytes = params.map_or(0, |params| weight::decoded(params.get()));
    let most = session.host.options().bytes_of_one();
    if bytes > most {
        let [bytes, most] = [bytes, most].map(|bytes| ByteSize::b(bytes as u64).display().iec().to_string());
        let what = format!(
            "the values in the request would take {bytes}, and those of one request may take {most}, a quarter of \
             server.requests: send fewer values"
        );
        return Err(Error::new(INVALID_REQUEST, what));
    }
    Ok(session.intake.take(&caller.name, bytes).map_err(busy))
}

/// There is no room for a request now.
pub(crate) fn busy(exhausted: Exhausted) -> Rejection {
    Rejection { reason: Reason::Busy { bound: Bound::Requests, most: exhausted.most() }, retry_after: Some(RETRY) }
}

impl Kept {
    fn of(session: &Session, caller: &Caller, params: Option<&RawValue>, read: Read) -> Result<Self, Rejection> {
        let held = session.intake.take(&caller.name, params.map_or(0, |params| params.get().len())).map_err(busy)?;
        Ok(Self { params: params.map(ToOwned::to_owned), read, _held: held })
    }

    /// What the client asks for, read again, and the bytes that it takes.
    fn request(&self, session: &Session) -> Result<(Wanted, Portion), Failure> {
        let params = self.params.as_deref();
        // It was read before, so it is not malformed.
        let weighed = weigh(session, &session.opener, params).map_err(internal)?;
        let held = weighed.map_err(Failure::Rejected)?;
        Ok((spelled(session, (self.read)(params, Extent::Whole).map_err(internal)?.request), held))
    }
}

fn internal(error: Error) -> Failure {
    Failure::Call(CallError::Internal(error.message))
}

/// A call on its way: what all of its entries have in common. It stays while a person thinks, and is therefore small.
struct Journey<'a> {
    session: &'a Session,
    way: Way<'a>,
    rules: Rules,
    cancelled: &'a CancellationToken,
    observer: Arc<dyn Observer>,
    kept: Option<Kept>,
    /// Bytes of the journal while the client is being asked, and afterwards.
    journaled: Vec<Portion>,
    /// Whether a call was admitted: what it was given is used by that, however the call ends.
    was_admitted: bool,
    target: TargetKind,
    permitted: bool,
    arguments: Option<ArgumentCheck>,
    trace: Option<Box<Trace>>,
    wire: Option<Box<Wire>>,
}

/// How a call asks its client something.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// On the stream of its request.
    Reply(&'a Outbox),
    /// When the client asks for the task.
    Task(&'a Live),
}

/// How an entry ended, or a whole call.
#[expect(clippy::large_enum_variant, reason = "it is moved at once, and the answer is the common one")]
enum End {
    /// The client has cancelled the call.
    Cancelled,
    Answered(Answer),
    /// A guest panicked, or something else is wrong in the server: in words for the log.
    Panicked(String),
}

impl End {
    /// Whether it is a rejection: of an entry, the plugin has not noticed anything then.
    fn is_rejection(&self) -> bool {
        matches!(self, Self::Answered(Answer { result: Err(Failure::Rejected(_)), .. }))
    }
}

/// What a call does that has not ended with its entry.
enum Next {
    /// It asks its client.
    Ask(Box<Interview>),
    /// It waits, and enters the plugin again.
    Wait(Rejection),
}

impl Calling {
    /// Frees the box: within an asynchronous function, it would stay until the call ends.
    fn unboxed(self: Box<Self>) -> Self {
        *self
    }

    /// What was registered for the call.
    pub(crate) fn request(&self) -> &Registered {
        &self.request
    }

    /// The revision of the request.
    pub(crate) fn revision(&self) -> Revision {
        self.rules.revision
    }

    /// Whether the call is to be a task.
    pub(crate) fn wish(&self) -> Wish {
        self.wish
    }

    /// Waits until it is known whether the call is to be a task, if it is not: what tools support is known when their plugins
    /// are loaded.
    ///
    /// # Errors
    ///
    /// The tool can be called only as a task, or never. The call has ended; `None` if its client has cancelled it.
    pub(crate) async fn settle_wish(mut self: Box<Self>, session: &Session) -> Result<Box<Self>, Option<Error>> {
        if self.place.is_err() {
            // It is not made anyway.
            self.wish = Wish::None;
            return Ok(self);
        }
        let settled = tokio::select! {
            biased;
            // The call ends with that.
            () = self.request.cancelled.cancelled() => Ok(Wish::None),
            () = session.life.stopped.cancelled() => Ok(Wish::None),
            settled = self.wish.settled(session, self.call.request.target(), &self.rules) => settled,
        };
        match settled {
            Ok(wish) => {
                self.wish = wish;
                Ok(self)
            }
            Err(error) => {
                let is_wanted = session.in_flight.finish(&self.request);
                Err(is_wanted.then(|| error.of(&self.request.id)))
            }
        }
    }

    /// What tells the client of log messages and progress.
    pub(crate) fn observer(&self, session: &Session, reply: &Outbox, cancelled: CancellationToken) -> PeerObserver {
        let (target, token) = (self.call.request.target(), self.progress_token.clone());
        PeerObserver::new(reply.clone(), target, &self.rules, token, cancelled, session.host.updates().clone())
    }

    /// Runs the call; log messages, progress and questions go to `reply`.
    pub(crate) async fn run(self: Box<Self>, session: &Session, reply: &Outbox) -> Called {
        let observer = Arc::new(self.observer(session, reply, self.request.cancelled.clone()));
        let cancelled = self.request.cancelled.clone();
        let revision = self.rules.revision;
        let (request, traveling) = self.travel(session, Way::Reply(reply), observer, &cancelled);
        let Arrived { told, place } = traveling.await;
        let error = told.as_ref().and_then(Told::error);
        let answer = told.map(|told| told.encode(session, &request.id, revision));
        let mut called = Called::new(request, answer, place);
        called.encoded(error);
        called
    }

    /// Runs the call as what is, or may become, this task.
    pub(crate) async fn run_as_task(
        self: Box<Self>,
        session: &Session,
        live: &Live,
        observer: Arc<dyn Observer>,
    ) -> Arrived {
        let cancelled = live.cancelled().clone();
        let (_request, traveling) = self.travel(session, Way::Task(live), observer, &cancelled);
        traveling.await
    }

    /// What was registered, and the call on its way.
    fn travel<'a>(
        self: Box<Self>,
        session: &'a Session,
        way: Way<'a>,
        observer: Arc<dyn Observer>,
        cancelled: &'a CancellationToken,
    ) -> (Registered, impl Future<Output = Arrived> + Send + 'a) {
        let Self { request, rules, call, place, kept, retry, .. } = self.unboxed();
        let mut journey = Journey {
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
        let traveling = async move { journey.travel(call, place, retry).await };
        (request, traveling)
    }
}

/// Gives a call what an earlier one left, and the answers to its questions.
async fn resume(session: &Session, call: &mut Call, retry: Box<Retry>) -> Result<Option<Ticket>, Error> {
    let Retry { mut responses, state } = *retry;
    let Some(state) = state else {
        call.journal = Arc::new(Journal { answers: responses, ..Journal::default() });
        return Ok(None);
    };
    let (states, caller) = (session.host.request_states(), &session.opener.name);
    let opened = states.unseal(&state, Binding::of(caller, &call.request)).map_err(outcome::invalid_state)?;
    states.take(opened.ticket, caller).await.map_err(|refused| match refused {
        Refused::Used => outcome::invalid_state(Invalid::Used),
        Refused::Full => Error::new(INVALID_REQUEST, format!("{refused}: try again later")),
        Refused::Unwritten(_) => outcome::internal(&refused.to_string()),
    })?;
    let mut journal = opened.journal;
    // Answers to what was not asked could change those that the call has acted on.
    let answers = opened.asked.into_iter().filter_map(|key| responses.remove_entry(&key));
    journal.answers.extend(answers);
    call.journal = Arc::new(journal);
    Ok(Some(opened.ticket))
}

impl Journey<'_> {
    /// Makes the call, from what an earlier one left to what the client is told.
    async fn travel(
        &mut self,
        mut call: Box<Call>,
        place: Result<Box<dyn Place>, Box<Rejection>>,
        retry: Option<Box<Retry>>,
    ) -> Arrived {
        let place = match place {
            Ok(place) => place,
            Err(rejection) => {
                return Arrived { told: self.told(failed(Failure::Rejected(*rejection))), place: None };
            }
        };
        let Some(retry) = retry else {
            let (end, place) = self.run(call, place).await;
            return Arrived { told: self.told(end), place };
        };
        // Boxed with all that it needs, which few calls do.
        let resumed = async {
            let ticket = match resume(self.session, &mut call, retry).await {
                Ok(ticket) => ticket,
                Err(error) => return Arrived { told: Some(Told::failed(error)), place: Some(place) },
            };
            let (end, place) = self.run(call, place).await;
            if let (Some(ticket), true) = (ticket, end.is_rejection() && !self.was_admitted) {
                // The plugin was never entered: the client can send the same answers again.
                self.session.host.request_states().give_back(ticket).await;
            }
            Arrived { told: self.told(end), place }
        };
        Box::pin(resumed).await
    }

    /// Enters the plugin, and again with the answers each time that it has asked the client of a session something.
    async fn run(&mut self, mut call: Box<Call>, mut place: Box<dyn Place>) -> (End, Option<Box<dyn Place>>) {
        // Only a task waits for its turn before it has asked anything: it goes on with what it began with.
        let resumed = matches!(self.way, Way::Task(_)).then(|| Arc::clone(&call.journal));
        let mut answered: Option<Arc<Journal>> = None;
        loop {
            // Boxed, and dropped with all that it holds while a person thinks.
            let end = Box::pin(self.enter(call, &mut *place)).await;
            self.was_admitted |= !end.is_rejection();
            let next = match self.after(end, answered.as_deref()) {
                Ok(next) => next,
                Err(end) => return (end, Some(place)),
            };
            drop(place);
            let next = match next {
                Next::Ask(interview) => Box::pin(self.ask(interview)).await,
                Next::Wait(rejection) => {
                    let journal = answered.as_ref().or(resumed.as_ref()).cloned().unwrap_or_default();
                    match self.hold(&journal) {
                        Ok(()) => Box::pin(self.pause(rejection)).await.map(|()| journal),
                        Err(ended) => Err(ended),
                    }
                }
            };
            let again = match next {
                Ok(journal) => Box::pin(self.again(answered.insert(journal))).await,
                Err(ended) => Err(ended),
            };
            (call, place) = match again {
                Ok(again) => again,
                Err(Ended::Cancelled) => return (End::Cancelled, None),
                Err(Ended::Failed(failure)) => return (failed(failure), None),
            };
        }
    }

    /// What the call does after an entry.
    ///
    /// # Errors
    ///
    /// The call has ended with it.
    #[expect(clippy::result_large_err, reason = "the end is the common case, and is moved at once")]
    fn after(&self, end: End, answered: Option<&Journal>) -> Result<Next, End> {
        match end {
            End::Answered(Answer { result: Ok(Reply::Questions(interview)), .. }) if self.asks() => {
                Ok(Next::Ask(Box::new(interview)))
            }
            End::Answered(Answer { result: Err(Failure::Rejected(rejection)), .. })
                if self.waits_for_its_turn(rejection, answered) =>
            {
                Ok(Next::Wait(rejection))
            }
            end => Err(end),
        }
    }

    /// Makes the call, once it is admitted.
    async fn enter(&self, call: Box<Call>, place: &mut dyn Place) -> End {
        let calling = place.call(*call, Arc::clone(&self.observer));
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => End::Cancelled,
            () = self.session.life.stopped.cancelled() => failed(Failure::Call(CallError::Cancelled)),
            // A panic in a call fails only that call.
            answer = AssertUnwindSafe(calling).catch_unwind() => {
                answer.map_or_else(|panic| End::Panicked(panic_message(&panic)), End::Answered)
            }
        }
    }

    /// Whether the call waits for the answers to its questions. Otherwise its response asks them.
    fn asks(&self) -> bool {
        match self.way {
            Way::Reply(_) => !self.rules.revision.features().input_requests,
            Way::Task(live) => live.turn(Phase::Given) == Phase::Kept,
        }
    }

    /// Whether a call that was rejected waits and tries again: one that has answers, and a task.
    fn waits_for_its_turn(&self, rejection: Rejection, answered: Option<&Journal>) -> bool {
        match (self.way, answered) {
            (_, Some(journal)) => is_in_time(rejection, journal),
            // It has until its time is over.
            (Way::Task(live), None) => matches!(rejection.reason, Reason::Busy { .. }) && live.phase() == Phase::Kept,
            (Way::Reply(_), None) => false,
        }
    }

    /// Asks the client of a session, and returns the journal with the answers. Its bytes are the caller's until the call
    /// has ended.
    async fn ask(&mut self, mut interview: Box<Interview>) -> Result<Arc<Journal>, Ended> {
        let questions = std::mem::take(&mut interview.questions);
        if self.kept.is_none() || questions.is_empty() {
            return Err(Ended::Failed(unanswerable(&questions, self.target)));
        }
        let revision = self.rules.revision;
        self.may_ask(&questions).map_err(Ended::Failed)?;
        // In place of what the journal of the round before took.
        self.journaled.clear();
        self.hold(&interview.journal)?;
        let (intake, name) = (&self.session.intake, &self.session.opener.name);
        let put = Put { caller: name, questions: &questions, journal: &interview.journal };
        let mut elsewhere = self.session.host.elsewhere(put);
        if let Some(waiting) = elsewhere.as_mut().filter(|waiting| waiting.is_open()) {
            // What is kept of the questions for that is the caller's as well. Without room for it, the client alone answers.
            match intake.take(name, questions.iter().map(|question| question.params.get().len()).sum()) {
                Ok(room) => self.journaled.push(room),
                Err(_full) => waiting.leave_to_client(),
            }
        }
        let (session, cancelled, journal) = (self.session, self.cancelled, &mut interview.journal);
        // If the answer comes from elsewhere, the question is withdrawn from the client.
        let answered = match self.way {
            Way::Reply(reply) => {
                let stream = Stream { session, reply, revision, cancelled, task: None };
                tokio::select! {
                    biased;
                    answered = Elsewhere::answered(&mut elsewhere) => Err(answered),
                    held = interview::conduct(&stream, questions, journal) => Ok(held?),
                }
            }
            Way::Task(live) => {
                let waiting = Box::pin(interview::wait(session, live, questions, journal));
                tokio::select! {
                    biased;
                    answered = Elsewhere::answered(&mut elsewhere) => Err(answered),
                    held = waiting => Ok(held?),
                }
            }
        };
        let answered = match answered {
            Ok(held) => {
                self.journaled.extend(held);
                // Whoever gave it in the same moment was told that it counts.
                elsewhere.and_then(Elsewhere::close)
            }
            Err(answered) => Some(answered),
        };
        if let Some(AnsweredElsewhere { key, answer, by }) = answered {
            interview.journal.answers.insert(key, answer);
            interview.journal.operator = Some(by);
        }
        Ok(Arc::new(interview.journal))
    }

    /// Draws what the journal takes from the caller's share, unless a journal is drawn from it already.
    fn hold(&mut self, journal: &Journal) -> Result<(), Ended> {
        if self.journaled.is_empty() {
            let room = self.session.intake.take(&self.session.opener.name, journal.size());
            // With room for no other: few calls need more, and many wait.
            self.journaled = vec![room.map_err(|none| Ended::Failed(Failure::Rejected(busy(none))))?];
        }
        Ok(())
    }

    /// The call with the answers, and a new place in the client's queue.
    async fn again(&self, journal: &Arc<Journal>) -> Result<(Box<Call>, Box<dyn Place>), Ended> {
        loop {
            match self.queue(journal) {
                Err(Failure::Rejected(rejection)) if is_in_time(rejection, journal) => self.pause(rejection).await?,
                again => return again.map_err(Ended::Failed),
            }
        }
    }

    fn queue(&self, journal: &Arc<Journal>) -> Result<(Box<Call>, Box<dyn Place>), Failure> {
        let Some(kept) = &self.kept else { return Err(unanswerable(&[], self.target)) };
        let (wanted, held) = kept.request(self.session)?;
        let place = self.session.opener.client.queue(wanted.target()).map_err(Failure::Rejected)?;
        let call = Call {
            request: wanted,
            // A call that was entered had all of them.
            unreadable: None,
            permitted: self.permitted,
            capabilities: self.rules.capabilities.clone(),
            answerable: self.rules.capabilities.answerable(self.rules.revision),
            journal: Arc::clone(journal),
            session: self.session.number_in(&self.rules),
            trace: self.trace.as_deref().cloned(),
            wire: self.wire.clone(),
            arguments: self.arguments,
            held,
        };
        Ok((Box::new(call), place))
    }

    /// Waits until a call that has its answers can be queued again: they are not lost because others are being served.
    async fn pause(&self, rejection: Rejection) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Err(Ended::Cancelled),
            () = self.session.life.closing.cancelled() => Err(Ended::Failed(Failure::Call(CallError::Cancelled))),
            () = tokio::time::sleep(rejection.retry_after.unwrap_or_default().max(SOONEST)) => Ok(()),
        }
    }

    /// Whether the client answers questions of these kinds. The sandbox asks no others.
    fn may_ask(&self, questions: &[Question]) -> Result<(), Failure> {
        let answerable = self.rules.capabilities.answerable(self.rules.revision);
        let missing: Vec<_> =
            questions.iter().map(|question| question.kind).filter(|kind| !answerable.contains(*kind)).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Failure::MissingCapabilities(QuestionKind::capabilities(&missing)))
        }
    }

    /// What the client is told; `None` if it has cancelled the call.
    fn told(&self, end: End) -> Option<Told> {
        let (session, revision) = (self.session, self.rules.revision);
        let with_usage = session.host.options().usage;
        let mut retry_after = None;
        let result = match end {
            End::Cancelled => return None,
            End::Panicked(panic) => Err(outcome::internal(&panic)),
            End::Answered(Answer { result: Ok(Reply::Questions(interview)), usage }) => {
                match self.input_required(interview) {
                    Ok((questions, state)) => {
                        outcome::input_required(&questions, state, usage.filter(|_| with_usage), revision)
                    }
                    Err(failure) => {
                        outcome::outcome(Answer { result: Err(failure), usage }, self.target, revision, with_usage)
                    }
                }
            }
            End::Answered(answer) => {
                if let Err(Failure::Rejected(rejection)) = &answer.result {
                    retry_after = rejection.retry_after;
                }
                outcome::outcome(answer, self.target, revision, with_usage)
            }
        };
        Some(Told { result, retry_after })
    }

    /// The questions to a client without a session, and the sealed state that it sends back with the answers.
    fn input_required(&self, interview: Interview) -> Result<(Vec<Question>, String), Failure> {
        let Interview { questions, journal } = interview;
        let (Some(kept), false) = (&self.kept, questions.is_empty()) else {
            return Err(unanswerable(&questions, self.target));
        };
        self.may_ask(&questions)?;
        let (wanted, _held) = kept.request(self.session)?;
        let binding = Binding::of(&self.session.opener.name, &wanted);
        let asked = questions.iter().map(|question| question.key.clone()).collect();
        let state = self.session.host.request_states().seal(binding, asked, journal);
        Ok((questions, state.map_err(|what| Failure::Call(CallError::Internal(what)))?))
    }
}

/// Whether a call that was rejected can still be made before the time for its answers is over.
fn is_in_time(rejection: Rejection, journal: &Journal) -> bool {
    rejection.retry_after.is_some_and(|wait| wait.max(SOONEST) < interview::patience(journal))
}

/// What becomes of questions to a client that answers none: the sandbox was told so, and should not have passed them on.
fn unanswerable(questions: &[Question], kind: TargetKind) -> Failure {
    let keys: Vec<&str> = questions.iter().map(|question| question.key.as_str()).collect();
    let what = format!("a {kind} asked nothing, or a client that answers no questions: {}", keys.join(", "));
    Failure::Call(CallError::Internal(what))
}

impl Told {
    /// A call that ended with this error.
    pub(crate) fn failed(error: Error) -> Self {
        Self { result: Err(error), retry_after: None }
    }

    /// The code of the error, if it is one.
    fn error(&self) -> Option<i32> {
        self.result.as_ref().err().map(|error| error.code)
    }

    /// The response to the request with this id.
    pub(crate) fn encode(self, session: &Session, id: &Id, revision: Revision) -> Outgoing {
        let outgoing = match self.result {
            Ok(result) => session.result(id, result, Some(revision)),
            Err(error) if error.code == MISSING_CAPABILITY => session.refusal(&error.of(id)),
            Err(error) => Outgoing::answer(session.encode_error(&error.of(id))),
        };
        Outgoing { retry_after: self.retry_after, ..outgoing }
    }
}

impl Called {
    /// The end of a call whose response is written, with its place in the client's queue.
    pub(crate) fn new(request: Registered, answer: Option<Outgoing>, place: Option<Box<dyn Place>>) -> Self {
        Self { request, answer, place }
    }

    /// The response is written: nothing more is computed for the call. `error` is its code if it is an error.
    fn encoded(&mut self, error: Option<i32>) {
        if let Some(place) = &mut self.place {
            place.encoded(error);
        }
    }

    /// Queues the response as soon as there is capacity, unless the client cancels the call before that. The place in
    /// the client's queue is held until then. Returns whether the client gets a response.
    pub(crate) async fn send(self, session: &Session, reply: &Outbox) -> bool {
        let cancelled = self.request.cancelled.clone();
        let bytes = self.bytes();
        let capacity = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            capacity = reply.reserve(bytes) => capacity,
        };
        let (answer, _place) = self.settle(session);
        let (Some(capacity), Some(answer)) = (capacity, answer) else { return false };
        capacity.send(answer);
        true
    }

    /// Length of the response.
    pub(crate) fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |answer| answer.text.len())
    }

    /// Frees the id. Returns the response, unless the client has cancelled the call, and the place in the client's
    /// queue. Nothing may be awaited before the response is queued: the id may already be that of another request.
    pub(crate) fn settle(self, session: &Session) -> (Option<Outgoing>, Option<Box<dyn Place>>) {
        let Self { request, answer, place } = self;
        let is_wanted = session.in_flight.finish(&request);
        (answer.filter(|_| is_wanted), place)
    }
}

fn failed(failure: Failure) -> End {
    End::Answered(Answer { result: Err(failure), usage: None })
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a call panicked: {}", message.unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::future::BoxFuture;
    use serde_json::value::to_raw_value;
    use toolbay_model::{Body, Content, Observer, Output};

    use super::*;
    use crate::host::{Client, Host as _, Place};
    use crate::outbox;
    use crate::revision::Revision;
    use crate::session::{Channel, Life};
    use crate::stub::Stub;

    /// What happened to the only place, in order.
    type Steps = Arc<Mutex<Vec<&'static str>>>;

    struct Noting(Steps);

    struct Noted(Steps);

    impl Client for Noting {
        fn existing(&self, _uris: Vec<String>) -> BoxFuture<'_, Vec<String>> {
            Box::pin(std::future::ready(Vec::new()))
        }

        fn queue(&self, _tool: &str) -> Result<Box<dyn Place>, Rejection> {
            Ok(Box::new(Noted(Arc::clone(&self.0))))
        }
    }

    impl Place for Noted {
        fn call(&mut self, _call: Call, _observer: Arc<dyn Observer>) -> BoxFuture<'_, Answer> {
            self.0.lock().unwrap().push("called");
            let text = Content {
                body: Body::Text("x".repeat(1 << 20)),
                audience: Vec::new(),
                priority: None,
                last_modified: None,
            };
            let output = Output { content: vec![text], ..Output::default() };
            Box::pin(std::future::ready(Answer { result: Ok(Reply::Tool(output)), usage: None }))
        }

        fn encoded(&mut self, _error: Option<i32>) {
            self.0.lock().unwrap().push("encoded");
        }
    }

    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.lock().unwrap().push("given up");
        }
    }

    #[tokio::test]
    async fn a_call_counts_until_its_response_is_encoded_and_has_its_place_until_that_is_sent() {
        let (host, steps) = (Stub::new(), Steps::default());
        let caller = Arc::new(Caller::local(Arc::new(Noting(Arc::clone(&steps)))));
        let intake = host.options().intake(true);
        let session = Session::new(host, Arc::clone(&caller), intake, Channel::Shared, Life::default());
        let params = to_raw_value(&serde_json::json!({"name": "a"})).unwrap();
        let request = Request { id: Id::Number(1.into()), method: "tools/call".into(), params: Some(&params) };
        let revision = Revision::NEWEST_SESSION;
        let rules =
            Rules { revision, capabilities: crate::capabilities::Capabilities::default(), log: None, trace: None };
        let calling = begin(&session, &caller, &request, crate::methods::call_tool::read, rules).unwrap();
        let (outbox, messages) = outbox::channel();
        let ended = calling.run(&session, &outbox).await;
        assert!(ended.bytes() > 1 << 20, "the response is there");
        assert_eq!(*steps.lock().unwrap(), ["called", "encoded"]);
        ended.send(&session, &outbox).await;
        assert_eq!(*steps.lock().unwrap(), ["called", "encoded", "given up"]);
        assert!(messages.recv().await.is_some());
    }
}

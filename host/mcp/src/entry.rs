//! A request that enters a plugin, from its parameters to the encoded response: the mechanism of `tools/call`,
//! `prompts/get`, `resources/read` and `completion/complete`.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolbay_model::{
    Answer, Answerable, Bound, CallError, CompletionRequest, Failure, Interview, Journal, Question, QuestionKind,
    Reason, Rejection, Reply, Request as Wanted, TargetKind, Trace,
};

use crate::caller::Caller;
use crate::host::{Call, Place};
use crate::in_flight::Registered;
use crate::interview::{self, Ended};
use crate::jsonrpc::{Error, INVALID_REQUEST, Id, Request};
use crate::observer::PeerObserver;
use crate::outbox::{Outbox, Outgoing};
use crate::outcome::{self, MISSING_CAPABILITY};
use crate::quota::{Exhausted, Portion};
use crate::request_state::{Binding, Invalid, Refused, Ticket};
use crate::retry::Retry;
use crate::rules::Rules;
use crate::session::Session;
use crate::weight;

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
    traceparent: Option<String>,
    tracestate: Option<String>,
    baggage: Option<String>,
}

/// A registered call, which can be cancelled.
pub(crate) struct Calling {
    request: Registered,
    rules: Rules,
    /// Boxed, as what waits for its caller's answers has none, and is kept small.
    call: Box<Call>,
    progress_token: Option<Id>,
    place: Result<Box<dyn Place>, Rejection>,
    /// `None` if the client answers no questions: then the plugin asks none.
    kept: Option<Kept>,
    retry: Retry,
}

/// What is kept of a request while its plugin runs and its caller thinks: text takes less than values.
struct Kept {
    params: Option<Box<RawValue>>,
    read: Read,
    /// Bytes of the text.
    _held: Portion,
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
    rules: Rules,
) -> Result<Box<Calling>, Error> {
    let (asked, held) = match weigh(session, caller, request.params)? {
        Ok(held) => (read(request.params, Extent::Whole)?, Ok(held)),
        Err(rejection) => (read(request.params, Extent::Target)?, Err(rejection)),
    };
    let Asked { request: wanted, meta } = asked;
    let wanted = in_revision(wanted, &rules);
    let answerable = answerable(session, &wanted, &rules);
    let retry = match answerable {
        Some(_) if rules.revision.features().input_requests => Retry::read(request.params)?,
        _ => Retry::default(),
    };
    let Meta { progress_token, traceparent, tracestate, baggage } = meta;
    // The transport may have a trace context too; that of the message takes precedence.
    let trace = traceparent.and_then(|parent| Trace::parse(&parent, tracestate, baggage)).or(rules.trace.clone());
    let registered = session.in_flight.begin(&request.id, session.life.ended.child_token());
    let registered =
        registered.ok_or_else(|| Error::new(INVALID_REQUEST, "a request with this id is already in progress"))?;
    let kept = match answerable.filter(|answerable| *answerable != Answerable::default()) {
        Some(_) => Kept::of(session, caller, request.params, read).map(Some),
        None => Ok(None),
    };
    let target = wanted.target();
    let (place, held, kept) = match held.and_then(|held| Ok((held, kept?))) {
        Ok((held, kept)) => (caller.client.queue(target), held, kept),
        Err(rejection) => {
            caller.client.rejected(target, rejection);
            (Err(rejection), Portion::default(), None)
        }
    };
    let call = Call {
        permitted: caller.may_use(target),
        request: wanted,
        capabilities: rules.capabilities.clone(),
        answerable: answerable.unwrap_or_default(),
        journal: Journal::default(),
        session: session.number_in(&rules),
        trace,
        held,
    };
    let call = Box::new(call);
    Ok(Box::new(Calling { request: registered, rules, call, progress_token, place, kept, retry }))
}

/// The kinds of questions that the client answers during this request; `None` if the protocol allows no questions then.
fn answerable(session: &Session, wanted: &Wanted, rules: &Rules) -> Option<Answerable> {
    if matches!(wanted, Wanted::Completion(_)) {
        return None;
    }
    // A session's client takes requests as soon as it has said that it is ready.
    let ready = !rules.revision.features().sessions || session.negotiated.borrow().initialized;
    Some(if ready { rules.capabilities.answerable(rules.revision) } else { Answerable::default() })
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
    Rejection { reason: Reason::Busy { bound: Bound::Requests, most: exhausted.most() }, retry_after: RETRY }
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
        Ok(((self.read)(params, Extent::Whole).map_err(internal)?.request, held))
    }
}

fn internal(error: Error) -> Failure {
    Failure::Call(CallError::Internal(error.message))
}

/// A call on its way: what all of its entries have in common.
struct Journey<'a> {
    session: &'a Session,
    reply: &'a Outbox,
    rules: &'a Rules,
    cancelled: &'a CancellationToken,
    observer: Arc<PeerObserver>,
    kept: Option<Kept>,
    target: TargetKind,
    permitted: bool,
    trace: Option<Trace>,
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

impl Calling {
    /// Frees the box: within an asynchronous function, it would stay until the call ends.
    fn unboxed(self: Box<Self>) -> Self {
        *self
    }

    /// Runs the call; log messages, progress and questions go to `reply`.
    pub(crate) async fn run(self: Box<Self>, session: &Session, reply: &Outbox) -> Called {
        let Self { request, rules, mut call, progress_token, place, kept, retry } = self.unboxed();
        let ticket = match &place {
            Ok(_) => Box::pin(resume(session, &mut call, retry)).await,
            Err(_) => Ok(None),
        };
        let ticket = match ticket {
            Ok(ticket) => ticket,
            Err(error) => {
                let answer = Some(Outgoing::answer(session.encode_error(&error.of(&request.id))));
                return Called { request, answer, place: place.ok() };
            }
        };
        let (cancelled, updates) = (&request.cancelled, session.host.updates().clone());
        let target = call.request.target();
        let observer = PeerObserver::new(reply.clone(), target, &rules, progress_token, cancelled.clone(), updates);
        let mut journey = Journey {
            session,
            reply,
            rules: &rules,
            cancelled,
            observer: Arc::new(observer),
            kept,
            target: call.request.kind(),
            permitted: call.permitted,
            trace: call.trace.clone(),
        };
        let (end, mut place) = match place {
            Err(rejection) => (failed(Failure::Rejected(rejection)), None),
            Ok(place) => journey.run(call, place).await,
        };
        if let (Some(ticket), End::Answered(Answer { result: Err(Failure::Rejected(_)), .. })) = (ticket, &end) {
            // The plugin was not entered: the client can send the same answers again.
            session.host.request_states().give_back(ticket).await;
        }
        let answer = journey.outgoing(&request.id, end);
        if let Some(place) = &mut place {
            place.encoded();
        }
        Called { request, answer, place }
    }
}

/// Gives a call what an earlier one left, and the answers to its questions.
async fn resume(session: &Session, call: &mut Call, retry: Retry) -> Result<Option<Ticket>, Error> {
    let Retry { mut responses, state } = retry;
    let Some(state) = state else {
        call.journal.answers = responses;
        return Ok(None);
    };
    let (states, caller) = (session.host.request_states(), &session.opener.name);
    let opened = states.unseal(&state, Binding::of(caller, &call.request)).map_err(outcome::invalid_state)?;
    states.take(opened.ticket, caller).await.map_err(|refused| match refused {
        Refused::Used => outcome::invalid_state(Invalid::Used),
        Refused::Full => Error::new(INVALID_REQUEST, format!("{refused}: try again later")),
        Refused::Unwritten(_) => outcome::internal(&refused.to_string()),
    })?;
    call.journal = opened.journal;
    // Answers to what was not asked could change those that the call has acted on.
    let answers = opened.asked.into_iter().filter_map(|key| responses.remove_entry(&key));
    call.journal.answers.extend(answers);
    Ok(Some(opened.ticket))
}

impl Journey<'_> {
    /// Enters the plugin, and again with the answers each time that it has asked the client of a session something.
    async fn run(&mut self, mut call: Box<Call>, mut place: Box<dyn Place>) -> (End, Option<Box<dyn Place>>) {
        let mut answered = None;
        loop {
            // Boxed, and dropped with all that it holds while a person thinks.
            let end = Box::pin(self.enter(call, &mut *place)).await;
            let next = match (end, &answered) {
                (End::Answered(Answer { result: Ok(Reply::Questions(interview)), .. }), _)
                    if !self.rules.revision.features().input_requests =>
                {
                    drop(place);
                    Box::pin(self.ask(interview)).await
                }
                (End::Answered(Answer { result: Err(Failure::Rejected(rejection)), .. }), Some(journal))
                    if is_in_time(rejection, journal) =>
                {
                    drop(place);
                    self.pause(rejection).await.map(|()| journal.clone())
                }
                (end, _) => return (end, Some(place)),
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

    /// Makes the call, once it is admitted.
    async fn enter(&self, call: Box<Call>, place: &mut dyn Place) -> End {
        let calling = place.call(*call, Arc::<PeerObserver>::clone(&self.observer));
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

    /// Asks the client of a session, and returns the journal with the answers.
    async fn ask(&self, interview: Interview) -> Result<Journal, Ended> {
        let Interview { questions, mut journal } = interview;
        if self.kept.is_none() || questions.is_empty() {
            return Err(Ended::Failed(unanswerable(&questions, self.target)));
        }
        let revision = self.rules.revision;
        self.may_ask(&questions).map_err(Ended::Failed)?;
        interview::conduct(self.session, self.reply, questions, &mut journal, revision, self.cancelled).await?;
        Ok(journal)
    }

    /// The call with the answers, and a new place in the client's queue.
    async fn again(&self, journal: &Journal) -> Result<(Box<Call>, Box<dyn Place>), Ended> {
        loop {
            match self.queue(journal) {
                Err(Failure::Rejected(rejection)) if is_in_time(rejection, journal) => self.pause(rejection).await?,
                again => return again.map_err(Ended::Failed),
            }
        }
    }

    fn queue(&self, journal: &Journal) -> Result<(Box<Call>, Box<dyn Place>), Failure> {
        let Some(kept) = &self.kept else { return Err(unanswerable(&[], self.target)) };
        let (wanted, held) = kept.request(self.session)?;
        let place = self.session.opener.client.queue(wanted.target()).map_err(Failure::Rejected)?;
        let call = Call {
            request: wanted,
            permitted: self.permitted,
            capabilities: self.rules.capabilities.clone(),
            answerable: self.rules.capabilities.answerable(self.rules.revision),
            journal: journal.clone(),
            session: self.session.number_in(self.rules),
            trace: self.trace.clone(),
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
            () = tokio::time::sleep(rejection.retry_after.max(SOONEST)) => Ok(()),
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

    /// The response; `None` if the client has cancelled the call.
    fn outgoing(&self, id: &Id, end: End) -> Option<Outgoing> {
        let (session, revision) = (self.session, self.rules.revision);
        let with_usage = session.host.options().usage;
        let mut retry_after = None;
        let outcome = match end {
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
                    retry_after = Some(rejection.retry_after);
                }
                outcome::outcome(answer, self.target, revision, with_usage)
            }
        };
        let outgoing = match outcome {
            Ok(result) => session.result(id, result, Some(revision)),
            Err(error) if error.code == MISSING_CAPABILITY => session.refusal(&error.of(id)),
            Err(error) => Outgoing::answer(session.encode_error(&error.of(id))),
        };
        Some(Outgoing { retry_after, ..outgoing })
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
    rejection.retry_after.max(SOONEST) < interview::patience(journal)
}

/// What becomes of questions to a client that answers none: the sandbox was told so, and should not have passed them on.
fn unanswerable(questions: &[Question], kind: TargetKind) -> Failure {
    let keys: Vec<&str> = questions.iter().map(|question| question.key.as_str()).collect();
    let what = format!("a {kind} asked nothing, or a client that answers no questions: {}", keys.join(", "));
    Failure::Call(CallError::Internal(what))
}

impl Called {
    /// Queues the response as soon as there is capacity, unless the client cancels the call before that. The place in
    /// the client's queue is held until then.
    pub(crate) async fn send(self, session: &Session, reply: &Outbox) {
        let cancelled = self.request.cancelled.clone();
        let bytes = self.bytes();
        let capacity = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            capacity = reply.reserve(bytes) => capacity,
        };
        let (answer, _place) = self.settle(session);
        if let (Some(capacity), Some(answer)) = (capacity, answer) {
            capacity.send(answer);
        }
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

        fn encoded(&mut self) {
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
        let (outbox, mut messages) = outbox::channel();
        let ended = calling.run(&session, &outbox).await;
        assert!(ended.bytes() > 1 << 20, "the response is there");
        assert_eq!(*steps.lock().unwrap(), ["called", "encoded"]);
        ended.send(&session, &outbox).await;
        assert_eq!(*steps.lock().unwrap(), ["called", "encoded", "given up"]);
        assert!(messages.recv().await.is_some());
    }
}

//! Receives messages and dispatches requests to their methods.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::caller::Caller;
use crate::jsonrpc::{self, Error, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Message, Request, shorten};
use crate::method::Method;
use crate::methods::call_tool::{Called, Calling};
use crate::methods::{
    Answered, call_tool, cancelled, discover, initialize, initialized, list_tools, listen, ping, set_level,
};
use crate::outbox::{Outbox, Outgoing};
use crate::revision::Revision;
use crate::rules::{Rules, unattached};
use crate::session::Session;

/// Handles the content of one line or body, with the rights of `caller`; responses go to `reply`. Returns when the next
/// message may be read: calls continue in the background.
pub(crate) async fn receive(
    session: &Arc<Session>,
    caller: &Caller,
    incoming: Result<Incoming<'_>, Error>,
    reply: &Outbox,
) {
    match incoming {
        Ok(Incoming::Single(message)) => single(session, caller, message, reply).await,
        Ok(Incoming::Batch(messages)) => batch(session, caller, messages, reply).await,
        Err(error) => session.refuse(error, reply).await,
    }
}

async fn single(session: &Arc<Session>, caller: &Caller, message: Message<'_>, reply: &Outbox) {
    match message {
        Message::Request(asked) => {
            let rules = session.rules(asked.params);
            request(session, caller, asked, rules, reply).await;
        }
        Message::Notification { method, params } => notification(session, &method, params, reply),
        Message::Response => tracing::debug!("ignored a response to a request that was never sent"),
    }
}

/// Handles a request of `caller` under these rules.
pub(crate) async fn request(
    session: &Arc<Session>,
    caller: &Caller,
    request: Request<'_>,
    rules: Result<Option<Rules>, Error>,
    reply: &Outbox,
) {
    let (method, rules) = match rules.and_then(|rules| Ok((method(&request, rules.as_ref())?, rules))) {
        Ok(known) => known,
        Err(error) => return session.refuse(error.of(&request.id), reply).await,
    };
    match (method, rules) {
        (Method::CallTool, Some(rules)) => match call_tool::begin(session, caller, &request, rules) {
            Ok(calling) => start(session, calling, reply),
            Err(error) => session.refuse(error, reply).await,
        },
        (Method::Listen, Some(rules)) => {
            if let Err(error) = listen::open(session, caller, &request, &rules, reply) {
                session.refuse(error.of(&request.id), reply).await;
            }
        }
        (Method::ListTools, Some(rules)) if !session.host.is_complete() => {
            // Waits for plugins that are still loading at startup, without delaying other requests.
            let (session, caller, reply, id) = (Arc::clone(session), caller.clone(), reply.clone(), request.id);
            let bytes = request.params.map_or(0, |params| params.get().len());
            let held = match session.intake.take(&caller.name, bytes) {
                Ok(held) => held,
                Err(exhausted) => {
                    let error = Error::new(INVALID_REQUEST, call_tool::busy(exhausted).reason.message()).of(&id);
                    return session.refuse(error, &reply).await;
                }
            };
            let params = request.params.map(ToOwned::to_owned);
            let listing = Arc::clone(&session);
            session.spawn(async move {
                let request = Request { id, method: Method::ListTools.name().into(), params: params.as_deref() };
                reply.send(answer(&listing, &caller, &request, Method::ListTools, Some(rules)).await).await;
                drop(held);
            });
        }
        (method, rules) => reply.send(answer(session, caller, &request, method, rules).await).await,
    }
}

/// The method of a request, if it is available under `rules`.
fn method(request: &Request<'_>, rules: Option<&Rules>) -> Result<Method, Error> {
    let unknown = || Error::new(METHOD_NOT_FOUND, format!("Method not found: {}", shorten(&request.method)));
    let method = Method::parse(&request.method).ok_or_else(unknown)?;
    match rules {
        Some(rules) if method.is_in(rules.revision) => Ok(method),
        Some(_) => Err(unknown()),
        None if method.is_before_session() => Ok(method),
        None => Err(unattached()),
    }
}

/// The response to a request that is answered at once.
async fn answer(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    method: Method,
    rules: Option<Rules>,
) -> Outgoing {
    let revision = rules.as_ref().map(|rules| rules.revision);
    let answered: Answered = match (method, rules) {
        (Method::Initialize, _) => initialize::answer(session, caller, request.params),
        (Method::Ping, _) => ping::answer(),
        (Method::SetLevel, _) => set_level::answer(session, request.params),
        (Method::Discover, _) => discover::answer(session),
        (Method::ListTools, Some(rules)) => {
            return match list_tools::answer(session, caller, request.params, rules.revision).await {
                Ok(listed) => Outgoing::answer(jsonrpc::result(&request.id, &listed)),
                Err(error) => session.refusal(&error.of(&request.id)),
            };
        }
        // Handled by `request`.
        (Method::ListTools | Method::CallTool | Method::Listen, _) => Err(unattached()),
    };
    match answered {
        Ok(result) => Session::result(&request.id, result, revision),
        Err(error) => session.refusal(&error.of(&request.id)),
    }
}

/// Handles a batch: all responses form one array; notifications have none.
async fn batch(session: &Arc<Session>, caller: &Caller, messages: Vec<Result<Message<'_>, Error>>, reply: &Outbox) {
    let revision = session.negotiated.borrow().revision;
    if !revision.is_some_and(|revision| revision.features().batches) {
        let with_batches = Revision::ALL.into_iter().filter(|revision| revision.features().batches);
        let dates: Vec<&str> = with_batches.map(Revision::as_str).collect();
        let what = format!("batches are supported only in revision {}", dates.join(", "));
        return session.refuse(Error::new(INVALID_REQUEST, what), reply).await;
    }
    let mut answers = Vec::new();
    let mut calls = Vec::new();
    for message in messages {
        match message {
            Ok(Message::Request(request)) => match in_batch(session, caller, &request).await {
                Ok(InBatch::Answer(answer)) => answers.push(answer),
                Ok(InBatch::Call(call)) => calls.push(call),
                Err(error) => answers.push(session.refusal(&error.of(&request.id))),
            },
            Ok(Message::Notification { method, params }) => notification(session, &method, params, reply),
            Ok(Message::Response) => {}
            Err(error) => answers.push(session.refusal(&error)),
        }
    }
    let (calling, reply) = (Arc::clone(session), reply.clone());
    session.spawn_call(async move {
        let ended = join_all(calls.into_iter().map(|call| call.run(&calling, &reply))).await;
        let bytes: usize = ended.iter().map(Called::bytes).chain(answers.iter().map(|answer| answer.text.len())).sum();
        let capacity = reply.reserve(bytes).await;
        let (ended, places): (Vec<_>, Vec<_>) = ended.into_iter().map(|call| call.settle(&calling)).unzip();
        answers.extend(ended.into_iter().flatten());
        if let Some(capacity) = capacity.filter(|_| !answers.is_empty()) {
            let texts: Vec<Vec<u8>> = answers.into_iter().map(|answer| answer.text).collect();
            capacity.send(Outgoing::answer([b"[".as_slice(), &texts.join(&b','), b"]"].concat()));
        }
        drop(places);
    });
}

/// A request of a batch: answered already, or a call to run.
enum InBatch {
    Answer(Outgoing),
    Call(Box<Calling>),
}

async fn in_batch(session: &Arc<Session>, caller: &Caller, request: &Request<'_>) -> Result<InBatch, Error> {
    let rules = session.rules(request.params)?;
    match (method(request, rules.as_ref())?, rules) {
        (Method::Initialize, _) => Err(Error::new(INVALID_REQUEST, "initialize must not be part of a batch")),
        (Method::CallTool, Some(rules)) => {
            call_tool::begin(session, caller, request, rules).map(|call| InBatch::Call(Box::new(call)))
        }
        (method, rules) => Ok(InBatch::Answer(answer(session, caller, request, method, rules).await)),
    }
}

fn start(session: &Arc<Session>, calling: Calling, reply: &Outbox) {
    let (calls, reply) = (Arc::clone(session), reply.clone());
    session.spawn_call(async move {
        calling.run(&calls, &reply).await.send(&calls, &reply).await;
    });
}

fn notification(session: &Arc<Session>, method: &str, params: Option<&serde_json::value::RawValue>, reply: &Outbox) {
    match method {
        "notifications/initialized" => initialized::receive(session, reply),
        "notifications/cancelled" => cancelled::receive(session, params),
        _ => tracing::debug!(method = shorten(method), "ignored an unknown notification"),
    }
}

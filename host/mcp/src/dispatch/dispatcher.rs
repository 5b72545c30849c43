//! Receives messages and dispatches requests to their methods.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::value::RawValue;

use crate::dispatch::methods::list_prompts::PromptList;
use crate::dispatch::methods::list_resources::ResourceList;
use crate::dispatch::methods::list_skills::SkillList;
use crate::dispatch::methods::list_templates::TemplateList;
use crate::dispatch::methods::list_tools::ToolList;
use crate::dispatch::methods::{
    MethodResult, call_tool, cancel_task, cancelled, complete, discover, get_prompt, get_skill,
    get_task, initialize, initialized, list_tasks, listen, ping, read_folder, read_resource,
    set_level, subscribe, task_result, update_task,
};
use crate::dispatch::paging::{self, ListResult};
use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::host::caller::Caller;
use crate::plugin_request::encoded_call::EncodedCall;
use crate::plugin_request::entry_params::ParamsReader;
use crate::plugin_request::params_memory::busy_rejection;
use crate::plugin_request::pending_call::{PendingCall, ResolvedCall};
use crate::plugin_request::request_run;
use crate::protocol::jsonrpc::{
    self, Error, INVALID_REQUEST, IncomingContent, METHOD_NOT_FOUND, Message, Request, RequestId,
    truncate_quote,
};
use crate::protocol::message_context::{RequestContext, missing_session};
use crate::protocol::method::McpMethod;
use crate::protocol::revision::Revision;
use crate::session::client_session::{Session, SessionChannel};

/// Handles the content of one line or body, with the rights of `caller`. Responses go to `reply`.
/// Returns when the next message may be read: calls continue in the background.
pub(crate) async fn receive(
    session: &Arc<Session>,
    caller: &Caller,
    incoming: Result<IncomingContent<'_>, Error>,
    reply: &Outbox,
) {
    match incoming {
        Ok(IncomingContent::Single(message)) => {
            handle_message(session, caller, message, reply).await
        }
        Ok(IncomingContent::Batch(messages)) => {
            handle_batch(session, caller, messages, reply).await
        }
        Err(error) => session.reject(error, reply).await,
    }
}

async fn handle_message(
    session: &Arc<Session>,
    caller: &Caller,
    message: Message<'_>,
    reply: &Outbox,
) {
    match message {
        Message::Request(asked) => {
            let rules = session.request_context(asked.params);
            handle_request(session, caller, asked, rules, reply).await;
        }
        Message::Notification { method, params } => {
            handle_notification(session, &method, params, reply)
        }
        Message::Response { id, outcome } => handle_response(session, caller, id.as_ref(), outcome),
    }
}

/// Handles a request of `caller` under these rules.
pub(crate) async fn handle_request(
    session: &Arc<Session>,
    caller: &Caller,
    request: Request<'_>,
    rules: Result<Option<RequestContext>, Error>,
    reply: &Outbox,
) {
    let (method, rules) = match rules
        .and_then(|rules| Ok((resolve_method(session, &request, rules.as_ref())?, rules)))
    {
        Ok(known) => known,
        Err(error) => return session.reject(error.with_id(&request.id), reply).await,
    };
    match (method, rules) {
        (method, Some(rules)) if let Some(read) = params_reader(method) => {
            request_run::run_request(session, caller, &request, read, rules, reply).await
        }
        (McpMethod::TaskResult, Some(rules)) => {
            if let Err(error) =
                task_result::open(session, caller, &request, rules.revision, reply).await
            {
                session.reject(error.with_id(&request.id), reply).await;
            }
        }
        (McpMethod::Listen, Some(rules)) => {
            if let Err(error) = listen::open(session, caller, &request, &rules, reply) {
                session.reject(error.with_id(&request.id), reply).await;
            }
        }
        (method, Some(rules)) if method.waits_for_plugins() && !session.host.is_complete() => {
            // Waits for plugins that are still loading at startup, without delaying other requests.
            let (session, caller, reply, id) = (
                Arc::clone(session),
                caller.clone(),
                reply.clone(),
                request.id,
            );
            let bytes = request.params.map_or(0, |params| params.get().len());
            let held = match session.intake.try_reserve(&caller.name, bytes) {
                Ok(held) => held,
                Err(exhausted) => {
                    let error = Error::new(
                        INVALID_REQUEST,
                        busy_rejection(exhausted).reason.to_string(),
                    )
                    .with_id(&id);
                    return session.reject(error, &reply).await;
                }
            };
            let params = request.params.map(ToOwned::to_owned);
            let waiting = Arc::clone(&session);
            session.spawn(async move {
                let request = Request {
                    id,
                    method: method.name().into(),
                    params: params.as_deref(),
                };
                reply
                    .send(respond(&waiting, &caller, &request, method, Some(rules)).await)
                    .await;
                drop(held);
            });
        }
        (method, rules) => {
            reply
                .send(respond(session, caller, &request, method, rules).await)
                .await
        }
    }
}

/// Returns the reader for the parameters of a method that enters a plugin; `None` if the method
/// enters none.
fn params_reader(method: McpMethod) -> Option<ParamsReader> {
    match method {
        McpMethod::CallTool => Some(call_tool::read),
        McpMethod::GetPrompt => Some(get_prompt::read),
        McpMethod::ReadResource => Some(read_resource::read),
        McpMethod::Complete => Some(complete::read),
        _ => None,
    }
}

/// The method of a request, if it is available under `request_context`.
fn resolve_method(
    session: &Session,
    request: &Request<'_>,
    rules: Option<&RequestContext>,
) -> Result<McpMethod, Error> {
    let unknown = || {
        Error::new(
            METHOD_NOT_FOUND,
            format!("Method not found: {}", truncate_quote(&request.method)),
        )
    };
    let method = McpMethod::parse(&request.method).ok_or_else(unknown)?;
    match rules {
        Some(rules) if method.is_defined_in(rules.revision) => {
            if session.channel == SessionChannel::OneRequest && method.changes_session_state() {
                let what = format!(
                    "{} needs a session, and this server has none (http.sessions)",
                    method.name()
                );
                return Err(Error::new(METHOD_NOT_FOUND, what));
            }
            Ok(method)
        }
        Some(_) => Err(unknown()),
        None if method.is_allowed_before_session() => Ok(method),
        None => Err(missing_session()),
    }
}

/// Returns the response to a request that does not enter a plugin.
async fn respond(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    method: McpMethod,
    rules: Option<RequestContext>,
) -> OutgoingMessage {
    let (revision, params) = (rules.as_ref().map(|rules| rules.revision), request.params);
    if let (McpMethod::GetTask, Some(rules)) = (method, &rules) {
        let answered = get_task::answer(session, caller, &request.id, params, rules).await;
        return answered
            .unwrap_or_else(|error| session.encode_rejection(&error.with_id(&request.id)));
    }
    let answered: MethodResult = match (method, revision) {
        (McpMethod::Initialize, _) => initialize::answer(session, caller, params).await,
        (McpMethod::Ping, _) => ping::answer(params),
        (McpMethod::SetLevel, _) => set_level::answer(session, params),
        (McpMethod::Discover, Some(revision)) => discover::answer(session, caller, revision).await,
        (McpMethod::ListTools, Some(revision)) => {
            return encode_list(
                session,
                request,
                paging::list_result::<ToolList>(session, caller, params, revision).await,
            );
        }
        (McpMethod::ListPrompts, Some(revision)) => {
            return encode_list(
                session,
                request,
                paging::list_result::<PromptList>(session, caller, params, revision).await,
            );
        }
        (McpMethod::ListResources, Some(revision)) => {
            return encode_list(
                session,
                request,
                paging::list_result::<ResourceList>(session, caller, params, revision).await,
            );
        }
        (McpMethod::ListTemplates, Some(revision)) => {
            return encode_list(
                session,
                request,
                paging::list_result::<TemplateList>(session, caller, params, revision).await,
            );
        }
        (McpMethod::ListSkills, Some(revision)) => {
            return encode_list(
                session,
                request,
                paging::list_result::<SkillList>(session, caller, params, revision).await,
            );
        }
        (McpMethod::GetSkill, Some(revision)) => {
            return encode_list(
                session,
                request,
                get_skill::answer(session, caller, params, revision).await,
            );
        }
        (McpMethod::ReadFolder, Some(revision)) => {
            return encode_list(
                session,
                request,
                read_folder::answer(session, caller, params, revision).await,
            );
        }
        (McpMethod::Subscribe, Some(revision)) => {
            subscribe::subscribe(session, caller, params, revision).await
        }
        (McpMethod::CancelTask, _) if let Some(rules) = &rules => {
            cancel_task::answer(session, caller, params, rules).await
        }
        (McpMethod::UpdateTask, _) if let Some(rules) = &rules => {
            update_task::answer(session, caller, params, rules).await
        }
        (McpMethod::ListTasks, Some(revision)) => {
            list_tasks::answer(session, caller, params, revision).await
        }
        (McpMethod::Unsubscribe, _) => subscribe::unsubscribe(session, params),
        // Handled by `handle_request`, or refused by `resolve_method`.
        _ => Err(missing_session()),
    };
    match answered {
        Ok(result) => session.encode_result(&request.id, result, revision),
        Err(error) => session.encode_rejection(&error.with_id(&request.id)),
    }
}

fn encode_list(
    session: &Session,
    request: &Request<'_>,
    listed: Result<ListResult, Error>,
) -> OutgoingMessage {
    match listed {
        Ok(listed) => OutgoingMessage::response(jsonrpc::result(&request.id, &listed)),
        Err(error) => session.encode_rejection(&error.with_id(&request.id)),
    }
}

/// Handles a batch: all responses form one array, and notifications have none.
async fn handle_batch(
    session: &Arc<Session>,
    caller: &Caller,
    messages: Vec<Result<Message<'_>, Error>>,
    reply: &Outbox,
) {
    let revision = session.negotiated.borrow().revision;
    if !revision.is_some_and(|revision| revision.features().batches) {
        let with_batches = Revision::ALL
            .into_iter()
            .filter(|revision| revision.features().batches);
        let dates: Vec<&str> = with_batches.map(Revision::as_str).collect();
        let what = format!(
            "batches are supported only in revision {}",
            dates.join(", ")
        );
        return session
            .reject(Error::new(INVALID_REQUEST, what), reply)
            .await;
    }
    let mut answers = Vec::new();
    let mut calls = Vec::new();
    for message in messages {
        match message {
            Ok(Message::Request(request)) => {
                match start_batch_item(session, caller, &request).await {
                    Ok(InBatch::Answer(answer)) => answers.push(answer),
                    Ok(InBatch::Call(call)) => calls.push(call),
                    Err(error) => {
                        answers.push(session.encode_rejection(&error.with_id(&request.id)))
                    }
                }
            }
            Ok(Message::Notification { method, params }) => {
                handle_notification(session, &method, params, reply)
            }
            Ok(Message::Response { id, outcome }) => {
                handle_response(session, caller, id.as_ref(), outcome)
            }
            Err(error) => answers.push(session.encode_rejection(&error)),
        }
    }
    let (calling, reply) = (Arc::clone(session), reply.clone());
    session.spawn_call(async move {
        let mut running = Vec::new();
        for call in join_all(
            calls
                .into_iter()
                .map(|call| call.resolve_task_mode(&calling)),
        )
        .await
        {
            match call {
                ResolvedCall::Ready(call) => running.push(call),
                ResolvedCall::Refused(error) => answers.push(calling.encode_rejection(&error)),
                ResolvedCall::Cancelled => {}
            }
        }
        let ended = join_all(
            running
                .into_iter()
                .map(|call| request_run::run_call(call, &calling, &reply)),
        )
        .await;
        let bytes: usize = ended
            .iter()
            .map(EncodedCall::bytes)
            .chain(answers.iter().map(|answer| answer.text.len()))
            .sum();
        let capacity = reply.reserve(bytes).await;
        let (ended, places): (Vec<_>, Vec<_>) =
            ended.into_iter().map(|call| call.finish(&calling)).unzip();
        answers.extend(ended.into_iter().flatten());
        if let Some(capacity) = capacity.filter(|_| !answers.is_empty()) {
            let texts: Vec<Vec<u8>> = answers.into_iter().map(|answer| answer.text).collect();
            capacity.send(OutgoingMessage::response(
                [b"[".as_slice(), &texts.join(&b','), b"]"].concat(),
            ));
        }
        drop(places);
    });
}

/// A request of a batch: either its response or a call to run.
enum InBatch {
    Answer(OutgoingMessage),
    Call(Box<PendingCall>),
}

async fn start_batch_item(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
) -> Result<InBatch, Error> {
    let rules = session.request_context(request.params)?;
    match (resolve_method(session, request, rules.as_ref())?, rules) {
        (McpMethod::Initialize, _) => Err(Error::new(
            INVALID_REQUEST,
            "initialize must not be part of a batch",
        )),
        (method, Some(rules)) if let Some(read) = params_reader(method) => {
            request_run::begin_call(session, caller, request, read, rules).map(InBatch::Call)
        }
        (method, rules) => Ok(InBatch::Answer(
            respond(session, caller, request, method, rules).await,
        )),
    }
}

/// Delivers the response to a request of the server.
fn handle_response(
    session: &Session,
    caller: &Caller,
    id: Option<&RequestId>,
    outcome: Result<&RawValue, Error>,
) {
    if !session
        .pending
        .respond(id, outcome, &session.intake, &caller.name)
    {
        tracing::debug!("ignored a response to a request that is not waiting for one");
    }
}

fn handle_notification(
    session: &Arc<Session>,
    method: &str,
    params: Option<&RawValue>,
    reply: &Outbox,
) {
    match method {
        "notifications/initialized" => initialized::receive(session, reply),
        "notifications/cancelled" => cancelled::receive(session, params),
        _ => tracing::debug!(
            method = truncate_quote(method),
            "ignored an unknown notification"
        ),
    }
}

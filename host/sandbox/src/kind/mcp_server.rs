//! Components that are MCP servers themselves: HTTP handlers, and commands that communicate over
//! standard input and output.
//!
//! The crate `toolbay-guest-mcp` creates the requests and interprets the responses. This module
//! transports the bytes within the call's limits. Each request runs in its own instance. A guest
//! that needs a session gets its handshake first, in the same instance.

mod http_transport;
mod message_reader;
mod p3_handler;
mod reply_conversion;
mod run_until;
mod stdio_client;

use std::sync::Arc;

use toolbay_guest_mcp::{
    ClientDescription, GuestConversation, GuestMethod, QuestionAnswers, RequestOutcome, STATELESS,
    lists,
};
use toolbay_model::{CallJournal, GuestServerProtocol};
use wasmtime::Store;

use self::message_reader::GuestMessageReader;
pub(crate) use self::message_reader::RequestReply;
use crate::capability::input_request::MissingCapability;
use crate::context::plugin_request::PluginRequest;
use crate::kind::http_handler::HandlerPre;
use crate::kind::linked_command::LinkedCommand;
use crate::reply::guest_reply::{GuestFailure, GuestReply};
use crate::store::state::StoreState;

/// Key of the guest's own request state in the journal. The guest receives it again with the
/// answers. No question can have this key.
const STATE_KEY: &str = "=state";

/// The transport of the messages.
#[derive(Clone, Copy)]
pub(crate) enum ServerTransport<'a> {
    /// An HTTP handler.
    Http(&'a HandlerPre),
    /// A command, over its standard input and output.
    Stdio(&'a LinkedCommand),
}

/// Sends a request to a guest, in a new instance.
pub(crate) async fn call(
    transport: ServerTransport<'_>,
    store: &mut Store<StoreState>,
    protocol: &GuestServerProtocol,
    plugin_request: PluginRequest<'_>,
) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
    let journal = store.data().question_context.journal();
    let method = match plugin_request {
        PluginRequest::Tool { name, arguments } => {
            let headers = protocol
                .headers
                .get(name)
                .map(Vec::as_slice)
                .unwrap_or_default();
            GuestMethod::Tool {
                name,
                arguments,
                headers,
            }
        }
        PluginRequest::Prompt { name, arguments } => GuestMethod::Prompt { name, arguments },
        PluginRequest::Resource { uri } => GuestMethod::Resource { uri },
        PluginRequest::Completion(request) => GuestMethod::Completion(request),
    };
    let outcome = match self::send_request(
        transport,
        store,
        protocol,
        &method,
        &journal_answers(&journal),
    )
    .await?
    {
        RequestReply::Outcome(RequestOutcome::Result(result)) => Ok(result),
        RequestReply::Outcome(RequestOutcome::Error(problem))
            if !problem.missing_capabilities.is_empty() =>
        {
            return Err(MissingCapability::new(problem.missing_capabilities).into());
        }
        RequestReply::Outcome(RequestOutcome::Error(problem)) => Err(problem),
        RequestReply::NotMcp(status, body) => {
            let description = reply_conversion::describe_status(status, &body);
            return Ok(Err(GuestFailure::Failed(format!(
                "The MCP server answered {description}."
            ))));
        }
        RequestReply::Malformed(why) => return Ok(Err(GuestFailure::Malformed(why))),
    };
    match reply_conversion::convert_response(plugin_request, outcome) {
        Ok(reply_conversion::ConvertedResponse::Reply(reply)) => Ok(Ok(reply)),
        Ok(reply_conversion::ConvertedResponse::Questions(questions, state)) => {
            let state = state.map(|state| {
                (
                    STATE_KEY.to_owned(),
                    serde_json::json!({STATE_KEY: state}).to_string(),
                )
            });
            let why = store
                .data()
                .question_context
                .ask_with_state(&questions, state.into_iter().collect())?;
            Ok(Err(GuestFailure::Failed(format!(
                "The MCP server's question cannot be asked: {why}."
            ))))
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Returns the client's answers, and the request state that the guest sent with its questions. A
/// client can send unsolicited answers under any key, so the state is read only from a journal that
/// the host has sealed.
fn journal_answers(journal: &Arc<CallJournal>) -> QuestionAnswers<'_> {
    let state_text = journal
        .answers
        .get(STATE_KEY)
        .filter(|_| journal.rounds > 0);
    let state_json =
        state_text.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let state = state_json.and_then(|json| json.get(STATE_KEY)?.as_str().map(str::to_owned));
    let responses = journal.answers.iter().filter(|(key, _)| *key != STATE_KEY);
    QuestionAnswers {
        responses: responses
            .map(|(key, answer)| (key.as_str(), answer.as_str()))
            .collect(),
        state,
    }
}

/// Sends one request to a new instance, after the handshake if the guest needs one.
pub(crate) async fn send_request(
    transport: ServerTransport<'_>,
    store: &mut Store<StoreState>,
    protocol: &GuestServerProtocol,
    method: &GuestMethod<'_>,
    answers: &QuestionAnswers<'_>,
) -> wasmtime::Result<RequestReply> {
    // In a session, a guest sends its requests during the call, and the host would have to answer
    // them immediately. So the host declares no capabilities.
    let capabilities = if protocol.revision == STATELESS {
        store.data().question_context.capabilities()
    } else {
        serde_json::Map::default()
    };
    let mut guest_conversation =
        GuestConversation::new(&protocol.revision, ClientDescription { capabilities });
    let needs_handshake =
        !guest_conversation.is_stateless() && !matches!(method, GuestMethod::Initialize);
    match transport {
        ServerTransport::Http(pre) => {
            let path = protocol.path.as_deref().unwrap_or("/");
            let handler = pre.instantiate(store).await?;
            if needs_handshake {
                let initialize = guest_conversation
                    .next_message(&GuestMethod::Initialize, &QuestionAnswers::default());
                let (session, reply) =
                    http_transport::send_request(&handler, store, path, initialize, false).await?;
                if let Err(failure) = complete_handshake(&mut guest_conversation, reply, session) {
                    return Ok(failure);
                }
                let initialized = guest_conversation
                    .next_message(&GuestMethod::Initialized, &QuestionAnswers::default());
                let (_, reply) =
                    http_transport::send_request(&handler, store, path, initialized, false).await?;
                match reply {
                    RequestReply::NotMcp(200..=299, _) => {}
                    unexpected => return Ok(handshake_error(&unexpected)),
                }
            }
            let (_, reply) = http_transport::send_request(
                &handler,
                store,
                path,
                guest_conversation.next_message(method, answers),
                true,
            )
            .await?;
            Ok(reply)
        }
        ServerTransport::Stdio(pre) => {
            let stdio_transport = store.data().stdio_transport.clone().unwrap_or_default();
            let mut message_reader = GuestMessageReader::for_call(store);
            let command = pre.instantiate(store).await?;
            let exchange = async {
                if needs_handshake {
                    let initialize = guest_conversation
                        .next_message(&GuestMethod::Initialize, &QuestionAnswers::default());
                    let reply = stdio_client::send_request(
                        &stdio_transport,
                        &initialize,
                        &mut message_reader,
                    )
                    .await?;
                    if let Err(failure) = complete_handshake(&mut guest_conversation, reply, None) {
                        return Ok(failure);
                    }
                    stdio_client::send_line(
                        &stdio_transport,
                        &guest_conversation
                            .next_message(&GuestMethod::Initialized, &QuestionAnswers::default())
                            .body,
                        &message_reader,
                    )?;
                }
                stdio_client::send_request(
                    &stdio_transport,
                    &guest_conversation.next_message(method, answers),
                    &mut message_reader,
                )
                .await
            };
            let guest = async {
                let run_result = command.run(store).await;
                stdio_client::exit_result(run_result)
            };
            let missing_reply = || wasmtime::bail!("it ended without an answer");
            run_until::run_until(guest, exchange, true, missing_reply).await
        }
    }
}

/// Processes the guest's response to the handshake.
fn complete_handshake(
    guest_conversation: &mut GuestConversation,
    reply: RequestReply,
    session: Option<String>,
) -> Result<(), RequestReply> {
    let RequestReply::Outcome(RequestOutcome::Result(result)) = reply else {
        return Err(handshake_error(&reply));
    };
    match lists::parse_initialize_result(&result) {
        Ok(server) => {
            guest_conversation.complete_handshake(&server.revision, session);
            Ok(())
        }
        Err(why) => Err(RequestReply::Malformed(format!(
            "its handshake failed: {why}"
        ))),
    }
}

fn handshake_error(reply: &RequestReply) -> RequestReply {
    RequestReply::Malformed(format!(
        "its handshake failed: {}",
        reply_conversion::describe_response(reply)
    ))
}

/// Describes a guest's response on one line, for messages.
pub(crate) fn describe_response(reply: &RequestReply) -> String {
    reply_conversion::describe_response(reply)
}

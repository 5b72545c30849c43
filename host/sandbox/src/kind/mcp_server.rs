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

use self::message_reader::MessageIntake;
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
    wire: ServerTransport<'_>,
    store: &mut Store<StoreState>,
    manner: &GuestServerProtocol,
    asked: PluginRequest<'_>,
) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
    let journal = store.data().question_context.journal();
    let ask = match asked {
        PluginRequest::Tool { name, arguments } => {
            let headers = manner
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
    let outcome =
        match self::send_request(wire, store, manner, &ask, &journal_answers(&journal)).await? {
            RequestReply::Outcome(RequestOutcome::Result(result)) => Ok(result),
            RequestReply::Outcome(RequestOutcome::Error(problem))
                if !problem.missing_capabilities.is_empty() =>
            {
                return Err(MissingCapability::new(problem.missing_capabilities).into());
            }
            RequestReply::Outcome(RequestOutcome::Error(problem)) => Err(problem),
            RequestReply::NotMcp(status, body) => {
                let shown = reply_conversion::describe_status(status, &body);
                return Ok(Err(GuestFailure::Failed(format!(
                    "The MCP server answered {shown}."
                ))));
            }
            RequestReply::Malformed(why) => return Ok(Err(GuestFailure::Malformed(why))),
        };
    match reply_conversion::convert_response(asked, outcome) {
        Ok(reply_conversion::ReplyText::Reply(returned)) => Ok(Ok(returned)),
        Ok(reply_conversion::ReplyText::Questions(posed, state)) => {
            let state = state.map(|state| {
                (
                    STATE_KEY.to_owned(),
                    serde_json::json!({STATE_KEY: state}).to_string(),
                )
            });
            let why = store
                .data()
                .question_context
                .ask_with_state(&posed, state.into_iter().collect())?;
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
    let own = journal
        .answers
        .get(STATE_KEY)
        .filter(|_| journal.rounds > 0);
    let own = own.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let state = own.and_then(|json| json.get(STATE_KEY)?.as_str().map(str::to_owned));
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
    wire: ServerTransport<'_>,
    store: &mut Store<StoreState>,
    manner: &GuestServerProtocol,
    ask: &GuestMethod<'_>,
    answers: &QuestionAnswers<'_>,
) -> wasmtime::Result<RequestReply> {
    // In a session, a guest sends its requests during the call, and the host would have to answer
    // them immediately. So the host declares no capabilities.
    let capabilities = if manner.revision == STATELESS {
        store.data().question_context.capabilities()
    } else {
        serde_json::Map::default()
    };
    let mut speaker = GuestConversation::new(&manner.revision, ClientDescription { capabilities });
    let shakes_hands = !speaker.is_stateless() && !matches!(ask, GuestMethod::Initialize);
    match wire {
        ServerTransport::Http(pre) => {
            let path = manner.path.as_deref().unwrap_or("/");
            let handler = pre.instantiate(store).await?;
            if shakes_hands {
                let greeting =
                    speaker.next_message(&GuestMethod::Initialize, &QuestionAnswers::default());
                let (session, said) =
                    http_transport::send_request(&handler, store, path, greeting, false).await?;
                if let Err(said) = complete_handshake(&mut speaker, said, session) {
                    return Ok(said);
                }
                let thanks =
                    speaker.next_message(&GuestMethod::Initialized, &QuestionAnswers::default());
                let (_, said) =
                    http_transport::send_request(&handler, store, path, thanks, false).await?;
                match said {
                    RequestReply::NotMcp(200..=299, _) => {}
                    said => return Ok(handshake_error(&said)),
                }
            }
            let (_, said) = http_transport::send_request(
                &handler,
                store,
                path,
                speaker.next_message(ask, answers),
                true,
            )
            .await?;
            Ok(said)
        }
        ServerTransport::Stdio(pre) => {
            let talk = store.data().stdio_transport.clone().unwrap_or_default();
            let mut intake = MessageIntake::for_call(store);
            let command = pre.instantiate(store).await?;
            let conversation = async {
                if shakes_hands {
                    let greeting =
                        speaker.next_message(&GuestMethod::Initialize, &QuestionAnswers::default());
                    let said = stdio_client::send_request(&talk, &greeting, &mut intake).await?;
                    if let Err(said) = complete_handshake(&mut speaker, said, None) {
                        return Ok(said);
                    }
                    stdio_client::send_line(
                        &talk,
                        &speaker
                            .next_message(&GuestMethod::Initialized, &QuestionAnswers::default())
                            .body,
                        &intake,
                    )?;
                }
                stdio_client::send_request(&talk, &speaker.next_message(ask, answers), &mut intake)
                    .await
            };
            let guest = async {
                let ended = command.run(store).await;
                stdio_client::exit_result(ended)
            };
            let silent = || wasmtime::bail!("it ended without an answer");
            run_until::run_until(guest, conversation, true, silent).await
        }
    }
}

/// Processes the guest's response to the handshake.
fn complete_handshake(
    speaker: &mut GuestConversation,
    said: RequestReply,
    session: Option<String>,
) -> Result<(), RequestReply> {
    let RequestReply::Outcome(RequestOutcome::Result(result)) = said else {
        return Err(handshake_error(&said));
    };
    match lists::parse_initialize_result(&result) {
        Ok(server) => {
            speaker.complete_handshake(&server.revision, session);
            Ok(())
        }
        Err(why) => Err(RequestReply::Malformed(format!(
            "its handshake failed: {why}"
        ))),
    }
}

fn handshake_error(said: &RequestReply) -> RequestReply {
    RequestReply::Malformed(format!(
        "its handshake failed: {}",
        reply_conversion::describe_response(said)
    ))
}

/// Describes a guest's response on one line, for messages.
pub(crate) fn describe_response(said: &RequestReply) -> String {
    reply_conversion::describe_response(said)
}

//! Components that are MCP servers themselves: HTTP handlers, and commands that communicate over
//! standard input and output.
//!
//! The crate `toolbay-guest-mcp` creates the requests and interprets the responses. This module
//! transports the bytes within the call's limits. Each request runs in its own instance. A guest
//! that needs a session gets its handshake first, in the same instance.

mod beside;
mod exchange;
mod intake;
mod pipe;
mod serve;
mod words;

use std::sync::Arc;

use toolbay_guest_mcp::{
    ClientDescription, GuestConversation, GuestMethod, QuestionAnswers, RequestOutcome, STATELESS, lists,
};
use toolbay_model::{CallJournal, GuestServerProtocol};
use wasmtime::Store;

use self::intake::MessageIntake;
pub(crate) use self::intake::RequestReply;
use crate::ask::MissingCapability;
use crate::asked::PluginRequest;
use crate::guest_reply::{GuestFailure, GuestReply};
use crate::http_handler::HandlerPre;
use crate::run::LinkedCommand;
use crate::state::StoreState;

/// Key of the guest's own request state in the journal. The guest gets it back with the answers. No
/// question has this key.
const STATE: &str = "=state";

/// The transport of the messages.
#[derive(Clone, Copy)]
pub(crate) enum ServerTransport<'a> {
    /// An HTTP handler.
    Handler(&'a HandlerPre),
    /// A command, over its standard input and output.
    Command(&'a LinkedCommand),
}

/// Sends a request to a guest, in a new instance.
pub(crate) async fn call(
    wire: ServerTransport<'_>,
    store: &mut Store<StoreState>,
    manner: &GuestServerProtocol,
    asked: PluginRequest<'_>,
) -> wasmtime::Result<Result<GuestReply, GuestFailure>> {
    let journal = store.data().asking.journal();
    let ask = match asked {
        PluginRequest::Tool { name, arguments } => {
            let headers = manner.headers.get(name).map(Vec::as_slice).unwrap_or_default();
            GuestMethod::Tool { name, arguments, headers }
        }
        PluginRequest::Prompt { name, arguments } => GuestMethod::Prompt { name, arguments },
        PluginRequest::Resource { uri } => GuestMethod::Resource { uri },
        PluginRequest::Completion(request) => GuestMethod::Completion(request),
    };
    let outcome = match self::ask(wire, store, manner, &ask, &answers(&journal)).await? {
        RequestReply::Outcome(RequestOutcome::Result(result)) => Ok(result),
        RequestReply::Outcome(RequestOutcome::Problem(problem)) if !problem.lacking.is_empty() => {
            return Err(MissingCapability::of(problem.lacking).into());
        }
        RequestReply::Outcome(RequestOutcome::Problem(problem)) => Err(problem),
        RequestReply::Other(status, body) => {
            let shown = words::status(status, &body);
            return Ok(Err(GuestFailure::Failed(format!("The MCP server answered {shown}."))));
        }
        RequestReply::Wrong(why) => return Ok(Err(GuestFailure::Malformed(why))),
    };
    match words::returned(asked, outcome) {
        Ok(words::ReplyText::Returned(returned)) => Ok(Ok(returned)),
        Ok(words::ReplyText::Questions(posed, state)) => {
            let state = state.map(|state| (STATE.to_owned(), serde_json::json!({STATE: state}).to_string()));
            let why = store.data().asking.pose(&posed, state.into_iter().collect())?;
            Ok(Err(GuestFailure::Failed(format!("The MCP server's question cannot be asked: {why}."))))
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Returns the client's answers, and the request state that the guest sent with its questions. A
/// client can send unsolicited answers under any key, so the state is read only from a journal that
/// the host has sealed.
fn answers(journal: &Arc<CallJournal>) -> QuestionAnswers<'_> {
    let own = journal.answers.get(STATE).filter(|_| journal.rounds > 0);
    let own = own.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let state = own.and_then(|own| own.get(STATE)?.as_str().map(str::to_owned));
    let responses = journal.answers.iter().filter(|(key, _)| *key != STATE);
    QuestionAnswers { responses: responses.map(|(key, answer)| (key.as_str(), answer.as_str())).collect(), state }
}

/// Sends one request to a new instance, after the handshake if the guest needs one.
pub(crate) async fn ask(
    wire: ServerTransport<'_>,
    store: &mut Store<StoreState>,
    manner: &GuestServerProtocol,
    ask: &GuestMethod<'_>,
    answers: &QuestionAnswers<'_>,
) -> wasmtime::Result<RequestReply> {
    // In a session, a guest sends its requests during the call, and the host would have to answer
    // them immediately. So the host declares no capabilities.
    let capabilities =
        if manner.revision == STATELESS { store.data().asking.capabilities() } else { serde_json::Map::default() };
    let mut speaker = GuestConversation::new(&manner.revision, ClientDescription { capabilities });
    let shakes_hands = !speaker.is_stateless() && !matches!(ask, GuestMethod::Initialize);
    match wire {
        ServerTransport::Handler(pre) => {
            let path = manner.path.as_deref().unwrap_or("/");
            let handler = pre.instantiate(store).await?;
            if shakes_hands {
                let greeting = speaker.say(&GuestMethod::Initialize, &QuestionAnswers::default());
                let (session, said) = exchange::exchange(&handler, store, path, greeting, false).await?;
                if let Err(said) = opened(&mut speaker, said, session) {
                    return Ok(said);
                }
                let thanks = speaker.say(&GuestMethod::Initialized, &QuestionAnswers::default());
                let (_, said) = exchange::exchange(&handler, store, path, thanks, false).await?;
                match said {
                    RequestReply::Other(200..=299, _) => {}
                    said => return Ok(failed_handshake(&said)),
                }
            }
            let (_, said) = exchange::exchange(&handler, store, path, speaker.say(ask, answers), true).await?;
            Ok(said)
        }
        ServerTransport::Command(pre) => {
            let (talk, mut intake) = (store.data().talk.clone().unwrap_or_default(), MessageIntake::of(store));
            let command = pre.instantiate(store).await?;
            let conversation = async {
                if shakes_hands {
                    let greeting = speaker.say(&GuestMethod::Initialize, &QuestionAnswers::default());
                    let said = pipe::ask(&talk, &greeting, &mut intake).await?;
                    if let Err(said) = opened(&mut speaker, said, None) {
                        return Ok(said);
                    }
                    pipe::say(
                        &talk,
                        &speaker.say(&GuestMethod::Initialized, &QuestionAnswers::default()).body,
                        &intake,
                    )?;
                }
                pipe::ask(&talk, &speaker.say(ask, answers), &mut intake).await
            };
            let guest = async {
                let ended = command.run(store).await;
                pipe::ended(ended)
            };
            let silent = || wasmtime::bail!("it ended without an answer");
            beside::beside(guest, conversation, true, silent).await
        }
    }
}

/// Processes the guest's response to the handshake.
fn opened(speaker: &mut GuestConversation, said: RequestReply, session: Option<String>) -> Result<(), RequestReply> {
    let RequestReply::Outcome(RequestOutcome::Result(result)) = said else { return Err(failed_handshake(&said)) };
    match lists::initialized(&result) {
        Ok(server) => {
            speaker.opened(&server.revision, session);
            Ok(())
        }
        Err(why) => Err(RequestReply::Wrong(format!("its handshake failed: {why}"))),
    }
}

fn failed_handshake(said: &RequestReply) -> RequestReply {
    RequestReply::Wrong(format!("its handshake failed: {}", words::said(said)))
}

/// Describes a guest's response on one line, for messages.
pub(crate) fn shown(said: &RequestReply) -> String {
    words::said(said)
}

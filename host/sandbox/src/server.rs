//! Components that are MCP servers of their own: handlers of HTTP requests, and commands that speak over standard input
//! and output.
//!
//! What is said, and what the answers mean, is known to the crate `toolbay-guest-mcp`; here the bytes are carried, within
//! the call's bounds. Each question is put to an instance of its own. A guest that wants a session gets its handshake
//! first, in the same instance.

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

/// The key of the answer that is the guest's own: what it wants to have back with the others. No question has such a key.
const STATE: &str = "=state";

/// What carries the messages.
#[derive(Clone, Copy)]
pub(crate) enum ServerTransport<'a> {
    /// A handler of HTTP requests.
    Handler(&'a HandlerPre),
    /// A command, by its standard input and output.
    Command(&'a LinkedCommand),
}

/// Asks a guest for something, in an instance of its own.
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

/// The answers of the client, and what the guest gave with its questions. A client can send answers that nobody asked for,
/// under any key: what the guest gave is only in a journal that the host has sealed.
fn answers(journal: &Arc<CallJournal>) -> QuestionAnswers<'_> {
    let own = journal.answers.get(STATE).filter(|_| journal.rounds > 0);
    let own = own.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let state = own.and_then(|own| own.get(STATE)?.as_str().map(str::to_owned));
    let responses = journal.answers.iter().filter(|(key, _)| *key != STATE);
    QuestionAnswers { responses: responses.map(|(key, answer)| (key.as_str(), answer.as_str())).collect(), state }
}

/// Puts one question to an instance of its own, after the handshake if there is one.
pub(crate) async fn ask(
    wire: ServerTransport<'_>,
    store: &mut Store<StoreState>,
    manner: &GuestServerProtocol,
    ask: &GuestMethod<'_>,
    answers: &QuestionAnswers<'_>,
) -> wasmtime::Result<RequestReply> {
    // Over a session, the host is asked in the middle of a call, and would have to answer there: it declares nothing.
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

/// Takes in what the guest said to the handshake.
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

/// What a guest said, for people, on one line.
pub(crate) fn shown(said: &RequestReply) -> String {
    words::said(said)
}

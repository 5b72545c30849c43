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

use toolbay_guest_mcp::{Answers, Ask, Client, Outcome, STATELESS, Speaker, lists};
use toolbay_model::{Journal, Manner};
use wasmtime::Store;

use self::intake::Intake;
pub(crate) use self::intake::Said;
use crate::ask::Incapable;
use crate::asked::Asked;
use crate::handler::HandlerPre;
use crate::returned::{Refusal, Returned};
use crate::run::Run;
use crate::state::State;

/// The key of the answer that is the guest's own: what it wants to have back with the others. No question has such a key.
const STATE: &str = "=state";

/// What carries the messages.
#[derive(Clone, Copy)]
pub(crate) enum Wire<'a> {
    /// A handler of HTTP requests.
    Handler(&'a HandlerPre),
    /// A command, by its standard input and output.
    Command(&'a Run),
}

/// Asks a guest for something, in an instance of its own.
pub(crate) async fn call(
    wire: Wire<'_>,
    store: &mut Store<State>,
    manner: &Manner,
    asked: Asked<'_>,
) -> wasmtime::Result<Result<Returned, Refusal>> {
    let journal = store.data().asking.journal();
    let ask = match asked {
        Asked::Tool { name, arguments } => {
            let headers = manner.headers.get(name).map(Vec::as_slice).unwrap_or_default();
            Ask::Tool { name, arguments, headers }
        }
        Asked::Prompt { name, arguments } => Ask::Prompt { name, arguments },
        Asked::Resource { uri } => Ask::Resource { uri },
        Asked::Completion(request) => Ask::Completion(request),
    };
    let outcome = match self::ask(wire, store, manner, &ask, &answers(&journal)).await? {
        Said::Outcome(Outcome::Result(result)) => Ok(result),
        Said::Outcome(Outcome::Problem(problem)) if !problem.lacking.is_empty() => {
            return Err(Incapable::of(problem.lacking).into());
        }
        Said::Outcome(Outcome::Problem(problem)) => Err(problem),
        Said::Other(status, body) => {
            let shown = words::status(status, &body);
            return Ok(Err(Refusal::Failed(format!("The MCP server answered {shown}."))));
        }
        Said::Wrong(why) => return Ok(Err(Refusal::Malformed(why))),
    };
    match words::returned(asked, outcome) {
        Ok(words::Words::Returned(returned)) => Ok(Ok(returned)),
        Ok(words::Words::Questions(posed, state)) => {
            let state = state.map(|state| (STATE.to_owned(), serde_json::json!({STATE: state}).to_string()));
            let why = store.data().asking.pose(&posed, state.into_iter().collect())?;
            Ok(Err(Refusal::Failed(format!("The MCP server's question cannot be asked: {why}."))))
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// The answers of the client, and what the guest gave with its questions. A client can send answers that nobody asked for,
/// under any key: what the guest gave is only in a journal that the host has sealed.
fn answers(journal: &Arc<Journal>) -> Answers<'_> {
    let own = journal.answers.get(STATE).filter(|_| journal.rounds > 0);
    let own = own.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let state = own.and_then(|own| own.get(STATE)?.as_str().map(str::to_owned));
    let responses = journal.answers.iter().filter(|(key, _)| *key != STATE);
    Answers { responses: responses.map(|(key, answer)| (key.as_str(), answer.as_str())).collect(), state }
}

/// Puts one question to an instance of its own, after the handshake if there is one.
pub(crate) async fn ask(
    wire: Wire<'_>,
    store: &mut Store<State>,
    manner: &Manner,
    ask: &Ask<'_>,
    answers: &Answers<'_>,
) -> wasmtime::Result<Said> {
    // Over a session, the host is asked in the middle of a call, and would have to answer there: it declares nothing.
    let capabilities =
        if manner.revision == STATELESS { store.data().asking.capabilities() } else { serde_json::Map::default() };
    let mut speaker = Speaker::new(&manner.revision, Client { capabilities });
    let shakes_hands = !speaker.is_stateless() && !matches!(ask, Ask::Initialize);
    match wire {
        Wire::Handler(pre) => {
            let path = manner.path.as_deref().unwrap_or("/");
            let handler = pre.instantiate(store).await?;
            if shakes_hands {
                let greeting = speaker.say(&Ask::Initialize, &Answers::default());
                let (session, said) = exchange::exchange(&handler, store, path, greeting, false).await?;
                if let Err(said) = opened(&mut speaker, said, session) {
                    return Ok(said);
                }
                let thanks = speaker.say(&Ask::Initialized, &Answers::default());
                let (_, said) = exchange::exchange(&handler, store, path, thanks, false).await?;
                match said {
                    Said::Other(200..=299, _) => {}
                    said => return Ok(failed_handshake(&said)),
                }
            }
            let (_, said) = exchange::exchange(&handler, store, path, speaker.say(ask, answers), true).await?;
            Ok(said)
        }
        Wire::Command(pre) => {
            let (talk, mut intake) = (store.data().talk.clone().unwrap_or_default(), Intake::of(store));
            let command = pre.instantiate(store).await?;
            let conversation = async {
                if shakes_hands {
                    let greeting = speaker.say(&Ask::Initialize, &Answers::default());
                    let said = pipe::ask(&talk, &greeting, &mut intake).await?;
                    if let Err(said) = opened(&mut speaker, said, None) {
                        return Ok(said);
                    }
                    pipe::say(&talk, &speaker.say(&Ask::Initialized, &Answers::default()).body, &intake)?;
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
fn opened(speaker: &mut Speaker, said: Said, session: Option<String>) -> Result<(), Said> {
    let Said::Outcome(Outcome::Result(result)) = said else { return Err(failed_handshake(&said)) };
    match lists::initialized(&result) {
        Ok(server) => {
            speaker.opened(&server.revision, session);
            Ok(())
        }
        Err(why) => Err(Said::Wrong(format!("its handshake failed: {why}"))),
    }
}

fn failed_handshake(said: &Said) -> Said {
    Said::Wrong(format!("its handshake failed: {}", words::said(said)))
}

/// What a guest said, for people, on one line.
pub(crate) fn shown(said: &Said) -> String {
    words::said(said)
}

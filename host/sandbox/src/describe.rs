//! Asks a plugin for what it offers when it is loaded.

use std::sync::Arc;
use std::time::Instant;

use tokio::time::{timeout, timeout_at};
use toolbay_guest_mcp::lists::{self, Page, Server};
use toolbay_guest_mcp::{Answers, Ask, List, Outcome, SESSIONS, STATELESS};
use toolbay_model::{Answerable, CallError, Description, Limit, Limits, Manner, Quiet};

use crate::call::Finished;
use crate::compiled::Compiled;
use crate::coop::coop;
use crate::environment::{Entry, Environment};
use crate::listed::Listed;
use crate::prepared::Prepared;
use crate::sandbox::Sandbox;
use crate::server::{self, Said, Wire};
use crate::state::Given;
use crate::talk::Talk;
use crate::tape::Tape;

/// The paths at which handlers of HTTP requests are asked, in this order.
const PATHS: [&str; 2] = ["/mcp", "/"];

/// The most pages of one list.
const PAGES: usize = 64;

impl Sandbox {
    /// Asks a plugin for its tools, prompts and resources, without permissions and within `limits`. Waits while many others
    /// are asked. What it said becomes definitions elsewhere: [`Compiled::description`] may take long.
    ///
    /// Must run on the guests' runtime ([`Sandbox::spawn`]).
    pub async fn describe(&self, compiled: &Compiled, limits: &Limits) -> Finished<Listed> {
        let _describing = self.describing().await;
        let environment = Environment { limits: limits.clone(), ..Environment::default() };
        let deadline = Instant::now() + limits.timeout;
        let entry = Entry {
            tape: Tape::default(),
            environment: &environment,
            caller: None,
            trace: None,
            observer: Arc::new(Quiet),
            answerable: Answerable::default(),
            journal: Arc::default(),
            deadline,
            place: None,
        };
        let prepared = &compiled.prepared;
        let probe = |wire| Probe { sandbox: self, prepared, entry: &entry, wire };
        match prepared.wire() {
            Some(wire @ Wire::Handler(pre)) => return probe(wire).handler(pre.interface()).await,
            Some(wire @ Wire::Command(_)) if compiled.speaks => {
                return probe(wire).command().await;
            }
            _ => {}
        }
        match self.enter(prepared, &entry, self.files(), Given::default()) {
            Ok(mut entered) => {
                let exchanges = entered.store.data().exchanges.clone();
                let call = prepared.list(&mut entered.store);
                let answer = timeout(limits.timeout, coop(entered.meter.clone(), exchanges, None, call)).await;
                entered.finish(answer, Ok)
            }
            Err(error) => Finished::unentered(Err(error)),
        }
    }
}

/// Finds out whether a component is an MCP server, and what it offers. Each question is put to an instance of its own, and
/// all of them together have the time of one.
struct Probe<'a> {
    sandbox: &'a Sandbox,
    prepared: &'a Prepared,
    entry: &'a Entry<'a>,
    wire: Wire<'a>,
}

impl Probe<'_> {
    /// What a handler of HTTP requests offers, or what was tried.
    async fn handler(self, interface: &str) -> Finished<Listed> {
        let mut tried = Vec::new();
        for path in PATHS {
            let manner = |revision: &str| Manner { path: Some(path.to_owned()), ..manner(revision) };
            let (stateless, sessions) = (manner(STATELESS), manner(SESSIONS));
            for (manner, ask) in [(stateless, Ask::Discover), (sessions, Ask::Initialize)] {
                let what = format!("POST {path} ({})", ask.method());
                match self.meets(manner, &ask, None).await {
                    Ok((server, manner)) => return self.listed(&server, manner).await,
                    Err(Refused::Ended(finished)) => return *finished,
                    Err(Refused::Other(why)) => tried.push(format!("{what}: {why}")),
                    // Nothing is at this path.
                    Err(Refused::Absent(why)) => {
                        tried.push(format!("{what}: {why}"));
                        break;
                    }
                }
            }
        }
        if self.prepared.has_command() {
            return Finished::unentered(Ok(Listed::default()));
        }
        let refused = format!(
            "it exports {interface}, but does not speak MCP: {}. A component for an HTTP host, such as Spin \
             or wasmtime serve, is no plugin",
            tried.join("; ")
        );
        Finished::unentered(Ok(Listed { refused: Some(refused), ..Listed::default() }))
    }

    /// What a command offers if it is an MCP server; nothing if it is only a command.
    async fn command(self) -> Finished<Listed> {
        for (revision, ask) in [(STATELESS, Ask::Discover), (SESSIONS, Ask::Initialize)] {
            // Its input ends there: a command that reads all of it first must not wait for more.
            match self.meets(manner(revision), &ask, Some(Talk::once())).await {
                Ok((server, manner)) => return self.listed(&server, manner).await,
                Err(Refused::Ended(finished)) => return *finished,
                Err(Refused::Other(_) | Refused::Absent(_)) => {}
            }
        }
        Finished::unentered(Ok(Listed::default()))
    }

    /// Asks what the component is.
    async fn meets(&self, manner: Manner, ask: &Ask<'_>, talk: Option<Talk>) -> Result<(Server, Manner), Refused> {
        let finished = self.once(&manner, ask, talk).await;
        let said = match finished.result {
            // On a busy machine it may be another time.
            Err(CallError::Limit { limit: Limit::Deadline(_), .. } | CallError::Internal(_)) => {
                let ended = finished.and_then(|_| Ok(Listed::default()));
                return Err(Refused::Ended(Box::new(ended)));
            }
            Err(error) => return Err(Refused::Other(error.to_string().replace('\n', "; "))),
            Ok(said) => said,
        };
        let understood = match &said {
            Said::Outcome(Outcome::Result(result)) if matches!(ask, Ask::Discover) => lists::discovered(result),
            Said::Outcome(Outcome::Result(result)) => lists::initialized(result),
            Said::Other(404 | 405, _) => return Err(Refused::Absent(server::shown(&said))),
            said => Err(server::shown(said)),
        };
        match understood {
            Ok(server) => {
                let manner = Manner { revision: server.revision.clone(), ..manner };
                Ok((server, manner))
            }
            Err(why) => Err(Refused::Other(why)),
        }
    }

    /// All that it lists.
    async fn listed(&self, server: &Server, mut manner: Manner) -> Finished<Listed> {
        let mut said = Description { completes: server.completes, ..Description::default() };
        let mut room = self.entry.environment.limits.transfer.as_u64();
        let mut last = None;
        for list in List::ALL.into_iter().filter(|list| server.has(*list)) {
            let mut cursor: Option<String> = None;
            for page in 0.. {
                if page == PAGES {
                    let why = format!("{} has more than {PAGES} pages", list.method());
                    return Finished::unentered(Err(CallError::Failed(why)));
                }
                let talk = matches!(self.wire, Wire::Command(_)).then(Talk::default);
                let finished = self.once(&manner, &Ask::List(list, cursor.as_deref()), talk).await;
                let finished = finished.and_then(|answer| entries(list, answer, &mut room, &mut said));
                let next = match &finished.result {
                    Ok(next) => next.clone(),
                    Err(_) => return finished.and_then(|_| Ok(Listed::default())),
                };
                last = Some(finished);
                if next.is_none() {
                    break;
                }
                if next == cursor {
                    let why = format!("{} names the same page twice", list.method());
                    return Finished::unentered(Err(CallError::Failed(why)));
                }
                cursor = next;
            }
        }
        if manner.path.is_some() && manner.revision == STATELESS {
            let headers = said.tools.iter().map(|tool| (tool.name.clone(), lists::headers(&tool.input_schema)));
            manner.headers = headers.filter(|(_, headers)| !headers.is_empty()).collect();
        }
        said.manner = Some(manner);
        match last {
            Some(finished) => finished.and_then(|_| Ok(said.into())),
            None => Finished::unentered(Ok(said.into())),
        }
    }

    /// Puts one question to an instance of its own.
    async fn once(&self, manner: &Manner, ask: &Ask<'_>, talk: Option<Talk>) -> Finished<Said> {
        let given = Given { talk, ..Given::default() };
        match self.sandbox.enter(self.prepared, self.entry, self.sandbox.files(), given) {
            Ok(mut entered) => {
                let exchanges = entered.store.data().exchanges.clone();
                let answers = Answers::default();
                let call = server::ask(self.wire, &mut entered.store, manner, ask, &answers);
                let call = coop(entered.meter.clone(), exchanges, None, call);
                let answer = timeout_at(self.entry.deadline.into(), call).await;
                entered.finish(answer, Ok)
            }
            Err(error) => Finished::unentered(Err(error)),
        }
    }
}

/// Why a component is not known to be an MCP server.
enum Refused {
    /// It was not heard to the end.
    Ended(Box<Finished<Listed>>),
    /// It is none in this manner.
    Other(String),
    /// Nothing is at this path.
    Absent(String),
}

fn manner(revision: &str) -> Manner {
    Manner { revision: revision.to_owned(), ..Manner::default() }
}

/// Adds what is on a page. Returns where the next one begins. A list that the guest does not have is empty.
fn entries(list: List, answer: Said, room: &mut u64, said: &mut Description) -> Result<Option<String>, CallError> {
    let failed = |why: String| CallError::Failed(format!("{}: {why}", list.method()));
    let result = match answer {
        Said::Outcome(Outcome::Result(result)) => result,
        Said::Outcome(Outcome::Problem(problem)) if problem.is_unknown_method() => return Ok(None),
        other => return Err(failed(server::shown(&other))),
    };
    let most = *room;
    *room = room
        .checked_sub(result.len() as u64)
        .ok_or_else(|| failed(format!("its lists have more than {most} bytes")))?;
    let added = match list {
        List::Tools => lists::tools(&result).map(|page| added(&mut said.tools, page)),
        List::Prompts => lists::prompts(&result).map(|page| added(&mut said.prompts, page)),
        List::Resources => lists::resources(&result).map(|page| added(&mut said.resources, page)),
        List::Templates => lists::templates(&result).map(|page| added(&mut said.templates, page)),
    };
    added.map_err(failed)
}

fn added<T>(all: &mut Vec<T>, page: Page<T>) -> Option<String> {
    all.extend(page.items);
    page.next
}

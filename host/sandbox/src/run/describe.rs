//! Requests a plugin's description when it is loaded.

use std::sync::Arc;
use std::time::Instant;

use tokio::time::{timeout, timeout_at};
use toolbay_guest_mcp::lists::{self, GuestPage, ServerDescription};
use toolbay_guest_mcp::{
    GuestList, GuestMethod, NEWEST_WITH_SESSIONS, QuestionAnswers, RequestOutcome, STATELESS,
};
use toolbay_model::{
    CallError, ComponentDescription, GuestServerProtocol, Limit, Limits, NoopObserver,
    QuestionKindSet,
};

use crate::capability::stdio::stdio_transport::StdioTransport;
use crate::capability::yielding::drive_cooperatively;
use crate::context::call_context::{CallContext, PluginContext};
use crate::context::replay_log::ReplayTape;
use crate::kind::mcp_server::{self, RequestReply, ServerTransport};
use crate::prepare::compiled::CompiledFile;
use crate::prepare::prepared_component::PreparedComponent;
use crate::reply::raw_description::RawDescription;
use crate::run::call::FinishedCall;
use crate::run::sandbox::Sandbox;
use crate::store::state::CallResources;

/// The paths at which HTTP handlers are probed, in this order.
const PROBED_PATHS: [&str; 2] = ["/mcp", "/"];

/// Maximum number of pages of one list.
const MAX_PAGES: usize = 64;

impl Sandbox {
    /// Asks a plugin for its tools, prompts and resources, without permissions and within `limits`.
    /// Waits while too many other plugins are being described. The result is raw:
    /// [`CompiledFile::description`], which may take long, converts it into definitions.
    ///
    /// Must run on the guests' runtime ([`Sandbox::spawn`]).
    pub async fn describe(
        &self,
        compiled: &CompiledFile,
        limits: &Limits,
    ) -> FinishedCall<RawDescription> {
        // The semaphore is never closed.
        let _describing = self.inner.describe_permits.acquire().await;
        let environment = PluginContext {
            limits: limits.clone(),
            ..PluginContext::default()
        };
        let deadline = Instant::now() + limits.timeout;
        let entry = CallContext {
            tape: ReplayTape::default(),
            environment: &environment,
            caller: None,
            trace: None,
            observer: Arc::new(NoopObserver),
            answerable: QuestionKindSet::default(),
            journal: Arc::default(),
            deadline,
            compute_permit: None,
        };
        let prepared = &compiled.prepared;
        let probe = |wire| ServerProbe {
            sandbox: self,
            prepared,
            entry: &entry,
            transport: wire,
        };
        match prepared.server_transport() {
            Some(wire @ ServerTransport::Http(pre)) => {
                return probe(wire).probe_handler(pre.interface()).await;
            }
            Some(wire @ ServerTransport::Stdio(_)) if compiled.may_be_mcp_server => {
                return probe(wire).probe_command().await;
            }
            _ => {}
        }
        match self.enter(
            prepared,
            &entry,
            self.inner.descriptors.start_call(),
            CallResources::default(),
        ) {
            Ok(mut entered) => {
                let exchanges = entered.store.data().pending_requests.clone();
                let call = prepared.list(&mut entered.store);
                let answer = timeout(
                    limits.timeout,
                    drive_cooperatively(entered.meter.clone(), exchanges, None, call),
                )
                .await;
                entered.finish(answer, Ok)
            }
            Err(error) => FinishedCall::without_guest(Err(error)),
        }
    }
}

/// Determines whether a component is an MCP server, and lists the items that it offers. Each
/// request uses a separate instance, and all of them together share the time limit of one call.
struct ServerProbe<'a> {
    sandbox: &'a Sandbox,
    prepared: &'a PreparedComponent,
    entry: &'a CallContext<'a>,
    transport: ServerTransport<'a>,
}

impl ServerProbe<'_> {
    /// Returns the items that an HTTP handler offers, or the requests that were tried.
    async fn probe_handler(self, interface: &str) -> FinishedCall<RawDescription> {
        let mut tried = Vec::new();
        for path in PROBED_PATHS {
            let endpoint_for = |revision: &str| GuestServerProtocol {
                path: Some(path.to_owned()),
                ..endpoint(revision)
            };
            let stateless = endpoint_for(STATELESS);
            let sessions = endpoint_for(NEWEST_WITH_SESSIONS);
            for (manner, ask) in [
                (stateless, GuestMethod::Discover),
                (sessions, GuestMethod::Initialize),
            ] {
                let what = format!("POST {path} ({})", ask.method());
                match self.identify(manner, &ask, None).await {
                    Ok((server, manner)) => return self.list_all(&server, manner).await,
                    Err(ProbeRefusal::Ended(finished)) => return *finished,
                    Err(ProbeRefusal::Other(why)) => tried.push(format!("{what}: {why}")),
                    // Nothing is served at this path.
                    Err(ProbeRefusal::Absent(why)) => {
                        tried.push(format!("{what}: {why}"));
                        break;
                    }
                }
            }
        }
        if self.prepared.has_command() {
            return FinishedCall::without_guest(Ok(RawDescription::default()));
        }
        let refused = format!(
            "it exports {interface}, but does not speak MCP: {}. A component for an HTTP host, such as \
             Spin or wasmtime serve, is not a plugin",
            tried.join("; ")
        );
        FinishedCall::without_guest(Ok(RawDescription {
            refusal_reason: Some(refused),
            ..RawDescription::default()
        }))
    }

    /// Returns the items that a command offers if it is an MCP server. Returns an empty description
    /// if it is only a command.
    async fn probe_command(self) -> FinishedCall<RawDescription> {
        for (revision, ask) in [
            (STATELESS, GuestMethod::Discover),
            (NEWEST_WITH_SESSIONS, GuestMethod::Initialize),
        ] {
            // The input ends after the request: a command that reads all input first must not
            // block.
            match self
                .identify(
                    endpoint(revision),
                    &ask,
                    Some(StdioTransport::single_request()),
                )
                .await
            {
                Ok((server, manner)) => return self.list_all(&server, manner).await,
                Err(ProbeRefusal::Ended(finished)) => return *finished,
                Err(ProbeRefusal::Other(_) | ProbeRefusal::Absent(_)) => {}
            }
        }
        FinishedCall::without_guest(Ok(RawDescription::default()))
    }

    /// Asks the component to identify itself as an MCP server.
    async fn identify(
        &self,
        manner: GuestServerProtocol,
        method: &GuestMethod<'_>,
        conversation: Option<StdioTransport>,
    ) -> Result<(ServerDescription, GuestServerProtocol), ProbeRefusal> {
        let finished = self.send_request(&manner, method, conversation).await;
        let reply = match finished.result {
            // A later attempt can succeed, for example on a busy machine.
            Err(
                CallError::Limit {
                    limit: Limit::Deadline(_),
                    ..
                }
                | CallError::Internal(_),
            ) => {
                let ended = finished.and_then(|_| Ok(RawDescription::default()));
                return Err(ProbeRefusal::Ended(Box::new(ended)));
            }
            Err(error) => return Err(ProbeRefusal::Other(error.to_string().replace('\n', "; "))),
            Ok(said) => said,
        };
        let understood = match &reply {
            RequestReply::Outcome(RequestOutcome::Result(result))
                if matches!(method, GuestMethod::Discover) =>
            {
                lists::parse_discover_result(result)
            }
            RequestReply::Outcome(RequestOutcome::Result(result)) => {
                lists::parse_initialize_result(result)
            }
            RequestReply::NotMcp(404 | 405, _) => {
                return Err(ProbeRefusal::Absent(mcp_server::describe_response(&reply)));
            }
            said => Err(mcp_server::describe_response(said)),
        };
        match understood {
            Ok(server) => {
                let manner = GuestServerProtocol {
                    revision: server.revision.clone(),
                    ..manner
                };
                Ok((server, manner))
            }
            Err(why) => Err(ProbeRefusal::Other(why)),
        }
    }

    /// Requests all lists.
    async fn list_all(
        &self,
        server: &ServerDescription,
        mut manner: GuestServerProtocol,
    ) -> FinishedCall<RawDescription> {
        let mut said = ComponentDescription {
            completes: server.has_completions,
            ..ComponentDescription::default()
        };
        let mut room = self.entry.environment.limits.transfer.as_u64();
        let mut last = None;
        for list in GuestList::ALL.into_iter().filter(|list| server.has(*list)) {
            let mut cursor: Option<String> = None;
            for page in 0.. {
                if page == MAX_PAGES {
                    let why = format!("{} has more than {MAX_PAGES} pages", list.method());
                    return FinishedCall::without_guest(Err(CallError::Failed(why)));
                }
                let talk = matches!(self.transport, ServerTransport::Stdio(_))
                    .then(StdioTransport::default);
                let finished = self
                    .send_request(&manner, &GuestMethod::List(list, cursor.as_deref()), talk)
                    .await;
                let finished =
                    finished.and_then(|answer| add_entries(list, answer, &mut room, &mut said));
                let next = match &finished.result {
                    Ok(next) => next.clone(),
                    Err(_) => return finished.and_then(|_| Ok(RawDescription::default())),
                };
                last = Some(finished);
                if next.is_none() {
                    break;
                }
                if next == cursor {
                    let why = format!("{} names the same page twice", list.method());
                    return FinishedCall::without_guest(Err(CallError::Failed(why)));
                }
                cursor = next;
            }
        }
        if manner.path.is_some() && manner.revision == STATELESS {
            let headers = said
                .tools
                .iter()
                .map(|tool| (tool.name.clone(), lists::header_params(&tool.input_schema)));
            manner.headers = headers.filter(|(_, headers)| !headers.is_empty()).collect();
        }
        said.manner = Some(manner);
        match last {
            Some(finished) => finished.and_then(|_| Ok(said.into())),
            None => FinishedCall::without_guest(Ok(said.into())),
        }
    }

    /// Sends one request to a new instance.
    async fn send_request(
        &self,
        manner: &GuestServerProtocol,
        ask: &GuestMethod<'_>,
        talk: Option<StdioTransport>,
    ) -> FinishedCall<RequestReply> {
        let given = CallResources {
            stdio_transport: talk,
            ..CallResources::default()
        };
        match self.sandbox.enter(
            self.prepared,
            self.entry,
            self.sandbox.inner.descriptors.start_call(),
            given,
        ) {
            Ok(mut entered) => {
                let exchanges = entered.store.data().pending_requests.clone();
                let answers = QuestionAnswers::default();
                let call = mcp_server::send_request(
                    self.transport,
                    &mut entered.store,
                    manner,
                    ask,
                    &answers,
                );
                let call = drive_cooperatively(entered.meter.clone(), exchanges, None, call);
                let answer = timeout_at(self.entry.deadline.into(), call).await;
                entered.finish(answer, Ok)
            }
            Err(error) => FinishedCall::without_guest(Err(error)),
        }
    }
}

/// The reason why a component was not recognized as an MCP server.
enum ProbeRefusal {
    /// The request did not complete.
    Ended(Box<FinishedCall<RawDescription>>),
    /// The component does not respond as an MCP server at this endpoint.
    Other(String),
    /// Nothing is served at this path.
    Absent(String),
}

fn endpoint(revision: &str) -> GuestServerProtocol {
    GuestServerProtocol {
        revision: revision.to_owned(),
        ..GuestServerProtocol::default()
    }
}

/// Adds the items on a page. Returns the cursor of the next page. A list that the guest does not
/// support is empty.
fn add_entries(
    list: GuestList,
    answer: RequestReply,
    room: &mut u64,
    said: &mut ComponentDescription,
) -> Result<Option<String>, CallError> {
    let failed = |why: String| CallError::Failed(format!("{}: {why}", list.method()));
    let result = match answer {
        RequestReply::Outcome(RequestOutcome::Result(result)) => result,
        RequestReply::Outcome(RequestOutcome::Error(problem)) if problem.is_method_not_found() => {
            return Ok(None);
        }
        other => return Err(failed(mcp_server::describe_response(&other))),
    };
    let most = *room;
    *room = room
        .checked_sub(result.len() as u64)
        .ok_or_else(|| failed(format!("its lists have more than {most} bytes")))?;
    let added = match list {
        GuestList::Tools => lists::parse_tools(&result).map(|page| add_page(&mut said.tools, page)),
        GuestList::Prompts => {
            lists::parse_prompts(&result).map(|page| add_page(&mut said.prompts, page))
        }
        GuestList::Resources => {
            lists::parse_resources(&result).map(|page| add_page(&mut said.resources, page))
        }
        GuestList::Templates => {
            lists::parse_templates(&result).map(|page| add_page(&mut said.templates, page))
        }
    };
    added.map_err(failed)
}

fn add_page<T>(all: &mut Vec<T>, page: GuestPage<T>) -> Option<String> {
    all.extend(page.items);
    page.next
}

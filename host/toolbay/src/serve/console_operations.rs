//! The implementation of the console's [`ConsoleOperations`]: the state of the server, and the few
//! actions that an operator can take.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio_util::task::AbortOnDropHandle;
use toolbay_catalog::{GrantReport, Plugin, PluginFileStatus, PluginReport, Snapshot, ToolOffer};
use toolbay_console::{
    AdminToken, ApprovalOutcome, AuditLine, ClearedCache, Console, ConsoleAccess,
    ConsoleCallOutcome, ConsoleOperations, ConsoleViewer, OpenedConsole, PluginDetail, PluginRow,
    PluginStatus, Router, ServerActivity, ServerStatus, ToolDetail, ToolRow, ToolsPage,
    WaitingApproval,
};
use toolbay_mcp::http::ListenAddress;
use toolbay_mcp::{CallerRights, ClientCall, ClientShare, Revision, result_json};
use toolbay_model::text::clean_line;
use toolbay_model::{
    CallError, CallFailure, CallJournal, CallReply, CallRequest, CallResult, Digest, Limits,
    NoopObserver, QuestionKind, QuestionKindSet, TargetKind,
};

use crate::approval::ruling::{self, WaitingApprovals};
use crate::call::approval_wait::check_allowed;
use crate::call::client_share::ServerShare;
use crate::call::service::{CallService, plugins_by_id};
use crate::config::{Config, ConsoleOpener};
use crate::observe::audit_line::{render_details, text_field};
use crate::observe::call_outcome::CallEnding;
use crate::serve::grant_text;

/// Maximum size of a displayed line, in bytes. Parts of it come from plugins.
const MAX_LINE_BYTES: usize = 2_000;

/// Maximum number of notes about the server.
const MAX_NOTES: usize = 50;

/// The server, as the console accesses it.
struct ConsoleBackend {
    service: CallService,
    folder: String,
    clamps: Vec<String>,
    audit: Option<PathBuf>,
    contents: bool,
    /// The tools that operators with a token may call, by the names of the callers.
    rights: Arc<Mutex<BTreeMap<String, CallerRights>>>,
    /// The share of each caller that has called a tool. There are at most as many as tokens.
    clients: Mutex<BTreeMap<String, Arc<dyn ClientShare>>>,
}

/// The operators of a server with a console, which the configuration can change at run time.
pub(crate) struct ConsoleOperators {
    access: ConsoleAccess,
    rights: Arc<Mutex<BTreeMap<String, CallerRights>>>,
}

impl ConsoleOperators {
    /// Restricts access to the operators that `config` names, and updates their rights. A console
    /// that is opened through the log stays so if no token is required.
    pub(crate) fn update(&self, config: &Config) {
        if !matches!(
            config.console.opener(&config.http),
            Some(ConsoleOpener::LogReader)
        ) {
            self.access.set_admins(admins(config));
        }
        *self.rights.lock().unwrap_or_else(PoisonError::into_inner) = rights(config);
    }
}

/// Returns the name of the caller with this token.
fn caller_name(token: &str) -> String {
    format!("token:{token}")
}

fn admins(config: &Config) -> Vec<AdminToken> {
    let admins = config.http.tokens.iter().filter(|token| token.admin);
    admins
        .map(|token| AdminToken {
            name: caller_name(&token.name),
            sha256: token.sha256,
        })
        .collect()
}

/// Returns the rights of the operators, by the names of the callers.
fn rights(config: &Config) -> BTreeMap<String, CallerRights> {
    let admins = config.http.tokens.iter().filter(|token| token.admin);
    admins
        .map(|token| {
            (
                caller_name(&token.name),
                token
                    .tools
                    .clone()
                    .map_or(CallerRights::All, CallerRights::Only),
            )
        })
        .collect()
}

/// Returns the router of the configured console, and its operators. `None` if there is no console.
pub(crate) fn http_console(
    service: &CallService,
    watch: &Arc<ServerActivity>,
    config: &Config,
    address: &ListenAddress,
) -> Option<(Router, ConsoleOperators)> {
    let scheme = if config.http.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let access = match config.console.opener(&config.http)? {
        ConsoleOpener::LogReader => {
            ConsoleAccess::local(format!("{scheme}://{}", address.authority()))
        }
        ConsoleOpener::Admin => ConsoleAccess::admins(admins(config)),
    };
    let operated = ConsoleBackend::new(service, config);
    let operators = ConsoleOperators {
        access: access.clone(),
        rights: Arc::clone(&operated.rights),
    };
    let port = match address {
        ListenAddress::Internet(address) => address.port(),
        ListenAddress::Unix(_) => 0,
    };
    let (operated, watch, life) = (
        Arc::new(operated),
        Arc::clone(watch),
        config.console.session,
    );
    let console = Console::new(
        operated,
        watch,
        access,
        port,
        life,
        toolbay_mcp::http::network_of,
        config.http.idle_timeout,
    );
    Some((console.router(), operators))
}

/// Returns the console of a server over stdio. It is opened with a token from its socket.
pub(crate) fn stdio_console(
    service: &CallService,
    watch: &Arc<ServerActivity>,
    config: &Config,
) -> OpenedConsole {
    let (operated, access) = (
        ConsoleBackend::new(service, config),
        ConsoleAccess::socket(),
    );
    let name = format!("stdio_{}", std::process::id());
    let (operated, watch, life) = (
        Arc::new(operated),
        Arc::clone(watch),
        config.console.session,
    );
    // All connections through the socket come from one user. A program that forwards a port to it
    // counts accounts itself.
    let console = Console::new(
        operated,
        watch,
        access.clone(),
        name,
        life,
        |_| None,
        config.http.idle_timeout,
    );
    OpenedConsole {
        router: console.router(),
        access,
    }
}

impl ConsoleOperations for ConsoleBackend {
    fn status(&self) -> ServerStatus {
        let (snapshot, admission) = (
            self.service.catalog().snapshot(),
            self.service.admission().permits(),
        );
        let strange = snapshot
            .notes
            .iter()
            .map(|(name, why)| format!("{name} is not a plugin: {why}"));
        let notes = self
            .clamps
            .iter()
            .cloned()
            .chain(strange)
            .take(MAX_NOTES)
            .map(|note| clean_line(&note, MAX_LINE_BYTES));
        ServerStatus {
            version: env!("CARGO_PKG_VERSION"),
            folder: self.folder.clone(),
            is_loaded: snapshot.complete,
            offered: vec![
                (snapshot.tools.len(), "tools"),
                (snapshot.prompts.len(), "prompts"),
                (snapshot.resources.len(), "resources"),
            ],
            running: admission.running_calls(),
            waiting: admission.waiting_count(),
            memory: admission.reserved_memory(),
            notes: notes.collect(),
            no_cache: self.service.sandbox().cache_off_reason().map(str::to_owned),
            has_audit_log: self.audit.is_some(),
            records_contents: self.contents,
        }
    }

    fn plugins(&self) -> Vec<PluginRow> {
        let snapshot = self.service.catalog().snapshot();
        let plugins = plugins_by_id(&snapshot);
        let row = |(id, report): (&String, &PluginReport)| {
            self.plugin_row(id, report, plugins.get(id.as_str()).copied())
        };
        snapshot.plugins.iter().map(row).collect()
    }

    fn plugin(&self, id: &str) -> Option<PluginDetail> {
        let snapshot = self.service.catalog().snapshot();
        let report = snapshot.plugins.get(id)?;
        let plugin = plugins_by_id(&snapshot).get(id).copied();
        let offered = |what, names: &[String]| {
            (
                what,
                names
                    .iter()
                    .map(|name| clean_line(name, MAX_LINE_BYTES))
                    .collect(),
            )
        };
        let tools = report
            .tools
            .iter()
            .filter_map(|name| snapshot.tools.get(name));
        let code = plugin.filter(|plugin| plugin.component.code.is_some());
        Some(PluginDetail {
            row: self.plugin_row(id, report, plugin),
            digest: report.digest.clone(),
            terms: report
                .grant
                .iter()
                .flat_map(grant_terms)
                .map(|words| clean_line(&words, MAX_LINE_BYTES))
                .collect(),
            limits: report
                .grant
                .as_ref()
                .map(|grant| limit_rows(&grant.limits))
                .unwrap_or_default(),
            tools: tools.map(|offer| tool(offer)).collect(),
            offers: vec![
                offered("Prompts", &report.prompts),
                offered("Skills", &report.skills),
                offered("Resources", &report.resources),
                offered("Resource templates", &report.templates),
            ],
            disabled: code
                .map(|plugin| {
                    self.service
                        .admission()
                        .activity(plugin)
                        .suspension
                        .disabled_callers()
                })
                .unwrap_or_default(),
            can_suspend: code.is_some(),
        })
    }

    fn tools(&self, search: &str, from: usize, most: usize) -> ToolsPage {
        let (snapshot, search) = (self.service.catalog().snapshot(), search.to_lowercase());
        let contains = |text: &str| text.to_lowercase().contains(&search);
        let matches = |offer: &&Arc<ToolOffer>| {
            let tool = &offer.tool;
            let words = [tool.title.as_deref(), tool.description.as_deref()];
            search.is_empty()
                || contains(&tool.name)
                || contains(&offer.plugin.id)
                || words.into_iter().flatten().any(contains)
        };
        let mut matching = 0;
        let mut rows = Vec::new();
        for offer in snapshot.tools.values().filter(matches) {
            if matching >= from && rows.len() < most {
                rows.push(tool(offer));
            }
            matching += 1;
        }
        ToolsPage {
            rows,
            total: matching,
        }
    }

    fn tool(&self, name: &str) -> Option<ToolDetail> {
        let snapshot = self.service.catalog().snapshot();
        let offer = snapshot.tools.get(name)?;
        let hints = offer.tool.annotations.map(|hints| {
            [
                (hints.read_only == Some(true), "reads only"),
                (hints.destructive == Some(true), "may delete or overwrite"),
                (hints.idempotent == Some(true), "can be repeated"),
                (hints.open_world == Some(true), "reaches the outside"),
            ]
        });
        Some(ToolDetail {
            row: tool(offer),
            input: offer.tool.input_schema.clone(),
            output: offer.tool.output_schema.clone(),
            hints: hints
                .into_iter()
                .flatten()
                .filter_map(|(says, words)| says.then_some(words))
                .collect(),
        })
    }

    fn may_use(&self, viewer: &ConsoleViewer, tool: &str) -> bool {
        // An operator without a token could call every tool without one. A token that is no longer
        // configured has no rights.
        let rights = self.rights.lock().unwrap_or_else(PoisonError::into_inner);
        viewer.local
            || rights
                .get(&viewer.name)
                .is_some_and(|rights| rights.allow(tool))
    }

    fn call_tool(
        &self,
        viewer: &ConsoleViewer,
        tool: String,
        arguments: Map<String, Value>,
        allowed: Option<Digest>,
    ) -> BoxFuture<'static, ConsoleCallOutcome> {
        let (service, client) = (self.service.clone(), self.client(&viewer.name));
        let permitted = self.may_use(viewer, &tool);
        // Runs on the guests' runtime, and is cancelled if the browser disconnects.
        let calling = self
            .service
            .sandbox()
            .spawn(call(service, client, tool, arguments, permitted, allowed));
        let calling = AbortOnDropHandle::new(calling);
        Box::pin(async move {
            calling.await.unwrap_or_else(|error| {
                let error = CallError::Internal(format!("the call ended unexpectedly: {error}"));
                call_outcome(CallResult {
                    result: Err(CallFailure::Call(error)),
                    usage: None,
                })
            })
        })
    }

    fn waiting_approvals(&self) -> Vec<WaitingApproval> {
        self.service
            .waiting_approvals()
            .map(WaitingApprovals::list)
            .unwrap_or_default()
    }

    fn answer_approval(
        &self,
        viewer: &ConsoleViewer,
        id: u64,
        yes: bool,
    ) -> BoxFuture<'_, ApprovalOutcome> {
        let (waiting, viewer) = (self.service.waiting_approvals(), viewer.clone());
        Box::pin(async move {
            let Some(waiting) = waiting else {
                return ApprovalOutcome::Gone;
            };
            let may = |tool: &str| self.may_use(&viewer, tool);
            let allowed = |asked: &WaitingApproval, edition| {
                check_allowed(
                    self.service.catalog(),
                    self.service.admission(),
                    &asked.plugin,
                    &asked.tool,
                    edition,
                )
            };
            waiting.answer(id, yes, &viewer.name, may, allowed).await
        })
    }

    fn set_suspended(&self, viewer: &ConsoleViewer, plugin: &str, suspended: bool) -> bool {
        let snapshot = self.service.catalog().snapshot();
        let code = plugins_by_id(&snapshot)
            .get(plugin)
            .copied()
            .filter(|plugin| plugin.component.code.is_some());
        if let Some(plugin) = code {
            self.service
                .admission()
                .activity(plugin)
                .suspension
                .set_suspended(suspended);
            if let Some(audited) = self.service.observers().audit() {
                let action = if suspended { "disable" } else { "enable" };
                audited.record_operator_action(&viewer.name, action, Some(plugin), true);
            }
        }
        code.is_some()
    }

    fn clear_cache(
        &self,
        viewer: &ConsoleViewer,
    ) -> BoxFuture<'static, Result<ClearedCache, String>> {
        let (sandbox, audited) = (
            self.service.sandbox().clone(),
            self.service.observers().audit().cloned(),
        );
        let name = viewer.name.clone();
        Box::pin(async move {
            let clearing = tokio::task::spawn_blocking(move || {
                let cleared = sandbox.clear_cache();
                // Recorded here, because clearing continues after the browser disconnects.
                if let Some(audited) = audited {
                    audited.record_operator_action(&name, "clear-cache", None, cleared.is_ok());
                }
                cleared
            });
            let (components, bytes) = clearing.await.map_err(|error| error.to_string())??;
            Ok(ClearedCache { components, bytes })
        })
    }

    fn audit_lines(
        &self,
        most: usize,
    ) -> BoxFuture<'static, Option<Result<Vec<AuditLine>, String>>> {
        let Some(folder) = self.audit.clone() else {
            return Box::pin(std::future::ready(None));
        };
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || toolbay_audit::tail(&folder, most));
            let lines = match reading.await {
                Ok(lines) => lines.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            Some(lines.map(|lines| lines.iter().map(|line| audit_line(line)).collect()))
        })
    }
}

impl ConsoleBackend {
    fn new(service: &CallService, config: &Config) -> Self {
        Self {
            service: service.clone(),
            folder: config.plugins.display().to_string(),
            clamps: config.clamp_messages(),
            audit: config.audit.settings().map(|settings| settings.folder),
            contents: config.console.contents,
            rights: Arc::new(Mutex::new(rights(config))),
            clients: Mutex::default(),
        }
    }

    /// Returns the row of a plugin in the list. `plugin` is `None` if nothing of it is in service.
    fn plugin_row(
        &self,
        id: &str,
        report: &PluginReport,
        plugin: Option<&Arc<Plugin>>,
    ) -> PluginRow {
        let suspended = plugin.is_some_and(|plugin| {
            self.service
                .admission()
                .activity(plugin)
                .suspension
                .is_suspended()
        });
        PluginRow {
            id: id.to_owned(),
            status: match report.status {
                PluginFileStatus::Loading => PluginStatus::Loading,
                PluginFileStatus::Ready | PluginFileStatus::Stale if suspended => {
                    PluginStatus::Suspended
                }
                PluginFileStatus::Ready => PluginStatus::Ready,
                PluginFileStatus::Stale => PluginStatus::Stale,
                PluginFileStatus::Refused => PluginStatus::Refused,
            },
            purpose: report.about.clone(),
            tools: report.tools.len(),
            problems: report
                .problems
                .iter()
                .map(|problem| clean_line(problem, MAX_LINE_BYTES))
                .collect(),
            permissions: report
                .grant
                .iter()
                .flat_map(grant_text::permission_lines)
                .map(|words| clean_line(&words, MAX_LINE_BYTES))
                .collect(),
        }
    }

    /// Returns the share of the caller with this name, and creates it for the first call.
    fn client(&self, name: &str) -> Arc<dyn ClientShare> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(ServerShare::new(self.service.clone(), name)) as Arc<dyn ClientShare>;
        Arc::clone(clients.entry(name.to_owned()).or_insert_with(new))
    }
}

/// Calls a tool. If the call requires approval, answers with yes if `check_allowed` is the digest
/// of the question, and returns the question otherwise.
async fn call(
    service: CallService,
    client: Arc<dyn ClientShare>,
    tool: String,
    arguments: Map<String, Value>,
    permitted: bool,
    allowed: Option<Digest>,
) -> ConsoleCallOutcome {
    let asks = requires_approval(&service.catalog().snapshot(), &tool);
    let answerable = if asks {
        QuestionKindSet::default().with(QuestionKind::Form)
    } else {
        QuestionKindSet::default()
    };
    let make = async |answerable: QuestionKindSet, journal: CallJournal| {
        let request = CallRequest::Tool {
            name: tool.clone(),
            arguments: arguments.clone(),
        };
        let call = ClientCall {
            permitted,
            ..ClientCall::without_client(request, answerable, journal)
        };
        match client.enqueue(&tool) {
            Ok(mut place) => place.call(call, Arc::new(NoopObserver)).await,
            Err(rejection) => CallResult {
                result: Err(CallFailure::Rejected(rejection)),
                usage: None,
            },
        }
    };
    let mut answer = make(answerable, CallJournal::default()).await;
    let Ok(CallReply::Questions(interview)) = &mut answer.result else {
        return call_outcome(answer);
    };
    let Some(question) = ruling::question_text(&interview.questions) else {
        // These are the plugin's own questions, because its grant changed just now. No client can
        // answer them.
        let kinds: Vec<_> = interview
            .questions
            .iter()
            .map(|question| question.kind)
            .collect();
        let failure = CallFailure::MissingCapabilities(QuestionKind::capabilities(&kinds));
        return call_outcome(CallResult {
            result: Err(failure),
            ..answer
        });
    };
    let digest = Digest::new(Sha256::digest(&question).into());
    if allowed != Some(digest) {
        return ConsoleCallOutcome::Question(question, digest);
    }
    let mut journal = std::mem::take(&mut interview.journal);
    journal
        .answers
        .insert(ruling::APPROVAL_KEY.to_owned(), ruling::answer_json(true));
    call_outcome(make(QuestionKindSet::default(), journal).await)
}

/// Returns whether a call of the tool requires approval by a person.
fn requires_approval(snapshot: &Snapshot, tool: &str) -> bool {
    snapshot
        .tools
        .get(tool)
        .is_some_and(|offer| offer.approval_policy().is_some())
}

/// Returns the outcome of a call, in the form that a client receives.
fn call_outcome(answer: CallResult) -> ConsoleCallOutcome {
    let (outcome, usage) = (CallEnding::from_answer(&answer).as_str(), answer.usage);
    ConsoleCallOutcome::Ended {
        result: result_json(answer, TargetKind::Tool, Revision::NEWEST),
        outcome,
        usage,
    }
}

fn tool(offer: &ToolOffer) -> ToolRow {
    ToolRow {
        name: offer.tool.name.clone(),
        plugin: offer.plugin.id.clone(),
        title: offer.tool.title.clone(),
        description: offer.tool.description.clone(),
        approval: offer.approval_policy().map(|asks| asks.to_string()),
    }
}

/// Returns the terms of a grant, except its permissions and the limits of a call, which are
/// displayed separately.
fn grant_terms(granted: &GrantReport) -> Vec<String> {
    let prefix = granted
        .prefix
        .iter()
        .map(|prefix| format!("prefix: {prefix}"));
    prefix.chain(grant_text::term_lines(granted)).collect()
}

/// Returns all limits, with their values and whether they differ from the default.
fn limit_rows(limits: &Limits) -> Vec<(String, String, bool)> {
    let amounts = limits.amounts().zip(Limits::DEFAULT.amounts());
    amounts
        .map(|((key, own), (_, default))| (key.to_owned(), own.to_string(), own != default))
        .collect()
}

fn audit_line(bytes: &[u8]) -> AuditLine {
    let Ok(record) = serde_json::from_slice::<Map<String, Value>>(bytes) else {
        return AuditLine {
            event: "damaged".to_owned(),
            details: clean_line(&String::from_utf8_lossy(bytes), MAX_LINE_BYTES),
            ..AuditLine::default()
        };
    };
    let of = |key| clean_line(text_field(&record, key), MAX_LINE_BYTES);
    AuditLine {
        time: of("time"),
        event: of("event"),
        outcome: of("outcome"),
        caller: of("caller"),
        plugin: of("plugin"),
        tool: of("tool"),
        details: render_details(&record),
    }
}

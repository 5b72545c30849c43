//! The implementation of the console's [`Operations`]: the state of the server, and the few actions
//! that an operator can take.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio_util::task::AbortOnDropHandle;
use toolbay_catalog::{Granted, Offer, Plugin, PluginReport, Snapshot, Status};
use toolbay_console::{
    Access, Admin, Answered, AuditLine, Called, Cleared, Console, Opened, Operations, PluginDetail, PluginRow,
    PluginStatus, Router, ServerStatus, ToolDetail, ToolRow, ToolsPage, Viewer, WaitingApproval, Watch,
};
use toolbay_mcp::http::Address;
use toolbay_mcp::{Call, Client, Revision, Rights, result_json};
use toolbay_model::text::line;
use toolbay_model::{
    Answer, Answerable, CallError, Digest, Failure, Journal, Limits, QuestionKind, Quiet, Reply, Request, TargetKind,
};

use crate::approval::{self, Waiting};
use crate::audit_line::{details, text};
use crate::config::{Config, Opener};
use crate::outcome::Outcome;
use crate::plainly;
use crate::service::{Service, plugins};
use crate::share::Share;

/// Maximum size of a displayed line, in bytes. Parts of it come from plugins.
const SHOWN: usize = 2_000;

/// Maximum number of notes about the server.
const NOTES: usize = 50;

/// The server, as the console accesses it.
struct Operated {
    service: Service,
    folder: String,
    clamps: Vec<String>,
    audit: Option<PathBuf>,
    contents: bool,
    /// The tools that operators with a token may call, by the names of the callers.
    rights: Arc<Mutex<BTreeMap<String, Rights>>>,
    /// The share of each caller that has called a tool. There are at most as many as tokens.
    clients: Mutex<BTreeMap<String, Arc<dyn Client>>>,
}

/// The operators of a server with a console, which the configuration can change at run time.
pub(crate) struct Operators {
    access: Access,
    rights: Arc<Mutex<BTreeMap<String, Rights>>>,
}

impl Operators {
    /// Restricts access to the operators that `config` names, and updates their rights. A console
    /// that is opened through the log stays so if no token is required.
    pub(crate) fn change(&self, config: &Config) {
        if !matches!(config.console.opener(&config.http), Some(Opener::Reader)) {
            self.access.change(admins(config));
        }
        *self.rights.lock().unwrap_or_else(PoisonError::into_inner) = rights(config);
    }
}

/// Returns the name of the caller with this token.
fn named(token: &str) -> String {
    format!("token:{token}")
}

fn admins(config: &Config) -> Vec<Admin> {
    let admins = config.http.tokens.iter().filter(|token| token.admin);
    admins.map(|token| Admin { name: named(&token.name), sha256: token.sha256 }).collect()
}

/// Returns the rights of the operators, by the names of the callers.
fn rights(config: &Config) -> BTreeMap<String, Rights> {
    let admins = config.http.tokens.iter().filter(|token| token.admin);
    admins.map(|token| (named(&token.name), token.tools.clone().map_or(Rights::All, Rights::Only))).collect()
}

/// Returns the router of the configured console, and its operators. `None` if there is no console.
pub(crate) fn router(
    service: &Service,
    watch: &Arc<Watch>,
    config: &Config,
    address: &Address,
) -> Option<(Router, Operators)> {
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let access = match config.console.opener(&config.http)? {
        Opener::Reader => Access::local(format!("{scheme}://{}", address.authority())),
        Opener::Admin => Access::admins(admins(config)),
    };
    let operated = Operated::of(service, config);
    let operators = Operators { access: access.clone(), rights: Arc::clone(&operated.rights) };
    let port = match address {
        Address::Internet(address) => address.port(),
        Address::Unix(_) => 0,
    };
    let (operated, watch, life) = (Arc::new(operated), Arc::clone(watch), config.console.session);
    let console = Console::new(operated, watch, access, port, life, toolbay_mcp::http::network_of, config.http.idle);
    Some((console.router(), operators))
}

/// Returns the console of a server over stdio. It is opened with a token from its socket.
pub(crate) fn beside(service: &Service, watch: &Arc<Watch>, config: &Config) -> Opened {
    let (operated, access) = (Operated::of(service, config), Access::socket());
    let name = format!("stdio_{}", std::process::id());
    let (operated, watch, life) = (Arc::new(operated), Arc::clone(watch), config.console.session);
    // All connections through the socket come from one user. A program that forwards a port to it
    // counts accounts itself.
    let console = Console::new(operated, watch, access.clone(), name, life, |_| None, config.http.idle);
    Opened { router: console.router(), access }
}

impl Operations for Operated {
    fn status(&self) -> ServerStatus {
        let (snapshot, admission) = (self.service.catalog().snapshot(), self.service.admission());
        let strange = snapshot.notes.iter().map(|(name, why)| format!("{name} is not a plugin: {why}"));
        let notes = self.clamps.iter().cloned().chain(strange).take(NOTES).map(|note| line(&note, SHOWN));
        ServerStatus {
            version: env!("CARGO_PKG_VERSION"),
            folder: self.folder.clone(),
            complete: snapshot.complete,
            offered: vec![
                (snapshot.tools.len(), "tools"),
                (snapshot.prompts.len(), "prompts"),
                (snapshot.resources.len(), "resources"),
            ],
            running: admission.running(),
            waiting: admission.waiting(),
            memory: admission.reserved(),
            notes: notes.collect(),
            no_cache: self.service.sandbox().keeps_nothing().map(str::to_owned),
            audit: self.audit.is_some(),
            contents: self.contents,
        }
    }

    fn plugins(&self) -> Vec<PluginRow> {
        let snapshot = self.service.catalog().snapshot();
        let plugins = plugins(&snapshot);
        let row = |(id, report): (&String, &PluginReport)| self.row(id, report, plugins.get(id.as_str()).copied());
        snapshot.plugins.iter().map(row).collect()
    }

    fn plugin(&self, id: &str) -> Option<PluginDetail> {
        let snapshot = self.service.catalog().snapshot();
        let report = snapshot.plugins.get(id)?;
        let plugin = plugins(&snapshot).get(id).copied();
        let offered = |what, names: &[String]| (what, names.iter().map(|name| line(name, SHOWN)).collect());
        let tools = report.tools.iter().filter_map(|name| snapshot.tools.get(name));
        let code = plugin.filter(|plugin| plugin.component.callable.is_some());
        Some(PluginDetail {
            row: self.row(id, report, plugin),
            digest: report.digest.clone(),
            terms: report.grant.iter().flat_map(terms).map(|words| line(&words, SHOWN)).collect(),
            limits: report.grant.as_ref().map(|grant| limits(&grant.limits)).unwrap_or_default(),
            tools: tools.map(|offer| tool(offer)).collect(),
            offers: vec![
                offered("Prompts", &report.prompts),
                offered("Skills", &report.skills),
                offered("Resources", &report.resources),
                offered("Resource templates", &report.templates),
            ],
            disabled: code.map(|plugin| self.service.activity(plugin).rest.disabled()).unwrap_or_default(),
            can_rest: code.is_some(),
        })
    }

    fn tools(&self, search: &str, from: usize, most: usize) -> ToolsPage {
        let (snapshot, search) = (self.service.catalog().snapshot(), search.to_lowercase());
        let contains = |text: &str| text.to_lowercase().contains(&search);
        let matches = |offer: &&Arc<Offer>| {
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
        ToolsPage { rows, matching }
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
            hints: hints.into_iter().flatten().filter_map(|(says, words)| says.then_some(words)).collect(),
        })
    }

    fn may_use(&self, viewer: &Viewer, tool: &str) -> bool {
        // An operator without a token could call every tool without one. A token that is no longer
        // configured has no rights.
        let rights = self.rights.lock().unwrap_or_else(PoisonError::into_inner);
        viewer.local || rights.get(&viewer.name).is_some_and(|rights| rights.allow(tool))
    }

    fn call(
        &self,
        viewer: &Viewer,
        tool: String,
        arguments: Map<String, Value>,
        allowed: Option<Digest>,
    ) -> BoxFuture<'static, Called> {
        let (service, client) = (self.service.clone(), self.client(&viewer.name));
        let permitted = self.may_use(viewer, &tool);
        // Runs on the guests' runtime, and is cancelled if the browser disconnects.
        let calling = self.service.sandbox().spawn(call(service, client, tool, arguments, permitted, allowed));
        let calling = AbortOnDropHandle::new(calling);
        Box::pin(async move {
            calling.await.unwrap_or_else(|error| {
                let error = CallError::Internal(format!("the call ended unexpectedly: {error}"));
                ended(Answer { result: Err(Failure::Call(error)), usage: None })
            })
        })
    }

    fn waiting(&self) -> Vec<WaitingApproval> {
        self.service.waiting().map(Waiting::list).unwrap_or_default()
    }

    fn answer(&self, viewer: &Viewer, id: u64, yes: bool) -> BoxFuture<'_, Answered> {
        let (waiting, viewer) = (self.service.waiting(), viewer.clone());
        Box::pin(async move {
            let Some(waiting) = waiting else { return Answered::Gone };
            let may = |tool: &str| self.may_use(&viewer, tool);
            let allowed = |asked: &WaitingApproval, edition| self.service.allowed(&asked.plugin, &asked.tool, edition);
            waiting.answer(id, yes, &viewer.name, may, allowed).await
        })
    }

    fn rest(&self, viewer: &Viewer, plugin: &str, rests: bool) -> bool {
        let snapshot = self.service.catalog().snapshot();
        let code = plugins(&snapshot).get(plugin).copied().filter(|plugin| plugin.component.callable.is_some());
        if let Some(plugin) = code {
            self.service.activity(plugin).rest.set(rests);
            if let Some(audited) = self.service.audited() {
                audited.operator(&viewer.name, if rests { "rest" } else { "wake" }, Some(plugin), true);
            }
        }
        code.is_some()
    }

    fn clear_cache(&self, viewer: &Viewer) -> BoxFuture<'static, Result<Cleared, String>> {
        let (sandbox, audited) = (self.service.sandbox().clone(), self.service.audited().cloned());
        let name = viewer.name.clone();
        Box::pin(async move {
            let clearing = tokio::task::spawn_blocking(move || {
                let cleared = sandbox.clear_cache();
                // Recorded here, because clearing continues after the browser disconnects.
                if let Some(audited) = audited {
                    audited.operator(&name, "clear-cache", None, cleared.is_ok());
                }
                cleared
            });
            let (components, bytes) = clearing.await.map_err(|error| error.to_string())??;
            Ok(Cleared { components, bytes })
        })
    }

    fn audit(&self, most: usize) -> BoxFuture<'static, Option<Result<Vec<AuditLine>, String>>> {
        let Some(folder) = self.audit.clone() else { return Box::pin(std::future::ready(None)) };
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

impl Operated {
    fn of(service: &Service, config: &Config) -> Self {
        Self {
            service: service.clone(),
            folder: config.plugins.display().to_string(),
            clamps: config.clamps(),
            audit: config.audit.settings().map(|settings| settings.folder),
            contents: config.console.contents,
            rights: Arc::new(Mutex::new(rights(config))),
            clients: Mutex::default(),
        }
    }

    /// Returns the row of a plugin in the list. `plugin` is `None` if nothing of it is in service.
    fn row(&self, id: &str, report: &PluginReport, plugin: Option<&Arc<Plugin>>) -> PluginRow {
        let rests = plugin.is_some_and(|plugin| self.service.activity(plugin).rest.rests());
        PluginRow {
            id: id.to_owned(),
            status: match report.status {
                Status::Loading => PluginStatus::Loading,
                Status::Ready | Status::Stale if rests => PluginStatus::Resting,
                Status::Ready => PluginStatus::Ready,
                Status::Stale => PluginStatus::Stale,
                Status::Refused => PluginStatus::Refused,
            },
            about: report.about.clone(),
            tools: report.tools.len(),
            problems: report.problems.iter().map(|problem| line(problem, SHOWN)).collect(),
            permissions: report.grant.iter().flat_map(plainly::permissions).map(|words| line(&words, SHOWN)).collect(),
        }
    }

    /// Returns the share of the caller with this name, and creates it for the first call.
    fn client(&self, name: &str) -> Arc<dyn Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Share::new(self.service.clone(), name)) as Arc<dyn Client>;
        Arc::clone(clients.entry(name.to_owned()).or_insert_with(new))
    }
}

/// Calls a tool. If the call requires approval, answers with yes if `allowed` is the digest of the
/// question, and returns the question otherwise.
async fn call(
    service: Service,
    client: Arc<dyn Client>,
    tool: String,
    arguments: Map<String, Value>,
    permitted: bool,
    allowed: Option<Digest>,
) -> Called {
    let asks = asks(&service.catalog().snapshot(), &tool);
    let answerable = if asks { Answerable::default().with(QuestionKind::Form) } else { Answerable::default() };
    let make = async |answerable: Answerable, journal: Journal| {
        let request = Request::Tool { name: tool.clone(), arguments: arguments.clone() };
        let call = Call { permitted, ..Call::of_nobody(request, answerable, journal) };
        match client.queue(&tool) {
            Ok(mut place) => place.call(call, Arc::new(Quiet)).await,
            Err(rejection) => Answer { result: Err(Failure::Rejected(rejection)), usage: None },
        }
    };
    let mut answer = make(answerable, Journal::default()).await;
    let Ok(Reply::Questions(interview)) = &mut answer.result else { return ended(answer) };
    let Some(question) = approval::text(&interview.questions) else {
        // These are the plugin's own questions, because its grant changed just now. No client can
        // answer them.
        let kinds: Vec<_> = interview.questions.iter().map(|question| question.kind).collect();
        let failure = Failure::MissingCapabilities(QuestionKind::capabilities(&kinds));
        return ended(Answer { result: Err(failure), ..answer });
    };
    let digest = Digest::new(Sha256::digest(&question).into());
    if allowed != Some(digest) {
        return Called::Question(question, digest);
    }
    let mut journal = std::mem::take(&mut interview.journal);
    journal.answers.insert(approval::KEY.to_owned(), approval::answer(true));
    ended(make(Answerable::default(), journal).await)
}

/// Returns whether a call of the tool requires approval by a person.
fn asks(snapshot: &Snapshot, tool: &str) -> bool {
    snapshot.tools.get(tool).is_some_and(|offer| offer.asks().is_some())
}

/// Returns the outcome of a call, in the form that a client receives.
fn ended(answer: Answer) -> Called {
    let (outcome, usage) = (Outcome::of(&answer).as_str(), answer.usage);
    Called::Ended { result: result_json(answer, TargetKind::Tool, Revision::NEWEST), outcome, usage }
}

fn tool(offer: &Offer) -> ToolRow {
    ToolRow {
        name: offer.tool.name.clone(),
        plugin: offer.plugin.id.clone(),
        title: offer.tool.title.clone(),
        description: offer.tool.description.clone(),
        asks: offer.asks().map(|asks| asks.to_string()),
    }
}

/// Returns the terms of a grant, except its permissions and the limits of a call, which are
/// displayed separately.
fn terms(granted: &Granted) -> Vec<String> {
    let prefix = granted.prefix.iter().map(|prefix| format!("prefix: {prefix}"));
    prefix.chain(plainly::terms(granted)).collect()
}

/// Returns all limits, with their values and whether they differ from the default.
fn limits(limits: &Limits) -> Vec<(String, String, bool)> {
    let amounts = limits.amounts().zip(Limits::DEFAULT.amounts());
    amounts.map(|((key, own), (_, default))| (key.to_owned(), own.to_string(), own != default)).collect()
}

fn audit_line(bytes: &[u8]) -> AuditLine {
    let Ok(record) = serde_json::from_slice::<Map<String, Value>>(bytes) else {
        return AuditLine {
            event: "damaged".to_owned(),
            details: line(&String::from_utf8_lossy(bytes), SHOWN),
            ..AuditLine::default()
        };
    };
    let of = |key| line(text(&record, key), SHOWN);
    AuditLine {
        time: of("time"),
        event: of("event"),
        outcome: of("outcome"),
        caller: of("caller"),
        plugin: of("plugin"),
        tool: of("tool"),
        details: details(&record),
    }
}

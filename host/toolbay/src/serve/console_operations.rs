//! The implementation of the console's [`ConsoleOperations`]: the state of the server, and the few
//! actions that an operator can take.

mod console_call;
mod grant_display;
mod held_versions;
mod plugin_files;
mod rows;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::task::AbortOnDropHandle;
use toolbay_catalog::{PluginReport, ResourceOffer, Snapshot, VersionApprover};
use toolbay_console::{
    ApprovalOutcome, AuditLine, ClearedCache, ConsoleCallOutcome, ConsoleOperations, ConsoleViewer,
    GrantProposal, HeldPlugin, OfferRow, PluginDetail, PluginRow, SearchQuery, ServerStatus,
    ToolDetail, ToolsPage, VersionApprovalOutcome, WaitingApproval,
};
use toolbay_mcp::ClientShare;
use toolbay_model::text::clean_line;
use toolbay_model::{CallError, CallFailure, CallResult, Digest, Tool};

use self::console_call::{call_outcome, call_tool};
use self::grant_display::grant_text;
use self::held_versions::HeldVersions;
use self::plugin_files::PluginFiles;
use self::rows::{
    MAX_LINE_BYTES, audit_line, grant_terms, limit_rows, offer_row, plugin_row, tool_row,
    usage_summary,
};
use crate::approval::ruling::WaitingApprovals;
use crate::call::approval_wait::check_allowed;
use crate::call::client_share::ServerShare;
use crate::call::service::{CallService, plugins_by_id};
use crate::config::Config;
use crate::serve::console_operators::OperatorRights;
use crate::serve::running_call_control::stop_call;

/// Maximum number of notes about the server.
const MAX_NOTES: usize = 50;

/// The server, as the console accesses it.
pub(super) struct ConsoleBackend {
    service: CallService,
    folder: String,
    files: PluginFiles,
    held: HeldVersions,
    clamps: Vec<String>,
    audit: Option<PathBuf>,
    records_contents: bool,
    rights: OperatorRights,
    /// The share of each caller that has called a tool, by name. There is at most one per token.
    clients: Mutex<BTreeMap<String, Arc<dyn ClientShare>>>,
}

impl ConsoleOperations for ConsoleBackend {
    fn status(&self) -> ServerStatus {
        let snapshot = self.service.catalog().snapshot();
        let permits = self.service.admission().permits();
        let ignored_entries = snapshot
            .notes
            .iter()
            .map(|(name, why)| format!("{name} is not a plugin: {why}"));
        let notes = self
            .clamps
            .iter()
            .cloned()
            .chain(ignored_entries)
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
            running: permits.running_calls(),
            waiting: permits.queued_count(),
            memory: permits.reserved_memory(),
            notes: notes.collect(),
            no_cache: self.service.sandbox().cache_off_reason().map(str::to_owned),
            has_audit_log: self.audit.is_some(),
            records_contents: self.records_contents,
        }
    }

    fn plugins(&self) -> Vec<PluginRow> {
        let snapshot = self.service.catalog().snapshot();
        let plugins = plugins_by_id(&snapshot);
        let row = |(id, report): (&String, &PluginReport)| {
            plugin_row(&self.service, id, report, plugins.get(id.as_str()).copied())
        };
        snapshot.plugins.iter().map(row).collect()
    }

    fn proposal(&self, plugin: &str) -> Option<GrantProposal> {
        let snapshot = self.service.catalog().snapshot();
        let plugin = plugins_by_id(&snapshot).get(plugin).copied()?;
        self.files.proposal(plugin)
    }

    fn plugin(&self, id: &str) -> Option<PluginDetail> {
        let snapshot = self.service.catalog().snapshot();
        let report = snapshot.plugins.get(id)?;
        let plugin = plugins_by_id(&snapshot).get(id).copied();
        let source_grant = plugin.map(|plugin| &*plugin.terms.source_grant);
        let tools = report
            .tools
            .iter()
            .filter_map(|name| snapshot.tools.get(name));
        let code = plugin.filter(|plugin| plugin.component.code.is_some());
        let activity = code.map(|plugin| self.service.admission().activity(plugin));
        let grant = report.grant.as_ref();
        Some(PluginDetail {
            row: plugin_row(&self.service, id, report, plugin),
            digest: report.digest.clone(),
            file: self.files.file(id),
            loaded_at: report.history.loaded_at.filter(|_| plugin.is_some()),
            toolchain: plugin
                .map(|plugin| plugin.component.made_with.clone())
                .unwrap_or_default(),
            terms: grant
                .map(|grant| grant_terms(grant, source_grant))
                .unwrap_or_default()
                .iter()
                .map(|words| clean_line(words, MAX_LINE_BYTES))
                .collect(),
            limits: grant
                .map(|grant| limit_rows(&grant.limits, source_grant))
                .unwrap_or_default(),
            usage: activity
                .as_ref()
                .zip(grant)
                .and_then(|(activity, grant)| usage_summary(&activity.usage, &grant.limits)),
            grant: source_grant.and_then(|grant| grant_text(grant, &report.history)),
            proposal: plugin.and_then(|plugin| self.files.proposal(plugin)),
            tools: tools.map(|offer| tool_row(offer)).collect(),
            offers: offer_rows(&snapshot, report),
            disabled: activity
                .map(|activity| activity.suspension.disabled_callers())
                .unwrap_or_default(),
            can_suspend: code.is_some(),
            approval: plugin.and_then(|plugin| self.held.approval(plugin)),
        })
    }

    fn held_version(&self, plugin: &str) -> Option<HeldPlugin> {
        self.held.find(&self.service.catalog().snapshot(), plugin)
    }

    fn approve_version(
        &self,
        viewer: &ConsoleViewer,
        plugin: &str,
        base: Option<Digest>,
        version: Digest,
    ) -> BoxFuture<'static, VersionApprovalOutcome> {
        let held = self.held.clone();
        let snapshot = self.service.catalog().snapshot();
        let audit = self.service.observers().audit().cloned();
        let (operator, id) = (viewer.name.clone(), plugin.to_owned());
        Box::pin(async move {
            // It continues after the browser disconnects, so the record is complete.
            let approving = tokio::task::spawn_blocking(move || {
                held.approve(&snapshot, &id, (base, version), &operator, audit.as_ref())
            });
            approving.await.unwrap_or_else(|error| {
                VersionApprovalOutcome::Refused(format!("it ended unexpectedly: {error}"))
            })
        })
    }

    fn tools(&self, search: &str, from: usize, most: usize) -> ToolsPage {
        let snapshot = self.service.catalog().snapshot();
        let query = SearchQuery::parse(search);
        let (matching, is_similar) = query.select(snapshot.tools.values(), |query, offer| {
            let tool = &offer.tool;
            let texts = [
                Some(tool.name.as_str()),
                Some(offer.plugin.id.as_str()),
                tool.title.as_deref(),
                tool.description.as_deref(),
            ];
            let hints = annotation_words(tool).map(|words| -> &str { words });
            query.find(texts.into_iter().flatten().chain(hints))
        });
        ToolsPage {
            total: matching.len(),
            rows: matching
                .into_iter()
                .skip(from)
                .take(most)
                .map(|offer| tool_row(offer))
                .collect(),
            is_similar,
        }
    }

    fn tool(&self, name: &str) -> Option<ToolDetail> {
        let snapshot = self.service.catalog().snapshot();
        let offer = snapshot.tools.get(name)?;
        Some(ToolDetail {
            row: tool_row(offer),
            input: offer.tool.input_schema.clone(),
            output: offer.tool.output_schema.clone(),
            hints: annotation_words(&offer.tool).collect(),
        })
    }

    fn may_use(&self, viewer: &ConsoleViewer, tool: &str) -> bool {
        // A local operator has no token. Callers without a token can call every tool.
        viewer.is_local || self.rights.allow(&viewer.name, tool)
    }

    fn call_tool(
        &self,
        viewer: &ConsoleViewer,
        tool: String,
        arguments: Map<String, Value>,
        allowed: Option<Digest>,
    ) -> BoxFuture<'static, ConsoleCallOutcome> {
        let service = self.service.clone();
        let client = self.client(&viewer.name);
        let permitted = self.may_use(viewer, &tool);
        // Runs on the guests' runtime, and is cancelled if the browser disconnects.
        let call_task = self.service.sandbox().spawn(call_tool(
            service,
            client,
            tool,
            arguments,
            permitted,
            allowed,
            viewer.name.clone(),
        ));
        let abortable_call = AbortOnDropHandle::new(call_task);
        Box::pin(async move {
            abortable_call.await.unwrap_or_else(|error| {
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
        let waiting = self.service.waiting_approvals();
        let viewer = viewer.clone();
        Box::pin(async move {
            let Some(waiting) = waiting else {
                return ApprovalOutcome::Gone;
            };
            let is_permitted = |tool: &str| self.may_use(&viewer, tool);
            let outcome_if_approved = |approval: &WaitingApproval, edition| {
                check_allowed(
                    self.service.catalog(),
                    self.service.admission(),
                    &approval.plugin,
                    &approval.tool,
                    edition,
                )
            };
            waiting
                .answer(id, yes, &viewer.name, is_permitted, outcome_if_approved)
                .await
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
            if let Some(audit) = self.service.observers().audit() {
                let action = if suspended { "disable" } else { "enable" };
                audit.record_operator_action(&viewer.name, action, Some(plugin), true);
            }
        }
        code.is_some()
    }

    fn stop_call(&self, viewer: &ConsoleViewer, id: u64) -> bool {
        stop_call(&self.service, &viewer.name, id).is_some()
    }

    fn clear_cache(
        &self,
        viewer: &ConsoleViewer,
    ) -> BoxFuture<'static, Result<ClearedCache, String>> {
        let sandbox = self.service.sandbox().clone();
        let audit = self.service.observers().audit().cloned();
        let name = viewer.name.clone();
        Box::pin(async move {
            let clearing = tokio::task::spawn_blocking(move || {
                let cleared = sandbox.clear_cache();
                // Recorded here, because clearing continues after the browser disconnects.
                if let Some(audit) = audit {
                    audit.record_operator_action(&name, "clear-cache", None, cleared.is_ok());
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

/// Returns the annotations of a tool, in words.
fn annotation_words(tool: &Tool) -> impl Iterator<Item = &'static str> + use<> {
    let hints = tool.annotations.map(|hints| {
        [
            (hints.read_only == Some(true), "reads only"),
            (hints.destructive == Some(true), "may delete or overwrite"),
            (hints.idempotent == Some(true), "can be repeated"),
            (hints.open_world == Some(true), "reaches the outside"),
        ]
    });
    hints
        .into_iter()
        .flatten()
        .filter_map(|(applies, words)| applies.then_some(words))
}

/// Returns the prompts, skills and resources of a plugin, with their descriptions.
fn offer_rows(snapshot: &Snapshot, report: &PluginReport) -> Vec<(&'static str, Vec<OfferRow>)> {
    let resource_rows = |uris: &[String], offers: &BTreeMap<String, Arc<ResourceOffer>>| {
        let row = |uri: &String| {
            let resource = &offers.get(uri)?.entry.resource;
            let title = resource.title.as_deref().or(Some(&resource.name));
            Some(offer_row(uri, title, resource.description.as_deref()))
        };
        uris.iter().filter_map(row).collect()
    };
    let prompt_row = |name: &String| {
        let prompt = &snapshot.prompts.get(name)?.prompt;
        let description = prompt.description.as_deref();
        Some(offer_row(name, prompt.title.as_deref(), description))
    };
    let skill_row = |uri: &String| {
        let skill = &snapshot.skills.get(uri)?.skill;
        Some(offer_row(uri, None, Some(&skill.description)))
    };
    vec![
        (
            "Prompts",
            report.prompts.iter().filter_map(prompt_row).collect(),
        ),
        (
            "Skills",
            report.skills.iter().filter_map(skill_row).collect(),
        ),
        (
            "Resources",
            resource_rows(&report.resources, &snapshot.resources),
        ),
        (
            "Resource templates",
            resource_rows(&report.templates, &snapshot.templates),
        ),
    ]
}

impl ConsoleBackend {
    /// Creates the console's access to the server that runs `service`.
    pub(super) fn new(
        service: &CallService,
        config: &Config,
        approver: Option<VersionApprover>,
    ) -> Self {
        Self {
            service: service.clone(),
            folder: config.plugins.display().to_string(),
            files: PluginFiles::new(&config.plugins, config.server.component_size.as_u64()),
            held: HeldVersions::new(config, approver),
            clamps: config.clamp_messages(),
            audit: config.audit.settings().map(|settings| settings.folder),
            records_contents: config.console.contents,
            rights: OperatorRights::new(config),
            clients: Mutex::default(),
        }
    }

    /// Returns the tools that operators may call.
    pub(super) const fn rights(&self) -> &OperatorRights {
        &self.rights
    }

    /// Returns the share of the caller with this name, and creates it for the first call.
    fn client(&self, name: &str) -> Arc<dyn ClientShare> {
        let mut clients = self.clients.lock();
        let new = || Arc::new(ServerShare::new(self.service.clone(), name)) as Arc<dyn ClientShare>;
        Arc::clone(clients.entry(name.to_owned()).or_insert_with(new))
    }
}

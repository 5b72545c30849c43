//! First stage of a call: finds its target, and checks what needs no permit.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_catalog::{Catalog, MatchBudget, MatchBudgetExhausted, Plugin, Snapshot};
use toolbay_mcp::ClientCall;
use toolbay_model::text::format_duration;
use toolbay_model::{
    ArgumentCheck, CallFailure, CallRequest, Digest, SchemaViolation, TargetKind, UnknownTarget,
    similar_names,
};

use crate::approval::call_target::{CallTarget, TOO_EXPENSIVE_MESSAGE};
use crate::call::admission::CallAdmission;
use crate::call::host_work::CallClient;
use crate::call::plugin_activity::PluginActivity;
use crate::observe::call_sinks::CallSinks;

/// Maximum time that a call of an unknown tool waits for plugins that are still loading at startup.
const FIRST_CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Finds the targets of calls in the catalog.
pub(crate) struct TargetLookup {
    catalog: Catalog,
    /// Default check of arguments, if neither the caller nor the grant specifies one.
    arguments: ArgumentCheck,
}

/// A call whose target exists and may be called by its client, with arguments that could be read.
pub(crate) struct ResolvedCall {
    pub(crate) target: Arc<CallTarget>,
    /// The state that all callers of the target's plugin share.
    pub(crate) activity: Arc<PluginActivity>,
    /// Digest of the plugin and its grant. Answers to questions are valid only for this edition.
    pub(crate) edition: Digest,
    /// True if arguments whose form does not match the schema are converted.
    pub(crate) is_lenient: bool,
}

impl TargetLookup {
    /// Creates the lookup in a catalog.
    pub(crate) fn new(catalog: Catalog, arguments: ArgumentCheck) -> Self {
        Self { catalog, arguments }
    }

    /// Returns the catalog.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Finds the target of a call. Waits for plugins that are still loading at startup.
    ///
    /// # Errors
    ///
    /// The target is unknown to the client, or the call lacks something that it requires.
    pub(crate) async fn resolve(
        &self,
        admission: &CallAdmission,
        client: CallClient<'_>,
        call: &mut ClientCall,
        sinks: &mut CallSinks,
    ) -> Result<ResolvedCall, CallFailure> {
        let target = Arc::new(self.find_target(client, call).await?);
        let plugin = target.plugin();
        let activity = admission.activity(plugin);
        let is_completion = matches!(call.request, CallRequest::Completion(_));
        sinks.record_target(&target, &activity.meters, is_completion, call);
        let missing = missing_capabilities(&target, call);
        if !missing.is_empty() {
            return Err(CallFailure::MissingCapabilities(missing));
        }
        let edition = edition_digest(plugin);
        if call.journal.edition.is_some_and(|known| known != edition) {
            return Err(CallFailure::Outdated);
        }
        let check = self
            .arguments
            .with_overrides([call.arguments, plugin.terms.argument_check]);
        let is_lenient = check == ArgumentCheck::Lenient;
        if let Some(violations) = take_form_violations(call, is_lenient) {
            return Err(target.invalid_arguments(violations));
        }
        Ok(ResolvedCall {
            target,
            activity,
            edition,
            is_lenient,
        })
    }

    async fn find_target(
        &self,
        client: CallClient<'_>,
        call: &ClientCall,
    ) -> Result<CallTarget, CallFailure> {
        let request = &call.request;
        if !call.is_permitted {
            // Neither the answer nor its timing reveals whether the target exists.
            return Err(unknown_failure(&self.catalog.snapshot(), call));
        }
        let quick = |snapshot: &Snapshot| {
            CallTarget::find(
                snapshot,
                request,
                &mut MatchBudget::new(MatchBudget::MAX_INLINE),
            )
        };
        let ready =
            |snapshot: &Snapshot| snapshot.complete || matches!(quick(snapshot), Ok(Some(_)));
        let snapshot = self.wait_for_snapshot(FIRST_CALL_TIMEOUT, ready).await;
        let target = match quick(&snapshot) {
            Ok(target) => target,
            Err(MatchBudgetExhausted) => {
                find_resource(client, Arc::clone(&snapshot), request).await
            }
        };
        target.ok_or_else(|| unknown_failure(&snapshot, call))
    }

    async fn wait_for_snapshot(
        &self,
        wait: Duration,
        ready: impl Fn(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        let now = self.catalog.snapshot();
        if ready(&now) {
            return now;
        }
        let waited = tokio::time::timeout(wait, self.catalog.wait_for(ready)).await;
        waited.unwrap_or_else(|_| self.catalog.snapshot())
    }

    /// Waits until the tool with this name is available, like a call does.
    pub(crate) async fn wait_for_tool(&self, tool: &str) {
        drop(
            self.wait_for_snapshot(FIRST_CALL_TIMEOUT, |snapshot| {
                snapshot.complete || snapshot.tools.contains_key(tool)
            })
            .await,
        );
    }

    /// Waits for the plugins that existed at startup, for at most `startup_wait`
    /// (`server.startup_wait`).
    pub(crate) async fn wait_until_complete(&self, startup_wait: Duration) {
        let snapshot = self
            .wait_for_snapshot(startup_wait, |snapshot| snapshot.complete)
            .await;
        if !snapshot.complete {
            let wait = format_duration(startup_wait);
            let loading = snapshot
                .plugins
                .values()
                .filter(|report| report.is_loading())
                .count();
            tracing::warn!(
                loading,
                "answered a list while plugins were still loading, after {wait} (server.startup_wait)"
            );
        }
    }
}

/// Returns the failure of a call whose target is unknown, with the most similar names that the
/// caller may use.
fn unknown_failure(snapshot: &Snapshot, call: &ClientCall) -> CallFailure {
    let (kind, name) = (call.request.kind(), call.request.target());
    let known: Vec<&String> = match kind {
        TargetKind::Tool => snapshot.tools.keys().collect(),
        TargetKind::Prompt => snapshot.prompts.keys().collect(),
        TargetKind::Resource => snapshot.resources.keys().collect(),
        TargetKind::Template => snapshot.templates.keys().collect(),
    };
    let allowed = known
        .into_iter()
        .map(String::as_str)
        .filter(|known| call.rights.allow(known));
    let similar = similar_names(name, allowed)
        .into_iter()
        .map(str::to_owned)
        .collect();
    CallFailure::Unknown(UnknownTarget {
        kind,
        name: name.to_owned(),
        similar,
    })
}

/// Finds the resource of a request whose URI takes long to compare with the templates, on
/// another thread.
async fn find_resource(
    client: CallClient<'_>,
    snapshot: Arc<Snapshot>,
    request: &CallRequest,
) -> Option<CallTarget> {
    let uri = request.target().to_owned();
    let compare = move || {
        let found = snapshot.find_resource(&uri, &mut MatchBudget::new(MatchBudget::PER_URI));
        found
            .unwrap_or_else(|MatchBudgetExhausted| {
                tracing::debug!("{TOO_EXPENSIVE_MESSAGE}");
                None
            })
            .cloned()
            .map(CallTarget::Resource)
    };
    client
        .offload
        .run_bounded(client.threads, compare)
        .await
        .flatten()
}

/// Takes the violations that were found when the request was parsed. Corrected ones count only if
/// `lenient` is false.
fn take_form_violations(call: &mut ClientCall, lenient: bool) -> Option<Vec<SchemaViolation>> {
    let mut violations: Vec<SchemaViolation> = call
        .unreadable
        .take()
        .map(|violation| *violation)
        .into_iter()
        .collect();
    if !lenient {
        violations.append(&mut call.corrected);
    }
    (!violations.is_empty()).then_some(violations)
}

/// Returns the capabilities that a target requires and the client of a call did not declare.
fn missing_capabilities(target: &CallTarget, call: &ClientCall) -> Map<String, Value> {
    target
        .required_capabilities()
        .iter()
        .filter(|(name, _)| !call.capabilities.contains(name))
        .map(clone_entry)
        .collect()
}

fn clone_entry((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Returns a digest that identifies a plugin with its grant. A call that asks its caller a question
/// must continue with the same edition.
pub(crate) fn edition_digest(plugin: &Plugin) -> Digest {
    let mut hash = Sha256::new();
    hash.update(plugin.component.digest.bytes());
    if let Some(grant) = &plugin.terms.grant_digest {
        hash.update(grant.bytes());
    }
    Digest::new(hash.finalize().into())
}

//! The interface between the console and its server.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolbay_model::Digest;

use crate::server_data::{
    ApprovalOutcome, AuditLine, ClearedCache, ConsoleCallOutcome, GrantProposal, HeldPlugin,
    PluginDetail, PluginRow, ServerStatus, ToolDetail, ToolsPage, VersionApprovalOutcome,
    WaitingApproval,
};

/// A user who opened the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleViewer {
    /// The name as a caller, for the log: `console`, or the name of a token such as `token:ops`.
    pub name: String,
    /// True if the console was opened without a configured token, by a user who may call every
    /// tool.
    pub is_local: bool,
}

/// The server behind the console.
///
/// Pages call these methods on each request. Methods that do not return a future must be fast.
pub trait ConsoleOperations: Send + Sync + 'static {
    /// Returns the state of the whole server.
    fn status(&self) -> ServerStatus;

    /// Returns the grant that the component of this plugin proposes, if it proposes one.
    fn proposal(&self, plugin: &str) -> Option<GrantProposal>;

    /// Returns all plugin files, ordered by id.
    fn plugins(&self) -> Vec<PluginRow>;

    /// Returns the plugin with this id, if it exists.
    fn plugin(&self, id: &str) -> Option<PluginDetail>;

    /// Returns the version of this plugin that the lock file holds back, if there is one. Compares
    /// texts of at most a few megabytes.
    fn held_version(&self, plugin: &str) -> Option<HeldPlugin>;

    /// Approves the held version of a plugin for the viewer, if its digest is `version` and that of
    /// the pin in the lock file is `base`.
    fn approve_version(
        &self,
        viewer: &ConsoleViewer,
        plugin: &str,
        base: Option<Digest>,
        version: Digest,
    ) -> BoxFuture<'static, VersionApprovalOutcome>;

    /// Returns at most `max_count` tools that match `search`, after skipping the first `offset`. See
    /// [`SearchQuery`](crate::SearchQuery).
    fn tools(&self, search: &str, offset: usize, max_count: usize) -> ToolsPage;

    /// Returns the tool with this name, if it exists.
    fn tool(&self, name: &str) -> Option<ToolDetail>;

    /// Returns whether the viewer may call the tool with this name and view the contents of its
    /// calls.
    fn may_use(&self, viewer: &ConsoleViewer, tool: &str) -> bool;

    /// Calls a tool for the viewer, within the limits that apply to every client. If the call
    /// requires approval, it runs only if `approved` is the digest of the approval question.
    /// Otherwise it ends with [`ConsoleCallOutcome::Question`].
    fn call_tool(
        &self,
        viewer: &ConsoleViewer,
        tool: String,
        arguments: Map<String, Value>,
        approved: Option<Digest>,
    ) -> BoxFuture<'static, ConsoleCallOutcome>;

    /// Returns the calls that wait for approval at their client and that an operator can answer
    /// too, oldest first: at most a few hundred.
    fn waiting_approvals(&self) -> Vec<WaitingApproval>;

    /// Answers a call of [`ConsoleOperations::waiting_approvals`] for the viewer. The first answer
    /// counts, from the operator or the client. The future completes after the question to the
    /// client is withdrawn.
    fn answer_approval(
        &self,
        viewer: &ConsoleViewer,
        id: u64,
        is_approved: bool,
    ) -> BoxFuture<'_, ApprovalOutcome>;

    /// Suspends or resumes a plugin for the viewer. A suspended plugin rejects all calls. Resuming
    /// also enables it for callers for which it is disabled. Returns whether a plugin with this id
    /// and with code exists.
    fn set_suspended(&self, viewer: &ConsoleViewer, plugin: &str, suspended: bool) -> bool;

    /// Stops a running call for the viewer, who may use its tool. Returns whether it was running.
    fn stop_call(&self, viewer: &ConsoleViewer, id: u64) -> bool;

    /// Removes this server's compiled components from the compile cache, for the viewer.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is no cache or not everything could be removed.
    fn clear_cache(
        &self,
        viewer: &ConsoleViewer,
    ) -> BoxFuture<'static, Result<ClearedCache, String>>;

    /// Returns at most `max_count` of the newest lines of the audit log, newest first; `None` if
    /// there is no log.
    ///
    /// # Errors
    ///
    /// Returns the reason if the log cannot be read.
    fn audit_lines(
        &self,
        max_count: usize,
    ) -> BoxFuture<'static, Option<Result<Vec<AuditLine>, String>>>;
}

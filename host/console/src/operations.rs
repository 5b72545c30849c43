//! What the console asks of the server that it belongs to.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolbay_model::Digest;

use crate::data::{
    ApprovalOutcome, AuditLine, ClearedCache, ConsoleCallOutcome, PluginDetail, PluginRow, ServerStatus, ToolDetail,
    ToolsPage, WaitingApproval,
};

/// Whoever has opened the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleViewer {
    /// The name as a caller, for the log: `console`, or that of a token such as `token:ops`.
    pub name: String,
    /// Whether it was opened without a token of the configuration, by whoever may call everything without one.
    pub local: bool,
}

/// The server behind the console: what it offers, and the few things that an operator may do with it.
///
/// Its methods are called for each page, so none of them takes long, but for those that return a future.
pub trait ConsoleOperations: Send + Sync + 'static {
    /// The server as a whole.
    fn status(&self) -> ServerStatus;

    /// Every plugin file, in the order of the ids.
    fn plugins(&self) -> Vec<PluginRow>;

    /// The plugin with this id; `None` if there is none.
    fn plugin(&self, id: &str) -> Option<PluginDetail>;

    /// At most `most` tools of those that contain `search` in their name, title, description or plugin, without the first
    /// `from`.
    fn tools(&self, search: &str, from: usize, most: usize) -> ToolsPage;

    /// The tool that clients call by this name; `None` if there is none.
    fn tool(&self, name: &str) -> Option<ToolDetail>;

    /// Whether the viewer may call the tool with this name, and see what its calls contain.
    fn may_use(&self, viewer: &ConsoleViewer, tool: &str) -> bool;

    /// Calls a tool for the viewer, within the limits of every client. If the operator wants a person to allow the call, it
    /// is made if `allowed` is the digest of the question to that person, and else ends with [`ConsoleCallOutcome::Question`].
    fn call(
        &self,
        viewer: &ConsoleViewer,
        tool: String,
        arguments: Map<String, Value>,
        allowed: Option<Digest>,
    ) -> BoxFuture<'static, ConsoleCallOutcome>;

    /// The calls that wait for a person at their client, and that an operator may answer as well, the oldest first. Few
    /// hundred at the most.
    fn waiting(&self) -> Vec<WaitingApproval>;

    /// Answers a call of [`ConsoleOperations::waiting`] for the viewer. The first answer counts, whoever gives it. It is there when
    /// the client is not asked any more.
    fn answer(&self, viewer: &ConsoleViewer, id: u64, yes: bool) -> BoxFuture<'_, ApprovalOutcome>;

    /// Has a plugin reject all calls, or serve them again, also those of callers for which it is disabled, because the viewer
    /// wants that. Returns whether there is such a plugin with code.
    fn rest(&self, viewer: &ConsoleViewer, plugin: &str, rests: bool) -> bool;

    /// Removes this server's compiled components from the compile cache, because the viewer wants that.
    ///
    /// # Errors
    ///
    /// There is no cache, or not everything could be removed: why.
    fn clear_cache(&self, viewer: &ConsoleViewer) -> BoxFuture<'static, Result<ClearedCache, String>>;

    /// At most `most` of the newest lines of the audit log, the newest first; `None` if there is no log.
    ///
    /// # Errors
    ///
    /// The log cannot be read: why.
    fn audit(&self, most: usize) -> BoxFuture<'static, Option<Result<Vec<AuditLine>, String>>>;
}

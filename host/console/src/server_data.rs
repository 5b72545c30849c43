//! Plain data about the server that pages display.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolbay_lock::{VersionDifference, WarningSigns};
use toolbay_model::{CallUsage, Digest, JsonText};

/// The state of the whole server.
#[derive(Clone, Debug, Default)]
pub struct ServerStatus {
    /// Version of Toolbay.
    pub version: &'static str,
    /// Path of the plugin folder.
    pub folder: String,
    /// True if every plugin that existed at startup was loaded or refused.
    pub is_loaded: bool,
    /// Number and kind of the offered items, such as tools, prompts and resources.
    pub offered: Vec<(usize, &'static str)>,
    /// Number of running calls, and its maximum.
    pub running: (u64, u64),
    /// Number of queued calls.
    pub waiting: u64,
    /// Memory that running calls may use, and the maximum for all calls together, in bytes.
    pub memory: (u64, u64),
    /// Remarks about server-wide limits that were lowered and about files that are not plugins, one
    /// sentence each.
    pub notes: Vec<String>,
    /// The reason that the compile cache is not used; `None` if it is used.
    pub no_cache: Option<String>,
    /// True if there is an audit log.
    pub has_audit_log: bool,
    /// True if arguments and results of calls are recorded.
    pub records_contents: bool,
}

/// The status of a plugin's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginStatus {
    /// The file is being loaded for the first time.
    Loading,
    /// The current file is in service.
    Ready,
    /// The current file was refused; the previous version is in service.
    Stale,
    /// The file was refused, and no version is in service.
    Refused,
    /// The plugin is in service, but the operator suspended it. It rejects calls.
    Suspended,
}

/// A plugin in a list.
#[derive(Clone, Debug)]
pub struct PluginRow {
    /// The file name without `.wasm`.
    pub id: String,
    /// The status of the plugin.
    pub status: PluginStatus,
    /// The purpose of the plugin, as stated in its file.
    pub purpose: Option<String>,
    /// True if the lock file holds back the version in its files.
    pub is_held: bool,
    /// Number of its tools.
    pub tools: usize,
    /// Reasons that the current file is not in service, and warnings about it.
    pub problems: Vec<String>,
    /// The permissions of the grant, in plain language.
    pub permissions: Vec<String>,
}

/// The details of a plugin.
#[derive(Clone, Debug)]
pub struct PluginDetail {
    /// The row of the plugin in a list.
    pub row: PluginRow,
    /// SHA-256 of the component in service, in hexadecimal.
    pub digest: Option<String>,
    /// The file of the component; `None` if there is none or it cannot be read.
    pub file: Option<PluginFile>,
    /// Time at which the version in service was loaded.
    pub loaded_at: Option<SystemTime>,
    /// The languages and tools that made the component, as its file states them.
    pub toolchain: Vec<String>,
    /// Other terms of the grant, in plain language.
    pub terms: Vec<String>,
    /// The limits of a call.
    pub limits: Vec<LimitRow>,
    /// Usage of the most recent calls; `None` if there were none.
    pub usage: Option<UsageSummary>,
    /// The grant in force, as text; `None` if the plugin has no grant.
    pub grant: Option<GrantText>,
    /// The grant that the component proposes.
    pub proposal: Option<GrantProposal>,
    /// The tools of the plugin.
    pub tools: Vec<ToolRow>,
    /// The other offered items, by kind.
    pub offers: Vec<(&'static str, Vec<OfferRow>)>,
    /// Callers for which the plugin is disabled after crashes, and the remaining time.
    pub disabled: Vec<(String, Duration)>,
    /// True if the plugin can be suspended: it is in service and has code.
    pub can_suspend: bool,
    /// The approval of the version in service, if it was approved in the console.
    pub approval: Option<VersionApproval>,
}

/// Approval of a version in the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionApproval {
    /// The name of the operator.
    pub by: String,
    /// Time of the approval.
    pub at: SystemTime,
}

/// A version of a plugin that the lock file holds back.
#[derive(Clone, Debug)]
pub struct HeldPlugin {
    /// The id of the plugin.
    pub id: String,
    /// Digest of the pin in the lock file; `None` if it has none.
    pub base: Option<Digest>,
    /// Digest of the pin of the held version.
    pub version: Digest,
    /// The difference between the pin and the version.
    pub difference: VersionDifference,
    /// The signs that the version may deceive a model or a user.
    pub signs: WarningSigns,
    /// True if another version is in service.
    pub is_served: bool,
    /// Reason why the version cannot be approved in the console, as a clause.
    pub obstacle: Option<String>,
}

/// The outcome of approving a held version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionApprovalOutcome {
    /// The version is approved, and is put into service soon.
    Done,
    /// No such version is held: the files or the lock file have changed since.
    Changed,
    /// The version was not approved, for this reason, a clause.
    Refused(String),
}

/// The file of a plugin's component.
#[derive(Clone, Debug)]
pub struct PluginFile {
    /// Path of the file.
    pub path: String,
    /// Path of the file that a symbolic link leads to; `None` if it is not a link.
    pub link_target: Option<String>,
    /// Size of the file, in bytes.
    pub size: u64,
    /// Time of the last change of the file.
    pub modified_at: Option<SystemTime>,
}

/// A limit of a call.
#[derive(Clone, Debug)]
pub struct LimitRow {
    /// Key of the limit under `[limits]`.
    pub key: String,
    /// Value of the limit, formatted.
    pub value: String,
    /// The file that sets the value.
    pub source: LimitSource,
}

/// The file that sets a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// None: it is Toolbay's default.
    BuiltIn,
    /// The server's configuration, for all plugins.
    Server,
    /// The grant of the plugin.
    Grant,
}

/// Usage of a plugin's most recent calls, compared with its limits.
#[derive(Clone, Debug)]
pub struct UsageSummary {
    /// Number of recorded calls.
    pub calls: usize,
    /// Number of recorded calls that a limit stopped.
    pub stopped: usize,
    /// The maximum usage of each recorded resource.
    pub rows: Vec<UsageRow>,
    /// The line of a grant with limits that would have sufficed.
    pub suggestion: String,
}

/// The maximum usage of one resource.
#[derive(Clone, Debug)]
pub struct UsageRow {
    /// Key of the limit under `[limits]`.
    pub key: &'static str,
    /// Maximum usage of a call, formatted.
    pub used: String,
    /// The limit, formatted.
    pub limit: String,
    /// Usage in percent of the limit.
    pub percent: u64,
}

/// A grant as text. Values that can be secret are replaced.
#[derive(Clone, Debug)]
pub struct GrantText {
    /// The grant in force, in TOML.
    pub text: String,
    /// The previous grant, if it has changed since the server started.
    pub previous: Option<PreviousGrant>,
}

/// A grant that was replaced.
#[derive(Clone, Debug)]
pub struct PreviousGrant {
    /// The grant, in TOML; empty if there was none.
    pub text: String,
    /// Time at which it was replaced.
    pub replaced_at: SystemTime,
}

/// The grant that a component proposes. It allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantProposal {
    /// The proposal as a grant file, with the author's reasons as comments.
    pub text: String,
    /// Permissions of the grant in force that the component does not propose.
    pub excess: Vec<String>,
    /// Permissions that the component proposes and the grant in force does not give.
    pub missing: Vec<String>,
}

/// A prompt, resource or skill in a list.
#[derive(Clone, Debug)]
pub struct OfferRow {
    /// The name or URI.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// The description that the plugin supplies.
    pub description: Option<String>,
}

/// A tool in a list.
#[derive(Clone, Debug)]
pub struct ToolRow {
    /// The name that clients call.
    pub name: String,
    /// The id of the plugin.
    pub plugin: String,
    /// A display name.
    pub title: Option<String>,
    /// The description that the plugin supplies.
    pub description: Option<String>,
    /// The calls that require approval by a person, in words.
    pub approval: Option<String>,
}

/// A page of a list of tools.
#[derive(Clone, Debug, Default)]
pub struct ToolsPage {
    /// The tools.
    pub rows: Vec<ToolRow>,
    /// Total number of matching tools.
    pub total: usize,
    /// True if no tool contains the words of the search, and these have similar words.
    pub is_similar: bool,
}

/// The details of a tool.
#[derive(Clone, Debug)]
pub struct ToolDetail {
    /// The row of the tool in a list.
    pub row: ToolRow,
    /// JSON Schema of the arguments.
    pub input: JsonText,
    /// JSON Schema of the structured content.
    pub output: Option<JsonText>,
    /// The annotations, in words.
    pub hints: Vec<&'static str>,
}

/// The outcome of a call from the console.
#[derive(Debug)]
pub enum ConsoleCallOutcome {
    /// A person must approve the call first: the question, and its digest.
    Question(String, Digest),
    /// The call ended.
    Ended {
        /// The result as a client receives it, or the message of a protocol error.
        result: Result<Value, String>,
        /// The identifier of the outcome in the audit log, such as `ok` or `fuel`.
        outcome: &'static str,
        /// The resources that the call used; `None` if no guest ran.
        usage: Option<CallUsage>,
    },
}

/// A call that waits for approval, whose question an operator can answer in the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingApproval {
    /// Number of the call. The first call of a server has a random number, and later calls have
    /// greater ones.
    pub id: u64,
    /// Time at which the call started to wait.
    pub asked_at: SystemTime,
    /// Time at which the question expires.
    pub expires_at: SystemTime,
    /// The caller's name.
    pub caller: String,
    /// The plugin.
    pub plugin: String,
    /// The name of the tool for clients.
    pub tool: String,
    /// The question as shown to the client's user, in several lines.
    pub question: String,
    /// The calls that an approval covers, such as `this call`.
    pub covered_calls: &'static str,
    /// True if the client is not asked, and only an operator can answer.
    pub is_for_operator: bool,
}

/// The result of answering a waiting call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalOutcome {
    /// The call continues with the answer.
    Done,
    /// The call received the answer, but fails because the plugin or its grant changed since the
    /// question.
    Outdated,
    /// The call received the answer, but is rejected because the plugin is suspended.
    Suspended,
    /// No such call waits. It was answered or cancelled, its question expired, or it never existed.
    Gone,
    /// The viewer may not call the tool, and therefore may not approve the call.
    Forbidden,
}

/// The items that were removed from the compile cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClearedCache {
    /// Number of components.
    pub components: usize,
    /// Total size of the components, in bytes.
    pub bytes: u64,
}

/// A line of the audit log. Each field is one line of text, and empty if the log line does not
/// contain it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditLine {
    /// Time of the event.
    pub time: String,
    /// Name of the event.
    pub event: String,
    /// The outcome.
    pub outcome: String,
    /// The caller.
    pub caller: String,
    /// The plugin.
    pub plugin: String,
    /// The tool.
    pub tool: String,
    /// All other fields.
    pub details: String,
}

//! Plain data about the server that pages display.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    /// Other terms of the grant, in plain language.
    pub terms: Vec<String>,
    /// The limits of a call: key, value, and whether the grant or the configuration sets the value.
    pub limits: Vec<(String, String, bool)>,
    /// The tools of the plugin.
    pub tools: Vec<ToolRow>,
    /// The other offered items: the kind, and the names or URIs.
    pub offers: Vec<(&'static str, Vec<String>)>,
    /// Callers for which the plugin is disabled after crashes, and the remaining time.
    pub disabled: Vec<(String, Duration)>,
    /// True if the plugin can be suspended: it is in service and has code.
    pub can_suspend: bool,
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
    /// Number of the call, starting at 1 after each start of the server.
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

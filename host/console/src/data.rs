//! What the server says of itself, as plain data.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolbay_model::{CallUsage, Digest, JsonText};

/// The server as a whole.
#[derive(Clone, Debug, Default)]
pub struct ServerStatus {
    /// Version of Toolbay.
    pub version: &'static str,
    /// Path of the plugin folder.
    pub folder: String,
    /// Whether every plugin that existed at startup has been loaded or refused.
    pub complete: bool,
    /// Tools, prompts, resources and the like that are offered: how many, and what.
    pub offered: Vec<(usize, &'static str)>,
    /// Calls that run, and how many may.
    pub running: (u64, u64),
    /// Calls that wait for their turn.
    pub waiting: u64,
    /// Bytes that running calls may hold, and how many all calls may hold together.
    pub memory: (u64, u64),
    /// Server-wide limits that were lowered, and files that are no plugins, a sentence each.
    pub notes: Vec<String>,
    /// Why nothing is kept in the compile cache; `None` if there is one.
    pub no_cache: Option<String>,
    /// Whether there is an audit log.
    pub audit: bool,
    /// Whether arguments and results of calls are kept.
    pub contents: bool,
}

/// The status of a plugin's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginStatus {
    /// Its file is being loaded for the first time.
    Loading,
    /// The current file is in service.
    Ready,
    /// The current file was refused; the previous version is in service.
    Stale,
    /// The file was refused, and no version is in service.
    Refused,
    /// It is in service, and the operator has it reject calls.
    Resting,
}

/// A plugin, for a list.
#[derive(Clone, Debug)]
pub struct PluginRow {
    /// The file name without `.wasm`.
    pub id: String,
    /// Its status.
    pub status: PluginStatus,
    /// What it is for, as its file says.
    pub about: Option<String>,
    /// Number of its tools.
    pub tools: usize,
    /// Why the current file is not in service, and warnings about it.
    pub problems: Vec<String>,
    /// The permissions of its grant, in plain words.
    pub permissions: Vec<String>,
}

/// A plugin, in full.
#[derive(Clone, Debug)]
pub struct PluginDetail {
    /// What the list says of it.
    pub row: PluginRow,
    /// SHA-256 of the component in service, in hexadecimal.
    pub digest: Option<String>,
    /// What else the grant says, in plain words.
    pub terms: Vec<String>,
    /// The limits of a call: key, value, and whether the grant or the configuration sets it.
    pub limits: Vec<(String, String, bool)>,
    /// Its tools.
    pub tools: Vec<ToolRow>,
    /// What else it offers: what that is, and the names or URIs.
    pub offers: Vec<(&'static str, Vec<String>)>,
    /// Callers for which it is disabled after crashes, and for how much longer.
    pub disabled: Vec<(String, Duration)>,
    /// Whether it can be put to rest: it is in service and has code.
    pub can_rest: bool,
}

/// A tool, for a list.
#[derive(Clone, Debug)]
pub struct ToolRow {
    /// The name that clients call.
    pub name: String,
    /// The id of its plugin.
    pub plugin: String,
    /// A display name.
    pub title: Option<String>,
    /// What it does, as its plugin says.
    pub description: Option<String>,
    /// Which calls a person must allow first, in words.
    pub asks: Option<String>,
}

/// A part of a list of tools.
#[derive(Clone, Debug, Default)]
pub struct ToolsPage {
    /// The tools.
    pub rows: Vec<ToolRow>,
    /// How many tools match.
    pub matching: usize,
}

/// A tool, in full.
#[derive(Clone, Debug)]
pub struct ToolDetail {
    /// What the list says of it.
    pub row: ToolRow,
    /// JSON Schema of the arguments.
    pub input: JsonText,
    /// JSON Schema of the structured content.
    pub output: Option<JsonText>,
    /// What its annotations say, in words.
    pub hints: Vec<&'static str>,
}

/// What came of a call that the console made.
#[derive(Debug)]
pub enum ConsoleCallOutcome {
    /// A person must allow it first: the question, and its digest.
    Question(String, Digest),
    /// It ended.
    Ended {
        /// The result as a client receives it, or the message of a protocol error.
        result: Result<Value, String>,
        /// The word of the audit log for it, such as `ok` or `fuel`.
        outcome: &'static str,
        /// What it used; `None` if no guest was entered.
        usage: Option<CallUsage>,
    },
}

/// A call that waits for a person's yes, and whose question an operator may answer here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingApproval {
    /// Its number, from 1 at each start of the server.
    pub id: u64,
    /// Since when it waits.
    pub at: SystemTime,
    /// When an answer comes too late.
    pub until: SystemTime,
    /// The caller's name.
    pub caller: String,
    /// The plugin.
    pub plugin: String,
    /// The tool, as clients call it.
    pub tool: String,
    /// The question, as the client's user gets it: several lines.
    pub question: String,
}

/// What came of an answer to a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// The call goes on with it.
    Done,
    /// The call has the answer, but the plugin or its grant is another one than was asked about: it fails.
    Outdated,
    /// The call has the answer, but the plugin rests: it is rejected.
    Resting,
    /// No such call waits: it was answered or cancelled, it is too late, or there never was one.
    Gone,
    /// The viewer may not call the tool, and so not allow it either.
    Forbidden,
}

/// What was removed from the compile cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClearedCache {
    /// Number of components.
    pub components: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

/// A line of the audit log: one line of text each, empty if it does not say that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditLine {
    /// When it happened.
    pub time: String,
    /// What happened.
    pub event: String,
    /// How it ended.
    pub outcome: String,
    /// Who called.
    pub caller: String,
    /// The plugin.
    pub plugin: String,
    /// The tool.
    pub tool: String,
    /// Everything else.
    pub details: String,
}

//! What is recorded: plain data, bounded, written by serde alone.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use toolbay_model::text::line;
use toolbay_model::{CallUsage, Digest, WhyUnapproved};

use crate::anchor::CrossAnchor;
use crate::part::LogPart;
use crate::recovery::RecoveryReport;

/// Longest name of a tool, plugin or caller in a line, in bytes.
const NAME: usize = 512;

/// Longest sentence in a line, in bytes: parts of it come from plugins.
const WORDS: usize = 1_000;

/// What a record weighs beside its texts, in bytes: the line's fixed parts, and what holds it in memory.
pub(crate) const FIXED: usize = 1_024;

/// A name as it is recorded: one line of at most 512 bytes without control characters.
pub fn shortened(name: &str) -> String {
    line(name, NAME)
}

/// A sentence as it is recorded.
pub(crate) fn words(text: &str) -> String {
    line(text, WORDS)
}

/// Something that is recorded, in one line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum AuditEvent {
    /// A plugin went into service, or its component or tools changed.
    Load {
        /// The plugin and its digests.
        #[serde(flatten)]
        plugin: PluginRecord,
        /// The number of its tools that are offered.
        tools: usize,
    },
    /// The grant of a plugin changed, and its component did not.
    Grant {
        /// The plugin and its digests.
        #[serde(flatten)]
        plugin: PluginRecord,
        /// Digest of the grant before; `None` if there was no grant.
        #[serde(serialize_with = "digest", skip_serializing_if = "Option::is_none")]
        previous: Option<Digest>,
    },
    /// A file was refused. If a version of the plugin is still in service, these are its digests.
    Refused {
        /// The plugin and its digests.
        #[serde(flatten)]
        plugin: PluginRecord,
        /// Why.
        why: String,
    },
    /// A plugin went out of service because its file was deleted.
    Removed {
        /// The plugin, and the digests that it had.
        #[serde(flatten)]
        plugin: PluginRecord,
    },
    /// A call ended.
    Call(Box<CallRecord>),
    /// A call was denied something by the grant.
    Denied {
        /// The call.
        #[serde(flatten)]
        subject: CallSubject,
        /// What was denied, as a sentence.
        what: String,
        /// The lines of `[permissions]` that would allow it.
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
    /// A person was asked whether to allow a call, or answered.
    Approval {
        /// The call.
        #[serde(flatten)]
        subject: CallSubject,
        /// What came of it, such as `asked`, `approved` or `declined`.
        decision: &'static str,
        /// SHA-256 of the arguments that the approval is about.
        #[serde(rename = "arguments_sha256", serialize_with = "digest", skip_serializing_if = "Option::is_none")]
        arguments: Option<Digest>,
        /// Milliseconds since the question; `None` if there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
        /// The operator who answered in the console; `None` if it was the caller's user, or nobody.
        #[serde(skip_serializing_if = "Option::is_none")]
        answered_by: Option<String>,
    },
    /// A call reached a limit, or was rejected because of one.
    Limit {
        /// The call.
        #[serde(flatten)]
        subject: CallSubject,
        /// The key that raises the limit, such as `limits.fuel`.
        limit: &'static str,
    },
    /// More calls of a caller were rejected for a reason of which a line was written a short time before.
    Rejected(RejectedRecord),
    /// An operator did something with the server itself, beside calling tools.
    Operator(Box<OperatorRecord>),
    /// The server began to write the log.
    Start(Box<LogStart>),
    /// The server ended. A signature follows.
    Stop {},
    /// A signature of everything before it.
    Checkpoint {
        /// The Ed25519 signature, in hexadecimal.
        signature: String,
        /// The newest line of the part with rejections; `None` within that part.
        #[serde(serialize_with = "anchored", skip_serializing_if = "Option::is_none")]
        rejected: Option<CrossAnchor>,
    },
    /// A file begins.
    File {
        /// The number of the first line that is kept: files with lines before it are deleted.
        oldest: u64,
        /// The newest line of the part with rejections; `None` within that part.
        #[serde(serialize_with = "anchored", skip_serializing_if = "Option::is_none")]
        rejected: Option<CrossAnchor>,
    },
    /// Lines that could not be written.
    Lost {
        /// How many.
        lines: u64,
        /// `queue` if the writer could not keep up, `disk` if writing failed.
        why: &'static str,
    },
}

/// What a server found when it began to write.
#[derive(Debug, Serialize)]
pub struct LogStart {
    /// Version of Toolbay.
    pub(crate) version: &'static str,
    /// The public key of the signatures, in hexadecimal.
    pub(crate) key: String,
    /// The newest line of the part with rejections; `None` within that part.
    #[serde(serialize_with = "anchored", skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<CrossAnchor>,
    /// What differed from the end that the server before had signed.
    #[serde(flatten)]
    pub(crate) recovery: RecoveryReport,
}

/// Calls that were rejected for the same reason, and that have no lines of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedRecord {
    /// The caller, as [`shortened`] returns it; empty if they are of several callers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// The name of the tool, as [`shortened`] returns it; empty if they are of several tools.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The word of the error kind.
    pub outcome: &'static str,
    /// The key of the limit, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// How many.
    pub count: u64,
}

/// What an operator did.
#[derive(Debug, Serialize)]
pub struct OperatorRecord {
    /// The operator's name as a caller, as [`shortened`] returns it.
    pub caller: String,
    /// What was done, such as `rest`.
    pub action: &'static str,
    /// The plugin that it was done to; `None` if it was the server as a whole.
    #[serde(flatten)]
    pub plugin: Option<PluginRecord>,
    /// `ok`, or `failed` if it could not be done, or not completely.
    pub outcome: &'static str,
}

/// A plugin as it was when something happened.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PluginRecord {
    /// Its id, as [`shortened`] returns it.
    pub plugin: String,
    /// SHA-256 of the component; `None` if none is in service.
    #[serde(rename = "plugin_sha256", serialize_with = "digest", skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// SHA-256 of the text of its grant; `None` if it has no grant.
    #[serde(rename = "grant_sha256", serialize_with = "digest", skip_serializing_if = "Option::is_none")]
    pub grant: Option<Digest>,
}

/// The call that a line is about.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallSubject {
    /// Number of the call, from 1 at each start of the server: lines with the same number are about the same call.
    pub call: u64,
    /// The caller's name, as [`shortened`] returns it.
    pub caller: String,
    /// The name of the tool that was called, as [`shortened`] returns it.
    pub tool: String,
    /// The plugin; `None` if the tool is unknown or the call was rejected before that mattered.
    #[serde(flatten)]
    pub plugin: Option<PluginRecord>,
    /// The trace id, 32 hexadecimal digits; `None` if the call belongs to no trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl CallSubject {
    /// The bytes of its texts.
    pub(crate) fn size(&self) -> usize {
        let plugin = self.plugin.as_ref().map_or(0, |plugin| plugin.plugin.len());
        self.caller.len() + self.tool.len() + plugin
    }
}

/// The arguments of a call.
#[derive(Debug, Default, Serialize)]
pub struct ArgumentsRecord {
    /// SHA-256 of the JSON text that the plugin receives.
    #[serde(rename = "arguments_sha256", serialize_with = "digest", skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The JSON text without secrets, if the configuration asks for it; cut if it is long.
    #[serde(rename = "arguments", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether `text` is only the beginning.
    #[serde(rename = "arguments_cut", skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A call that has ended.
#[derive(Debug, Default, Serialize)]
pub struct CallRecord {
    /// The call.
    #[serde(flatten)]
    pub subject: CallSubject,
    /// Its arguments; nothing if it ended before they were checked.
    #[serde(flatten)]
    pub arguments: ArgumentsRecord,
    /// How many changes of each kind were made to the arguments before that, because they did not fit in their form.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub converted: BTreeMap<&'static str, u64>,
    /// `ok`, `asked` if it ended with a question, or the word of the error kind.
    pub outcome: &'static str,
    /// What it used; `None` if no guest was entered.
    #[serde(serialize_with = "usage", skip_serializing_if = "Option::is_none")]
    pub usage: Option<CallUsage>,
    /// Denials of the call that have no lines of their own.
    #[serde(rename = "denials_unlisted", skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// Whether it was rejected before a plugin or a person had anything to do with it.
    #[serde(skip)]
    pub rejected: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl AuditEvent {
    /// The names of all events.
    pub const NAMES: [&'static str; 15] = [
        "load",
        "grant",
        "refused",
        "removed",
        "call",
        "denied",
        "approval",
        "limit",
        "rejected",
        "operator",
        "start",
        "stop",
        "checkpoint",
        "file",
        "lost",
    ];

    /// The part of the log that it is written to. Lines about the log itself are in both.
    pub(crate) fn part(&self) -> LogPart {
        match self {
            Self::Denied { .. } | Self::Limit { .. } | Self::Rejected(_) => LogPart::Rejected,
            Self::Call(call) if call.rejected => LogPart::Rejected,
            // Nobody was asked.
            Self::Approval { decision, .. } if *decision == WhyUnapproved::Impossible.as_str() => LogPart::Rejected,
            _ => LogPart::Main,
        }
    }

    /// What the record may take in memory and in the file, in bytes; at most some 40 KiB.
    pub(crate) fn weight(&self) -> u32 {
        let texts = match self {
            Self::Load { plugin, .. } | Self::Grant { plugin, .. } | Self::Removed { plugin } => plugin.plugin.len(),
            Self::Refused { plugin, why } => plugin.plugin.len() + why.len(),
            Self::Call(call) => call.subject.size() + call.arguments.text.as_ref().map_or(0, String::len),
            Self::Denied { subject: of, what, remedy } => {
                of.size() + what.len() + remedy.as_ref().map_or(0, String::len)
            }
            Self::Limit { subject: of, .. } | Self::Approval { subject: of, .. } => of.size(),
            Self::Operator(did) => did.caller.len() + did.plugin.as_ref().map_or(0, |plugin| plugin.plugin.len()),
            Self::Rejected(rejected) => rejected.caller.len() + rejected.tool.len(),
            Self::Start(_) | Self::Stop {} | Self::Checkpoint { .. } | Self::File { .. } | Self::Lost { .. } => 0,
        };
        u32::try_from(FIXED + texts).unwrap_or(u32::MAX)
    }

    /// The same, with every sentence within its bound.
    pub(crate) fn bounded(self) -> Self {
        match self {
            Self::Refused { plugin, why } => Self::Refused { plugin, why: words(&why) },
            Self::Denied { subject, what, remedy } => {
                let lines = |remedy: String| remedy.lines().map(words).collect::<Vec<_>>().join("\n");
                let remedy = remedy.map(lines);
                Self::Denied { subject, what: words(&what), remedy }
            }
            other => other,
        }
    }
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn digest<S: Serializer>(digest: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
    match digest {
        Some(digest) => serializer.collect_str(digest),
        None => serializer.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn anchored<S: Serializer>(anchor: &Option<CrossAnchor>, serializer: S) -> Result<S::Ok, S::Error> {
    match anchor {
        Some((seq, hash)) => serializer.collect_str(&format_args!("{seq}:{hash}")),
        None => serializer.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn usage<S: Serializer>(usage: &Option<CallUsage>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct ResourceUse {
        wall_ms: f64,
        fuel: u64,
        memory: u64,
        http_requests: u64,
        http_bytes: u64,
        tcp_connections: u64,
        tcp_bytes: u64,
    }
    let used = usage.map(|CallUsage { fuel, wall, memory, http_requests, http_bytes, tcp_connections, tcp_bytes }| {
        ResourceUse {
            wall_ms: (wall.as_secs_f64() * 10_000.0).round() / 10.0,
            fuel,
            memory,
            http_requests,
            http_bytes,
            tcp_connections,
            tcp_bytes,
        }
    });
    used.serialize(serializer)
}

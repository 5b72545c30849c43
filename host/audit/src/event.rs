//! The events that are recorded: plain data of bounded size, serialized with serde.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use toolbay_model::text::clean_line;
use toolbay_model::{CallUsage, Digest, MissingApprovalReason};

use crate::anchor::CrossAnchor;
use crate::part::LogPart;
use crate::plugin_record::{PluginRecord, VersionApprovalRecord, digest};
use crate::recovery::RecoveryReport;

/// Maximum length of the name of a tool, plugin or caller in a line, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// Maximum length of a sentence in a line, in bytes. Plugins supply parts of sentences.
const MAX_SENTENCE_BYTES: usize = 1_000;

/// Size of a record in addition to its texts, in bytes: the fixed fields of the line, and the
/// memory that holds the record.
pub(crate) const RECORD_OVERHEAD_BYTES: usize = 1_024;

/// Truncates a name to the form in which it is recorded: one line of at most 512 bytes without
/// control characters.
pub fn truncate_name(name: &str) -> String {
    clean_line(name, MAX_NAME_BYTES)
}

/// Truncates a sentence to the form in which it is recorded.
pub(crate) fn truncate_sentence(text: &str) -> String {
    clean_line(text, MAX_SENTENCE_BYTES)
}

/// An event. Each event is recorded in one line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum AuditEvent {
    /// A plugin was put into service, or its component or tools changed.
    Load {
        /// The plugin and its digests.
        #[serde(flatten)]
        plugin: PluginRecord,
        /// Number of its tools that are offered.
        tools: usize,
    },
    /// The grant of a plugin changed, but its component did not.
    Grant {
        /// The plugin and its digests.
        #[serde(flatten)]
        plugin: PluginRecord,
        /// Digest of the previous grant; `None` if there was no grant.
        #[serde(serialize_with = "digest", skip_serializing_if = "Option::is_none")]
        previous: Option<Digest>,
    },
    /// A file was refused. The digests are those of the version of the plugin that is still in
    /// service, if any.
    Refused {
        /// The plugin and its digests.
        #[serde(flatten)]
        plugin: PluginRecord,
        /// The reason.
        reason: String,
    },
    /// A version of a plugin was not put into service because it differs from the lock file. The
    /// digests without a prefix are those of the version in service, if any.
    Held {
        /// The plugin and its digests.
        #[serde(flatten)]
        plugin: PluginRecord,
        /// Digest of the component that is held; `None` if there are only plain files.
        #[serde(
            rename = "held_plugin_sha256",
            serialize_with = "digest",
            skip_serializing_if = "Option::is_none"
        )]
        component: Option<Digest>,
        /// Digest of the grant that is held; `None` if there is none.
        #[serde(
            rename = "held_grant_sha256",
            serialize_with = "digest",
            skip_serializing_if = "Option::is_none"
        )]
        grant: Option<Digest>,
        /// The differences.
        reason: String,
    },
    /// An operator approved a version that was held. The digests without a prefix are those of the
    /// version in service, if any.
    VersionApproval(Box<VersionApprovalRecord>),
    /// A plugin was taken out of service because its file was deleted.
    Removed {
        /// The plugin and its last digests.
        #[serde(flatten)]
        plugin: PluginRecord,
    },
    /// A call ended.
    Call(Box<CallRecord>),
    /// The grant denied an operation of a call.
    Denied {
        /// The call.
        #[serde(flatten)]
        subject: CallSubject,
        /// The denied operation, as a sentence.
        message: String,
        /// The lines of `[permissions]` that would allow the operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
    /// The approval of a call by a person was requested or answered.
    Approval {
        /// The call.
        #[serde(flatten)]
        subject: CallSubject,
        /// The decision, such as `requested`, `approved` or `declined`.
        decision: &'static str,
        /// SHA-256 of the arguments that the approval applies to.
        #[serde(
            rename = "arguments_sha256",
            serialize_with = "digest",
            skip_serializing_if = "Option::is_none"
        )]
        arguments: Option<Digest>,
        /// Time since the question, in milliseconds; `None` if there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
        /// The operator who answered in the console; `None` if the caller's user answered or there
        /// is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        answered_by: Option<String>,
    },
    /// A call reached a limit or was rejected because of one.
    Limit {
        /// The call.
        #[serde(flatten)]
        subject: CallSubject,
        /// The key that raises the limit, such as `limits.fuel`.
        limit: &'static str,
    },
    /// Further calls of a caller were rejected for a reason that was recorded shortly before.
    Rejected(RejectedRecord),
    /// An operator performed an action on the server, other than calling a tool.
    Operator(Box<OperatorRecord>),
    /// The server started to write the log.
    Start(Box<LogStart>),
    /// The server stopped. A signature follows.
    Stop {},
    /// A signature of all previous lines.
    Checkpoint {
        /// The Ed25519 signature, in hexadecimal.
        signature: String,
        /// The newest line of the part with rejections; `None` within that part.
        #[serde(serialize_with = "anchored", skip_serializing_if = "Option::is_none")]
        rejected: Option<CrossAnchor>,
    },
    /// The start of a file.
    Rotate {
        /// Number of the first line that is retained. Files with earlier lines are deleted.
        oldest: u64,
        /// The newest line of the part with rejections; `None` within that part.
        #[serde(serialize_with = "anchored", skip_serializing_if = "Option::is_none")]
        rejected: Option<CrossAnchor>,
    },
    /// Lines that could not be written.
    Lost {
        /// Number of lines.
        lines: u64,
        /// `queue` if the writer was too slow, `disk` if writing failed.
        reason: &'static str,
    },
}

/// The state of the log when a server started to write it.
#[derive(Debug, Serialize)]
pub struct LogStart {
    /// Version of Toolbay.
    pub(crate) version: &'static str,
    /// The public key of the signatures, in hexadecimal.
    pub(crate) key: String,
    /// The newest line of the part with rejections; `None` within that part.
    #[serde(serialize_with = "anchored", skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<CrossAnchor>,
    /// The differences from the end that the previous server signed.
    #[serde(flatten)]
    pub(crate) recovery: RecoveryReport,
}

/// Calls that were rejected for the same reason and that have no lines of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedRecord {
    /// The caller, as returned by [`truncate_name`]; empty if there are several callers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// The name of the tool, as returned by [`truncate_name`]; empty if there are several tools.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The identifier of the error kind.
    pub outcome: &'static str,
    /// The key of the limit, if a limit was the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// Number of calls.
    pub count: u64,
}

/// An action of an operator.
#[derive(Debug, Serialize)]
pub struct OperatorRecord {
    /// The operator's name as a caller, as returned by [`truncate_name`].
    pub caller: String,
    /// The action, such as `disable`.
    pub action: &'static str,
    /// The plugin that the action applies to; `None` if it applies to the whole server.
    #[serde(flatten)]
    pub plugin: Option<PluginRecord>,
    /// `ok`, or `failed` if the action failed or was not completed.
    pub outcome: &'static str,
}

/// The call that a line refers to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallSubject {
    /// Number of the call, starting at 1 after each start of the server. Lines with the same number
    /// refer to the same call.
    pub call: u64,
    /// The caller's name, as returned by [`truncate_name`].
    pub caller: String,
    /// The name of the called tool, as returned by [`truncate_name`].
    pub tool: String,
    /// The plugin; `None` if the tool is unknown or the call was rejected before its plugin was
    /// determined.
    #[serde(flatten)]
    pub plugin: Option<PluginRecord>,
    /// The trace id, as 32 hexadecimal digits; `None` if the call has no trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

impl CallSubject {
    /// Returns the size of the texts, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        let plugin = self.plugin.as_ref().map_or(0, |plugin| plugin.plugin.len());
        self.caller.len() + self.tool.len() + plugin
    }
}

/// The arguments of a call.
#[derive(Debug, Default, Serialize)]
pub struct ArgumentsRecord {
    /// SHA-256 of the JSON text that the plugin receives.
    #[serde(
        rename = "arguments_sha256",
        serialize_with = "digest",
        skip_serializing_if = "Option::is_none"
    )]
    pub digest: Option<Digest>,
    /// The JSON text without secrets, if the configuration requests it; truncated if it is long.
    #[serde(rename = "arguments", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True if `text` is truncated.
    #[serde(
        rename = "arguments_truncated",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_truncated: bool,
}

/// A call that has ended.
#[derive(Debug, Default, Serialize)]
pub struct CallRecord {
    /// The call.
    #[serde(flatten)]
    pub subject: CallSubject,
    /// The arguments; empty if the call ended before they were checked.
    #[serde(flatten)]
    pub arguments: ArgumentsRecord,
    /// Number of conversions of each kind that were applied to the arguments before they were
    /// checked, because the arguments did not match the schema.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub converted: BTreeMap<&'static str, u64>,
    /// `ok`, `input-required` if the call ended with a question, or the identifier of the error
    /// kind.
    pub outcome: &'static str,
    /// The resources that the call used; `None` if no guest ran.
    #[serde(serialize_with = "usage", skip_serializing_if = "Option::is_none")]
    pub usage: Option<CallUsage>,
    /// Number of denials that have no lines of their own.
    #[serde(rename = "denials_unlisted", skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// True if the call was rejected before it reached a plugin or a person.
    #[serde(skip)]
    pub was_rejected: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl AuditEvent {
    /// The names of all events.
    pub const NAMES: [&'static str; 17] = [
        "load",
        "grant",
        "refused",
        "held",
        "version-approval",
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
        "rotate",
        "lost",
    ];

    /// Returns the part of the log that contains the event. Events about the log itself are written
    /// to both parts.
    pub(crate) fn part(&self) -> LogPart {
        match self {
            Self::Denied { .. } | Self::Limit { .. } | Self::Rejected(_) => LogPart::Rejected,
            Self::Call(call) if call.was_rejected => LogPart::Rejected,
            // No question was sent.
            Self::Approval { decision, .. }
                if *decision == MissingApprovalReason::Unsupported.as_str() =>
            {
                LogPart::Rejected
            }
            Self::Load { .. }
            | Self::Grant { .. }
            | Self::Refused { .. }
            | Self::Held { .. }
            | Self::VersionApproval(_)
            | Self::Removed { .. }
            | Self::Call(_)
            | Self::Approval { .. }
            | Self::Operator(_)
            | Self::Start(_)
            | Self::Stop {}
            | Self::Checkpoint { .. }
            | Self::Rotate { .. }
            | Self::Lost { .. } => LogPart::Main,
        }
    }

    /// Returns the maximum size of the record in memory and in the file, in bytes: at most about 40
    /// KiB.
    pub(crate) fn max_bytes(&self) -> u32 {
        let texts = match self {
            Self::Load { plugin, .. } | Self::Grant { plugin, .. } | Self::Removed { plugin } => {
                plugin.plugin.len()
            }
            Self::Refused { plugin, reason } | Self::Held { plugin, reason, .. } => {
                plugin.plugin.len() + reason.len()
            }
            Self::Call(call) => {
                call.subject.text_bytes() + call.arguments.text.as_ref().map_or(0, String::len)
            }
            Self::Denied {
                subject,
                message,
                remedy,
            } => subject.text_bytes() + message.len() + remedy.as_ref().map_or(0, String::len),
            Self::Limit { subject: of, .. } | Self::Approval { subject: of, .. } => of.text_bytes(),
            Self::Operator(operator) => {
                operator.caller.len()
                    + operator
                        .plugin
                        .as_ref()
                        .map_or(0, |plugin| plugin.plugin.len())
            }
            Self::VersionApproval(approval) => approval.caller.len() + approval.plugin.plugin.len(),
            Self::Rejected(rejected) => rejected.caller.len() + rejected.tool.len(),
            Self::Start(_)
            | Self::Stop {}
            | Self::Checkpoint { .. }
            | Self::Rotate { .. }
            | Self::Lost { .. } => 0,
        };
        u32::try_from(RECORD_OVERHEAD_BYTES + texts).unwrap_or(u32::MAX)
    }

    /// Truncates every sentence to its maximum length.
    pub(crate) fn truncate_texts(self) -> Self {
        match self {
            Self::Refused { plugin, reason } => Self::Refused {
                plugin,
                reason: truncate_sentence(&reason),
            },
            Self::Held {
                plugin,
                component,
                grant,
                reason,
            } => Self::Held {
                plugin,
                component,
                grant,
                reason: truncate_sentence(&reason),
            },
            Self::Denied {
                subject,
                message,
                remedy,
            } => {
                let lines = |remedy: String| {
                    remedy
                        .lines()
                        .map(truncate_sentence)
                        .collect::<Vec<_>>()
                        .join("\n")
                };
                let remedy = remedy.map(lines);
                Self::Denied {
                    subject,
                    message: truncate_sentence(&message),
                    remedy,
                }
            }
            // The texts of these have their maximum length already.
            Self::Load { .. }
            | Self::Grant { .. }
            | Self::VersionApproval(_)
            | Self::Removed { .. }
            | Self::Call(_)
            | Self::Approval { .. }
            | Self::Limit { .. }
            | Self::Rejected(_)
            | Self::Operator(_)
            | Self::Start(_)
            | Self::Stop {}
            | Self::Checkpoint { .. }
            | Self::Rotate { .. }
            | Self::Lost { .. } => self,
        }
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
    let used = usage.map(
        |CallUsage {
             fuel,
             wall,
             memory,
             http_requests,
             http_bytes,
             tcp_connections,
             tcp_bytes,
         }| {
            ResourceUse {
                wall_ms: (wall.as_secs_f64() * 10_000.0).round() / 10.0,
                fuel,
                memory,
                http_requests,
                http_bytes,
                tcp_connections,
                tcp_bytes,
            }
        },
    );
    used.serialize(serializer)
}

#[cfg(test)]
mod tests;

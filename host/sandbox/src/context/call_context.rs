//! The inputs of a call: limits, permissions, configuration, and the observer of the call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use toolbay_model::{
    CallJournal, CallObserver, CallerIdentity, Limits, QuestionKindSet, TraceContext,
};
use toolbay_policy::Permissions;
use toolbay_secrets::SecretVault;

use crate::context::compute_permit::ComputePermit;
use crate::context::keyvalue::KeyValue;
use crate::context::mount_roots::MountRoots;
use crate::context::plugin_connections::PluginConnections;
use crate::context::plugin_http::PluginHttp;
use crate::context::replay_log::ReplayTape;

/// The limits, permissions and resources that every call of a plugin or tool gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginContext {
    /// The limits of the call.
    pub limits: Limits,
    /// The environment variables and mounts.
    pub permissions: Permissions,
    /// The mounted directories.
    pub roots: MountRoots,
    /// The HTTP requests that the plugin sends.
    pub requests: PluginHttp,
    /// The TCP connections that the plugin makes.
    pub connections: PluginConnections,
    /// The key-value store of the plugin.
    pub key_value: KeyValue,
    /// The values that `host.config` returns, by key.
    pub config: Arc<BTreeMap<String, String>>,
    /// The secrets to redact in the guest's output and to add to its requests.
    pub secrets: SecretVault,
}

/// The input of one call, apart from the tool and its arguments.
pub struct CallContext<'a> {
    /// The environment of the plugin or tool.
    pub environment: &'a PluginContext,
    /// The identity of the caller, or `None` if the caller is not authenticated.
    pub caller: Option<&'a CallerIdentity>,
    /// The span of the call, or `None` if it belongs to no trace.
    pub trace: Option<&'a TraceContext>,
    /// The observer that receives log lines and progress.
    pub observer: Arc<dyn CallObserver>,
    /// The kinds of questions that the caller can answer.
    pub answerable: QuestionKindSet,
    /// The journal of the earlier runs of the call. It is empty in the first run.
    pub journal: Arc<CallJournal>,
    /// The time at which the call must have ended:
    /// [`Limits::timeout`](toolbay_model::Limits::timeout) after it was admitted.
    pub deadline: Instant,
    /// The recorder of host responses, or the recording that replaces them.
    pub tape: ReplayTape,
    /// The compute permit that the call releases while it waits, or `None` if the server does not
    /// limit how many calls compute.
    pub compute_permit: Option<&'a dyn ComputePermit>,
}

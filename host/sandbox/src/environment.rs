//! The inputs of a call: limits, permissions, configuration, and the observer of the call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use toolbay_model::{Answerable, Identity, Journal, Limits, Observer, Trace};
use toolbay_policy::Permissions;
use toolbay_secrets::Vault;

use crate::compute_place::ComputePlace;
use crate::connections::Connections;
use crate::keyvalue::KeyValue;
use crate::requests::Requests;
use crate::roots::Roots;
use crate::tape::Tape;

/// The limits, permissions and resources that every call of a plugin or tool gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The limits of the call.
    pub limits: Limits,
    /// The environment variables and mounts.
    pub permissions: Permissions,
    /// The mounted directories.
    pub roots: Roots,
    /// The HTTP requests that the plugin sends.
    pub requests: Requests,
    /// The TCP connections that the plugin makes.
    pub connections: Connections,
    /// The key-value store of the plugin.
    pub key_value: KeyValue,
    /// The values that `host.config` returns, by key.
    pub config: Arc<BTreeMap<String, String>>,
    /// The secrets to redact in the guest's output and to add to its requests.
    pub secrets: Vault,
}

/// The input of one call, apart from the tool and its arguments.
pub struct Entry<'a> {
    /// The environment of the plugin or tool.
    pub environment: &'a Environment,
    /// The identity of the caller, or `None` if the caller is not authenticated.
    pub caller: Option<&'a Identity>,
    /// The span of the call, or `None` if it belongs to no trace.
    pub trace: Option<&'a Trace>,
    /// The observer that receives log lines and progress.
    pub observer: Arc<dyn Observer>,
    /// The kinds of questions that the caller can answer.
    pub answerable: Answerable,
    /// The journal of the earlier runs of the call. It is empty in the first run.
    pub journal: Arc<Journal>,
    /// The time at which the call must have ended:
    /// [`Limits::timeout`](toolbay_model::Limits::timeout) after it was admitted.
    pub deadline: Instant,
    /// The recorder of host responses, or the recording that replaces them.
    pub tape: Tape,
    /// The compute slot that the call releases while it waits, or `None` if slots are not scarce.
    pub place: Option<&'a dyn ComputePlace>,
}

//! What a guest gets: limits, permissions, configuration, and the observer of the call.

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

/// What every call of a plugin or tool gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The limits of the call.
    pub limits: Limits,
    /// The environment variables and mounts.
    pub permissions: Permissions,
    /// The folders of the mounts.
    pub roots: Roots,
    /// The HTTP requests that the plugin sends.
    pub requests: Requests,
    /// The TCP connections that the plugin makes.
    pub connections: Connections,
    /// What the plugin keeps from one call to the next.
    pub key_value: KeyValue,
    /// The values that `host.config` returns, by key.
    pub config: Arc<BTreeMap<String, String>>,
    /// The secrets, to redact in the guest's output and to add to its requests.
    pub secrets: Vault,
}

/// The input of one call besides tool and arguments.
pub struct Entry<'a> {
    /// What every call of the plugin or tool gets.
    pub environment: &'a Environment,
    /// Who makes the call; `None` if the caller is not authenticated.
    pub caller: Option<&'a Identity>,
    /// The span of the call; `None` if it belongs to no trace.
    pub trace: Option<&'a Trace>,
    /// Receives log lines and progress.
    pub observer: Arc<dyn Observer>,
    /// The kinds of questions that the caller can answer.
    pub answerable: Answerable,
    /// What earlier runs of the call left; empty in the first one.
    pub journal: Arc<Journal>,
    /// When the call must have ended: [`Limits::timeout`](toolbay_model::Limits::timeout) after it was admitted.
    pub deadline: Instant,
    /// What the call records of what the host answers, or gets from a recording instead.
    pub tape: Tape,
    /// The place that the call gives back while it waits for something; `None` if nobody else wants it.
    pub place: Option<&'a dyn ComputePlace>,
}

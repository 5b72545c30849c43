//! What a guest is given: a budget, permissions, configuration, and whoever hears of the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::{Limits, Observer, Permissions, Trace};

use crate::secret::Secrets;

/// What a guest is given for one call: the same for every call of a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The budget.
    pub limits: Limits,
    /// What it may reach.
    pub permissions: Permissions,
    /// What `host.config` answers.
    pub config: Arc<BTreeMap<String, String>>,
    /// What is taken out of everything that it says.
    pub secrets: Arc<Secrets>,
}

/// What one call is given.
pub struct Entry<'a> {
    /// The same for every call.
    pub environment: &'a Environment,
    /// The span that the call is, if it belongs to a trace.
    pub trace: Option<&'a Trace>,
    /// Who hears of it.
    pub observer: Arc<dyn Observer>,
}

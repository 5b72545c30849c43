//! What there is to say about each plugin file, for people and programs.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use toolbay_model::{Amount, Limits, Permissions, RateLimit, serialize_amounts};

/// What there is to say about a plugin file.
#[derive(Clone, Debug, Serialize)]
pub struct PluginReport {
    /// Whether it serves.
    pub status: Status,
    /// SHA-256 of the component that serves, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why the file as it is now does not serve, or not wholly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The names its tools are called by.
    pub tools: Vec<String>,
    /// What it was granted, if it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Granted>,
}

/// What a plugin was granted, after clamping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Granted {
    /// What its tools' names begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The budget of a call.
    pub limits: Limits,
    /// What is different for single tools, by the name within the plugin.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Different>,
    /// How often each of its tools may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// What it may reach.
    pub permissions: Permissions,
    /// The names of what it must not tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The keys that it is configured with. The values may be nobody else's business.
    pub config: Vec<String>,
}

/// The limits of a tool that are not its plugin's, by their keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Different(pub Vec<(&'static str, Amount)>);

impl Serialize for Different {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_amounts(self.0.iter().copied(), serializer)
    }
}

/// Whether a plugin serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its file is being loaded for the first time.
    Loading,
    /// It serves.
    Ready,
    /// An earlier version serves: the file as it is now was refused.
    Stale,
    /// It does not serve.
    Refused,
}

impl PluginReport {
    /// Whether its file has not been tried yet.
    pub fn is_loading(&self) -> bool {
        self.status == Status::Loading
    }
}

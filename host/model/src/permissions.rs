//! What a plugin may reach beyond its own memory.

use std::path::{Component, Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::is_name;

/// What a plugin may reach beyond its own memory: the table `[permissions]` of a grant. Empty denies everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Names of environment variables of the server that the plugin can read.
    #[serde(deserialize_with = "variables")]
    pub environment: Vec<String>,
    /// Folders of the host that the plugin can open.
    pub mounts: Vec<Mount>,
}

/// A folder of the host that a plugin sees under a path of its own: `[[permissions.mounts]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The folder on the host; a relative path starts at the plugin folder.
    pub host: PathBuf,
    /// Where the plugin sees it: an absolute path without `..`.
    #[serde(deserialize_with = "guest_path")]
    pub guest: String,
    /// What the plugin may do there.
    pub access: Access,
    /// The folder as the operator wrote it, for messages.
    #[serde(skip)]
    pub written: PathBuf,
    /// Where the operator wrote it, for messages: `weather.toml:7`.
    #[serde(skip)]
    pub place: String,
}

/// What a plugin may do in a mounted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// List and read.
    Read,
    /// List, read, create, change and delete.
    ReadWrite,
}

/// Names of variables: the operator decides about each, so there are no patterns.
fn variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let variables = Vec::<String>::deserialize(deserializer)?;
    match variables.iter().find(|name| !is_name(name)) {
        None => Ok(variables),
        Some(name) if name.contains(['*', '?']) => Err(D::Error::custom(format_args!(
            "{name:?} is not the name of an environment variable; patterns are not supported, so list each variable"
        ))),
        Some(name) => Err(D::Error::custom(format_args!("{name:?} is not the name of an environment variable"))),
    }
}

/// An absolute path that stays where it says.
fn guest_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let guest = String::deserialize(deserializer)?;
    let path = Path::new(&guest);
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && plain && !guest.contains('\0') {
        return Ok(guest);
    }
    Err(D::Error::custom(format_args!("{guest:?} must be an absolute path without `..`, such as \"/data\"")))
}

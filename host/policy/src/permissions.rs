//! What a plugin can reach outside its memory.

use std::path::{Component, Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolbay_model::is_name;

use crate::http_rule::HttpRule;
use crate::network::Network;
use crate::state_grant::StateGrant;

/// What a plugin can reach outside its memory: the table `[permissions]` of a grant. The default denies everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Names of the server's environment variables that are passed through. No patterns.
    #[serde(deserialize_with = "variables")]
    pub environment: Vec<String>,
    /// Folders that the plugin can use, each under its own path.
    #[serde(deserialize_with = "mounts")]
    pub mounts: Vec<Mount>,
    /// The HTTP requests that the plugin can send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRule>,
    /// Networks that are not globally reachable, and that the plugin can reach nevertheless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_private: Vec<Network>,
    /// What the plugin may keep from one call to the next; `None` for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateGrant>,
}

/// A folder of the host that a plugin sees under a path of its own (`[[permissions.mounts]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Path of the folder on the host. Relative paths are relative to the plugin folder.
    pub host: PathBuf,
    /// Absolute path of the folder in the guest, without `..`.
    #[serde(deserialize_with = "guest_path")]
    pub guest: String,
    /// What the plugin may do there.
    pub access: Access,
    /// Whether the folder may contain what decides about the server or about plugins (`unsafe`). Default: false.
    #[serde(rename = "unsafe", default, skip_serializing_if = "is_false")]
    pub unguarded: bool,
    /// The plugin folder, to which a relative path is relative. The path to it is the operator's own.
    #[serde(skip)]
    pub base: PathBuf,
    /// `host` as it is in the file, for messages.
    #[serde(skip)]
    pub written: PathBuf,
    /// File and line of the mount, such as `weather.toml:7`, for messages.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Parses names of variables. There are no patterns: the operator decides about each variable.
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

/// Parses mounts. Of two at the same path, the second would hide the first.
fn mounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Mount>, D::Error> {
    let mounts = Vec::<Mount>::deserialize(deserializer)?;
    for (index, mount) in mounts.iter().enumerate() {
        // Compared by components, so that a trailing slash makes no difference.
        if let Some(first) =
            mounts.iter().take(index).position(|other| Path::new(&other.guest) == Path::new(&mount.guest))
        {
            return Err(D::Error::custom(format_args!(
                "mounts[{first}] and mounts[{index}] have the same guest path {:?}; each mount needs its own",
                mount.guest
            )));
        }
    }
    Ok(mounts)
}

/// Parses an absolute path without `..`.
fn guest_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let guest = String::deserialize(deserializer)?;
    let path = Path::new(&guest);
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && plain && !guest.contains('\0') {
        return Ok(guest);
    }
    Err(D::Error::custom(format_args!("{guest:?} must be an absolute path without `..`, such as \"/data\"")))
}

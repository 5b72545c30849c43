//! What a plugin can reach outside its memory.

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolbay_model::is_name;
use toolbay_model::setting::positive;

use crate::folder::{entries, guest_path, optional_bytes};
use crate::http_rule::HttpRule;
use crate::network::AddressRange;
use crate::scratch::ScratchPermission;
use crate::state_grant::StateGrant;
use crate::tcp_rule::TcpRule;
use crate::ui_access::UiAccess;

/// Entries of a mount with a `quota` that does not say how many: an empty file takes space as well.
const ENTRIES: usize = 10_000;

/// What a plugin can reach outside its memory: the table `[permissions]` of a grant. The default denies everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Names of the server's environment variables that are passed through. No patterns.
    #[serde(deserialize_with = "variables")]
    pub environment: Vec<String>,
    /// Folders that the plugin can use, each under its own path.
    #[serde(deserialize_with = "mounts")]
    pub mounts: Vec<MountPermission>,
    /// A temporary folder of each call. `None`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<ScratchPermission>,
    /// The HTTP requests that the plugin can send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRule>,
    /// The TCP connections that the plugin can make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpRule>,
    /// Networks that are not globally reachable, and that the plugin can reach nevertheless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_private: Vec<AddressRange>,
    /// Whether clocks and random numbers are the same in every call with the same tool and arguments. Default: false.
    #[serde(skip_serializing_if = "is_false")]
    pub deterministic: bool,
    /// What the plugin may keep from one call to the next; `None` for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateGrant>,
    /// What its views may reach and use in the user's client.
    #[serde(skip_serializing_if = "UiAccess::is_empty")]
    pub ui: UiAccess,
}

impl Permissions {
    /// # Errors
    ///
    /// Keys that contradict each other: the message begins with one of them.
    pub fn check(&self) -> Result<(), String> {
        let Some(ScratchPermission { guest, .. }) = &self.scratch else { return Ok(()) };
        match self.mounts.iter().position(|mount| Path::new(&mount.guest) == Path::new(guest)) {
            None => Ok(()),
            Some(index) => Err(format!(
                "permissions.scratch.guest: permissions.mounts[{index}] has the guest path {guest:?} as well; each \
                 folder needs its own"
            )),
        }
    }
}

/// A folder of the host that a plugin sees under a path of its own (`[[permissions.mounts]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MountPermission {
    /// Path of the folder on the host. Relative paths are relative to the plugin folder.
    pub host: PathBuf,
    /// Absolute path of the folder in the guest, without `..`.
    #[serde(deserialize_with = "guest_path")]
    pub guest: String,
    /// What the plugin may do there.
    pub access: MountAccess,
    /// For whom the folder is. `None`: for every caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<MountScope>,
    /// Bytes that all files in the folder may have together, by their lengths. `None`: without a bound.
    #[serde(
        default,
        deserialize_with = "positive",
        serialize_with = "optional_bytes",
        skip_serializing_if = "Option::is_none"
    )]
    pub quota: Option<ByteSize>,
    /// Files, folders and links that may be in the folder, at all depths, 1 to 1,000,000. `None`: 10,000 with a
    /// [`MountPermission::quota`], and without a bound otherwise.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub entries: Option<usize>,
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

impl MountPermission {
    /// Files, folders and links that may be in the folder; `None` without a bound.
    pub fn most_entries(&self) -> Option<usize> {
        self.entries.or_else(|| self.quota.map(|_| ENTRIES))
    }
}

/// For whom a mounted folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountScope {
    /// Each caller has a folder of its own in it: `toolbay_model::Identity::path`.
    Caller,
}

/// What a plugin may do in a mounted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountAccess {
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
fn mounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MountPermission>, D::Error> {
    let mounts = Vec::<MountPermission>::deserialize(deserializer)?;
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
    for (index, mount) in mounts.iter().enumerate() {
        let bound = mount.quota.map(|_| "quota").or_else(|| mount.entries.map(|_| "entries"));
        if let (Some(key), MountAccess::Read) = (bound, mount.access) {
            return Err(D::Error::custom(format_args!(
                "mounts[{index}] has {key}, which needs access = \"read-write\"; remove {key}"
            )));
        }
    }
    Ok(mounts)
}

fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    entries(deserializer).map(Some)
}

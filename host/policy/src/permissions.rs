//! The permissions of a plugin: its access to resources outside its memory.

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolbay_model::is_name;
use toolbay_model::setting::positive;

use crate::address_range::AddressRange;
use crate::folder_settings::{entries, guest_path, optional_bytes};
use crate::http_rule::HttpRule;
use crate::scratch::ScratchPermission;
use crate::state_grant::StateGrant;
use crate::tcp_rule::TcpRule;
use crate::ui_access::UiAccess;

/// Default maximum of entries in a mount with a `quota`. Even an empty file takes space, so a quota
/// needs such a limit.
const DEFAULT_MAX_ENTRIES: usize = 10_000;

/// The permissions of a plugin: the table `[permissions]` of a grant. The default denies
/// everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Names of the server's environment variables that are passed through. No patterns.
    #[serde(deserialize_with = "variables")]
    pub environment: Vec<String>,
    /// Folders that the plugin can use, each under its own path.
    #[serde(deserialize_with = "mounts")]
    pub mounts: Vec<MountPermission>,
    /// The temporary folder of each call; `None` for no temporary folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<ScratchPermission>,
    /// The HTTP requests that the plugin can send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRule>,
    /// The TCP connections that the plugin can make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpRule>,
    /// Networks that the plugin can reach even though they are not globally reachable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub private_networks: Vec<AddressRange>,
    /// If set, clocks and random numbers are the same in every call with the same tool and
    /// arguments. Default: false.
    #[serde(skip_serializing_if = "is_false")]
    pub deterministic: bool,
    /// The state that the plugin may store between calls; `None` for no state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateGrant>,
    /// The origins and devices that the plugin's views may access in the user's client.
    #[serde(skip_serializing_if = "UiAccess::is_empty")]
    pub ui: UiAccess,
}

impl Permissions {
    /// Checks that no keys contradict each other.
    ///
    /// # Errors
    ///
    /// Returns an error if two keys contradict each other. The message begins with one of them.
    pub fn check(&self) -> Result<(), String> {
        let Some(ScratchPermission { guest, .. }) = &self.scratch else {
            return Ok(());
        };
        match self
            .mounts
            .iter()
            .position(|mount| Path::new(&mount.guest) == Path::new(guest))
        {
            None => Ok(()),
            Some(index) => Err(format!(
                "permissions.scratch.guest: permissions.mounts[{index}] has the guest path {guest:?} as well; each \
                 folder needs its own"
            )),
        }
    }
}

/// A folder of the host that is mounted at a path in the guest (`[[permissions.mounts]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MountPermission {
    /// Path of the folder on the host. Relative paths are relative to the plugin folder.
    pub host: PathBuf,
    /// Absolute path of the folder in the guest, without `..`.
    #[serde(deserialize_with = "guest_path")]
    pub guest: String,
    /// The access of the plugin to the folder.
    pub access: MountAccess,
    /// The scope of the folder; `None` if all callers share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<MountScope>,
    /// Maximum total length of all files in the folder, in bytes; `None` for no limit.
    #[serde(
        default,
        deserialize_with = "positive",
        serialize_with = "optional_bytes",
        skip_serializing_if = "Option::is_none"
    )]
    pub quota: Option<ByteSize>,
    /// Maximum number of files, folders and links in the folder, at all depths, 1 to 1,000,000.
    /// `None` means 10,000 with a [`MountPermission::quota`], and no limit otherwise.
    #[serde(
        default,
        deserialize_with = "optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub entries: Option<usize>,
    /// If set, the folder may contain files that control the server or plugins (`unsafe`). Default:
    /// false.
    #[serde(rename = "unsafe", default, skip_serializing_if = "is_false")]
    pub allows_control_files: bool,
    /// The plugin folder, to which a relative path is relative. The operator chose the path to it.
    #[serde(skip)]
    pub base: PathBuf,
    /// The value of `host` as written in the file, for messages.
    #[serde(skip)]
    pub host_as_written: PathBuf,
    /// File and line of the mount, such as `weather.toml:7`, for messages.
    #[serde(skip)]
    pub source_location: String,
}

impl MountPermission {
    /// Returns the maximum number of files, folders and links in the folder; `None` for no limit.
    pub fn max_entries(&self) -> Option<usize> {
        self.entries
            .or_else(|| self.quota.map(|_| DEFAULT_MAX_ENTRIES))
    }
}

/// The scope of a mounted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountScope {
    /// Each caller has a separate subfolder: `toolbay_model::CallerIdentity::path`.
    Caller,
}

/// The access of a plugin to a mounted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountAccess {
    /// List and read.
    Read,
    /// List, read, create, change and delete.
    ReadWrite,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Parses names of environment variables. Patterns are not supported: the operator decides about
/// each variable.
fn variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let variables = Vec::<String>::deserialize(deserializer)?;
    match variables.iter().find(|name| !is_name(name)) {
        None => Ok(variables),
        Some(name) if name.contains(['*', '?']) => Err(D::Error::custom(format_args!(
            "{name:?} is not the name of an environment variable; patterns are not supported, so list each variable"
        ))),
        Some(name) => Err(D::Error::custom(format_args!(
            "{name:?} is not the name of an environment variable"
        ))),
    }
}

/// Parses mounts. Two mounts at the same path are an error, because the second would hide the
/// first.
fn mounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MountPermission>, D::Error> {
    let mounts = Vec::<MountPermission>::deserialize(deserializer)?;
    for (index, mount) in mounts.iter().enumerate() {
        // Paths are compared by components, so that a trailing slash makes no difference.
        if let Some(first) = mounts
            .iter()
            .take(index)
            .position(|other| Path::new(&other.guest) == Path::new(&mount.guest))
        {
            return Err(D::Error::custom(format_args!(
                "mounts[{first}] and mounts[{index}] have the same guest path {:?}; each mount needs its own",
                mount.guest
            )));
        }
    }
    for (index, mount) in mounts.iter().enumerate() {
        let limit_key = mount
            .quota
            .map(|_| "quota")
            .or_else(|| mount.entries.map(|_| "entries"));
        if let (Some(key), MountAccess::Read) = (limit_key, mount.access) {
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

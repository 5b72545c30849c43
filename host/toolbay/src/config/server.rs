//! `[server]`: limits of the process as a whole, and the server's description of itself for
//! clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::{any, count, size};
use toolbay_model::text::{clean, clean_line};
use toolbay_model::{ArgumentCheck, Icon, SchemaForm};

use super::bounds::{MAX_COUNT, many};
use super::confine::Confine;
use super::error::ConfigError;
use super::text_list::parse_list;
use crate::process::machine_limits;

/// Maximum of `server.calls` and `server.suspended_calls`. Each call reserves a slot of the
/// instance pool.
const MAX_CALLS: usize = 4096;

/// Default of `server.request_memory`, in requests of the maximum size.
const DEFAULT_REQUESTS: u64 = 64;

/// Minimum default of `server.request_memory`, so that many small requests can wait.
const MIN_DEFAULT_REQUEST_BYTES: ByteSize = ByteSize::mib(64);

/// Minimum of `server.request_memory`, in requests of the maximum size. A parsed request takes
/// several times the size of its text.
const MIN_REQUESTS: u64 = 16;

/// Maximum size of a quoted invalid address, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// Minimum of `server.memory`.
const MIN_MEMORY: ByteSize = ByteSize::mib(1);

/// Limits of the process as a whole (`[server]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Maximum number of running calls, 1 to 4,096. Default: 64.
    #[serde(deserialize_with = "calls")]
    pub calls: usize,
    /// Maximum number of calls that wait for a clock, a response or a connection and have released
    /// their slots in `calls`, 0 to 4,096. One caller, or one plugin, can have at most half of
    /// them. Further calls keep their slots while they wait. Default: 128.
    #[serde(deserialize_with = "suspended_calls")]
    pub suspended_calls: usize,
    /// Maximum number of running calls of one caller, 1 to 1,000,000. Default: 32.
    #[serde(deserialize_with = "many")]
    pub calls_per_caller: usize,
    /// Maximum number of calls of one caller that wait for a slot, 0 to 1,000,000. Further calls
    /// fail with `busy`. Default: 1,024.
    #[serde(deserialize_with = "queue")]
    pub queue: usize,
    /// Time that a call waits for a slot before it fails with `busy`. 0 does not wait. Default: 5
    /// s.
    #[serde(deserialize_with = "any")]
    pub queue_timeout: Duration,
    /// Memory budget of all running and waiting calls, 1 MiB to 4 TiB. Each call reserves its
    /// `limits.memory`. One plugin can have at most three quarters, and one caller over HTTP half.
    /// `None`: half of the memory of the machine or of the control group.
    #[serde(deserialize_with = "memory")]
    pub memory: Option<ByteSize>,
    /// Maximum size of a message in bytes: a line over stdio, a body over HTTP. 1 KiB to 64 MiB,
    /// default 4 MiB.
    #[serde(deserialize_with = "request_size")]
    pub request_size: ByteSize,
    /// Memory budget of all requests while they are read, wait and run, including the values of
    /// their arguments: 64 KiB to 4 TiB, and at least 16 times `request_size`. One request can take
    /// a quarter of it, and so can one caller over HTTP. `None`: 64 times `request_size`, but at
    /// least 64 MiB.
    #[serde(deserialize_with = "request_memory")]
    pub request_memory: Option<ByteSize>,
    /// Maximum size of a component file in bytes. 1 KiB to 256 MiB, default 64 MiB.
    #[serde(deserialize_with = "component_size")]
    pub component_size: ByteSize,
    /// Native stack of a guest in bytes. 64 KiB to 8 MiB, default 512 KiB. An overflow traps.
    #[serde(deserialize_with = "stack_size")]
    pub stack_size: ByteSize,
    /// Grace period of running calls after the client disconnects or the server is stopped. 0 stops
    /// them at once. Default: 5 s.
    #[serde(deserialize_with = "any")]
    pub grace_period: Duration,
    /// Time that `tools/list` waits while plugins that existed at startup are still loading. 0 does
    /// not wait. Default: 15 s.
    #[serde(deserialize_with = "any")]
    pub startup_wait: Duration,
    /// Directory for the temporary directories of calls (`[permissions.scratch]` of a grant).
    /// Toolbay creates `toolbay-UID` in it, where UID is the user id of the server. A relative path
    /// is relative to the configuration file. `None`: the system's temporary directory.
    pub scratch: Option<PathBuf>,
    /// Confinement of `toolbay serve`, which drops privileges that it does not need. Default: as
    /// far as the kernel supports it.
    pub confine: Confine,
    /// Directories that a confined server may read and write in addition to those of the grants at
    /// startup, so that later grants can mount paths in them. Relative paths are relative to the
    /// configuration file. Default: none.
    #[serde(deserialize_with = "paths")]
    pub confine_folders: Vec<PathBuf>,
    /// The check of tool arguments. A grant and a token can set it, too. `strict` in any of them
    /// takes precedence. Default: `strict`.
    pub arguments: ArgumentCheck,
    /// The form of argument schemas in lists. A token can set it, too. Default: `standard`.
    pub schemas: SchemaForm,
    /// Text that every client receives as `instructions` for its model, before the lines about the
    /// plugins. Default: empty.
    pub instructions: String,
    /// Display name of the server for clients. Empty (the default) stands for `Toolbay`.
    pub title: String,
    /// Description of the server's purpose for people. Empty (the default): none.
    pub description: String,
    /// URL of the server's website. Empty (the default): none.
    pub website: String,
    /// Icons of the server for clients. Default: none.
    pub icons: Vec<Icon>,
    /// The environment variable with the key of request states, 64 hexadecimal digits, which the
    /// servers of one service share. Empty (the default): the server uses its own key, which
    /// survives a restart.
    pub request_state_key_variable: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            calls: 64,
            suspended_calls: 128,
            calls_per_caller: 32,
            queue: 1024,
            queue_timeout: Duration::from_secs(5),
            memory: None,
            request_size: ByteSize::mib(4),
            request_memory: None,
            component_size: ByteSize::mib(64),
            stack_size: ByteSize::kib(512),
            grace_period: Duration::from_secs(5),
            startup_wait: Duration::from_secs(15),
            scratch: None,
            confine: Confine::default(),
            confine_folders: Vec::new(),
            arguments: ArgumentCheck::default(),
            schemas: SchemaForm::default(),
            instructions: String::new(),
            title: String::new(),
            description: String::new(),
            website: String::new(),
            icons: Vec::new(),
            request_state_key_variable: String::new(),
        }
    }
}

impl ServerConfig {
    /// Returns the maximum number of calls that are entered at once, running or waiting.
    pub fn max_entered_calls(&self) -> usize {
        self.calls.saturating_add(self.suspended_calls)
    }

    /// Returns the memory budget of all calls, in bytes.
    pub fn memory(&self) -> ByteSize {
        self.memory.unwrap_or_else(|| {
            ByteSize::b((machine_limits::available_memory() / 2).max(MIN_MEMORY.as_u64()))
        })
    }

    /// Returns the memory budget of all requests, in bytes.
    pub fn request_memory(&self) -> ByteSize {
        self.request_memory.unwrap_or_else(|| {
            ByteSize::b(self.request_size.as_u64() * DEFAULT_REQUESTS)
                .max(MIN_DEFAULT_REQUEST_BYTES)
        })
    }

    /// Returns the directory for the temporary directories of calls. It is a separate directory, so
    /// that other files are not touched, and one per user, because it is private.
    pub fn scratch(&self) -> PathBuf {
        let folder = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        folder.join(format!("toolbay-{}", rustix::process::geteuid().as_raw()))
    }

    /// Returns the key of request states that several servers share. `None` if this server has its
    /// own.
    ///
    /// # Errors
    ///
    /// The variable is not set, or does not contain a key.
    pub(crate) fn request_state_key(&self) -> Result<Option<[u8; 32]>, ConfigError> {
        if self.request_state_key_variable.is_empty() {
            return Ok(None);
        }
        let name = &self.request_state_key_variable;
        let Ok(text) = std::env::var(name) else {
            return Err(ConfigError(format!(
                "server.request_state_key_variable: the environment variable {name:?} is not set"
            )));
        };
        let mut key = [0; 32];
        match hex::decode_to_slice(text.trim(), &mut key) {
            Ok(()) => Ok(Some(key)),
            Err(_) => Err(ConfigError(format!(
                "server.request_state_key_variable: the variable {name:?} must have 64 hexadecimal digits"
            ))),
        }
    }

    /// Returns the description of the server for clients.
    pub(super) fn info(&self) -> toolbay_mcp::ServerInfo {
        let non_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        toolbay_mcp::ServerInfo {
            title: non_empty(&self.title),
            description: non_empty(&self.description),
            website_url: non_empty(&self.website),
            icons: self.icons.clone(),
        }
    }

    /// Resolves relative paths against `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(scratch) = self
            .scratch
            .as_mut()
            .filter(|scratch| !scratch.as_os_str().is_empty())
        {
            *scratch = folder.join(&*scratch);
        }
        self.confine_folders
            .iter_mut()
            .for_each(|path| *path = folder.join(&path));
    }

    /// Checks that the settings are consistent.
    ///
    /// # Errors
    ///
    /// Settings contradict each other, or are meaningless.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self
            .scratch
            .as_ref()
            .is_some_and(|scratch| scratch.as_os_str().is_empty())
        {
            return Err(ConfigError(
                "server.scratch: expected the path of a folder, not an empty string".to_owned(),
            ));
        }
        if let Some(missing) = self.confine_folders.iter().find(|path| !path.is_dir()) {
            return Err(ConfigError(format!(
                "server.confine_folders: {} is not a folder",
                missing.display()
            )));
        }
        // Clients display these unchanged.
        for (key, text) in [("title", &self.title), ("description", &self.description)] {
            if clean(text) != text.as_str() {
                return Err(ConfigError(format!(
                    "server.{key}: expected text without control characters"
                )));
            }
        }
        if !self.website.is_empty() && !is_web_url(&self.website) {
            return Err(ConfigError(format!(
                "server.website: expected a URL that begins with https:// or http://, not {:?}",
                self.website
            )));
        }
        let is_image =
            |icon: &Icon| icon.src.starts_with("https://") || icon.src.starts_with("data:image/");
        if let Some(icon) = self.icons.iter().find(|icon| !is_image(icon)) {
            let src = clean_line(&icon.src, MAX_QUOTED_BYTES);
            return Err(ConfigError(format!(
                "server.icons: src must begin with https:// or data:image/, not {src:?}"
            )));
        }
        self.request_state_key()?;
        let minimum = ByteSize::b(self.request_size.as_u64() * MIN_REQUESTS);
        if self.request_memory() >= minimum {
            return Ok(());
        }
        let [minimum_text, actual_text] =
            [minimum, self.request_memory()].map(|size| size.display().iec().to_string());
        Err(ConfigError(format!(
            "server.request_memory: expected at least {minimum_text}, {MIN_REQUESTS} times server.request_size, not {actual_text}"
        )))
    }
}

fn is_web_url(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

/// Parses [`ServerConfig::calls`].
fn calls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 1, MAX_CALLS)
}

/// Parses [`ServerConfig::suspended_calls`].
fn suspended_calls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 0, MAX_CALLS)
}

fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(parse_list(deserializer)?
        .into_iter()
        .map(PathBuf::from)
        .collect())
}

fn queue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 0, MAX_COUNT)
}

fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    size(deserializer, MIN_MEMORY, ByteSize::tib(4)).map(Some)
}

fn request_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(64))
}

fn request_memory<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ByteSize>, D::Error> {
    size(deserializer, ByteSize::kib(64), ByteSize::tib(4)).map(Some)
}

fn component_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(256))
}

fn stack_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(64), ByteSize::mib(8))
}

//! `[server]`: limits of the process as a whole, and what it says of itself to clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::{any, count, size};
use toolbay_model::text::{clean, line};
use toolbay_model::{ArgumentCheck, Icon, SchemaForm};

use super::bounds::{MANY, many};
use super::confine::Confine;
use super::http::list;
use crate::machine;

/// Highest `server.calls` and `server.waiting`. Each call reserves a slot of the instance pool.
const MOST_CALLS: usize = 4096;

/// The default of `server.requests`, in requests of the largest size.
const REQUESTS: u64 = 64;

/// The default of `server.requests` if requests are small: many of them may wait.
const MANY_REQUESTS: ByteSize = ByteSize::mib(64);

/// Lowest `server.requests`, in requests of the largest size. The values of a request take several times its text.
const FEWEST_REQUESTS: u64 = 16;

/// How much of a wrong address is quoted, in bytes.
const SHOWN: usize = 100;

/// Lowest `server.memory`.
const LEAST_MEMORY: ByteSize = ByteSize::mib(1);

/// Limits of the process as a whole (`[server]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Calls that run at once, 1 to 4,096. Default: 64.
    #[serde(deserialize_with = "calls")]
    pub calls: usize,
    /// Calls that wait for a clock, a response or a connection and have given their places in `calls` back, 0 to 4,096. One
    /// caller, or one plugin, has half of them at the most; further calls keep their places while they wait. Default: 128.
    #[serde(deserialize_with = "waiting")]
    pub waiting: usize,
    /// Calls of one client that run at once, 1 to 1,000,000. Default: 32.
    #[serde(deserialize_with = "many")]
    pub client_calls: usize,
    /// Calls of one client that wait for a slot, 0 to 1,000,000. Further calls fail with `busy`. Default: 1,024.
    #[serde(deserialize_with = "queue")]
    pub queue: usize,
    /// How long a call waits for a slot before it fails with `busy`; 0 does not wait. Default: 5 s.
    #[serde(deserialize_with = "any")]
    pub queue_wait: Duration,
    /// Bytes that the calls which run or wait for something may hold together, 1 MiB to 4 TiB: each reserves its
    /// `limits.memory`. One plugin has three quarters at the most, and one caller over HTTP half. `None`: half of the
    /// machine's memory, or of the control group's.
    #[serde(deserialize_with = "memory")]
    pub memory: Option<ByteSize>,
    /// Largest message in bytes: a line over stdio, a body over HTTP. 1 KiB to 64 MiB, default 4 MiB.
    #[serde(deserialize_with = "request")]
    pub request: ByteSize,
    /// Bytes that all requests may take together while they are read, wait and run, with the values of their arguments:
    /// 64 KiB to 4 TiB, and at least 16 times `request`. One request can take a quarter of it, and so can one caller over
    /// HTTP. `None`: 64 times `request`, but at least 64 MiB.
    #[serde(deserialize_with = "requests")]
    pub requests: Option<ByteSize>,
    /// Largest component file in bytes. 1 KiB to 256 MiB, default 64 MiB.
    #[serde(deserialize_with = "component")]
    pub component: ByteSize,
    /// Native stack of a guest in bytes. 64 KiB to 8 MiB, default 512 KiB. Overflow traps.
    #[serde(deserialize_with = "stack")]
    pub stack: ByteSize,
    /// How long running calls may continue after the client disconnects or the server is told to stop; 0 stops them at
    /// once. Default: 5 s.
    #[serde(deserialize_with = "any")]
    pub grace: Duration,
    /// How long `tools/list` waits while plugins that existed at startup are still loading; 0 does not wait. Default:
    /// 15 s.
    #[serde(deserialize_with = "any")]
    pub first_list: Duration,
    /// Folder for the temporary folders of calls (`[permissions.scratch]` of a grant); Toolbay creates `toolbay-UID` in it,
    /// UID being the number of its user. A relative path is relative to the configuration file. `None`: the system's
    /// temporary folder.
    pub scratch: Option<PathBuf>,
    /// Whether `toolbay serve` gives up what it does not need. Default: as far as the kernel can.
    pub confine: Confine,
    /// Folders that a confined server may read and write besides those of the grants that are there when it starts, so that
    /// later grants can mount what is in them. Relative paths are relative to the configuration file. Default: none.
    #[serde(deserialize_with = "paths")]
    pub confine_folders: Vec<PathBuf>,
    /// How arguments of tools are checked. A grant and a token can say it, too; whoever says `strict` wins. Default: `strict`.
    pub arguments: ArgumentCheck,
    /// How the schemas of arguments are written in lists. A token can say it, too. Default: `standard`.
    pub schemas: SchemaForm,
    /// Text that every client receives as `instructions`, for its model, before the lines about the plugins. Default: empty.
    pub instructions: String,
    /// Display name of the server for clients. Empty (the default) is `Toolbay`.
    pub title: String,
    /// What the server is for, for people. Empty (the default) says nothing.
    pub description: String,
    /// The address of the server's website. Empty (the default) names none.
    pub website: String,
    /// Icons of the server for clients. Default: none.
    pub icons: Vec<Icon>,
    /// The environment variable with the key of request states, 64 hexadecimal digits, which servers of one service share.
    /// Empty (the default): a key of this server's own, which survives a restart.
    pub state_key: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            calls: 64,
            waiting: 128,
            client_calls: 32,
            queue: 1024,
            queue_wait: Duration::from_secs(5),
            memory: None,
            request: ByteSize::mib(4),
            requests: None,
            component: ByteSize::mib(64),
            stack: ByteSize::kib(512),
            grace: Duration::from_secs(5),
            first_list: Duration::from_secs(15),
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
            state_key: String::new(),
        }
    }
}

impl ServerConfig {
    /// Calls that are entered at once, whether they compute or wait.
    pub fn entered(&self) -> usize {
        self.calls.saturating_add(self.waiting)
    }

    /// Bytes that the running calls may hold together.
    pub fn memory(&self) -> ByteSize {
        self.memory.unwrap_or_else(|| ByteSize::b((machine::memory() / 2).max(LEAST_MEMORY.as_u64())))
    }

    /// Bytes that all requests may take together.
    pub fn requests(&self) -> ByteSize {
        self.requests.unwrap_or_else(|| ByteSize::b(self.request.as_u64() * REQUESTS).max(MANY_REQUESTS))
    }

    /// The folder for the temporary folders of calls. A folder of its own, because others' files are left alone, and
    /// one for each user, because it is private.
    pub fn scratch(&self) -> PathBuf {
        let folder = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        folder.join(format!("toolbay-{}", rustix::process::geteuid().as_raw()))
    }

    /// The key of request states that several servers share; `None` if this server has its own.
    ///
    /// # Errors
    ///
    /// The variable is not set, or has no key.
    pub(crate) fn state_key(&self) -> Result<Option<[u8; 32]>, String> {
        if self.state_key.is_empty() {
            return Ok(None);
        }
        let name = &self.state_key;
        let Ok(text) = std::env::var(name) else {
            return Err(format!("server.state_key: the environment variable {name:?} is not set"));
        };
        let mut key = [0; 32];
        match hex::decode_to_slice(text.trim(), &mut key) {
            Ok(()) => Ok(Some(key)),
            Err(_) => Err(format!("server.state_key: the variable {name:?} must have 64 hexadecimal digits")),
        }
    }

    /// What clients are told of the server.
    pub(super) fn info(&self) -> toolbay_mcp::ServerInfo {
        let told = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        toolbay_mcp::ServerInfo {
            title: told(&self.title),
            description: told(&self.description),
            website_url: told(&self.website),
            icons: self.icons.clone(),
        }
    }

    /// Makes relative paths relative to `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(scratch) = self.scratch.as_mut().filter(|scratch| !scratch.as_os_str().is_empty()) {
            *scratch = folder.join(&*scratch);
        }
        self.confine_folders.iter_mut().for_each(|path| *path = folder.join(&path));
    }

    /// # Errors
    ///
    /// Settings that contradict each other, or that mean nothing.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.scratch.as_ref().is_some_and(|scratch| scratch.as_os_str().is_empty()) {
            return Err("server.scratch: expected the path of a folder, not an empty string".to_owned());
        }
        if let Some(missing) = self.confine_folders.iter().find(|path| !path.is_dir()) {
            return Err(format!("server.confine_folders: {} is not a folder", missing.display()));
        }
        // Clients show these as they are.
        for (key, text) in [("title", &self.title), ("description", &self.description)] {
            if clean(text) != text.as_str() {
                return Err(format!("server.{key}: expected text without control characters"));
            }
        }
        if !self.website.is_empty() && !is_web(&self.website) {
            return Err(format!(
                "server.website: expected a URL that begins with https:// or http://, not {:?}",
                self.website
            ));
        }
        let is_image = |icon: &Icon| icon.src.starts_with("https://") || icon.src.starts_with("data:image/");
        if let Some(icon) = self.icons.iter().find(|icon| !is_image(icon)) {
            let src = line(&icon.src, SHOWN);
            return Err(format!("server.icons: src must begin with https:// or data:image/, not {src:?}"));
        }
        self.state_key()?;
        let least = ByteSize::b(self.request.as_u64() * FEWEST_REQUESTS);
        if self.requests() >= least {
            return Ok(());
        }
        let [least, found] = [least, self.requests()].map(|size| size.display().iec().to_string());
        Err(format!("server.requests: expected at least {least}, {FEWEST_REQUESTS} times server.request, not {found}"))
    }
}

fn is_web(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

/// Parses [`ServerConfig::calls`].
fn calls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 1, MOST_CALLS)
}

/// Parses [`ServerConfig::waiting`].
fn waiting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 0, MOST_CALLS)
}

fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(list(deserializer)?.into_iter().map(PathBuf::from).collect())
}

fn queue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 0, MANY)
}

fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    size(deserializer, LEAST_MEMORY, ByteSize::tib(4)).map(Some)
}

fn request<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(64))
}

fn requests<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    size(deserializer, ByteSize::kib(64), ByteSize::tib(4)).map(Some)
}

fn component<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(256))
}

fn stack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(64), ByteSize::mib(8))
}

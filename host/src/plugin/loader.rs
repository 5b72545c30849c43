//! Turns a file into a plugin: read once, digest, compile, link, describe, validate.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::available_parallelism;

use bytesize::ByteSize;
use tokio::sync::Semaphore;

use super::breaker::BreakerRules;
use super::folder::{component_path, grant_path, wit_path};
use super::grant::{Grant, Shown};
use super::{Component, Digest, Plugin, Terms};
use crate::catalog::{CheckedDefinition, check};
use crate::definition::{Description, ToolDefinition};
use crate::limits::Limits;
use crate::rate::RateLimit;
use crate::sandbox::{CallError, Compiled, Environment, Limit, PrepareError, Sandbox, Source, crash, thousands};
use crate::secret::Secrets;
use crate::text::line;

/// How large a grant file may be: more is a mistake, such as a wrong file.
const GRANT_SIZE: u64 = 1 << 20;

/// How large a `.wit` file may be.
const WIT_SIZE: u64 = 1 << 20;

/// How many component files are held in memory at once.
const READING: usize = 8;

/// From this size on, components are compiled one at a time.
const LARGE: usize = 4 << 20;

/// How many refusals are remembered.
const REFUSALS: usize = 4096;

/// How long the reason of one may be, in bytes.
const REASON: usize = 2_000;

/// What a load may use, and what it gives.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What applies when a grant is silent.
    pub limits: Limits,
    /// What no grant goes beyond.
    pub ceiling: Limits,
    /// The budget of `list-tools`.
    pub describe: Limits,
    /// How often a tool may be called when its plugin's grant is silent.
    pub rate_limit: Option<RateLimit>,
    /// When a plugin rests.
    pub breaker: BreakerRules,
    /// How large a component file may be.
    pub component: ByteSize,
    /// How many tools a plugin may have.
    pub tools: usize,
    /// How many bytes its schemas may have together.
    pub schemas: ByteSize,
}

impl Rules {
    /// The grant within the server's rules, and what the operator should know about that.
    pub(super) fn terms(
        &self,
        id: &str,
        component: &Component,
        grant: Grant,
        secrets: Secrets,
    ) -> (Terms, Vec<String>) {
        let (limits, clamps) = self.limits.with(&grant.limits, &self.ceiling);
        let mut remarks: Vec<String> = clamps.iter().map(ToString::to_string).collect();
        let config = Arc::new(grant.config_values());
        let environment = Environment { limits, permissions: grant.permissions, config, secrets: Arc::new(secrets) };
        let (mut tools, mut shown) = (BTreeMap::new(), BTreeMap::new());
        for (name, tool) in grant.tools {
            let is_known = if component.prepared.is_command() {
                super::tool_name(id) == name
            } else {
                component.tools.iter().any(|known| known.name == name)
            };
            if !is_known {
                remarks.push(format!("[tools.{name}] is about a tool that the plugin does not have"));
            }
            let (limits, clamps) = environment.limits.with(&tool.limits.patch(), &self.ceiling);
            remarks.extend(clamps.iter().map(|clamp| format!("tools.{name}.{clamp}")));
            let look = tool.shown();
            if look != Shown::default() {
                shown.insert(name.clone(), look);
            }
            tools.insert(name, Environment { limits, ..environment.clone() });
        }
        let rate_limit = grant.rate_limit.or(self.rate_limit);
        let terms = Terms { environment, tools, shown, prefix: grant.prefix, rate_limit, breaker: self.breaker };
        (terms, remarks)
    }
}

/// A plugin and what the operator should know about it.
#[derive(Debug)]
pub struct Loaded {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Limits that were clamped.
    pub remarks: Vec<String>,
}

/// Why a file is not a plugin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It is not there any more.
    Gone,
    /// It ends in the middle: most likely still being written.
    Incomplete,
    /// It cannot serve; the text says why, in one line.
    Refused(String),
    /// It cannot serve for a reason that may pass without a change of the file, such as other work on the machine.
    Hindered(String),
}

impl LoadError {
    /// The reason, in one line.
    pub fn why(&self) -> &str {
        match self {
            Self::Gone => "it is not there any more",
            Self::Incomplete => "the file is incomplete",
            Self::Refused(why) | Self::Hindered(why) => why,
        }
    }
}

/// Loads plugins, several at once.
pub struct Loader {
    sandbox: Sandbox,
    rules: Rules,
    folder: PathBuf,
    /// Files in memory at once: a thousand may change together.
    reading: Semaphore,
    /// Compiling takes every core it gets: leave one for the calls. Two in any
    /// case: whoever takes minutes must not hold up the rest.
    compiling: Semaphore,
    /// A permit for a component larger than [`LARGE`].
    large: Semaphore,
    /// Components in use, so that equal files are compiled once.
    components: Mutex<HashMap<Digest, Weak<Component>>>,
    /// Why the bytes with this digest are no plugin.
    refusals: Mutex<HashMap<Digest, String>>,
}

impl Loader {
    /// A loader for the plugins in `folder`.
    pub fn new(sandbox: Sandbox, rules: Rules, folder: PathBuf) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            sandbox,
            rules,
            folder,
            reading: Semaphore::new(READING),
            compiling: Semaphore::new(cores.saturating_sub(1).max(2)),
            large: Semaphore::new(1),
            components: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// Where the plugins are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Loads the plugin `id` from its files as they are now.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub async fn load(self: Arc<Self>, id: String) -> Result<Loaded, LoadError> {
        let (component, grant) = self.component(&id).await?;
        // What is told about the rest of the grant may quote it, never the values.
        let secrets = grant.secrets(|name| std::env::var(name).ok());
        let (secrets, unset) = secrets.map_err(|why| LoadError::Refused(format!("{id}.toml: {why}")))?;
        let doubts = grant.doubts(&self.folder);
        let (terms, remarks) = self.rules.terms(&id, &component, grant, secrets);
        let remarks = doubts.iter().chain(&unset).chain(&remarks).map(|remark| format!("{id}.toml: {remark}"));
        let remarks = component.remarks.iter().cloned().chain(remarks).collect();
        Ok(Loaded { plugin: Arc::new(Plugin::new(id, component, terms)), remarks })
    }

    /// The files of a plugin, read off the runtime.
    async fn read(&self, id: &str) -> Result<(Source, Grant), LoadError> {
        let (id, folder, limit) = (id.to_owned(), self.folder.clone(), self.rules.component.as_u64());
        let read = tokio::task::spawn_blocking(move || {
            let file = read_bounded(&component_path(&folder, &id), limit)?;
            let wit = match read_bounded(&wit_path(&folder, &id), WIT_SIZE) {
                Ok(text) => {
                    String::from_utf8(text).map_err(|_| LoadError::Refused(format!("{id}.wit is not UTF-8 text")))?
                }
                Err(LoadError::Gone) => String::new(),
                Err(LoadError::Refused(why)) => return Err(LoadError::Refused(format!("{id}.wit: {why}"))),
                Err(LoadError::Hindered(why)) => return Err(LoadError::Hindered(format!("{id}.wit: {why}"))),
                Err(LoadError::Incomplete) => return Err(LoadError::Incomplete),
            };
            let name = format!("{id}.toml");
            let grant = match read_bounded(&grant_path(&folder, &id), GRANT_SIZE) {
                Ok(text) => {
                    let text = String::from_utf8(text).map_err(|_| format!("{name} is not UTF-8 text"));
                    text.and_then(|text| Grant::parse(&name, &text, &folder)).map_err(LoadError::Refused)?
                }
                Err(LoadError::Gone) => Grant::default(),
                Err(LoadError::Refused(why)) => return Err(LoadError::Refused(format!("{name}: {why}"))),
                Err(LoadError::Hindered(why)) => return Err(LoadError::Hindered(format!("{name}: {why}"))),
                Err(LoadError::Incomplete) => return Err(LoadError::Incomplete),
            };
            Ok((Source { file, wit }, grant))
        });
        read.await.unwrap_or_else(|error| Err(LoadError::Hindered(format!("reading it failed: {error}"))))
    }

    /// The component in the file: one in use already, one compiled before, or
    /// one compiled and described now; and the grant.
    async fn component(self: &Arc<Self>, id: &str) -> Result<(Arc<Component>, Grant), LoadError> {
        let (digest, compiled, grant) = {
            // The semaphores are never closed.
            let _reading = self.reading.acquire().await;
            let (source, grant) = self.read(id).await?;
            let digest = Digest::of_source(&source);
            if let Some(component) = self.known(digest)? {
                return Ok((component, grant));
            }
            if let Some(component) = self.stored(digest).await? {
                return Ok((component, grant));
            }
            // One large component at a time: each takes hundreds of megabytes to compile.
            let _large = if source.file.len() > LARGE { Some(self.large.acquire().await) } else { None };
            let _compiling = self.compiling.acquire().await;
            // Compiled by another load while this one waited?
            if let Some(component) = self.known(digest)? {
                return Ok((component, grant));
            }
            (digest, self.remember(digest, self.compile(source).await)?, grant)
        };
        let (compiled, description) = self.remember(digest, self.describe(compiled).await)?;
        let tools = self.remember(digest, self.check(description.tools.clone()).await)?;
        let (prepared, scratch) = compiled.into_parts();
        let remarks = description.remarks.clone();
        let sandbox = self.sandbox.clone();
        let kept = tokio::task::spawn_blocking(move || sandbox.keep(digest, scratch, description)).await;
        if let Err(error) = kept {
            tracing::error!(plugin = id, %error, "keeping its compiled code failed unexpectedly");
        }
        let prepared = Arc::new(prepared);
        Ok((self.in_use(Component { digest, prepared, tools, remarks }), grant))
    }

    /// A component that was compiled before, perhaps by another server.
    async fn stored(&self, digest: Digest) -> Result<Option<Arc<Component>>, LoadError> {
        let sandbox = self.sandbox.clone();
        let Ok(Some((prepared, description))) = tokio::task::spawn_blocking(move || sandbox.find(digest)).await else {
            return Ok(None);
        };
        let tools = self.remember(digest, self.check(description.tools).await)?;
        let (prepared, remarks) = (Arc::new(prepared), description.remarks);
        Ok(Some(self.in_use(Component { digest, prepared, tools, remarks })))
    }

    async fn compile(&self, source: Source) -> Result<Compiled, LoadError> {
        self.sandbox.compile(source).await.map_err(|error| match error {
            PrepareError::Incomplete => LoadError::Incomplete,
            PrepareError::Hindered(_) | PrepareError::Unwritten => LoadError::Hindered(error.to_string()),
            error => LoadError::Refused(error.to_string()),
        })
    }

    /// Asks the plugin for its tools, on the guests' runtime.
    async fn describe(&self, compiled: Compiled) -> Result<(Compiled, Description), LoadError> {
        let (sandbox, limits) = (self.sandbox.clone(), self.rules.describe.clone());
        let described = self.sandbox.spawn(async move {
            let finished = sandbox.describe(&compiled, &limits).await;
            let description = finished.result.map_err(|error| describe_failed(&error))?;
            Ok((compiled, description))
        });
        described.await.map_err(|error| LoadError::Hindered(format!("asking for its tools failed: {error}")))?
    }

    /// Checks what the plugin said, on the guests' runtime: schemas may be slow to compile.
    async fn check(&self, definitions: Vec<ToolDefinition>) -> Result<Vec<Arc<CheckedDefinition>>, LoadError> {
        let (most, largest) = (self.rules.tools, self.rules.schemas);
        let checked = self.sandbox.spawn(async move {
            if definitions.len() > most {
                return Err(format!("offers {} tools; {} are allowed", definitions.len(), thousands(most as u64)));
            }
            let schemas: usize = definitions
                .iter()
                .map(|tool| tool.input_schema.len() + tool.output_schema.as_ref().map_or(0, String::len))
                .sum();
            if schemas as u64 > largest.as_u64() {
                return Err(format!("its schemas are larger than {} together", largest.display().iec()));
            }
            check(definitions)
        });
        checked
            .await
            .map_err(|error| LoadError::Hindered(format!("checking its tools failed: {error}")))?
            .map_err(LoadError::Refused)
    }

    /// Shares a component with plugins whose files hold the same bytes.
    fn in_use(&self, component: Component) -> Arc<Component> {
        let component = Arc::new(component);
        let mut components = self.components();
        components.retain(|_, known| known.strong_count() > 0);
        components.insert(component.digest, Arc::downgrade(&component));
        component
    }

    /// Remembers a refusal by digest: the same bytes will not do better, and may cost minutes again.
    fn remember<T>(&self, digest: Digest, mut result: Result<T, LoadError>) -> Result<T, LoadError> {
        if let Err(LoadError::Refused(why) | LoadError::Hindered(why)) = &mut result {
            // What a stranger wrote is in it: a name, a list of imports.
            *why = line(why, REASON);
        }
        if let Err(LoadError::Refused(why)) = &result {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            if refusals.len() >= REFUSALS {
                refusals.clear();
            }
            refusals.insert(digest, why.clone());
        }
        result
    }

    /// The component in use with this digest, or why there can be none.
    fn known(&self, digest: Digest) -> Result<Option<Arc<Component>>, LoadError> {
        if let Some(why) = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).get(&digest) {
            return Err(LoadError::Refused(why.clone()));
        }
        Ok(self.components().get(&digest).and_then(Weak::upgrade))
    }

    fn components(&self) -> MutexGuard<'_, HashMap<Digest, Weak<Component>>> {
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a regular file of at most `limit` bytes.
fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, LoadError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Gone,
        // These change with the file; anything else, such as too many open files, may pass.
        kind @ (io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory) => {
            LoadError::Refused(format!("cannot be read: {kind}"))
        }
        _ => LoadError::Hindered(format!("cannot be read: {error}")),
    };
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        // A FIFO without a writer would hold the thread for ever.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let file = options.open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(LoadError::Refused("not a regular file".into()));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > limit {
        let limit = ByteSize::b(limit).display().iec();
        return Err(LoadError::Refused(format!("the file is larger than {limit} (server.component raises it)")));
    }
    Ok(bytes)
}

/// What to say when `list-tools` did not answer.
pub(crate) fn describe_failed(error: &CallError) -> LoadError {
    let why = match error {
        CallError::Limit(limit) => {
            // The keys that raise a call's limits do not raise this one's.
            let message = limit.message();
            message.split(" (limits.").next().unwrap_or_default().replace("The tool", "it")
        }
        CallError::Trap { what, stderr } => format!("it crashed: {}", crash(what, stderr.as_deref())),
        CallError::InvalidArguments(text)
        | CallError::Failed(text)
        | CallError::InvalidOutput(text)
        | CallError::Internal(text) => text.clone(),
        CallError::Cancelled => "the load was cancelled".to_owned(),
    };
    let why = format!("did not list its tools: {}", why.replace('\n', "; "));
    match error {
        // The wall clock runs faster for a guest on a busy machine; the others do not know about that.
        CallError::Limit(Limit::Deadline(_)) | CallError::Internal(_) => LoadError::Hindered(why),
        _ => LoadError::Refused(why),
    }
}

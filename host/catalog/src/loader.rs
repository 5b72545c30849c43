//! Turns a file into a plugin: read once, digest, compile, link, describe, validate.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use bytesize::ByteSize;
use tokio::sync::Semaphore;
use toolbay_model::text::{line, thousands};
use toolbay_model::{Description, Digest, ToolDefinition};
use toolbay_sandbox::{Compiled, PrepareError, Sandbox, Source};

use crate::component::Component;
use crate::definition::{Definition, check};
use crate::folder::{component_path, grant_path};
use crate::grant::Grant;
use crate::load_error::{LoadError, describe_failed};
use crate::plugin::Plugin;
use crate::read::{read_optional, read_source};
use crate::rules::Rules;

/// How large a grant file may be: more is a mistake, such as a wrong file.
const GRANT_SIZE: u64 = 1 << 20;

/// How many component files are held in memory at once.
const READING: usize = 8;

/// From this size on, components are compiled one at a time.
const LARGE: usize = 4 << 20;

/// A compile that takes longer than this is worth a line in the log.
const LONG_COMPILE: Duration = Duration::from_secs(1);

/// How many refusals are remembered.
const REFUSALS: usize = 4096;

/// How long the reason of one may be, in bytes.
const REASON: usize = 2_000;

/// A loaded plugin and warnings for the operator.
#[derive(Debug)]
pub struct Loaded {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Warnings for the operator, such as limits that were lowered to a ceiling.
    pub remarks: Vec<String>,
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
            let source = read_source(&component_path(&folder, &id), limit)?;
            let grant = match read_optional(&grant_path(&folder, &id), GRANT_SIZE)? {
                Some(text) => Grant::parse(&format!("{id}.toml"), &text, &folder).map_err(LoadError::Refused)?,
                None => Grant::default(),
            };
            Ok((source, grant))
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
            let digest = source.digest();
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
            (digest, self.remember(digest, self.compile(id, source).await)?, grant)
        };
        let (compiled, description) = self.remember(digest, self.describe(compiled).await)?;
        let tools = self.remember(digest, self.check(description.tools.clone()).await)?;
        let (prepared, scratch, about) = compiled.into_parts();
        let remarks = description.remarks.clone();
        let sandbox = self.sandbox.clone();
        let kept = tokio::task::spawn_blocking(move || sandbox.keep(digest, scratch, description, about)).await;
        if let Err(error) = kept {
            tracing::error!(plugin = id, %error, "writing to the compile cache failed unexpectedly");
        }
        let prepared = Some(Arc::new(prepared));
        Ok((self.in_use(Component { digest, prepared, tools, remarks }), grant))
    }

    /// A component that was compiled before, perhaps by another server.
    async fn stored(&self, digest: Digest) -> Result<Option<Arc<Component>>, LoadError> {
        let sandbox = self.sandbox.clone();
        let Ok(Some((prepared, description, _))) = tokio::task::spawn_blocking(move || sandbox.find(digest)).await
        else {
            return Ok(None);
        };
        let tools = self.remember(digest, self.check(description.tools).await)?;
        let (prepared, remarks) = (Some(Arc::new(prepared)), description.remarks);
        Ok(Some(self.in_use(Component { digest, prepared, tools, remarks })))
    }

    async fn compile(&self, id: &str, source: Source) -> Result<Compiled, LoadError> {
        let size = ByteSize::b(source.file.len() as u64).display().iec();
        let mut compiling = std::pin::pin!(self.sandbox.compile(source));
        let compiled = match tokio::time::timeout(LONG_COMPILE, compiling.as_mut()).await {
            Ok(compiled) => compiled,
            Err(_elapsed) => {
                tracing::info!(plugin = id, %size, "compiling; this can take minutes for a large plugin");
                compiling.await
            }
        };
        compiled.map_err(|error| match error {
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
        described.await.map_err(|error| LoadError::Hindered(format!("listing its tools failed: {error}")))?
    }

    /// Checks what the plugin said, on a thread that may block: schemas may be slow to compile.
    async fn check(&self, definitions: Vec<ToolDefinition>) -> Result<Vec<Arc<Definition>>, LoadError> {
        let (most, largest) = (self.rules.tools, self.rules.schemas);
        let checked = tokio::task::spawn_blocking(move || {
            if definitions.len() > most {
                let [n, most] = [definitions.len(), most].map(|n| thousands(n as u64));
                return Err(format!(
                    "has {n} tools, but at most {most} are allowed (to allow more, raise describe.tools)"
                ));
            }
            let schemas: usize = definitions
                .iter()
                .map(|tool| tool.input_schema.len() + tool.output_schema.as_ref().map_or(0, String::len))
                .sum();
            if schemas as u64 > largest.as_u64() {
                let largest = largest.display().iec();
                return Err(format!(
                    "its schemas are larger than {largest} in total (to allow more, raise describe.schemas)"
                ));
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

//! Turns files into a plugin: read each once, compute the digest, compile, link, list what it offers, validate that.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use bytesize::ByteSize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolbay_model::Digest;
use toolbay_model::text::line;
use toolbay_policy::Permissions;
use toolbay_sandbox::{Compiled, Environment, Listed, PrepareError, Sandbox, Source};
use toolbay_secrets::{Fixed, Secret};

use crate::component::Component;
use crate::contents::Contents;
use crate::folder::{self, Files, Found, component_path, grant_path};
use crate::grant::{Grant, Kept};
use crate::guard::{Guarded, Places};
use crate::load_error::{LoadError, describe_failed};
use crate::plain_files::PlainFiles;
use crate::plugin::Plugin;
use crate::read::{read_optional, read_source};
use crate::rules::Rules;
use crate::shelf::Shelf;

/// Largest grant file. A larger one is a mistake, such as the wrong file.
const GRANT_SIZE: u64 = 1 << 20;

/// Number of component files that are held in memory at once.
const READING: usize = 8;

/// Number of plugins for whose secrets programs run at once.
const ASKING: usize = 4;

/// Components of at least this size are compiled one at a time.
const LARGE: usize = 4 << 20;

/// A compilation that takes longer than this is logged.
const LONG_COMPILE: Duration = Duration::from_secs(1);

/// Number of refusals that are remembered.
const REFUSALS: usize = 4096;

/// Longest reason of a remembered refusal, in bytes.
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
    /// Permits for files in memory: a thousand files may change at once.
    reading: Semaphore,
    /// Permits for compilations. Each uses all cores that it gets, so one core is left for calls. There are always at
    /// least two, so that one compilation that takes minutes does not delay all others.
    compiling: Semaphore,
    /// A permit for a component larger than [`LARGE`].
    large: Semaphore,
    /// Permits for plugins whose secrets programs print: a thousand plugins may be loaded at once.
    asking: Semaphore,
    /// Permits to check what plugins said, and to read skills.
    checking: Arc<Semaphore>,
    /// Components in use, so that identical files are compiled once.
    components: Mutex<HashMap<Digest, Weak<Component>>>,
    /// Why the component with this digest was refused.
    refusals: Mutex<HashMap<Digest, String>>,
    /// Room for the files of skills.
    shelf: Arc<Shelf>,
}

impl Loader {
    /// A loader for the plugins in `folder`.
    pub fn new(sandbox: Sandbox, mut rules: Rules, folder: PathBuf) -> Self {
        rules.guarded.insert(0, Guarded { what: "the plugin folder", path: folder.clone(), is_secret: false });
        let cores = available_parallelism().map_or(1, usize::from);
        let shelf = Shelf::new(rules.bounds.skills);
        Self {
            sandbox,
            rules,
            folder,
            reading: Semaphore::new(READING),
            compiling: Semaphore::new(cores.saturating_sub(1).max(2)),
            large: Semaphore::new(1),
            asking: Semaphore::new(ASKING),
            checking: Arc::new(Semaphore::new(cores.saturating_sub(1).max(1))),
            components: Mutex::default(),
            refusals: Mutex::default(),
            shelf,
        }
    }

    /// The plugin folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is in the plugin folder; `None` if there is no such folder. Blocks.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn scan(&self) -> std::io::Result<Option<Found>> {
        folder::scan(&self.folder, &self.rules.bounds)
    }

    /// Loads the plugin `id` from its current files, whatever is in service.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub async fn load(self: Arc<Self>, id: String) -> Result<Loaded, LoadError> {
        let loader = Arc::clone(&self);
        let found = tokio::task::spawn_blocking(move || loader.scan());
        let failed = |why: String| LoadError::Hindered(format!("scanning the plugin folder failed: {why}"));
        let found =
            found.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
        let files = found.and_then(|mut found| found.plugins.remove(&id)).ok_or(LoadError::Gone)?;
        self.load_files(id, files, None).await
    }

    /// Loads the plugin `id` from these files. `previous` is the version in service.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub(crate) async fn load_files(
        self: Arc<Self>,
        id: String,
        files: Files,
        previous: Option<Arc<Plugin>>,
    ) -> Result<Loaded, LoadError> {
        let (component, grant) = match files.component {
            Some(_) => self.component(&id).await?,
            None => self.without_code(&id).await?,
        };
        let refused = |why| LoadError::Refused(format!("{id}.toml: {why}"));
        let secrets = grant.secrets().map_err(refused)?;
        let fixed = {
            let _asking = if Fixed::needs_programs(&secrets) {
                // A program that the plugin itself could have replaced is not run.
                self.check_mounts(&id, &grant, &secrets).await?;
                // The semaphore is never closed.
                Some(self.asking.acquire().await)
            } else {
                None
            };
            Fixed::fetch(&secrets, &self.folder, |name| std::env::var(name).ok()).await
        };
        let kept = grant.kept(&format!("{id}.toml"), &self.folder, secrets, fixed).map_err(refused)?;
        // A plugin can have thousands of tools, and a grant as many changes of them. Opening mounted folders can wait.
        let this = Arc::clone(&self);
        let permit = self.hashing(&files).await;
        let loaded = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let (plugin, remarks) = this.apply(id, component, grant, kept)?;
            let previous = previous.map(|plugin| Arc::clone(&plugin.files)).unwrap_or_default();
            let plain = this.plain_files(&plugin, &files, &previous)?;
            Ok(Loaded { plugin: Arc::new(plugin.with_files(plain)), remarks })
        });
        let failed = |error| LoadError::Hindered(format!("applying its grant failed: {error}"));
        loaded.await.unwrap_or_else(|error| Err(failed(error)))
    }

    /// Loads the plain files of a plugin whose other files are the same. `remarks` are the warnings about these.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub(crate) async fn load_plain_files(
        self: Arc<Self>,
        files: Files,
        previous: Arc<Plugin>,
        remarks: Vec<String>,
    ) -> Result<Loaded, LoadError> {
        let permit = self.hashing(&files).await;
        let loaded = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let plain = self.plain_files(&previous, &files, &previous.files)?;
            Ok(Loaded { plugin: Arc::new(previous.with_files(plain)), remarks })
        });
        let failed = |error| LoadError::Hindered(format!("reading its plain files failed: {error}"));
        loaded.await.unwrap_or_else(|error| Err(failed(error)))
    }

    /// Waits for its turn to read a skill, if there is one: its digests are work for a processor.
    async fn hashing(&self, files: &Files) -> Option<OwnedSemaphorePermit> {
        files.skill.as_ref()?;
        // The semaphore is never closed.
        Arc::clone(&self.checking).acquire_owned().await.ok()
    }

    fn plain_files(&self, plugin: &Plugin, files: &Files, previous: &PlainFiles) -> Result<Arc<PlainFiles>, LoadError> {
        let output = plugin.terms.environment.limits.output;
        PlainFiles::load(&plugin.id, &self.folder, files, &self.rules.bounds, output, &self.shelf, previous)
            .map(Arc::new)
    }

    /// A component without code, and the grant of its plugin as far as it means something to plain files.
    async fn without_code(&self, id: &str) -> Result<(Arc<Component>, Grant), LoadError> {
        let (id, folder) = (id.to_owned(), self.folder.clone());
        let read = tokio::task::spawn_blocking(move || {
            let grant = grant_of(&folder, &id)?;
            let Grant { prefix, limits, rate_limit, permissions, digest, .. } = grant.clone();
            let permissions = Permissions { ui: permissions.ui, ..Permissions::default() };
            let kept = Grant { prefix, limits, rate_limit, permissions, digest, ..Grant::default() };
            let mut component = Component::without_code(Contents::default());
            if kept != grant {
                let idle = format!(
                    "{id}.toml: there is no {id}.wasm: of the grant, only prefix, limits, rate_limit and permissions.ui have an effect"
                );
                component.remarks.push(idle);
            }
            Ok((Arc::new(component), kept))
        });
        read.await.unwrap_or_else(|error| Err(LoadError::Hindered(format!("reading its grant failed: {error}"))))
    }

    /// Puts a component and its grant together. Returns the plugin without plain files, and warnings.
    fn apply(
        &self,
        id: String,
        component: Arc<Component>,
        grant: Grant,
        mut kept: Kept,
    ) -> Result<(Plugin, Vec<String>), LoadError> {
        kept.remarks.extend(kept.secrets.problems());
        let (mut terms, remarks) = self.rules.terms(&id, &component, grant, kept);
        let requests = self.sandbox.requests(&terms.environment.permissions, &terms.environment.limits);
        let requests = requests.map_err(|why| LoadError::Refused(format!("{id}.toml: permissions.http: {why}")))?;
        let permissions = &terms.environment.permissions;
        let (connections, key_value) =
            (self.sandbox.connections(permissions), self.sandbox.key_value(&id, permissions));
        terms.share(&requests, &connections, &key_value);
        let mounts;
        (terms.places, mounts) = self.mount(&id, &terms.environment)?;
        let remarks = remarks.iter().map(|remark| format!("{id}.toml: {remark}"));
        let remarks = component.remarks.iter().cloned().chain(remarks).chain(mounts).collect();
        Ok((Plugin::new(id, component, Arc::default(), terms), remarks))
    }

    /// Checks the folders that a plugin mounts, on a thread for blocking work.
    async fn check_mounts(self: &Arc<Self>, id: &str, grant: &Grant, secrets: &[Secret]) -> Result<(), LoadError> {
        let (loader, id) = (Arc::clone(self), id.to_owned());
        let (permissions, secrets) = (grant.permissions.clone(), secrets.to_owned());
        let checked = tokio::task::spawn_blocking(move || {
            let places = Places::of(&id, &loader.folder, &permissions, &secrets);
            places.check(&loader.rules.guarded).map(drop).map_err(LoadError::Refused)
        });
        checked.await.unwrap_or_else(|error| Err(LoadError::Hindered(format!("checking its mounts failed: {error}"))))
    }

    /// Checks and opens the folders that a plugin mounts. Returns where they are, and warnings.
    fn mount(&self, id: &str, environment: &Environment) -> Result<(Places, Vec<String>), LoadError> {
        let secrets = environment.secrets.secrets();
        let places = Places::of(id, &self.folder, &environment.permissions, secrets);
        let mut remarks = places.check(&self.rules.guarded).map_err(LoadError::Refused)?;
        remarks.extend(environment.roots.open());
        Ok((places, remarks))
    }

    /// Reads a plugin's files and computes the digest, on a thread for blocking work.
    async fn read(&self, id: &str) -> Result<(Source, Digest, Grant), LoadError> {
        let (id, folder, limit) = (id.to_owned(), self.folder.clone(), self.rules.component.as_u64());
        let read = tokio::task::spawn_blocking(move || {
            let source = read_source(&component_path(&folder, &id), limit)?;
            let grant = grant_of(&folder, &id)?;
            let digest = source.digest();
            Ok((source, digest, grant))
        });
        read.await.unwrap_or_else(|error| Err(LoadError::Hindered(format!("reading it failed: {error}"))))
    }

    /// The component in the file and the grant. The component may be in use already, may be in the compile cache, or is
    /// compiled now.
    async fn component(self: &Arc<Self>, id: &str) -> Result<(Arc<Component>, Grant), LoadError> {
        let (digest, compiled, grant) = {
            // The semaphores are never closed.
            let _reading = self.reading.acquire().await;
            let (source, digest, grant) = self.read(id).await?;
            if let Some(component) = self.known(digest)? {
                return Ok((component, grant));
            }
            if let Some(component) = self.stored(digest).await? {
                return Ok((component, grant));
            }
            // Large components one at a time: compiling one takes hundreds of megabytes.
            let _large = if source.file.len() > LARGE { Some(self.large.acquire().await) } else { None };
            let _compiling = self.compiling.acquire().await;
            // Another load may have compiled it while this one waited.
            if let Some(component) = self.known(digest)? {
                return Ok((component, grant));
            }
            (digest, self.remember(digest, self.compile(id, source).await)?, grant)
        };
        let (mut compiled, listed) = self.remember(digest, self.describe(compiled).await)?;
        let work = move |loader: &Self| {
            let description = compiled.description(listed);
            loader.rules.bounds.check(&description)?;
            let contents = Contents::check(description.clone())?;
            let (prepared, scratch, about) = compiled.into_parts();
            let remarks = description.remarks.clone();
            let said = about.description.clone();
            loader.sandbox.keep(digest, scratch, description, about);
            Ok(Component { digest, prepared: Some(Arc::new(prepared)), contents, about: said, remarks })
        };
        let component = self.remember(digest, self.checking(work).await)?;
        Ok((self.in_use(component), grant))
    }

    /// Looks the component up in the compile cache; another server may have put it there.
    async fn stored(self: &Arc<Self>, digest: Digest) -> Result<Option<Arc<Component>>, LoadError> {
        let sandbox = self.sandbox.clone();
        let Ok(Some((prepared, description, about))) = tokio::task::spawn_blocking(move || sandbox.find(digest)).await
        else {
            return Ok(None);
        };
        let work = move |loader: &Self| {
            loader.rules.bounds.check(&description)?;
            let (prepared, remarks) = (Some(Arc::new(prepared)), description.remarks.clone());
            let (contents, about) = (Contents::check(description)?, about.description);
            Ok(Component { digest, prepared, contents, about, remarks })
        };
        let component = self.remember(digest, self.checking(work).await)?;
        Ok(Some(self.in_use(component)))
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

    /// Asks the plugin what it offers, on the guests' runtime.
    async fn describe(&self, compiled: Compiled) -> Result<(Compiled, Listed), LoadError> {
        let (sandbox, limits) = (self.sandbox.clone(), self.rules.describe.clone());
        let described = self.sandbox.spawn(async move {
            let finished = sandbox.describe(&compiled, &limits).await;
            let listed = finished.result.map_err(|error| describe_failed(&error))?;
            match listed.refused() {
                Some(why) => Err(LoadError::Refused(why.to_owned())),
                None => Ok((compiled, listed)),
            }
        });
        described.await.map_err(|error| LoadError::Hindered(format!("listing its tools failed: {error}")))?
    }

    /// Checks what a plugin said that it offers, on a thread that may block: schemas may be slow to compile. Only a few plugins
    /// at once, so that the threads of calls and of the protocol keep their processors.
    async fn checking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, String> + Send + 'static,
    ) -> Result<T, LoadError> {
        let permit = Arc::clone(&self.checking).acquire_owned().await;
        let loader = Arc::clone(self);
        let checked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&loader)
        });
        checked
            .await
            .map_err(|error| LoadError::Hindered(format!("checking what it offers failed: {error}")))?
            .map_err(LoadError::Refused)
    }

    /// Shares a component with plugins whose files are identical.
    fn in_use(&self, component: Component) -> Arc<Component> {
        let component = Arc::new(component);
        let mut components = self.components();
        components.retain(|_, known| known.strong_count() > 0);
        components.insert(component.digest, Arc::downgrade(&component));
        component
    }

    /// Remembers a refusal by digest: the same bytes would be refused again, possibly after minutes of work.
    fn remember<T>(&self, digest: Digest, mut result: Result<T, LoadError>) -> Result<T, LoadError> {
        if let Err(LoadError::Refused(why) | LoadError::Hindered(why)) = &mut result {
            // The reason may quote the plugin: a name, a list of imports.
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

    /// The component in use with this digest, or the reason why it was refused before.
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

/// A plugin's grant. Blocks.
fn grant_of(folder: &Path, id: &str) -> Result<Grant, LoadError> {
    match read_grant(folder, id)? {
        Some(text) => Grant::parse(&format!("{id}.toml"), &text, folder).map_err(LoadError::Refused),
        None => Ok(Grant::default()),
    }
}

/// The text of a plugin's grant, if there is one.
///
/// # Errors
///
/// It cannot be read, or is too large.
pub fn read_grant(folder: &Path, id: &str) -> Result<Option<String>, LoadError> {
    read_optional(&grant_path(folder, id), GRANT_SIZE)
}

//! Turns files into a plugin: reads each file, computes the digest, compiles, links, describes
//! the component and validates the description.

mod update;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytesize::ByteSize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};
use toolbay_model::text::clean_line;
use toolbay_model::{CallError, ComponentDescription, Digest, Limit, ToolDefinition};
use toolbay_policy::Permissions;
use toolbay_sandbox::{
    CompileSource, CompiledFile, LazyComponent, PluginContext, PluginSummary, PrepareError,
    PreparedComponent, RawDescription, Recompile, RecompileFuture, Sandbox, StoredRefusal,
    UncachedCode, cores,
};
use toolbay_secrets::{FixedSecrets, ProgramRunner, SecretSpec};

use crate::component_contents::ComponentContents;
use crate::description_limits::DescriptionLimits;
use crate::file_reader::{read_optional, read_source, read_source_with_stamps, read_with_sighting};
use crate::grant::{Grant, GrantSecrets};
use crate::grant_age::GrantAge;
use crate::known_files::KnownFiles;
use crate::load_error::{LoadError, describe_load_error};
use crate::load_policy::{LiveRules, LoadPolicy};
use crate::load_result::{LoadCause, LoadOutcome};
use crate::loaded_component::LoadedComponent;
use crate::mount_policy::{GuardedPath, MountPlan};
use crate::plain_files::PlainFiles;
use crate::plugin::Plugin;
use crate::plugin_folder::{self, FolderListing, PluginFiles, component_path, grant_path};
use crate::skill_memory::SkillMemory;
use crate::writable_paths::WritablePaths;

/// Maximum size of a grant file, in bytes. A larger file is a mistake, such as the wrong file.
const MAX_GRANT_BYTES: u64 = 1 << 20;

/// Maximum number of component files that are in memory at the same time.
const MAX_CONCURRENT_READS: usize = 8;

/// Maximum number of plugins whose secret programs run at the same time.
const MAX_CONCURRENT_SECRET_FETCHES: usize = 4;

/// Minimum size of a large component, in bytes. Large components are compiled one at a time.
const LARGE_COMPONENT_BYTES: usize = 4 << 20;

/// Maximum number of items, and of bytes of schemas, of a stored component that is checked
/// immediately.
const MAX_QUICK_CHECK_ITEMS: usize = 64;
const MAX_QUICK_CHECK_SCHEMA_BYTES: usize = 64 << 10;

/// Compile time after which a compilation is logged.
const LONG_COMPILE_THRESHOLD: Duration = Duration::from_secs(1);

/// Maximum number of cached refusals.
const MAX_CACHED_REFUSALS: usize = 4096;

/// Maximum length of the reason of a cached refusal, in bytes.
const MAX_REASON_BYTES: usize = 2_000;

/// Loader of plugins. Several plugins can load concurrently.
pub struct PluginLoader {
    sandbox: Sandbox,
    /// Live rules. They are replaced as a whole when the configuration changes.
    rules: Arc<LiveRules>,
    folder: PathBuf,
    /// Permits for component files that are read: a thousand files may change at the same time.
    /// They are not held while a file waits to be compiled: files whose code is stored would wait,
    /// too.
    reading: Semaphore,
    /// Permits for compilations. Each compilation uses all cores that it gets, so one core is left
    /// for calls. There are always at least two permits, so that one compilation that takes minutes
    /// does not delay all others.
    compiling: Semaphore,
    /// Single permit for components larger than [`LARGE_COMPONENT_BYTES`].
    large: Semaphore,
    /// Single permit for components whose last load failed, from their compilation until they are
    /// described: however many they are and however long they take, they delay no other component.
    retrying: Semaphore,
    /// Permits for plugins whose secrets are printed by programs: a thousand plugins may load at
    /// the same time.
    asking: Semaphore,
    /// Permits to check descriptions and to read plain files.
    checking: Arc<Semaphore>,
    /// Components in use, by digest, so that identical files are compiled once.
    components: Mutex<HashMap<Digest, Weak<LoadedComponent>>>,
    /// Reasons of refused components, by digest.
    refusals: Mutex<HashMap<Digest, String>>,
    /// Memory budget for the files of skills.
    skill_memory: Arc<SkillMemory>,
    /// Components that need not be read at a server start.
    known_files: KnownFiles,
    /// Runner of programs that print secrets.
    programs: ProgramRunner,
}

impl PluginLoader {
    /// Creates a loader for the plugins in `plugin_folder`.
    pub fn new(sandbox: Sandbox, mut rules: LoadPolicy, folder: PathBuf) -> Self {
        rules.guarded_paths.insert(
            0,
            GuardedPath {
                label: "the plugin folder",
                path: folder.clone(),
                is_secret: false,
            },
        );
        let cores = cores();
        let shelf = SkillMemory::new(rules.description_limits.skills);
        Self {
            sandbox,
            rules: Arc::new(LiveRules {
                rules: ArcSwap::from_pointee(rules),
                changed: Notify::new(),
            }),
            folder,
            reading: Semaphore::new(MAX_CONCURRENT_READS),
            compiling: Semaphore::new(cores.saturating_sub(1).max(2)),
            large: Semaphore::new(1),
            retrying: Semaphore::new(1),
            asking: Semaphore::new(MAX_CONCURRENT_SECRET_FETCHES),
            checking: Arc::new(Semaphore::new(cores.saturating_sub(1).max(1))),
            components: Mutex::default(),
            refusals: Mutex::default(),
            skill_memory: shelf,
            known_files: KnownFiles::default(),
            programs: ProgramRunner::default(),
        }
    }

    /// Uses `explain_program_writes` to start programs that print secrets.
    #[must_use]
    pub fn with_programs(self, programs: ProgramRunner) -> Self {
        Self { programs, ..self }
    }

    /// Returns the rules, which can be replaced while plugins are loaded.
    pub fn rules(&self) -> Arc<LiveRules> {
        Arc::clone(&self.rules)
    }

    /// Waits until the rules have been replaced.
    pub(crate) async fn wait_for_rules_change(&self) {
        self.rules.changed.notified().await;
    }

    /// Returns the plugin folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Loads the record of the components that the previous server read. Blocks.
    pub(crate) fn load_known_files(&self) {
        if let Some(notes) = self.sandbox.folder_notes(&self.absolute_folder()) {
            self.known_files.load_notes(&notes);
        }
    }

    /// Ends the server start: saves the record of the components that were read, for the next
    /// start. Blocks.
    pub(crate) fn save_known_files(&self) {
        if let Some(notes) = self.known_files.finish() {
            self.sandbox
                .save_folder_notes(&self.absolute_folder(), notes);
        }
    }

    fn absolute_folder(&self) -> PathBuf {
        std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone())
    }

    /// Scans the plugin folder. Returns `None` if it does not exist. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub(crate) fn scan(&self) -> std::io::Result<Option<FolderListing>> {
        plugin_folder::scan(&self.folder, &self.rules.current().description_limits)
    }

    /// Loads the plugin `id` from its current files, regardless of the version in service.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub async fn load(self: Arc<Self>, id: String) -> Result<LoadOutcome, LoadError> {
        let loader = Arc::clone(&self);
        let found = tokio::task::spawn_blocking(move || loader.scan());
        let failed =
            |why: String| LoadError::Transient(format!("scanning the plugin folder failed: {why}"));
        let found = found
            .await
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))?;
        let files = found
            .and_then(|mut found| found.plugins.remove(&id))
            .ok_or(LoadError::Gone)?;
        self.load_first(&id, &files, LoadOccasion::default(), &Arc::default())
            .await
    }

    /// Loads the first version of a plugin, after its grant has settled.
    async fn load_first(
        self: &Arc<Self>,
        id: &str,
        files: &PluginFiles,
        occasion: LoadOccasion,
        age: &Arc<GrantAge>,
    ) -> Result<LoadOutcome, LoadError> {
        files.check_grant_name(id)?;
        let (component, mut file) = match files.component {
            Some(_) => match self.load_component(id, occasion, Some(age), false).await? {
                PluginSources::Component(component, Some(file)) => (Some(component), *file),
                PluginSources::Component(_, None) | PluginSources::NotCompiled => {
                    return Err(LoadError::Gone);
                }
            },
            None => (None, self.read_grant(id, age).await?),
        };
        // A plugin without a grant is denied everything: there is nothing to wait for.
        while let Some(settles) = file.settles_at.filter(|_| file.exists) {
            sleep_until(settles).await;
            file = self.read_grant(id, age).await?;
        }
        let (component, grant) = match component {
            Some(component) => (component, file.grant),
            None => codeless_plugin(id, &file.grant)?,
        };
        self.load_under_grant(id, component, grant, files, None)
            .await
    }

    /// Checks that a grant is valid for the component, and applies it with the plain files.
    /// `previous` is the version in service.
    async fn load_under_grant(
        self: &Arc<Self>,
        id: &str,
        component: Arc<LoadedComponent>,
        grant: Grant,
        files: &PluginFiles,
        previous: Option<&Arc<Plugin>>,
    ) -> Result<LoadOutcome, LoadError> {
        let (component, grant) = if component.code.is_some() && grant.names_component() {
            // A plugin can have thousands of tools, and a grant can change each of them.
            let named = id.to_owned();
            let checked = tokio::task::spawn_blocking(move || {
                let (digest, is_command) = (component.digest, component.is_command());
                grant
                    .check_component(&named, digest, &component.contents, is_command)
                    .map(|()| (component, grant))
            });
            let failed = |error| {
                LoadError::Transient(format!("comparing its grant with it failed: {error}"))
            };
            checked
                .await
                .map_err(failed)?
                .map_err(|why| LoadError::Refused(format!("{id}.toml: {why}")))?
        } else {
            (component, grant)
        };
        self.load_with_secrets(id, component, grant, Some(files), previous)
            .await
    }

    /// Fetches the secrets of a grant and applies the grant to the component, with the plain files
    /// of `files` or of the version in service.
    async fn load_with_secrets(
        self: &Arc<Self>,
        id: &str,
        component: Arc<LoadedComponent>,
        grant: Grant,
        files: Option<&PluginFiles>,
        previous: Option<&Arc<Plugin>>,
    ) -> Result<LoadOutcome, LoadError> {
        let refused = |why| LoadError::Refused(format!("{id}.toml: {why}"));
        let secrets = grant.secret_specs().map_err(refused)?;
        let fixed = {
            let _asking = if FixedSecrets::needs_programs(&secrets) {
                // Do not run a program that the plugin itself could have replaced.
                self.check_mounts(id, &grant, &secrets).await?;
                // The semaphore is never closed.
                Some(self.asking.acquire().await)
            } else {
                None
            };
            let place = format!("{id}.toml");
            FixedSecrets::fetch(&secrets, (&place, &self.folder), &self.programs, |name| {
                std::env::var(name).ok()
            })
            .await
        };
        let kept = grant
            .build_secrets(&format!("{id}.toml"), &self.folder, secrets, fixed)
            .map_err(refused)?;
        // A plugin can have thousands of tools, and a grant can change each of them. Opening
        // mounted folders can block.
        let (this, id, files) = (Arc::clone(self), id.to_owned(), files.cloned());
        let previous = previous
            .map(|plugin| Arc::clone(&plugin.files))
            .unwrap_or_default();
        let permit = match &files {
            Some(files) => self.acquire_plain_file_permit(files).await,
            None => None,
        };
        let loaded = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let (plugin, remarks) = this.apply_grant(id, component, grant, kept)?;
            let plain = match &files {
                Some(files) => this.read_plain_files(&plugin, files, &previous)?,
                None => previous,
            };
            Ok(LoadOutcome {
                plugin: Arc::new(plugin.with_files(plain)),
                remarks,
            })
        });
        let failed = |error| LoadError::Transient(format!("applying its grant failed: {error}"));
        loaded.await.unwrap_or_else(|error| Err(failed(error)))
    }

    /// Reads a plugin's grant, on a blocking thread.
    async fn read_grant(&self, id: &str, age: &Arc<GrantAge>) -> Result<GrantFile, LoadError> {
        let (folder, id, age) = (self.folder.clone(), id.to_owned(), Arc::clone(age));
        let read = tokio::task::spawn_blocking(move || read_grant_file(&folder, &id, &age));
        read.await.unwrap_or_else(|error| {
            Err(LoadError::Transient(format!(
                "reading its grant failed: {error}"
            )))
        })
    }

    /// Loads the plain files of a plugin whose other files are unchanged. `remarks` are the
    /// warnings about those other files.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    pub(crate) async fn load_plain_files(
        self: Arc<Self>,
        files: PluginFiles,
        previous: Arc<Plugin>,
        remarks: Vec<String>,
    ) -> Result<LoadOutcome, LoadError> {
        let permit = self.acquire_plain_file_permit(&files).await;
        let loaded = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let plain = self.read_plain_files(&previous, &files, &previous.files)?;
            Ok(LoadOutcome {
                plugin: Arc::new(previous.with_files(plain)),
                remarks,
            })
        });
        let failed =
            |error| LoadError::Transient(format!("reading its plain files failed: {error}"));
        loaded.await.unwrap_or_else(|error| Err(failed(error)))
    }

    /// Waits for a permit to read plain files, if there are any. Parsing prompts and computing
    /// digests of skills takes CPU time, and any number of folders may change at the same time.
    async fn acquire_plain_file_permit(&self, files: &PluginFiles) -> Option<OwnedSemaphorePermit> {
        files
            .prompts
            .as_ref()
            .or(files.resources.as_ref())
            .or(files.skill.as_ref())?;
        // The semaphore is never closed.
        Arc::clone(&self.checking).acquire_owned().await.ok()
    }

    fn read_plain_files(
        &self,
        plugin: &Plugin,
        files: &PluginFiles,
        previous: &PlainFiles,
    ) -> Result<Arc<PlainFiles>, LoadError> {
        let output = plugin.terms.context.limits.output;
        PlainFiles::load(
            &plugin.id,
            &self.folder,
            files,
            &self.rules.current().description_limits,
            output,
            &self.skill_memory,
            previous,
        )
        .map(Arc::new)
    }

    /// Applies a grant to a component. Returns the plugin without plain files, and warnings.
    fn apply_grant(
        &self,
        id: String,
        component: Arc<LoadedComponent>,
        grant: Grant,
        mut kept: GrantSecrets,
    ) -> Result<(Plugin, Vec<String>), LoadError> {
        kept.remarks.extend(kept.secrets.missing_value_warnings());
        let (mut terms, remarks) = self.rules.current().clamp_grant(&component, grant, kept);
        let requests = self
            .sandbox
            .plugin_http(&terms.context.permissions, &terms.context.limits);
        let requests = requests
            .map_err(|why| LoadError::Refused(format!("{id}.toml: permissions.http: {why}")))?;
        let permissions = &terms.context.permissions;
        let (connections, key_value) = (
            self.sandbox.plugin_connections(permissions),
            self.sandbox.key_value(&id, permissions),
        );
        terms.set_shared_state(&requests, &connections, &key_value);
        let mounts;
        (terms.mount_plan, mounts) = self.open_mounts(&id, &terms.context)?;
        let remarks = remarks.iter().map(|remark| format!("{id}.toml: {remark}"));
        let remarks = component
            .remarks
            .iter()
            .cloned()
            .chain(remarks)
            .chain(mounts)
            .collect();
        Ok((Plugin::new(id, component, Arc::default(), terms), remarks))
    }

    /// Checks the folders that a plugin mounts, on a blocking thread.
    async fn check_mounts(
        self: &Arc<Self>,
        id: &str,
        grant: &Grant,
        secrets: &[SecretSpec],
    ) -> Result<(), LoadError> {
        let (loader, id) = (Arc::clone(self), id.to_owned());
        let (permissions, secrets) = (grant.permissions.clone(), secrets.to_owned());
        let checked = tokio::task::spawn_blocking(move || {
            let places = MountPlan::resolve(&id, &loader.folder, &permissions, &secrets);
            places
                .check(&loader.rules.current().guarded_paths)
                .map(drop)
                .map_err(LoadError::Refused)
        });
        checked.await.unwrap_or_else(|error| {
            Err(LoadError::Transient(format!(
                "checking its mounts failed: {error}"
            )))
        })
    }

    /// Checks and opens the folders that a plugin mounts. Returns their locations, and warnings.
    fn open_mounts(
        &self,
        id: &str,
        environment: &PluginContext,
    ) -> Result<(MountPlan, Vec<String>), LoadError> {
        let secrets = environment.secrets.secrets();
        let places = MountPlan::resolve(id, &self.folder, &environment.permissions, secrets);
        let rules = self.rules.current();
        let mut remarks = places
            .check(&rules.guarded_paths)
            .map_err(LoadError::Refused)?;
        if let Some(reach) = &rules.reachable_files {
            remarks.extend(places.check_reach(reach).map_err(LoadError::Refused)?);
        }
        if let Some(writable) = &rules.writable_paths {
            remarks.extend(
                places
                    .check_writable(writable)
                    .map_err(LoadError::Refused)?,
            );
        }
        remarks.extend(environment.roots.open());
        Ok((places, remarks))
    }

    /// Reads a plugin's files, computes the digest and looks for an existing component, on a
    /// blocking thread. If the files are known from the previous start, the component is not read.
    /// Without an `age`, the grant is not read.
    async fn probe(
        self: &Arc<Self>,
        id: &str,
        occasion: LoadOccasion,
        age: Option<&Arc<GrantAge>>,
    ) -> Result<(Digest, ProbedComponent, Option<GrantFile>), LoadError> {
        let LoadOccasion { known, cause } = occasion;
        let postpones_slow = cause
            == LoadCause::Start {
                postpones_slow: true,
            };
        let (id, loader, age) = (id.to_owned(), Arc::clone(self), age.map(Arc::clone));
        let looked = tokio::task::spawn_blocking(move || {
            let (folder, limit) = (
                &loader.folder,
                loader.rules.current().max_component_size.as_u64(),
            );
            let grant = age
                .map(|age| read_grant_file(folder, &id, &age))
                .transpose();
            if let Some(digest) =
                known.and_then(|files| loader.known_files.find_digest(&id, &files, limit))
                && let Some(looked) = loader.probe_digest(&id, digest, postpones_slow)?
            {
                return Ok((digest, looked, grant?));
            }
            let (source, stamps) = read_source_with_stamps(&component_path(folder, &id), limit)?;
            let grant = grant?;
            let digest = source.digest();
            loader.known_files.record(&id, stamps, digest);
            let looked = loader.probe_digest(&id, digest, postpones_slow)?;
            let looked = looked.unwrap_or(ProbedComponent::New(source));
            Ok((digest, looked, grant))
        });
        looked.await.unwrap_or_else(|error| {
            Err(LoadError::Transient(format!("reading it failed: {error}")))
        })
    }

    /// Returns the component in use with this digest, or the stored one. Another server may have
    /// stored it.
    ///
    /// # Errors
    ///
    /// The component was refused before, by this server or another one. If `postpones_slow`, also a
    /// component whose load took too long, which is to be retried.
    fn probe_digest(
        self: &Arc<Self>,
        id: &str,
        digest: Digest,
        postpones_slow: bool,
    ) -> Result<Option<ProbedComponent>, LoadError> {
        if let Some(component) = self.find_in_use(digest)? {
            return Ok(Some(ProbedComponent::Ready(component)));
        }
        let origin: Arc<dyn Recompile> = Arc::new(ComponentOrigin {
            loader: Arc::clone(self),
            id: id.to_owned(),
        });
        let Some((callable, description, about)) = self.sandbox.find_cached(digest, &origin) else {
            return match self
                .sandbox
                .find_refusal(digest, &self.refusal_conditions())
            {
                Some(refusal) if refusal.is_final => Err(LoadError::Refused(refusal.reason)),
                Some(refusal) if postpones_slow => Err(LoadError::Transient(refusal.reason)),
                _ => Ok(None),
            };
        };
        let stored = StoredComponent {
            digest,
            code: callable,
            description,
            about,
        };
        if !stored.is_quick_to_check() {
            return Ok(Some(ProbedComponent::Unchecked(Box::new(stored))));
        }
        let checked = stored.check(&self.rules.current().description_limits);
        let component =
            checked.map_err(|why| self.cache_refusal(digest, LoadError::Refused(why)))?;
        Ok(Some(ProbedComponent::Ready(
            self.intern_component(component),
        )))
    }

    /// Returns the component in the file, and the grant as [`PluginLoader::probe`] reads it. The
    /// component may be in use already, or in the compile cache. Otherwise it is compiled now,
    /// unless it `may_stay_unknown`.
    async fn load_component(
        self: &Arc<Self>,
        id: &str,
        occasion: LoadOccasion,
        age: Option<&Arc<GrantAge>>,
        may_stay_unknown: bool,
    ) -> Result<PluginSources, LoadError> {
        // The semaphores are never closed.
        let reading = self.reading.acquire().await.ok();
        let is_retry = occasion.cause == LoadCause::Retry;
        let (digest, looked, grant) = self.probe(id, occasion, age).await?;
        let component = match looked {
            ProbedComponent::New(_) if may_stay_unknown => return Ok(PluginSources::NotCompiled),
            // Boxed to keep this future small: thousands of loads that find a stored component wait
            // for their turn.
            ProbedComponent::New(source) => {
                Box::pin(self.compile_in_turn(id, (digest, source), reading, is_retry)).await?
            }
            ProbedComponent::Ready(component) => component,
            ProbedComponent::Unchecked(stored) => self.check_stored(digest, stored).await?,
        };
        Ok(PluginSources::Component(component, grant.map(Box::new)))
    }

    /// Checks the long description of a stored component.
    async fn check_stored(
        self: &Arc<Self>,
        digest: Digest,
        stored: Box<StoredComponent>,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        let checked = self
            .run_check(move |loader| stored.check(&loader.rules.current().description_limits))
            .await;
        let component = checked.map_err(|error| self.cache_refusal(digest, error))?;
        Ok(self.intern_component(component))
    }

    /// Compiles and describes a component when it gets its permits. Until then, its file is neither
    /// kept in memory nor counted by `reading`: it is read again.
    async fn compile_in_turn(
        self: &Arc<Self>,
        id: &str,
        (digest, source): (Digest, CompileSource),
        reading: Option<SemaphorePermit<'_>>,
        is_retry: bool,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        if let Some(permits) = self.try_compile_permits(source.file.len(), is_retry) {
            drop(reading);
            return self.compile_and_describe(id, digest, source, permits).await;
        }
        let length = source.file.len();
        drop((source, reading));
        let permits = self.acquire_compile_permits(length, is_retry).await;
        // Another load may have compiled it in the meantime, and the file may be another one.
        let (digest, looked, _no_grant) = self.probe(id, LoadOccasion::default(), None).await?;
        match looked {
            ProbedComponent::Ready(component) => Ok(component),
            ProbedComponent::Unchecked(stored) => self.check_stored(digest, stored).await,
            ProbedComponent::New(source)
                if permits.large.is_none() && source.file.len() > LARGE_COMPONENT_BYTES =>
            {
                // The next scan finds that it has changed.
                Err(LoadError::Gone)
            }
            ProbedComponent::New(source) => {
                self.compile_and_describe(id, digest, source, permits).await
            }
        }
    }

    /// Compiles a component and requests its description.
    async fn compile_and_describe(
        self: &Arc<Self>,
        id: &str,
        digest: Digest,
        source: CompileSource,
        permits: CompilePermits<'_>,
    ) -> Result<Arc<LoadedComponent>, LoadError> {
        let CompilePermits {
            retrying: _retrying,
            large,
            compiling,
        } = permits;
        let compiled = self.compile(id, source).await;
        drop((large, compiling));
        let compiled = self.finish_step(digest, compiled).await?;
        let (mut compiled, listed) = self
            .finish_step(digest, self.describe(compiled).await)
            .await?;
        let work = move |loader: &Self| {
            let mut description = compiled.description(listed);
            loader
                .rules
                .current()
                .description_limits
                .check(&description)?;
            let contents = ComponentContents::validate_or_leave_out(&mut description)?;
            let (prepared, scratch, about) = compiled.into_parts();
            let remarks = description.remarks.clone();
            let said = about.description.clone();
            loader
                .sandbox
                .add_to_cache(digest, scratch, &prepared, description, about);
            Ok(LoadedComponent {
                digest,
                code: Some(Arc::new(prepared.into())),
                contents,
                about: said,
                remarks,
            })
        };
        let checked = self.run_check(work).await.map_err(FailedStep::of_check);
        let component = self.finish_step(digest, checked).await?;
        Ok(self.intern_component(component))
    }

    /// Recompiles the component of the plugin `id`, whose stored code can no longer be used.
    async fn recompile_component(
        self: &Arc<Self>,
        id: &str,
        digest: Digest,
    ) -> Result<(PreparedComponent, UncachedCode), LoadError> {
        let _reading = self.reading.acquire().await;
        let (path, limit) = (
            component_path(&self.folder, id),
            self.rules.current().max_component_size.as_u64(),
        );
        let read = tokio::task::spawn_blocking(move || {
            let source = read_source(&path, limit)?;
            Ok((source.digest(), source))
        });
        let failed = |error| LoadError::Transient(format!("reading it failed: {error}"));
        let (found, source) = read.await.map_err(failed)??;
        if found != digest {
            return Err(LoadError::Transient(
                "its file has changed, and the new version is not loaded yet".to_owned(),
            ));
        }
        if let Some(why) = self.cached_refusal(digest) {
            return Err(LoadError::Refused(why));
        }
        let permits = self.acquire_compile_permits(source.file.len(), false).await;
        let compiled = self.compile(id, source).await;
        drop(permits);
        let (prepared, scratch, _about) = self.finish_step(digest, compiled).await?.into_parts();
        Ok((prepared, scratch))
    }

    /// Waits for the permits to compile a component of this length in bytes. Large components are
    /// compiled one at a time, because each takes hundreds of megabytes.
    async fn acquire_compile_permits(&self, length: usize, is_retry: bool) -> CompilePermits<'_> {
        // The semaphores are never closed. All loads acquire them in this order.
        let retrying = if is_retry {
            self.retrying.acquire().await.ok()
        } else {
            None
        };
        let large = if length > LARGE_COMPONENT_BYTES {
            self.large.acquire().await.ok()
        } else {
            None
        };
        CompilePermits {
            retrying,
            large,
            compiling: self.compiling.acquire().await.ok(),
        }
    }

    /// Returns the permits to compile a component of this length in bytes, if nothing else waits
    /// for them.
    fn try_compile_permits(&self, length: usize, is_retry: bool) -> Option<CompilePermits<'_>> {
        let retrying = if is_retry {
            Some(self.retrying.try_acquire().ok()?)
        } else {
            None
        };
        let large = if length > LARGE_COMPONENT_BYTES {
            Some(self.large.try_acquire().ok()?)
        } else {
            None
        };
        Some(CompilePermits {
            retrying,
            large,
            compiling: Some(self.compiling.try_acquire().ok()?),
        })
    }

    async fn compile(&self, id: &str, source: CompileSource) -> Result<CompiledFile, FailedStep> {
        let size = ByteSize::b(source.file.len() as u64).display().iec();
        let mut compiling = std::pin::pin!(self.sandbox.compile(source));
        let compiled = match tokio::time::timeout(LONG_COMPILE_THRESHOLD, compiling.as_mut()).await
        {
            Ok(compiled) => compiled,
            Err(_elapsed) => {
                tracing::info!(plugin = id, %size, "compiling; this can take minutes for a large plugin");
                compiling.await
            }
        };
        compiled.map_err(FailedStep::of_compilation)
    }

    /// Requests the plugin's description, on the guest runtime.
    async fn describe(
        &self,
        compiled: CompiledFile,
    ) -> Result<(CompiledFile, RawDescription), FailedStep> {
        let (sandbox, limits) = (
            self.sandbox.clone(),
            self.rules.current().describe_limits.clone(),
        );
        let described = self.sandbox.spawn(async move {
            let finished = sandbox.describe(&compiled, &limits).await;
            let listed = finished
                .result
                .map_err(|error| FailedStep::of_description(&error))?;
            match listed.refused() {
                Some(why) => Err(FailedStep::of_check(LoadError::Refused(why.to_owned()))),
                None => Ok((compiled, listed)),
            }
        });
        let failed =
            |error| LoadError::Transient(format!("listing what it offers failed: {error}"));
        described
            .await
            .map_err(|error| FailedStep::of_check(failed(error)))?
    }

    /// Checks a plugin's description on a blocking thread, because schemas may be slow to compile.
    /// Only a few checks run concurrently, so that the threads of calls and of the protocol keep
    /// their cores.
    async fn run_check<T: Send + 'static>(
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
            .map_err(|error| {
                LoadError::Transient(format!("checking what it offers failed: {error}"))
            })?
            .map_err(LoadError::Refused)
    }

    /// Shares a component with plugins whose files are identical.
    fn intern_component(&self, component: LoadedComponent) -> Arc<LoadedComponent> {
        let component = Arc::new(component);
        let mut components = self.lock_components();
        components.retain(|_, known| known.strong_count() > 0);
        components.insert(component.digest, Arc::downgrade(&component));
        component
    }

    /// Caches a refusal in memory and, if the next start can use it, in the compile cache.
    async fn finish_step<T>(
        self: &Arc<Self>,
        digest: Digest,
        result: Result<T, FailedStep>,
    ) -> Result<T, LoadError> {
        let FailedStep { error, memory } = match result {
            Ok(done) => return Ok(done),
            Err(failed) => failed,
        };
        let error = self.cache_refusal(digest, error);
        let is_final = match memory {
            FailureMemory::Process => return Err(error),
            FailureMemory::Slow => false,
            // The machine may be to blame, or the guest may only quote such an error.
            FailureMemory::Lasting => !error.reason().contains("(os error "),
        };
        let refusal = StoredRefusal {
            reason: error.reason().to_owned(),
            is_final,
        };
        let loader = Arc::clone(self);
        let store = move || {
            loader
                .sandbox
                .store_refusal(digest, &loader.refusal_conditions(), &refusal)
        };
        if let Err(error) = tokio::task::spawn_blocking(store).await {
            tracing::debug!(%digest, "storing a refusal failed: {error}");
        }
        Err(error)
    }

    /// Returns the rules that decide whether a component is refused. Those about files and grants
    /// are not among them: they are applied without the compile cache.
    fn refusal_conditions(&self) -> String {
        let rules = self.rules.current();
        let DescriptionLimits {
            tools,
            prompts,
            resources,
            schemas,
            size,
            skills: _,
        } = rules.description_limits;
        let (schemas, size) = (schemas.as_u64(), size.as_u64());
        let limits = serde_json::to_string(&rules.describe_limits).unwrap_or_default();
        format!("{limits} {tools} {prompts} {resources} {schemas} {size}")
    }

    /// Caches a refusal by digest: the same bytes would be refused again, possibly after minutes of
    /// work. Returns the error with a cleaned reason.
    fn cache_refusal(&self, digest: Digest, mut error: LoadError) -> LoadError {
        if let LoadError::Refused(why) | LoadError::Transient(why) = &mut error {
            // The reason may quote the plugin: a name, a list of imports.
            *why = clean_line(why, MAX_REASON_BYTES);
        }
        if let LoadError::Refused(why) = &error {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            if refusals.len() >= MAX_CACHED_REFUSALS {
                refusals.clear();
            }
            refusals.insert(digest, why.clone());
        }
        error
    }

    /// Returns the component in use with this digest.
    ///
    /// # Errors
    ///
    /// The reason why the component was refused before.
    fn find_in_use(&self, digest: Digest) -> Result<Option<Arc<LoadedComponent>>, LoadError> {
        if let Some(why) = self.cached_refusal(digest) {
            return Err(LoadError::Refused(why));
        }
        Ok(self.lock_components().get(&digest).and_then(Weak::upgrade))
    }

    fn cached_refusal(&self, digest: Digest) -> Option<String> {
        self.refusals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&digest)
            .cloned()
    }

    fn lock_components(&self) -> MutexGuard<'_, HashMap<Digest, Weak<LoadedComponent>>> {
        self.components
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Circumstances of a load.
#[derive(Debug, Default)]
struct LoadOccasion {
    /// The files at a server start: a component that is known from the previous start is not read.
    known: Option<PluginFiles>,
    cause: LoadCause,
}

/// Permits to compile a component.
struct CompilePermits<'a> {
    /// Held until the component is described.
    retrying: Option<SemaphorePermit<'a>>,
    large: Option<SemaphorePermit<'a>>,
    compiling: Option<SemaphorePermit<'a>>,
}

/// How long the reason of a failed step is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureMemory {
    /// By this process, if it is a refusal.
    Process,
    /// In the compile cache: the step took too long, so the next start does not wait for it.
    Slow,
    /// In the compile cache: the component is refused without being tried.
    Lasting,
}

/// Failed step of a load.
struct FailedStep {
    error: LoadError,
    memory: FailureMemory,
}

impl FailedStep {
    fn of_compilation(error: PrepareError) -> Self {
        let memory = if error.is_lasting() {
            FailureMemory::Lasting
        } else if error.is_exhausted() {
            FailureMemory::Slow
        } else {
            FailureMemory::Process
        };
        let error = match error {
            PrepareError::Incomplete | PrepareError::Empty => {
                LoadError::Incomplete(error.to_string())
            }
            PrepareError::Transient(_) | PrepareError::TimedOut(_) | PrepareError::WriteFailed => {
                LoadError::Transient(error.to_string())
            }
            error => LoadError::Refused(error.to_string()),
        };
        Self { error, memory }
    }

    fn of_description(error: &CallError) -> Self {
        let failed = Self::of_check(describe_load_error(error));
        let is_slow = matches!(
            error,
            CallError::Limit {
                limit: Limit::Deadline(_),
                ..
            }
        );
        if is_slow {
            Self {
                memory: FailureMemory::Slow,
                ..failed
            }
        } else {
            failed
        }
    }

    /// Returns the failure of a step whose result depends on the component alone.
    fn of_check(error: LoadError) -> Self {
        let is_refusal = matches!(error, LoadError::Refused(_));
        Self {
            error,
            memory: if is_refusal {
                FailureMemory::Lasting
            } else {
                FailureMemory::Process
            },
        }
    }
}

/// Component and grant of a plugin, as far as they are loaded.
enum PluginSources {
    /// The component, and the grant if it was requested.
    Component(Arc<LoadedComponent>, Option<Box<GrantFile>>),
    /// The component must be compiled first.
    NotCompiled,
}

/// State of a component before anything is compiled.
enum ProbedComponent {
    /// The component is loaded and checked.
    Ready(Arc<LoadedComponent>),
    /// The component is stored, but checking its long description takes a while.
    Unchecked(Box<StoredComponent>),
    /// The component is unknown.
    New(CompileSource),
}

/// Stored component that is not checked yet.
struct StoredComponent {
    digest: Digest,
    code: LazyComponent,
    description: ComponentDescription,
    about: PluginSummary,
}

impl StoredComponent {
    /// Returns whether checking its description takes a fraction of a millisecond.
    fn is_quick_to_check(&self) -> bool {
        let ComponentDescription {
            tools,
            prompts,
            resources,
            templates,
            ..
        } = &self.description;
        let items = tools.len() + prompts.len() + resources.len() + templates.len();
        let schemas = tools
            .iter()
            .flat_map(|tool| [Some(&tool.input_schema), tool.output_schema.as_ref()]);
        // Even a short pattern can take long to compile.
        let mut patterns = schemas
            .flatten()
            .filter(|text| text.contains("pattern") || text.contains("\\u"));
        items <= MAX_QUICK_CHECK_ITEMS
            && tools
                .iter()
                .map(ToolDefinition::schema_bytes)
                .sum::<usize>()
                <= MAX_QUICK_CHECK_SCHEMA_BYTES
            && patterns.next().is_none()
    }

    fn check(self, bounds: &DescriptionLimits) -> Result<LoadedComponent, String> {
        let Self {
            digest,
            code: callable,
            description,
            about,
        } = self;
        bounds.check(&description)?;
        let (callable, remarks) = (Some(Arc::new(callable)), description.remarks.clone());
        Ok(LoadedComponent {
            digest,
            code: callable,
            contents: ComponentContents::from_stored(description)?,
            about: about.description,
            remarks,
        })
    }
}

/// Origin of a stored component, from which it can be recompiled.
struct ComponentOrigin {
    loader: Arc<PluginLoader>,
    id: String,
}

impl Recompile for ComponentOrigin {
    fn recompile(&self, digest: Digest) -> RecompileFuture {
        let (loader, id) = (Arc::clone(&self.loader), self.id.clone());
        Box::pin(async move {
            loader
                .recompile_component(&id, digest)
                .await
                .map_err(|error| error.reason().to_owned())
        })
    }
}

/// Returns a component without code, and the part of the grant that applies to plain files.
///
/// # Errors
///
/// The grant restricts code: it was written for a component that does not exist.
fn codeless_plugin(id: &str, grant: &Grant) -> Result<(Arc<LoadedComponent>, Grant), LoadError> {
    let keys = [
        ("enabled_tools", grant.enabled_tools.is_some()),
        ("component", grant.component.is_some()),
        ("tools", !grant.tools.is_empty()),
    ];
    if let Some((key, _)) = keys.into_iter().find(|(_, is_set)| *is_set) {
        return Err(LoadError::Refused(format!(
            "{id}.toml: {key}: there is no {id}.wasm, so the plugin has no tools; remove `{key}`, or add {id}.wasm"
        )));
    }
    let Grant {
        prefix,
        separator,
        limits,
        rate_limit,
        permissions,
        digest,
        ..
    } = grant.clone();
    let permissions = Permissions {
        ui: permissions.ui,
        ..Permissions::default()
    };
    let kept = Grant {
        prefix,
        separator,
        limits,
        rate_limit,
        permissions,
        digest,
        ..Grant::default()
    };
    let mut component = LoadedComponent::without_code(ComponentContents::default());
    if kept != *grant {
        let idle = format!(
            "{id}.toml: there is no {id}.wasm: of the grant, only prefix, separator, limits, rate_limit and permissions.ui have an effect"
        );
        component.remarks.push(idle);
    }
    Ok((Arc::new(component), kept))
}

/// A plugin's grant as read from its file.
struct GrantFile {
    grant: Grant,
    /// Time at which the grant will have been unchanged for long enough to give rights; `None` if
    /// it already has.
    settles_at: Option<Instant>,
    /// True if the file exists.
    exists: bool,
}

/// Reads a plugin's grant, and records in `age` since when it has been unchanged. Blocks.
fn read_grant_file(folder: &Path, id: &str, age: &GrantAge) -> Result<GrantFile, LoadError> {
    let read = read_with_sighting(&grant_path(folder, id), MAX_GRANT_BYTES)?;
    let settles = age.settle_time(read.as_ref().map(|(_, seen)| seen));
    let exists = read.is_some();
    let grant = match read {
        Some((text, _)) => parse_grant(folder, id, &text)?,
        None => Grant::default(),
    };
    Ok(GrantFile {
        grant,
        settles_at: settles,
        exists,
    })
}

fn parse_grant(folder: &Path, id: &str, text: &str) -> Result<Grant, LoadError> {
    Grant::parse(&format!("{id}.toml"), text, folder).map_err(LoadError::Refused)
}

/// Returns a plugin's grant, or the default grant if there is no file. Blocks.
fn load_grant(folder: &Path, id: &str) -> Result<Grant, LoadError> {
    match read_grant(folder, id)? {
        Some(text) => parse_grant(folder, id, &text),
        None => Ok(Grant::default()),
    }
}

/// Returns whether the current grant of the plugin `id` names this program as the source of a
/// secret. `command_line` are the program and its arguments. Returns `false` if the plugin could
/// have replaced the program, or if the server, which may write to `writable_paths`, could have
/// replaced the program or the grant. Blocks.
pub fn names_program(folder: &Path, id: &str, words: &[String], writable: &WritablePaths) -> bool {
    let Ok(grant) = load_grant(folder, id) else {
        return false;
    };
    let secrets = grant.secret_specs().unwrap_or_default();
    let named = secrets
        .iter()
        .any(|secret| secret.source.command_line().as_deref() == Some(words));
    let is_writable = || {
        let named: Vec<_> = secrets
            .iter()
            .filter(|secret| secret.source.command_line().as_deref() == Some(words))
            .cloned()
            .collect();
        let grant = grant_path(folder, id);
        !writable.explain_program_writes(folder, &named).is_empty()
            || writable.explain_write("the grant", &grant).is_some()
    };
    named
        && !is_writable()
        && MountPlan::resolve(id, folder, &grant.permissions, &secrets)
            .check(&[])
            .is_ok()
}

/// Returns the text of a plugin's grant, if the file exists.
///
/// # Errors
///
/// The file cannot be read, or is too large.
pub fn read_grant(folder: &Path, id: &str) -> Result<Option<String>, LoadError> {
    read_optional(&grant_path(folder, id), MAX_GRANT_BYTES)
}

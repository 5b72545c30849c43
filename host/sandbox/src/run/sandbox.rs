//! The sandbox: the engines, the compiler, the compile cache and the guests' runtime.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use toolbay_model::text::join_lines;
use toolbay_model::{ComponentDescription, Digest, GuestServerProtocol, Limits};
use toolbay_outgoing::{
    ConnectorOptions, HttpConnector, LookupLimiter, PluginClient, SystemResolver,
};
use toolbay_policy::Permissions;
use toolbay_state::StateStore;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::cache::{self, CachedComponent, CompileCache, StoredCode, StoredRefusal};
use crate::capability::files::descriptors::{CallDescriptors, DescriptorTable};
use crate::capability::files::scratch_directories::TemporaryFolders;
use crate::compile::compile_counts::{CompilationCounts, CompileCounts};
use crate::compile::compiler::{CompileLimits, Compiler};
use crate::compile::compiler_process::WorkerNotes;
use crate::compile::engine::EpochTicker;
use crate::compile::source::CompileSource;
use crate::component::plugin_summary::PluginSummary;
use crate::component::preamble::check_preamble;
use crate::component::prepare_error::PrepareError;
use crate::context::keyvalue::KeyValue;
use crate::context::plugin_connections::PluginConnections;
use crate::context::plugin_http::PluginHttp;
use crate::context::usage_ledger::LedgerRegistry;
use crate::prepare::compiled::{CompiledFile, UncachedCode};
use crate::prepare::component_summary::ComponentSummary;
use crate::prepare::engine_pair::{EnginePair, LinkedEngine};
use crate::prepare::prepared_component::PreparedComponent;
use crate::run::cores::cores;
use crate::run::dispatcher::{self, CallDispatcher};
use crate::run::stored_code::{CachedCode, CachedPlugin, LostCode, OpenedCode, UnopenedCode};
use crate::store::error;

/// Maximum number of threads for blocking host calls of guests, such as file I/O and name
/// resolution. Bounded, because a file system that hangs blocks them.
const BLOCKING_THREADS: usize = 64;

/// Maximum number of plugins that list their offers at the same time, when they are loaded. They
/// have separate slots, so that loading many plugins takes no slots from calls.
const MAX_CONCURRENT_DESCRIBES: u32 = 8;

/// Settings of a [`Sandbox`].
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// Maximum number of concurrent calls, whether they compute or wait. The instance pool has a
    /// slot for each call, and a few more for listing what plugins offer. 0 means no pool and no
    /// bound.
    pub max_calls: u32,
    /// Number of these calls that are expected to wait when all of them are active. If the process
    /// has too few file descriptors for the files of all calls, the maximum is reduced by up to
    /// this number.
    pub max_waiting_calls: u32,
    /// Size of a guest's native stack.
    pub stack_size: ByteSize,
    /// The highest limits that a call can have. They determine the size of the pool's slots.
    pub max_limits: Limits,
    /// If set, components may have async functions.
    pub allow_async: bool,
    /// Path of the `toolbay` executable that compiles in a child process. `None` compiles in this
    /// process, without limits; only for benchmarks and fuzzing.
    pub compiler: Option<PathBuf>,
    /// Resource limits of the compiler.
    pub compile_limits: CompileLimits,
    /// Directory and maximum size of the compile cache; `None` disables it.
    pub cache: Option<(PathBuf, ByteSize)>,
    /// Options of the HTTP client for plugins.
    pub http_client: ConnectorOptions,
    /// Store for the plugins' state; `None` if the server has none.
    pub state: Option<Arc<dyn StateStore>>,
    /// Directory for the temporary directories of calls. Created when a call first needs one.
    pub scratch: PathBuf,
}

/// Handle of the engines and of the guests' runtime. Cloning is cheap.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<SandboxState>,
}

struct SandboxState {
    engines: EnginePair,
    max_calls: usize,
    /// Maximum memory of a component.
    max_memory: ByteSize,
    /// Permits for listing what a plugin offers.
    describe_permits: Semaphore,
    compiler: Compiler,
    descriptors: Arc<DescriptorTable>,
    usage_ledgers: Arc<LedgerRegistry>,
    scratch_directories: Arc<TemporaryFolders>,
    http_client: ConnectorOptions,
    state: Option<Arc<dyn StateStore>>,
    /// The HTTP client of plugins, or the reason why it is unavailable. Created for the first
    /// plugin that may send requests.
    connector: OnceLock<Result<Arc<HttpConnector>, String>>,
    /// Resolver for the host names that plugins connect to.
    lookups: Arc<LookupLimiter>,
    /// The compile cache, or the reason why it is off.
    cache: Result<Arc<CompileCache>, String>,
    /// The programs and settings that decide which components are refused; `None` if they are not
    /// known, and refusals are not stored.
    refusal_basis: Option<String>,
    compilations: CompilationCounts,
    dispatcher: CallDispatcher,
    /// Runtime of the guests. Guests run on separate threads, so that the operating system keeps
    /// scheduling the protocol's threads. `None` only during drop.
    runtime: Option<Runtime>,
}

impl Sandbox {
    /// Starts the engines and the guests' runtime. Logs a warning if the compile cache is unusable.
    ///
    /// # Errors
    ///
    /// Fails if the system does not provide the threads or the memory.
    pub fn new(settings: SandboxSettings) -> anyhow::Result<Self> {
        let SandboxSettings {
            max_calls: calls,
            max_waiting_calls: waiting,
            stack_size: stack,
            max_limits: ceiling,
            allow_async: concurrent,
            compiler,
            compile_limits: compile,
            cache,
            http_client,
            state,
            scratch,
        } = settings;
        let slots = if calls == 0 {
            0
        } else {
            calls.saturating_add(MAX_CONCURRENT_DESCRIBES)
        };
        let most_memory = ceiling.memory;
        let basis = refusal_basis(compiler.as_deref(), &compile, &ceiling, stack, concurrent);
        let engines = EnginePair::new(slots, stack, ceiling, concurrent)?;
        let slots = engines.slots().map_or(usize::MAX, |slots| {
            slots.saturating_sub(MAX_CONCURRENT_DESCRIBES) as usize
        });
        let calls = slots.min(DescriptorTable::max_calls(calls as usize, waiting as usize));
        let cache = match cache {
            Some((folder, size)) => {
                let opened = CompileCache::open(&folder, &engines.sync_engine().engine, size);
                opened
                    .map(Arc::new)
                    .inspect_err(|why| tracing::warn!("{why}"))
            }
            None => Err("the compile cache is off: compile.cache_folder is empty".to_owned()),
        };
        let compiler = Compiler::new(compiler, stack, concurrent, compile)
            .map_err(|error| anyhow!("wasmtime rejected the configuration: {error:#}"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("toolbay-guest")
            .worker_threads(cores())
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            // Calls arrive through the injection queue, so check it often.
            .global_queue_interval(4)
            .build()
            .context("failed to start the guests' runtime")?;
        let entrance = CallDispatcher::start(runtime.handle())
            .context("failed to prepare the guests' runtime for calls")?;
        let describing = Semaphore::new(MAX_CONCURRENT_DESCRIBES as usize);
        let scratches = Arc::new(TemporaryFolders::new(scratch, calls));
        let swept = Arc::clone(&scratches);
        let tidied = cache.as_ref().ok().map(Arc::clone);
        runtime.spawn_blocking(move || {
            swept.remove_leftovers();
            if let Some(cache) = tidied {
                cache.tidy();
            }
        });
        let descriptors = Arc::new(DescriptorTable::of_process(calls));
        let inner = SandboxState {
            engines,
            max_calls: calls,
            max_memory: most_memory,
            describe_permits: describing,
            compiler,
            descriptors,
            usage_ledgers: Arc::default(),
            scratch_directories: scratches,
            cache,
            refusal_basis: basis,
            compilations: CompilationCounts::default(),
            http_client,
            state,
            connector: OnceLock::new(),
            lookups: Arc::new(LookupLimiter::new(Arc::new(SystemResolver))),
            dispatcher: entrance,
            runtime: Some(runtime),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Returns the HTTP client of a plugin with these permissions. All calls of the plugin share
    /// it. The first use blocks while it reads the certificates that the system trusts.
    ///
    /// # Errors
    ///
    /// Returns the reason why no requests can be sent.
    pub fn plugin_http(
        &self,
        permissions: &Permissions,
        limits: &Limits,
    ) -> Result<PluginHttp, String> {
        let Permissions {
            http,
            private_networks,
            ..
        } = permissions;
        if http.is_empty() {
            return Ok(PluginHttp::default());
        }
        let inner = &self.inner;
        let sockets = inner.descriptors.connections();
        let connector =
            || HttpConnector::new(&inner.http_client, Arc::new(SystemResolver), sockets);
        let connector = inner
            .connector
            .get_or_init(connector)
            .as_ref()
            .map_err(Clone::clone)?;
        Ok(PluginHttp::new(PluginClient::new(
            Arc::clone(connector),
            http.clone(),
            private_networks.clone(),
            limits.http_connections,
        )))
    }

    /// Returns the TCP connections of a plugin with these permissions. All calls of the plugin
    /// share them.
    pub fn plugin_connections(&self, permissions: &Permissions) -> PluginConnections {
        let Permissions {
            tcp,
            private_networks,
            ..
        } = permissions;
        if tcp.is_empty() {
            return PluginConnections::default();
        }
        PluginConnections::new(
            Arc::clone(&self.inner.lookups),
            tcp.clone(),
            private_networks.clone(),
        )
    }

    /// Returns the persistent state of the plugin `id` with these permissions.
    pub fn key_value(&self, id: &str, permissions: &Permissions) -> KeyValue {
        match permissions.state {
            Some(grant) => KeyValue::new(self.inner.state.clone(), id, grant),
            None => KeyValue::default(),
        }
    }

    /// Looks up a component in the compile cache, with its description and the summary of its file.
    /// Blocks for a fraction of a millisecond.
    pub fn find_cached(&self, digest: Digest) -> Option<CachedPlugin> {
        let engines = &self.inner.engines;
        let CachedComponent {
            notes:
                cache::ComponentNotes {
                    facts,
                    room,
                    description,
                    about,
                    tasked,
                },
            code,
        } = self.look_up_cached(digest)?;
        if !engines.supports(tasked) {
            // Recompiling reports the reason.
            return None;
        }
        let unopened = UnopenedCode {
            digest,
            code,
            manner: description.manner.clone(),
            tasked,
        };
        let code = if room == engines.pool_fingerprint() {
            CachedCode::Unopened(unopened)
        } else {
            // The entry was stored with a different pool size.
            CachedCode::Open(Box::new(self.open_stored_code(&unopened)?))
        };
        Some(CachedPlugin {
            summary: facts,
            code,
            description,
            about,
        })
    }

    /// Looks up a component in the compile cache and opens its code. Blocks for milliseconds, and
    /// longer for megabytes of code and for thousands of plain functions.
    pub fn open_cached(
        &self,
        digest: Digest,
    ) -> Option<(PreparedComponent, ComponentDescription, PluginSummary)> {
        let CachedComponent {
            notes:
                cache::ComponentNotes {
                    description,
                    about,
                    tasked,
                    ..
                },
            code,
        } = self.look_up_cached(digest)?;
        let prepared = self.open_and_link(&code, tasked, description.manner.clone())?;
        Some((prepared, description, about))
    }

    fn look_up_cached(&self, digest: Digest) -> Option<CachedComponent> {
        let found = self.cache()?.find(digest);
        self.inner.compilations.record_lookup(found.is_some());
        found
    }

    fn cache(&self) -> Option<&Arc<CompileCache>> {
        self.inner.cache.as_ref().ok()
    }

    /// Opens and links stored code; returns `None` if it must be recompiled.
    fn open_stored_code(&self, stored: &UnopenedCode) -> Option<PreparedComponent> {
        self.open_and_link(&stored.code, stored.tasked, stored.manner.clone())
    }

    fn open_and_link(
        &self,
        code: &StoredCode,
        tasked: Option<u32>,
        manner: Option<GuestServerProtocol>,
    ) -> Option<PreparedComponent> {
        let linked = self.inner.engines.engine_for(tasked).ok()?;
        let component = self.cache()?.open_code(&linked.engine, code).ok()?;
        // The code was linked before, so a failure is not the file's fault. Recompiling reports the
        // reason.
        let mut prepared = PreparedComponent::new(linked, &component, tasked).ok()?;
        prepared.set_mcp_endpoint(manner);
        // Recompiling reports the reason.
        self.initial_memory_error(&prepared)
            .is_none()
            .then_some(prepared)
    }

    /// Returns an error message if the component's initial memory exceeds the ceiling. The pool
    /// detects this only if the ceiling is larger than what the pool needs for GC heaps.
    fn initial_memory_error(&self, prepared: &PreparedComponent) -> Option<String> {
        let most = self.inner.max_memory;
        let size = prepared
            .memory()
            .map(ByteSize::b)
            .filter(|size| *size > most)?;
        Some(error::initial_memory_message(
            &error::format_bytes(size),
            &error::format_bytes(most),
        ))
    }

    /// Opens stored code.
    ///
    /// # Errors
    ///
    /// Returns the reason why that failed unexpectedly.
    pub async fn open_code(&self, unopened: UnopenedCode) -> Result<OpenedCode, String> {
        let sandbox = self.clone();
        let opened = tokio::task::spawn_blocking(move || {
            // Read the notes for the new code first: opening damaged code removes the cache entry.
            let known = sandbox
                .cache()
                .and_then(|cache| cache.find(unopened.digest));
            match sandbox.open_stored_code(&unopened) {
                Some(prepared) => OpenedCode::Open(Box::new(prepared)),
                None => OpenedCode::Lost(LostCode {
                    digest: unopened.digest,
                    manner: unopened.manner,
                    known: known.map(Box::new),
                }),
            }
        });
        opened
            .await
            .map_err(|error| format!("opening its code failed: {error}"))
    }

    /// Replaces lost code by the result of compiling the component again.
    ///
    /// # Errors
    ///
    /// Returns the reason why that failed unexpectedly.
    pub async fn replace_lost_code(
        &self,
        lost: LostCode,
        mut prepared: PreparedComponent,
        scratch: UncachedCode,
    ) -> Result<PreparedComponent, String> {
        prepared.set_mcp_endpoint(lost.manner);
        let sandbox = self.clone();
        let kept = tokio::task::spawn_blocking(move || {
            if let Some(known) = lost.known {
                let cache::ComponentNotes {
                    description, about, ..
                } = known.notes;
                sandbox.add_to_cache(lost.digest, scratch, &prepared, description, about);
            }
            prepared
        });
        kept.await
            .map_err(|error| format!("storing its code failed: {error}"))
    }

    /// Compiles and links a plugin file within the limits. Dropping the future stops the compiler.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file is not a valid plugin.
    pub async fn compile(&self, source: CompileSource) -> Result<CompiledFile, PrepareError> {
        let began = Instant::now();
        let compiled = self.compile_and_link(source).await;
        self.inner
            .compilations
            .record_compilation(began.elapsed(), compiled.is_ok());
        compiled
    }

    /// Returns how many components were compiled, and how many were found in the cache.
    pub fn compile_counts(&self) -> CompileCounts {
        self.inner.compilations.snapshot()
    }

    async fn compile_and_link(&self, source: CompileSource) -> Result<CompiledFile, PrepareError> {
        check_preamble(&source.file)?;
        let assembled = |prepared,
                         WorkerNotes {
                             docs,
                             remarks,
                             about,
                             speaks,
                             tasked,
                         },
                         code| CompiledFile {
            prepared,
            docs,
            remarks,
            about,
            speaks,
            scratch: UncachedCode { code, tasked },
        };
        let compiler = &self.inner.compiler;
        if let Some(scratch) = self
            .inner
            .cache
            .as_ref()
            .ok()
            .and_then(|cache| cache.create_temporary().ok())
            && let Ok(output) = scratch.reopen()
        {
            match compiler.compile(&source, output).await {
                Ok(notes) => {
                    let code = scratch
                        .as_file()
                        .try_clone()
                        .map_err(|_| PrepareError::WriteFailed)?;
                    let prepared = self
                        .open_on_blocking_thread(notes.tasked, move |engine| {
                            cache::open_file(engine, &code)
                        })
                        .await?;
                    return Ok(assembled(prepared, notes, Some(scratch)));
                }
                // The component is usable even if it cannot be cached.
                Err(PrepareError::WriteFailed) => tracing::warn!(
                    "cannot write to the compile cache: the disk is full, or files are limited in size (ulimit -f)"
                ),
                Err(error) => return Err(error),
            }
        }
        let unwritten = |_| PrepareError::WriteFailed;
        let mut code = cache::create_memory_file().map_err(unwritten)?;
        let notes = compiler
            .compile(&source, code.try_clone().map_err(unwritten)?)
            .await?;
        let prepared = self
            .open_on_blocking_thread(notes.tasked, move |engine| {
                cache::open_from_memory(engine, &mut code)
            })
            .await?;
        Ok(assembled(prepared, notes, None))
    }

    /// Adds the compiled code of `prepared_component` to the compile cache. Blocks for
    /// milliseconds; errors are logged.
    pub fn add_to_cache(
        &self,
        digest: Digest,
        scratch: UncachedCode,
        prepared: &PreparedComponent,
        description: ComponentDescription,
        about: PluginSummary,
    ) {
        if let (
            Some(cache),
            UncachedCode {
                code: Some(code),
                tasked,
            },
        ) = (self.cache(), scratch)
        {
            let (facts, room) = (
                ComponentSummary::of(prepared),
                self.inner.engines.pool_fingerprint(),
            );
            cache.insert(
                digest,
                code,
                &cache::ComponentNotes {
                    facts,
                    room,
                    description,
                    about,
                    tasked,
                },
            );
        }
    }

    /// Returns why the component with this digest could not be loaded under these conditions and
    /// with these programs and settings, if the compile cache has that. `conditions` is everything
    /// else that decides it. Blocks for a fraction of a millisecond.
    pub fn find_refusal(&self, digest: Digest, conditions: &str) -> Option<StoredRefusal> {
        self.cache()?
            .find_refusal(digest, &self.full_conditions(conditions)?)
    }

    /// Stores why the component with this digest cannot be loaded under these conditions in the
    /// compile cache, until it is compiled successfully. Blocks for milliseconds; errors are
    /// logged.
    pub fn store_refusal(&self, digest: Digest, conditions: &str, refusal: &StoredRefusal) {
        if let (Some(cache), Some(conditions)) = (self.cache(), self.full_conditions(conditions)) {
            cache.insert_refusal(digest, &conditions, refusal);
        }
    }

    /// Returns a digest of all conditions of a refusal.
    fn full_conditions(&self, conditions: &str) -> Option<String> {
        let basis = self.inner.refusal_basis.as_ref()?;
        let text = format!(
            "{basis} {} {conditions}",
            self.inner.engines.pool_fingerprint()
        );
        Some(hex::encode(Sha256::digest(text)))
    }

    /// Returns the notes that [`Sandbox::save_folder_notes`] stored about the files in a plugin
    /// directory. Only this user can have written them.
    pub fn folder_notes(&self, folder: &Path) -> Option<String> {
        self.cache()?.folder_notes(folder)
    }

    /// Stores notes about the files in a plugin directory, as JSON, in the compile cache.
    pub fn save_folder_notes(&self, folder: &Path, notes: Box<RawValue>) {
        if let Some(cache) = self.cache() {
            cache.write_folder_notes(folder, notes);
        }
    }

    /// Returns the reason why the compile cache is off; `None` if it is on.
    pub fn cache_off_reason(&self) -> Option<&str> {
        self.inner.cache.as_ref().err().map(String::as_str)
    }

    /// Removes this server version's entries from the compile cache. Returns the number of
    /// components and their size in bytes. Components that are needed again are recompiled. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if there is no cache, or if a file of it cannot be removed.
    pub fn clear_cache(&self) -> Result<(usize, u64), String> {
        let cache = self.inner.cache.as_ref().map_err(String::clone)?;
        cache
            .clear()
            .map_err(|error| format!("not everything could be removed: {error}"))
    }

    /// Returns whether the compile cache has the component with this digest, in lowercase
    /// hexadecimal.
    pub fn is_cached(&self, digest: &str) -> bool {
        self.inner
            .cache
            .as_ref()
            .is_ok_and(|cache| cache.contains(digest))
    }

    /// Opens and links compiled code on a thread that may block: both steps take time in proportion
    /// to the size of the component.
    async fn open_on_blocking_thread(
        &self,
        tasked: Option<u32>,
        open: impl FnOnce(&Engine) -> wasmtime::Result<Component> + Send + 'static,
    ) -> Result<PreparedComponent, PrepareError> {
        let sandbox = self.clone();
        let work = move || {
            let linked: &LinkedEngine = sandbox
                .inner
                .engines
                .engine_for(tasked)
                .map_err(PrepareError::Transient)?;
            let component = open(&linked.engine).map_err(|error| {
                let root = join_lines(&error.root_cause().to_string());
                match error::describe_too_large(&root) {
                    Some(why) => PrepareError::TooLarge(why),
                    None => PrepareError::Invalid(format!("invalid component: {root}")),
                }
            })?;
            let prepared = PreparedComponent::new(linked, &component, tasked)?;
            match sandbox.initial_memory_error(&prepared) {
                Some(why) => Err(PrepareError::TooLarge(why)),
                None => Ok(prepared),
            }
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(prepared) => prepared,
            Err(error) => Err(PrepareError::Transient(format!(
                "compiling it failed: {error}"
            ))),
        }
    }

    /// Spawns a future that enters guests on the guests' runtime.
    ///
    /// # Panics
    ///
    /// Never panics: the runtime exists as long as the sandbox.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.inner.runtime {
            Some(runtime) => runtime.spawn(work),
            None => unreachable!("the runtime is taken only when the last sandbox is dropped"),
        }
    }

    /// Spawns a future that runs a call. If no other call runs, the first poll may happen on the
    /// current thread, which costs the least. The caller must not hold a lock that a call takes.
    pub fn dispatch(&self, call: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner
            .dispatcher
            .dispatch(call, || self.inner.engines.ticker().is_running());
    }

    /// Moves the current call to the guests' runtime, before a step that may take long. Until then,
    /// a call that was [admitted](Sandbox::dispatch) may run on the thread that received it and
    /// block it.
    pub async fn move_to_guest_runtime(&self) {
        dispatcher::move_to_guest_runtime().await;
    }

    /// Returns how much of the pools is in use; 0 if no guest is alive.
    pub fn pool_usage(&self) -> u64 {
        self.inner.engines.pool_usage()
    }

    /// Calls that can be entered at once: as many as [`SandboxSettings::max_calls`], or fewer where
    /// the machine has too little address space or the process may have too few descriptors.
    /// Without a pool, nothing here bounds them.
    pub fn max_calls(&self) -> usize {
        self.inner.max_calls
    }

    /// Waits for a permit to list what a plugin offers. The semaphore is never closed.
    pub(crate) async fn acquire_describe_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.inner.describe_permits.acquire().await.ok()
    }

    /// Returns the descriptors of a new call.
    pub(crate) fn new_call_descriptors(&self) -> CallDescriptors {
        self.inner.descriptors.files()
    }

    /// Returns the usage records of directories with a quota.
    pub(crate) fn usage_ledgers(&self) -> &Arc<LedgerRegistry> {
        &self.inner.usage_ledgers
    }

    /// Returns the temporary directories of calls.
    pub(crate) fn scratch_directories(&self) -> &Arc<TemporaryFolders> {
        &self.inner.scratch_directories
    }

    pub(crate) fn epoch_ticker(&self) -> &EpochTicker {
        self.inner.engines.ticker()
    }

    /// Returns the compiler.
    pub(crate) fn compiler(&self) -> &Compiler {
        &self.inner.compiler
    }

    /// Returns both engines.
    pub(crate) fn engines(&self) -> &EnginePair {
        &self.inner.engines
    }

    pub(crate) fn stack_size(&self) -> ByteSize {
        self.inner.engines.stack()
    }
}

/// Returns the programs and settings that decide which components are refused. A program is not
/// only known by its version, because it may be a build of changed sources. Returns `None` if a
/// program cannot be found.
fn refusal_basis(
    compiler: Option<&Path>,
    limits: &CompileLimits,
    ceiling: &Limits,
    stack: ByteSize,
    concurrent: bool,
) -> Option<String> {
    let stamp = |program: &Path| -> Option<(u64, SystemTime)> {
        let found = fs::metadata(program).ok()?;
        Some((found.len(), found.modified().ok()?))
    };
    let programs = std::iter::once(Path::new("/proc/self/exe")).chain(compiler);
    let programs = programs.map(stamp).collect::<Option<Vec<_>>>()?;
    let CompileLimits {
        memory,
        cpu,
        timeout,
    } = limits;
    let (memory, stack, ceiling) = (
        memory.as_u64(),
        stack.as_u64(),
        serde_json::to_string(ceiling).ok()?,
    );
    let version = env!("CARGO_PKG_VERSION");
    Some(format!(
        "{version} {programs:?} {memory} {cpu:?} {timeout:?} {stack} {concurrent} {ceiling}"
    ))
}

impl Drop for SandboxState {
    fn drop(&mut self) {
        self.engines.ticker().close();
        // Use `shutdown_background`, not `shutdown_timeout`: the last clone may be dropped on a
        // runtime thread, where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

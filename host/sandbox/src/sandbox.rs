//! The engines, the compiler and the guests' runtime, put together.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use toolbay_model::text::joined;
use toolbay_model::{ComponentDescription, Digest, GuestServerProtocol, Limits};
use toolbay_outgoing::{ConnectorOptions, HttpConnector, LookupLimiter, PluginClient, SystemResolver};
use toolbay_policy::Permissions;
use toolbay_state::StateStore;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::about::PluginSummary;
use crate::cache::{self, CachedComponent, CompileCache, StoredCode};
use crate::callable::{LazyComponent, Recompile, UnopenedCode};
use crate::compilations::{CompilationCounts, CompileCounts};
use crate::compile::{CompileLimits, Compiler};
use crate::compiled::{CompiledFile, UncachedCode};
use crate::component_summary::ComponentSummary;
use crate::connections::PluginConnections;
use crate::cores::cores;
use crate::descriptors::{CallDescriptors, DescriptorTable};
use crate::dispatcher::{self, CallDispatcher};
use crate::engine::EpochTicker;
use crate::engine_pair::{EnginePair, LinkedEngine};
use crate::error;
use crate::keyvalue::KeyValue;
use crate::plugin_http::PluginHttp;
use crate::preamble::check_preamble;
use crate::prepare_error::PrepareError;
use crate::prepared_component::PreparedComponent;
use crate::scratch::TemporaryFolders;
use crate::source::CompileSource;
use crate::usage_ledger::LedgerRegistry;
use crate::worker::WorkerNotes;

/// Threads for blocking host calls of guests (files, name resolution). Bounded, because a file system that hangs
/// occupies them.
const BLOCKING_THREADS: usize = 64;

/// Plugins that list what they offer at once, when they are loaded: these have slots of their own, so that loading many
/// plugins takes none from calls.
const DESCRIBING: u32 = 8;

/// Settings of a [`Sandbox`].
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// Calls that are entered at once, whether they compute or wait. The instance pool has a slot for each, and some more for
    /// asking plugins for what they offer. 0 runs without a pool and without this bound.
    pub calls: u32,
    /// How many of these calls wait for something whenever all of them are entered: there are fewer of them, and so of all,
    /// where the process may have too few descriptors for the files of each.
    pub waiting: u32,
    /// Native stack of a guest, in bytes.
    pub stack: ByteSize,
    /// The ceilings. They determine the size of the pool's slots.
    pub ceiling: Limits,
    /// Whether components may have async functions.
    pub concurrent: bool,
    /// Path of the `toolbay` executable that compiles in a child process. `None` compiles in this process, without
    /// limits: for benchmarks and fuzzing.
    pub compiler: Option<PathBuf>,
    /// The limits of the compiler.
    pub compile: CompileLimits,
    /// Folder and largest size of the compile cache; `None` switches it off.
    pub cache: Option<(PathBuf, ByteSize)>,
    /// How the HTTP requests of plugins are sent.
    pub http_client: ConnectorOptions,
    /// What keeps the state of plugins; `None` if the server keeps none.
    pub state: Option<Arc<dyn StateStore>>,
    /// Folder for the temporary folders of calls. It is created when a call first needs one.
    pub scratch: PathBuf,
}

/// The engines and the runtime of the guests. Cloning is cheap.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<SandboxState>,
}

struct SandboxState {
    engines: EnginePair,
    calls: usize,
    /// The most memory that a component can have.
    most_memory: ByteSize,
    /// Permits to ask a plugin for what it offers.
    describing: Semaphore,
    compiler: Compiler,
    descriptors: Arc<DescriptorTable>,
    ledgers: Arc<LedgerRegistry>,
    scratches: Arc<TemporaryFolders>,
    http_client: ConnectorOptions,
    state: Option<Arc<dyn StateStore>>,
    /// Sends the HTTP requests of plugins, or why it cannot. Made for the first plugin that may send any.
    connector: OnceLock<Result<Arc<HttpConnector>, String>>,
    /// Resolves the names that plugins connect to.
    lookups: Arc<LookupLimiter>,
    /// The compile cache, or why it is off.
    cache: Result<Arc<CompileCache>, String>,
    compilations: CompilationCounts,
    entrance: CallDispatcher,
    /// Guests run on their own threads: whatever they do, the operating system keeps scheduling those of the protocol.
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
}

impl Sandbox {
    /// Starts the engine and the guests' runtime. If the compile cache cannot be used, logs that.
    ///
    /// # Errors
    ///
    /// The system does not provide the threads or memory.
    pub fn new(settings: SandboxSettings) -> anyhow::Result<Self> {
        let SandboxSettings {
            calls,
            waiting,
            stack,
            ceiling,
            concurrent,
            compiler,
            compile,
            cache,
            http_client,
            state,
            scratch,
        } = settings;
        let slots = if calls == 0 { 0 } else { calls.saturating_add(DESCRIBING) };
        let most_memory = ceiling.memory;
        let engines = EnginePair::new(slots, stack, ceiling, concurrent)?;
        let slots = engines.slots().map_or(usize::MAX, |slots| slots.saturating_sub(DESCRIBING) as usize);
        let calls = slots.min(DescriptorTable::calls(calls as usize, waiting as usize));
        let cache = match cache {
            Some((folder, size)) => {
                let opened = CompileCache::open(&folder, &engines.sync_engine().engine, size);
                opened.map(Arc::new).inspect_err(|why| tracing::warn!("{why}"))
            }
            None => Err("the compile cache is off: compile.store is empty".to_owned()),
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
        let entrance =
            CallDispatcher::start(runtime.handle()).context("failed to prepare the guests' runtime for calls")?;
        let describing = Semaphore::new(DESCRIBING as usize);
        let scratches = Arc::new(TemporaryFolders::new(scratch, calls));
        let swept = Arc::clone(&scratches);
        let tidied = cache.as_ref().ok().map(Arc::clone);
        runtime.spawn_blocking(move || {
            swept.sweep();
            if let Some(cache) = tidied {
                cache.tidy();
            }
        });
        let descriptors = Arc::new(DescriptorTable::of_process(calls));
        let inner = SandboxState {
            engines,
            calls,
            most_memory,
            describing,
            compiler,
            descriptors,
            ledgers: Arc::default(),
            scratches,
            cache,
            compilations: CompilationCounts::default(),
            http_client,
            state,
            connector: OnceLock::new(),
            lookups: Arc::new(LookupLimiter::new(Arc::new(SystemResolver))),
            entrance,
            runtime: Some(runtime),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The HTTP requests of a plugin with these permissions, which its calls share. Blocks while it reads the certificates
    /// that the system trusts, the first time.
    ///
    /// # Errors
    ///
    /// Why no requests can be sent at all.
    pub fn requests(&self, permissions: &Permissions, limits: &Limits) -> Result<PluginHttp, String> {
        let Permissions { http, network_private, .. } = permissions;
        if http.is_empty() {
            return Ok(PluginHttp::default());
        }
        let inner = &self.inner;
        let sockets = inner.descriptors.connections();
        let connector = || HttpConnector::new(&inner.http_client, Arc::new(SystemResolver), sockets);
        let connector = inner.connector.get_or_init(connector).as_ref().map_err(Clone::clone)?;
        Ok(PluginHttp::new(PluginClient::new(
            Arc::clone(connector),
            http.clone(),
            network_private.clone(),
            limits.http_connections,
        )))
    }

    /// The TCP connections of a plugin with these permissions, which its calls share.
    pub fn connections(&self, permissions: &Permissions) -> PluginConnections {
        let Permissions { tcp, network_private, .. } = permissions;
        if tcp.is_empty() {
            return PluginConnections::default();
        }
        PluginConnections::new(Arc::clone(&self.inner.lookups), tcp.clone(), network_private.clone())
    }

    /// What the plugin `id` with these permissions keeps from one call to the next.
    pub fn key_value(&self, id: &str, permissions: &Permissions) -> KeyValue {
        match permissions.state {
            Some(grant) => KeyValue::new(self.inner.state.clone(), id, grant),
            None => KeyValue::default(),
        }
    }

    /// Looks up a component in the compile cache, with what it offers and what its file contains. Its code is opened by the
    /// first call; `remake` compiles it again if it cannot be used then. Blocks for a fraction of a millisecond.
    pub fn find(
        &self,
        digest: Digest,
        remake: &Arc<dyn Recompile>,
    ) -> Option<(LazyComponent, ComponentDescription, PluginSummary)> {
        let engines = &self.inner.engines;
        let CachedComponent { notes: cache::ComponentNotes { facts, room, description, about, tasked }, code } =
            self.found(digest)?;
        if !engines.supports(tasked) {
            // Compiling it again reports the reason.
            return None;
        }
        let (remake, manner) = (Arc::clone(remake), description.manner.clone());
        let stored = UnopenedCode { digest, code, manner, tasked, remake };
        let callable = if room == engines.pool_fingerprint() {
            LazyComponent::stored(facts, stored)
        } else {
            // Where it was opened before, there was more room, or less.
            self.open_code(&stored)?.into()
        };
        Some((callable, description, about))
    }

    /// The same with its code open. Blocks for milliseconds, longer for megabytes of code and for thousands of plain functions.
    pub fn find_open(&self, digest: Digest) -> Option<(PreparedComponent, ComponentDescription, PluginSummary)> {
        let CachedComponent { notes: cache::ComponentNotes { description, about, tasked, .. }, code } =
            self.found(digest)?;
        let prepared = self.open_with(&code, tasked, description.manner.clone())?;
        Some((prepared, description, about))
    }

    fn found(&self, digest: Digest) -> Option<CachedComponent> {
        let found = self.cache()?.find(digest);
        self.inner.compilations.looked_up(found.is_some());
        found
    }

    fn cache(&self) -> Option<&Arc<CompileCache>> {
        self.inner.cache.as_ref().ok()
    }

    /// Opens and links stored code; `None` if it has to be compiled again.
    fn open_code(&self, stored: &UnopenedCode) -> Option<PreparedComponent> {
        self.open_with(&stored.code, stored.tasked, stored.manner.clone())
    }

    fn open_with(
        &self,
        code: &StoredCode,
        tasked: Option<u32>,
        manner: Option<GuestServerProtocol>,
    ) -> Option<PreparedComponent> {
        let linked = self.inner.engines.engine_for(tasked).ok()?;
        let component = self.cache()?.open_code(&linked.engine, code).ok()?;
        // It was linked before, so a failure is not the file's fault. Compiling it again reports the reason.
        let mut prepared = PreparedComponent::new(linked, &component, tasked).ok()?;
        prepared.set_mcp_endpoint(manner);
        // Compiling it again reports the reason.
        self.starts_large(&prepared).is_none().then_some(prepared)
    }

    /// Why the component has no place in this server: its memory starts larger than the ceiling. The pool says so only if the
    /// ceiling is above what it needs for heaps of objects.
    fn starts_large(&self, prepared: &PreparedComponent) -> Option<String> {
        let most = self.inner.most_memory;
        let size = prepared.memory().map(ByteSize::b).filter(|size| *size > most)?;
        Some(error::initial_memory_message(&error::format_bytes(size), &error::format_bytes(most)))
    }

    /// Opens stored code, or has it compiled again and stores that.
    ///
    /// # Errors
    ///
    /// Why neither is possible.
    pub(crate) async fn open_stored(&self, stored: UnopenedCode) -> Result<PreparedComponent, String> {
        let (sandbox, wanted) = (self.clone(), stored.clone());
        let opened = tokio::task::spawn_blocking(move || {
            // What is known of it, for the new code, before the entry is dropped with the old.
            let known = sandbox.cache().and_then(|cache| cache.find(wanted.digest));
            sandbox.open_code(&wanted).ok_or_else(|| known.map(Box::new))
        });
        let known = match opened.await {
            Ok(Ok(prepared)) => return Ok(prepared),
            Ok(Err(known)) => known,
            Err(error) => return Err(format!("opening its code failed: {error}")),
        };
        let (mut prepared, scratch) = stored.remake.remake(stored.digest).await?;
        prepared.set_mcp_endpoint(stored.manner);
        let sandbox = self.clone();
        let kept = tokio::task::spawn_blocking(move || {
            if let Some(known) = known {
                let cache::ComponentNotes { description, about, .. } = known.notes;
                sandbox.keep(stored.digest, scratch, &prepared, description, about);
            }
            prepared
        });
        kept.await.map_err(|error| format!("storing its code failed: {error}"))
    }

    /// Compiles and links a plugin file within the limits. Dropping the future stops the compiler.
    ///
    /// # Errors
    ///
    /// Why the file cannot be a plugin.
    pub async fn compile(&self, source: CompileSource) -> Result<CompiledFile, PrepareError> {
        let began = Instant::now();
        let compiled = self.compiled(source).await;
        self.inner.compilations.compiled(began.elapsed(), compiled.is_ok());
        compiled
    }

    /// How many components were compiled, and how many did not have to be.
    pub fn compilations(&self) -> CompileCounts {
        self.inner.compilations.counts()
    }

    async fn compiled(&self, source: CompileSource) -> Result<CompiledFile, PrepareError> {
        check_preamble(&source.file)?;
        let assembled = |prepared, WorkerNotes { docs, remarks, about, speaks, tasked }, code| CompiledFile {
            prepared,
            docs,
            remarks,
            about,
            speaks,
            scratch: UncachedCode { code, tasked },
        };
        let compiler = &self.inner.compiler;
        if let Some(scratch) = self.inner.cache.as_ref().ok().and_then(|cache| cache.scratch().ok())
            && let Ok(output) = scratch.reopen()
        {
            match compiler.compile(&source, output).await {
                Ok(notes) => {
                    let code = scratch.as_file().try_clone().map_err(|_| PrepareError::WriteFailed)?;
                    let prepared = self.opened(notes.tasked, move |engine| cache::open(engine, &code)).await?;
                    return Ok(assembled(prepared, notes, Some(scratch)));
                }
                // What is not kept still serves.
                Err(PrepareError::WriteFailed) => tracing::warn!(
                    "cannot write to the compile cache: the disk is full, or files are limited in size (ulimit -f)"
                ),
                Err(error) => return Err(error),
            }
        }
        let unwritten = |_| PrepareError::WriteFailed;
        let mut code = cache::memory().map_err(unwritten)?;
        let notes = compiler.compile(&source, code.try_clone().map_err(unwritten)?).await?;
        let prepared = self.opened(notes.tasked, move |engine| cache::open_memory(engine, &mut code)).await?;
        Ok(assembled(prepared, notes, None))
    }

    /// Adds the compiled code of `prepared_component` to the compile cache. Blocks for milliseconds; errors are logged.
    pub fn keep(
        &self,
        digest: Digest,
        scratch: UncachedCode,
        prepared: &PreparedComponent,
        description: ComponentDescription,
        about: PluginSummary,
    ) {
        if let (Some(cache), UncachedCode { code: Some(code), tasked }) = (self.cache(), scratch) {
            let (facts, room) = (ComponentSummary::of(prepared), self.inner.engines.pool_fingerprint());
            cache.keep(digest, code, &cache::ComponentNotes { facts, room, description, about, tasked });
        }
    }

    /// What [`Sandbox::note_folder`] wrote about the files in a plugin folder. Nobody but this user can have written it.
    pub fn folder_notes(&self, folder: &Path) -> Option<String> {
        self.cache()?.folder_notes(folder)
    }

    /// Keeps notes about the files in a plugin folder, as JSON, with the compile cache.
    pub fn note_folder(&self, folder: &Path, notes: Box<RawValue>) {
        if let Some(cache) = self.cache() {
            cache.note_folder(folder, notes);
        }
    }

    /// Why the compile cache is off; `None` if it is on.
    pub fn keeps_nothing(&self) -> Option<&str> {
        self.inner.cache.as_ref().err().map(String::as_str)
    }

    /// Removes what this version of the server has in the compile cache: the number of components, and their bytes. What is
    /// needed again is compiled again. Blocks.
    ///
    /// # Errors
    ///
    /// There is no cache, or a file of it could not be removed.
    pub fn clear_cache(&self) -> Result<(usize, u64), String> {
        let cache = self.inner.cache.as_ref().map_err(String::clone)?;
        cache.clear().map_err(|error| format!("not everything could be removed: {error}"))
    }

    /// Whether the compile cache has the component with this digest, in lower-case hexadecimal.
    pub fn keeps(&self, digest: &str) -> bool {
        self.inner.cache.as_ref().is_ok_and(|cache| cache.has(digest))
    }

    /// Opens compiled code and links it, on a thread that may block: both take as long as the component is large.
    async fn opened(
        &self,
        tasked: Option<u32>,
        open: impl FnOnce(&Engine) -> wasmtime::Result<Component> + Send + 'static,
    ) -> Result<PreparedComponent, PrepareError> {
        let sandbox = self.clone();
        let work = move || {
            let linked: &LinkedEngine = sandbox.inner.engines.engine_for(tasked).map_err(PrepareError::Transient)?;
            let component = open(&linked.engine).map_err(|error| {
                let root = joined(&error.root_cause().to_string());
                match error::describe_too_large(&root) {
                    Some(why) => PrepareError::TooLarge(why),
                    None => PrepareError::Invalid(format!("invalid component: {root}")),
                }
            })?;
            let prepared = PreparedComponent::new(linked, &component, tasked)?;
            match sandbox.starts_large(&prepared) {
                Some(why) => Err(PrepareError::TooLarge(why)),
                None => Ok(prepared),
            }
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(prepared) => prepared,
            Err(error) => Err(PrepareError::Transient(format!("compiling it failed: {error}"))),
        }
    }

    /// Spawns a future that enters guests on the guests' runtime.
    ///
    /// # Panics
    ///
    /// Never: the runtime is there as long as the sandbox is.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        match &self.inner.runtime {
            Some(runtime) => runtime.spawn(work),
            None => unreachable!("the runtime is taken only when the last sandbox is dropped"),
        }
    }

    /// Spawns a future that makes a call, at the least cost if it is the only one: its first step may then be made here.
    /// The caller holds no lock that a call takes.
    pub fn admit(&self, call: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner.entrance.dispatch(call, || self.inner.engines.ticker().is_running());
    }

    /// Goes on on the guests' runtime, where a call that was [admitted](Sandbox::admit) may take long. Until then it may be
    /// on the thread that received it, and nothing else happens there.
    pub async fn moved(&self) {
        dispatcher::move_to_guest_runtime().await;
    }

    /// How much of the pools is in use; nothing if no guest is alive.
    pub fn live(&self) -> u64 {
        self.inner.engines.pool_usage()
    }

    /// Calls that can be entered at once: as many as [`SandboxSettings::calls`], or fewer where the machine has too little address
    /// space or the process may have too few descriptors. Without a pool, nothing here bounds them.
    pub fn calls(&self) -> usize {
        self.inner.calls
    }

    /// The permission to ask a plugin for what it offers. The semaphore is never closed.
    pub(crate) async fn describing(&self) -> Option<SemaphorePermit<'_>> {
        self.inner.describing.acquire().await.ok()
    }

    /// The files of a call that begins.
    pub(crate) fn files(&self) -> CallDescriptors {
        self.inner.descriptors.files()
    }

    /// What is known of folders with a quota.
    pub(crate) fn ledgers(&self) -> &Arc<LedgerRegistry> {
        &self.inner.ledgers
    }

    /// The temporary folders of calls.
    pub(crate) fn scratches(&self) -> &Arc<TemporaryFolders> {
        &self.inner.scratches
    }

    pub(crate) fn ticker(&self) -> &EpochTicker {
        self.inner.engines.ticker()
    }

    /// What compiles.
    pub(crate) fn compiler(&self) -> &Compiler {
        &self.inner.compiler
    }

    /// Both engines.
    pub(crate) fn engines(&self) -> &EnginePair {
        &self.inner.engines
    }

    pub(crate) fn stack(&self) -> ByteSize {
        self.inner.engines.stack()
    }
}

impl Drop for SandboxState {
    fn drop(&mut self) {
        self.engines.ticker().close();
        // `shutdown_background` instead of `shutdown_timeout`: the last clone may be dropped on a thread of a runtime,
        // where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

//! The sandbox: the engines, the compiler, the compile cache and the guests' runtime.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use toolbay_model::{ComponentDescription, Digest, GuestServerProtocol, Limits};
use toolbay_outgoing::{ConnectorOptions, HttpConnector, LookupLimiter, SystemResolver};
use toolbay_state::StateStore;

use crate::cache::{self, CachedComponent, CompileCache, StoredCode};
use crate::capability::files::descriptors::DescriptorTable;
use crate::capability::files::scratch_directories::TemporaryFolders;
use crate::compile::compile_counts::CompileCounters;
use crate::compile::compiler::{CompileLimits, Compiler};
use crate::component::plugin_summary::PluginSummary;
use crate::context::usage_ledger::LedgerRegistry;
use crate::prepare::compiled::UncachedCode;
use crate::prepare::component_summary::ComponentSummary;
use crate::prepare::engine_pair::EnginePair;
use crate::prepare::prepared_component::PreparedComponent;
use crate::run::cores::cores;
use crate::run::dispatcher::{self, CallDispatcher};
use crate::run::guest_runtime::GuestRuntime;
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
    pub(super) inner: Arc<SandboxState>,
}

pub(super) struct SandboxState {
    pub(super) engines: EnginePair,
    pub(super) max_calls: usize,
    /// Maximum memory of a component.
    pub(super) max_memory: ByteSize,
    /// Permits for listing what a plugin offers.
    pub(super) describe_permits: Semaphore,
    pub(super) compiler: Compiler,
    pub(super) descriptors: Arc<DescriptorTable>,
    pub(super) usage_ledgers: Arc<LedgerRegistry>,
    pub(super) scratch_directories: Arc<TemporaryFolders>,
    pub(super) http_client: ConnectorOptions,
    pub(super) state: Option<Arc<dyn StateStore>>,
    /// The HTTP client of plugins, or the reason why it is unavailable. Created for the first
    /// plugin that may send requests.
    pub(super) connector: OnceLock<Result<Arc<HttpConnector>, String>>,
    /// Resolver for the host names that plugins connect to.
    pub(super) lookups: Arc<LookupLimiter>,
    /// The compile cache, or the reason why it is off.
    pub(super) cache: Result<Arc<CompileCache>, String>,
    /// The programs and settings that decide which components are refused; `None` if they are not
    /// known, in which case refusals are not stored.
    pub(super) refusal_basis: Option<String>,
    pub(super) compilations: CompileCounters,
    pub(super) dispatcher: CallDispatcher,
    pub(super) runtime: GuestRuntime,
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
        let cache = open_cache(cache, &engines);
        let compiler = Compiler::new(compiler, stack, concurrent, compile)
            .map_err(|error| anyhow!("wasmtime rejected the configuration: {error:#}"))?;
        let runtime = GuestRuntime::start(cores(), BLOCKING_THREADS)
            .context("failed to start the guests' runtime")?;
        let dispatcher = CallDispatcher::start(runtime.handle())
            .context("failed to prepare the guests' runtime for calls")?;
        let describing = Semaphore::new(MAX_CONCURRENT_DESCRIBES as usize);
        let scratches = Arc::new(TemporaryFolders::new(scratch, calls));
        let swept = Arc::clone(&scratches);
        let tidied = cache.as_ref().ok().map(Arc::clone);
        runtime.handle().spawn_blocking(move || {
            swept.remove_leftovers();
            if let Some(cache) = tidied {
                cache.tidy();
            }
        });
        let descriptors = Arc::new(DescriptorTable::for_process(calls));
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
            compilations: CompileCounters::default(),
            http_client,
            state,
            connector: OnceLock::new(),
            lookups: Arc::new(LookupLimiter::new(Arc::new(SystemResolver))),
            dispatcher,
            runtime,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Looks up a component in the compile cache, with its description and the summary of its file.
    /// Blocks for a fraction of a millisecond.
    pub fn find_cached(&self, digest: Digest) -> Option<CachedPlugin> {
        let engines = &self.inner.engines;
        let CachedComponent {
            notes:
                cache::ComponentNotes {
                    facts,
                    room: pool_fingerprint,
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
            mcp_endpoint: description.manner.clone(),
            tasked,
        };
        let code = if pool_fingerprint == engines.pool_fingerprint() {
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

    pub(super) fn cache(&self) -> Option<&Arc<CompileCache>> {
        self.inner.cache.as_ref().ok()
    }

    /// Opens and links stored code; returns `None` if it must be recompiled.
    fn open_stored_code(&self, stored: &UnopenedCode) -> Option<PreparedComponent> {
        self.open_and_link(&stored.code, stored.tasked, stored.mcp_endpoint.clone())
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
        prepared.set_server_protocol(manner);
        // Recompiling reports the reason.
        self.initial_memory_error(&prepared)
            .is_none()
            .then_some(prepared)
    }

    /// Returns an error message if the component's initial memory exceeds the ceiling. The pool
    /// detects this only if the ceiling is larger than what the pool needs for GC heaps.
    pub(super) fn initial_memory_error(&self, prepared: &PreparedComponent) -> Option<String> {
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
                    manner: unopened.mcp_endpoint,
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
        prepared.set_server_protocol(lost.manner);
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

    /// Adds the compiled code of `prepared` to the compile cache. Blocks for milliseconds; errors
    /// are logged.
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
                async_instances: tasked,
            },
        ) = (self.cache(), scratch)
        {
            let facts = ComponentSummary::of(prepared);
            let room = self.inner.engines.pool_fingerprint();
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

    /// Spawns a future that enters guests on the guests' runtime.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.inner.runtime.handle().spawn(work)
    }

    /// Spawns a future that runs a call. If no other call runs, the first poll may happen on the
    /// current thread, which costs the least. The caller must not hold a lock that a call takes.
    pub fn dispatch(&self, call: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner
            .dispatcher
            .dispatch(call, || self.inner.engines.ticker().is_running());
    }

    /// Moves the current call to the guests' runtime, before a step that may take long. Until then,
    /// a call that was [dispatched](Sandbox::dispatch) may run on the thread that received it and
    /// block it.
    pub async fn move_to_guest_runtime(&self) {
        dispatcher::move_to_guest_runtime().await;
    }

    /// Returns the number of pool entries in use; 0 if no guest is alive.
    pub fn pool_usage(&self) -> u64 {
        self.inner.engines.pool_usage()
    }

    /// Returns the number of calls that can be entered at once: as many as
    /// [`SandboxSettings::max_calls`], or fewer where the machine has too little address space or
    /// the process may have too few descriptors. Without a pool, nothing here bounds them.
    pub fn max_calls(&self) -> usize {
        self.inner.max_calls
    }

    /// Returns both engines.
    pub(crate) fn engines(&self) -> &EnginePair {
        &self.inner.engines
    }
}

/// Opens the compile cache, or returns the reason why it is off.
fn open_cache(
    cache: Option<(PathBuf, ByteSize)>,
    engines: &EnginePair,
) -> Result<Arc<CompileCache>, String> {
    let Some((folder, size)) = cache else {
        return Err("the compile cache is off: compile.cache_folder is empty".to_owned());
    };
    CompileCache::open(&folder, &engines.sync_engine().engine, size)
        .map(Arc::new)
        .inspect_err(|why| tracing::warn!("{why}"))
}

/// Returns the programs and settings that decide which components are refused. A program is
/// identified by its size and modification time too, because two builds can have the same version.
/// Returns `None` if a program cannot be found.
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
    let memory = memory.as_u64();
    let stack = stack.as_u64();
    let ceiling = serde_json::to_string(ceiling).ok()?;
    let version = env!("CARGO_PKG_VERSION");
    Some(format!(
        "{version} {programs:?} {memory} {cpu:?} {timeout:?} {stack} {concurrent} {ceiling}"
    ))
}

impl Drop for SandboxState {
    fn drop(&mut self) {
        self.engines.ticker().close();
    }
}

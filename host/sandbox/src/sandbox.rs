//! The engine, the linker, the compiler and the guests' runtime, put together.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use toolbay_model::text::joined;
use toolbay_model::{Description, Digest, Limits};
use toolbay_outgoing::{Connector, Lookups, Options, Outlet, SystemResolver};
use toolbay_policy::Permissions;
use toolbay_state::Store;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::about::About;
use crate::cache::{self, CompileCache};
use crate::compile::{Compile, Compiler};
use crate::compiled::{Compiled, Scratch};
use crate::connections::Connections;
use crate::descriptors::{Descriptors, Files};
use crate::engine::{self, Ticker};
use crate::entrance::Entrance;
use crate::error;
use crate::keyvalue::KeyValue;
use crate::ledger::Ledgers;
use crate::linker::linker;
use crate::preamble::check_preamble;
use crate::prepare_error::PrepareError;
use crate::prepared::Prepared;
use crate::requests::Requests;
use crate::scratch::Scratches;
use crate::source::Source;
use crate::state::State;
use crate::worker::Notes;

/// Threads for blocking host calls of guests (files, name resolution). Bounded, because a file system that hangs
/// occupies them.
const BLOCKING_THREADS: usize = 64;

/// Plugins that list what they offer at once, when they are loaded: these have slots of their own, so that loading many
/// plugins takes none from calls.
const DESCRIBING: u32 = 8;

/// Settings of a [`Sandbox`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Calls that run at once. The instance pool has a slot for each, and some more for
    /// asking plugins for what they offer. 0 runs without a pool and without this bound.
    pub calls: u32,
    /// Native stack of a guest, in bytes.
    pub stack: ByteSize,
    /// The ceilings. They determine the size of the pool's slots.
    pub ceiling: Limits,
    /// Path of the `toolbay` executable that compiles in a child process. `None` compiles in this process, without
    /// limits: for benchmarks and fuzzing.
    pub compiler: Option<PathBuf>,
    /// The limits of the compiler.
    pub compile: Compile,
    /// Folder and largest size of the compile cache; `None` switches it off.
    pub cache: Option<(PathBuf, ByteSize)>,
    /// How the HTTP requests of plugins are sent.
    pub http_client: Options,
    /// What keeps the state of plugins; `None` if the server keeps none.
    pub state: Option<Arc<dyn Store>>,
    /// Folder for the temporary folders of calls. It is created when a call first needs one.
    pub scratch: PathBuf,
}

/// The engine, the linker and the runtime of the guests. Cloning is cheap.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    calls: usize,
    /// Permits to ask a plugin for what it offers.
    describing: Semaphore,
    linker: Linker<State>,
    ticker: Ticker,
    stack: ByteSize,
    compiler: Compiler,
    descriptors: Arc<Descriptors>,
    ledgers: Arc<Ledgers>,
    scratches: Arc<Scratches>,
    http_client: Options,
    state: Option<Arc<dyn Store>>,
    /// Sends the HTTP requests of plugins, or why it cannot. Made for the first plugin that may send any.
    connector: OnceLock<Result<Arc<Connector>, String>>,
    /// Resolves the names that plugins connect to.
    lookups: Arc<Lookups>,
    /// The compile cache, or why it is off.
    cache: Result<CompileCache, String>,
    entrance: Entrance,
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
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let Settings { calls, stack, ceiling, compiler, compile, cache, http_client, state, scratch } = settings;
        let slots = if calls == 0 { 0 } else { calls.saturating_add(DESCRIBING) };
        let (engine, slots) = engine::build(slots, stack, &ceiling)?;
        let calls = slots.map_or(usize::MAX, |slots| slots.saturating_sub(DESCRIBING) as usize);
        let linker = linker(&engine).map_err(|error| anyhow!("failed to link the host's interfaces: {error:#}"))?;
        let ticker = Ticker::start(&engine)?;
        let cache = match cache {
            Some((folder, size)) => {
                CompileCache::open(&folder, &engine, size).inspect_err(|why| tracing::warn!("{why}"))
            }
            None => Err("the compile cache is off: compile.store is empty".to_owned()),
        };
        let compiler = Compiler::new(compiler, stack, compile)
            .map_err(|error| anyhow!("wasmtime rejected the configuration: {error:#}"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("toolbay-guest")
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            // Calls arrive through the injection queue, so check it often.
            .global_queue_interval(4)
            .build()
            .context("failed to start the guests' runtime")?;
        let entrance = Entrance::open(runtime.handle()).context("failed to prepare the guests' runtime for calls")?;
        let describing = Semaphore::new(DESCRIBING as usize);
        let scratches = Arc::new(Scratches::new(scratch, calls));
        let swept = Arc::clone(&scratches);
        runtime.spawn_blocking(move || swept.sweep());
        let descriptors = Arc::new(Descriptors::of_process(calls));
        let inner = Inner {
            engine,
            calls,
            describing,
            linker,
            ticker,
            stack,
            compiler,
            descriptors,
            ledgers: Arc::default(),
            scratches,
            cache,
            http_client,
            state,
            connector: OnceLock::new(),
            lookups: Arc::new(Lookups::new(Arc::new(SystemResolver))),
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
    pub fn requests(&self, permissions: &Permissions, limits: &Limits) -> Result<Requests, String> {
        let Permissions { http, network_private, .. } = permissions;
        if http.is_empty() {
            return Ok(Requests::default());
        }
        let inner = &self.inner;
        let sockets = inner.descriptors.connections();
        let connector = || Connector::new(&inner.http_client, Arc::new(SystemResolver), sockets);
        let connector = inner.connector.get_or_init(connector).as_ref().map_err(Clone::clone)?;
        Ok(Requests::new(Outlet::new(
            Arc::clone(connector),
            http.clone(),
            network_private.clone(),
            limits.http_connections,
        )))
    }

    /// The TCP connections of a plugin with these permissions, which its calls share.
    pub fn connections(&self, permissions: &Permissions) -> Connections {
        let Permissions { tcp, network_private, .. } = permissions;
        if tcp.is_empty() {
            return Connections::default();
        }
        Connections::new(Arc::clone(&self.inner.lookups), tcp.clone(), network_private.clone())
    }

    /// What the plugin `id` with these permissions keeps from one call to the next.
    pub fn key_value(&self, id: &str, permissions: &Permissions) -> KeyValue {
        match permissions.state {
            Some(grant) => KeyValue::new(self.inner.state.clone(), id, grant),
            None => KeyValue::default(),
        }
    }

    /// Looks up a component in the compile cache, with what it offers and what its file contains. Blocks for
    /// milliseconds, longer for thousands of plain functions.
    pub fn find(&self, digest: Digest) -> Option<(Prepared, Description, About)> {
        let (component, description, about) = self.inner.cache.as_ref().ok()?.find(&self.inner.engine, digest)?;
        // It was linked before, so a failure is not the file's fault. Compiling it again reports the reason.
        let mut prepared = self.link(&component).ok()?;
        prepared.spoken_to(description.manner.clone());
        Some((prepared, description, about))
    }

    /// Compiles and links a plugin file within the limits. Dropping the future stops the compiler.
    ///
    /// # Errors
    ///
    /// Why the file cannot be a plugin.
    pub async fn compile(&self, source: Source) -> Result<Compiled, PrepareError> {
        check_preamble(&source.file)?;
        let assembled = |prepared, Notes { docs, remarks, about, speaks }, scratch| Compiled {
            prepared,
            docs,
            remarks,
            about,
            speaks,
            scratch: Scratch(scratch),
        };
        let compiler = &self.inner.compiler;
        if let Some(scratch) = self.inner.cache.as_ref().ok().and_then(|cache| cache.scratch().ok())
            && let Ok(output) = scratch.reopen()
        {
            match compiler.compile(&source, output).await {
                Ok(notes) => {
                    let code = scratch.as_file().try_clone().map_err(|_| PrepareError::Unwritten)?;
                    let prepared = self.opened(move |engine| cache::open(engine, &code)).await?;
                    return Ok(assembled(prepared, notes, Some(scratch)));
                }
                // What is not kept still serves.
                Err(PrepareError::Unwritten) => tracing::warn!(
                    "cannot write to the compile cache: the disk is full, or files are limited in size (ulimit -f)"
                ),
                Err(error) => return Err(error),
            }
        }
        let unwritten = |_| PrepareError::Unwritten;
        let mut code = cache::memory().map_err(unwritten)?;
        let notes = compiler.compile(&source, code.try_clone().map_err(unwritten)?).await?;
        let prepared = self.opened(move |engine| cache::open_memory(engine, &mut code)).await?;
        Ok(assembled(prepared, notes, None))
    }

    /// Adds compiled code to the compile cache. Blocks for milliseconds; errors are logged.
    pub fn keep(&self, digest: Digest, scratch: Scratch, description: Description, about: About) {
        if let (Ok(cache), Scratch(Some(code))) = (&self.inner.cache, scratch) {
            cache.keep(digest, code, description, about);
        }
    }

    /// Why the compile cache is off; `None` if it is on.
    pub fn keeps_nothing(&self) -> Option<&str> {
        self.inner.cache.as_ref().err().map(String::as_str)
    }

    /// Whether the compile cache has the component with this digest, in lower-case hexadecimal.
    pub fn keeps(&self, digest: &str) -> bool {
        self.inner.cache.as_ref().is_ok_and(|cache| cache.has(digest))
    }

    fn link(&self, component: &Component) -> Result<Prepared, PrepareError> {
        Prepared::new(&self.inner.engine, &self.inner.linker, component)
    }

    /// Opens compiled code and links it, on a thread that may block: both take as long as the component is large.
    async fn opened(
        &self,
        open: impl FnOnce(&Engine) -> wasmtime::Result<Component> + Send + 'static,
    ) -> Result<Prepared, PrepareError> {
        let sandbox = self.clone();
        let work = move || {
            let component = open(&sandbox.inner.engine).map_err(|error| {
                let root = joined(&error.root_cause().to_string());
                match error::too_large(&root) {
                    Some(why) => PrepareError::TooLarge(why),
                    None => PrepareError::Invalid(format!("invalid component: {root}")),
                }
            })?;
            sandbox.link(&component)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(prepared) => prepared,
            Err(error) => Err(PrepareError::Hindered(format!("compiling it failed: {error}"))),
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

    /// Spawns a future that makes a call, at the least cost if it is the only one.
    pub fn admit(&self, call: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner.entrance.admit(call, || self.inner.ticker.is_running());
    }

    /// How much of the pool is in use; nothing if no guest is alive.
    pub fn live(&self) -> u64 {
        self.inner.engine.pooling_allocator_metrics().map_or(0, |pool| {
            let parts = pool.memories() + pool.tables() + pool.stacks();
            pool.component_instances() + pool.core_instances() + parts as u64
        })
    }

    /// Calls that can run at once: as many as [`Settings::calls`], or fewer where the machine has too little address
    /// space. Without a pool, nothing here bounds them.
    pub fn calls(&self) -> usize {
        self.inner.calls
    }

    /// The permission to ask a plugin for what it offers. The semaphore is never closed.
    pub(crate) async fn describing(&self) -> Option<SemaphorePermit<'_>> {
        self.inner.describing.acquire().await.ok()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The files of a call that begins.
    pub(crate) fn files(&self) -> Files {
        self.inner.descriptors.files()
    }

    /// What is known of folders with a quota.
    pub(crate) fn ledgers(&self) -> &Arc<Ledgers> {
        &self.inner.ledgers
    }

    /// The temporary folders of calls.
    pub(crate) fn scratches(&self) -> &Arc<Scratches> {
        &self.inner.scratches
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.inner.ticker
    }

    pub(crate) fn stack(&self) -> ByteSize {
        self.inner.stack
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.ticker.close();
        // `shutdown_background` instead of `shutdown_timeout`: the last clone may be dropped on a thread of a runtime,
        // where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

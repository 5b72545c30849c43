//! The engine, the linker, the compiler and the guests' runtime, put together.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use toolbay_model::text::joined;
use toolbay_model::{Description, Digest, Limits};
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::about::About;
use crate::cache::{self, CompileCache};
use crate::compile::{Compile, Compiler};
use crate::compiled::{Compiled, Scratch};
use crate::engine::{self, Ticker};
use crate::error;
use crate::linker::linker;
use crate::preamble::check_preamble;
use crate::prepare_error::PrepareError;
use crate::prepared::Prepared;
use crate::source::Source;
use crate::state::State;
use crate::worker::Notes;

/// Threads for guests' blocking host calls (files, name look-ups). A guest can
/// hold one for good, by opening a FIFO for instance, so they are bounded.
const BLOCKING_THREADS: usize = 64;

/// What a sandbox is made by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many guests may live at once. An exhausted pool fails calls at
    /// once, so this must be above what admission lets in.
    pub slots: u32,
    /// The native stack of a guest.
    pub stack: ByteSize,
    /// Shapes the pool: no guest can be given more.
    pub ceiling: Limits,
    /// The `toolbay` that compiles, as a child; `None` compiles in this
    /// process, where nothing can interrupt it: for measuring and for fuzzing.
    pub compiler: Option<PathBuf>,
    /// What a compile may use.
    pub compile: Compile,
    /// Where compiled components are kept, and how large that may get.
    pub cache: Option<(PathBuf, ByteSize)>,
}

/// The engine, the linker and the guests' own runtime. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    linker: Linker<State>,
    ticker: Ticker,
    stack: ByteSize,
    compiler: Compiler,
    /// Or why nothing is kept.
    cache: Result<CompileCache, String>,
    /// Guests run on threads of their own: whatever they do, the operating
    /// system keeps scheduling the protocol's. `None` only while dropping.
    runtime: Option<Runtime>,
}

impl Sandbox {
    /// Starts the engine and the guests' runtime. A store that cannot be used
    /// is one line in the log.
    ///
    /// # Errors
    ///
    /// The machine refuses threads or memory.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let Settings { slots, stack, ceiling, compiler, compile, cache } = settings;
        let engine = engine::build(slots, stack, &ceiling)?;
        let linker = linker(&engine).map_err(|error| anyhow!("failed to link the host's interfaces: {error:#}"))?;
        let ticker = Ticker::start(&engine)?;
        let cache = match cache {
            Some((folder, size)) => {
                CompileCache::open(&folder, &engine, size).inspect_err(|why| tracing::warn!("{why}"))
            }
            None => Err("the compile cache is off: compile.store is empty".to_owned()),
        };
        let compiler = Compiler::new(compiler, stack, compile)
            .map_err(|error| anyhow!("wasmtime refused its configuration: {error:#}"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("toolbay-guest")
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            // Calls arrive through the injection queue: look there often.
            .global_queue_interval(4)
            .build()
            .context("failed to start the guests' runtime")?;
        let inner = Inner { engine, linker, ticker, stack, compiler, cache, runtime: Some(runtime) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A component that was compiled before, how it described itself, and what its file is. Blocks for milliseconds.
    pub fn find(&self, digest: Digest) -> Option<(Prepared, Description, About)> {
        let (component, description, about) = self.inner.cache.as_ref().ok()?.find(&self.inner.engine, digest)?;
        // Linked once already, so a failure is not the file's: let it be compiled and said again.
        Some((self.link(&component).ok()?, description, about))
    }

    /// Compiles and links a plugin file, for as long as it takes within the
    /// limits. Dropping the future stops it.
    ///
    /// # Errors
    ///
    /// Why it is not a plugin.
    pub async fn compile(&self, source: Source) -> Result<Compiled, PrepareError> {
        check_preamble(&source.file)?;
        let linked = |component: &Component, Notes { docs, remarks, about }, scratch| {
            Ok(Compiled { prepared: self.link(component)?, docs, remarks, about, scratch: Scratch(scratch) })
        };
        let compiler = &self.inner.compiler;
        if let Some(scratch) = self.inner.cache.as_ref().ok().and_then(|cache| cache.scratch().ok())
            && let Ok(output) = scratch.reopen()
        {
            match compiler.compile(&source, output).await {
                Ok(notes) => {
                    let path = scratch.path().to_owned();
                    let component = self.blocking(move |engine| cache::open(engine, &path)).await?;
                    return linked(&component, notes, Some(scratch));
                }
                // A full disk: what is not kept still serves.
                Err(PrepareError::Unwritten) => tracing::warn!("cannot write to the compile cache: the disk is full"),
                Err(error) => return Err(error),
            }
        }
        let unwritten = |_| PrepareError::Unwritten;
        let mut code = cache::memory().map_err(unwritten)?;
        let notes = compiler.compile(&source, code.try_clone().map_err(unwritten)?).await?;
        let component = self.blocking(move |engine| cache::open_memory(engine, &mut code)).await?;
        linked(&component, notes, None)
    }

    /// Keeps compiled code, so that [`Sandbox::find`] finds it. Blocks for milliseconds.
    pub fn keep(&self, digest: Digest, scratch: Scratch, description: Description, about: About) {
        if let (Ok(cache), Scratch(Some(code))) = (&self.inner.cache, scratch) {
            cache.keep(digest, code, description, about);
        }
    }

    /// Why no compiled code is kept, if none is.
    pub fn keeps_nothing(&self) -> Option<&str> {
        self.inner.cache.as_ref().err().map(String::as_str)
    }

    /// Whether the compiled code of the component with this digest, in hexadecimal, is kept.
    pub fn keeps(&self, digest: &str) -> bool {
        self.inner.cache.as_ref().is_ok_and(|cache| cache.has(digest))
    }

    fn link(&self, component: &Component) -> Result<Prepared, PrepareError> {
        Prepared::new(&self.inner.engine, &self.inner.linker, component)
    }

    async fn blocking(
        &self,
        open: impl FnOnce(&Engine) -> wasmtime::Result<Component> + Send + 'static,
    ) -> Result<Component, PrepareError> {
        let engine = self.inner.engine.clone();
        match tokio::task::spawn_blocking(move || open(&engine)).await {
            Ok(opened) => opened.map_err(|error| {
                let root = joined(&error.root_cause().to_string());
                match error::too_large(&root) {
                    Some(why) => PrepareError::TooLarge(why),
                    None => PrepareError::Invalid(format!("invalid component: {root}")),
                }
            }),
            Err(error) => Err(PrepareError::Hindered(format!("compiling it failed: {error}"))),
        }
    }

    /// Runs work that enters guests on the guests' runtime.
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

    /// How much of the pool is in use: nothing when no guest lives.
    pub fn live(&self) -> u64 {
        self.inner.engine.pooling_allocator_metrics().map_or(0, |pool| {
            let parts = pool.memories() + pool.tables() + pool.stacks();
            pool.component_instances() + pool.core_instances() + parts as u64
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
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
        // `shutdown_background` and not `shutdown_timeout`: the last clone may
        // be dropped on a runtime's own thread, where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

//! Runs guests: compiles and links components, and gives every call a fresh store within its limits.
//!
//! The only module that knows wasmtime. Data flows one way: bytes become a
//! [`Prepared`] component once; a call takes it, an [`Environment`] and
//! arguments, and ends as a [`Finished`]. Nothing of a guest outlives its call.

mod about;
mod adapt;
mod bindings;
mod call;
mod command;
mod compile;
mod coop;
mod docs;
mod engine;
mod error;
mod functions;
mod http;
mod imports;
mod limiter;
mod output;
mod prepared;
mod state;
mod stdio;
mod store;
pub(crate) mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

pub use self::about::About;
pub use self::call::{Entry, Environment, Finished, LogLevel, Observer, Progress, Usage};
use self::compile::Compiler;
pub use self::compile::{Compile, Source};
use self::docs::Docs;
use self::engine::Ticker;
pub use self::error::{CallError, Limit};
pub(crate) use self::error::{crash, thousands};
pub use self::prepared::{PrepareError, Prepared};
use self::state::State;
use self::store::Store;
use self::worker::Notes;
use crate::definition::Description;
use crate::limits::Limits;
use crate::plugin::Digest;

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
    pub store: Option<(PathBuf, ByteSize)>,
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
    store: Result<Store, String>,
    /// Guests run on threads of their own: whatever they do, the operating
    /// system keeps scheduling the protocol's. `None` only while dropping.
    runtime: Option<Runtime>,
}

/// Compiled code that may be kept once the component has described itself.
pub struct Scratch(Option<NamedTempFile>);

/// A plugin file that became code.
pub struct Compiled {
    /// Linked, and ready to be called.
    pub prepared: Prepared,
    /// What is written about its functions.
    docs: Docs,
    /// What the operator should know.
    remarks: Vec<String>,
    /// What the file is.
    about: About,
    /// To be kept.
    scratch: Scratch,
}

impl Compiled {
    /// What the file is, as far as a child compiled it.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What is called, and what is kept.
    pub fn into_parts(self) -> (Prepared, Scratch) {
        (self.prepared, self.scratch)
    }
}

impl Sandbox {
    /// Starts the engine and the guests' runtime. A store that cannot be used
    /// is one line in the log.
    ///
    /// # Errors
    ///
    /// The machine refuses threads or memory.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let Settings { slots, stack, ceiling, compiler, compile, store } = settings;
        let engine = engine::build(slots, stack, &ceiling)?;
        let linker = prepared::linker(&engine).map_err(|error| anyhow!("failed to link the world: {error:#}"))?;
        let ticker = Ticker::start(&engine)?;
        let store = match store {
            Some((folder, size)) => Store::open(&folder, &engine, size).inspect_err(|why| tracing::warn!("{why}")),
            None => Err("compiled components are not kept: compile.store is empty".to_owned()),
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
        let inner = Inner { engine, linker, ticker, stack, compiler, store, runtime: Some(runtime) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A component that was compiled before, and how it described itself. Blocks for milliseconds.
    pub fn find(&self, digest: Digest) -> Option<(Prepared, Description)> {
        let (component, description) = self.inner.store.as_ref().ok()?.find(&self.inner.engine, digest)?;
        // Linked once already, so a failure is not the file's: let it be compiled and said again.
        Some((self.link(&component).ok()?, description))
    }

    /// Compiles and links a plugin file, for as long as it takes within the
    /// limits. Dropping the future stops it.
    ///
    /// # Errors
    ///
    /// Why it is not a plugin.
    pub async fn compile(&self, source: Source) -> Result<Compiled, PrepareError> {
        prepared::check_preamble(&source.file)?;
        let linked = |component: &Component, Notes { docs, remarks, about }, scratch| {
            Ok(Compiled { prepared: self.link(component)?, docs, remarks, about, scratch: Scratch(scratch) })
        };
        let compiler = &self.inner.compiler;
        if let Some(scratch) = self.inner.store.as_ref().ok().and_then(|store| store.scratch().ok())
            && let Ok(output) = scratch.reopen()
        {
            match compiler.compile(&source, output).await {
                Ok(notes) => {
                    let path = scratch.path().to_owned();
                    let component = self.blocking(move |engine| store::open(engine, &path)).await?;
                    return linked(&component, notes, Some(scratch));
                }
                // A full disk: what is not kept still serves.
                Err(PrepareError::Unwritten) => tracing::warn!("compiled components are not kept: the disk is full"),
                Err(error) => return Err(error),
            }
        }
        let unwritten = |_| PrepareError::Unwritten;
        let mut code = store::memory().map_err(unwritten)?;
        let notes = compiler.compile(&source, code.try_clone().map_err(unwritten)?).await?;
        let component = self.blocking(move |engine| store::open_memory(engine, &mut code)).await?;
        linked(&component, notes, None)
    }

    /// Keeps compiled code, so that [`Sandbox::find`] finds it. Blocks for milliseconds.
    pub fn keep(&self, digest: Digest, scratch: Scratch, description: Description) {
        if let (Ok(store), Scratch(Some(code))) = (&self.inner.store, scratch) {
            store.keep(digest, code, description);
        }
    }

    /// Why no compiled code is kept, if none is.
    pub fn keeps_nothing(&self) -> Option<&str> {
        self.inner.store.as_ref().err().map(String::as_str)
    }

    /// Whether the compiled code of the component with this digest, in hexadecimal, is kept.
    pub fn keeps(&self, digest: &str) -> bool {
        self.inner.store.as_ref().is_ok_and(|store| store.has(digest))
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
                let root = prepared::one_line(&error.root_cause().to_string());
                match error::too_large(&root) {
                    Some(why) => PrepareError::TooLarge(why),
                    None => PrepareError::Invalid(format!("not a valid component: {root}")),
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
    #[cfg(any(test, fuzzing))]
    pub(crate) fn live(&self) -> u64 {
        self.inner.engine.pooling_allocator_metrics().map_or(0, |pool| {
            let parts = pool.memories() + pool.tables() + pool.stacks();
            pool.component_instances() + pool.core_instances() + parts as u64
        })
    }

    fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    fn ticker(&self) -> &Ticker {
        &self.inner.ticker
    }

    fn stack(&self) -> ByteSize {
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

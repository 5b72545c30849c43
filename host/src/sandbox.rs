//! Runs guests: compiles and links components, and gives every call a fresh store within its limits.
//!
//! The only module that knows wasmtime. Data flows one way: bytes become a
//! [`Prepared`] component once; a call takes it, an [`Environment`] and
//! arguments, and ends as a [`Finished`]. Nothing of a guest outlives its call.

mod bindings;
mod call;
mod coop;
mod engine;
mod error;
mod http;
mod imports;
mod limiter;
mod output;
mod prepared;
mod state;
mod stdio;

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use wasmtime::Engine;
use wasmtime::component::Linker;

pub use self::call::{Environment, Finished, LogLevel, Observer, Progress, Usage};
use self::engine::Ticker;
pub(crate) use self::error::thousands;
pub use self::error::{CallError, Limit};
pub use self::prepared::{PrepareError, Prepared};
use self::state::State;
use crate::limits::Limits;

/// Threads for guests' blocking host calls (files, name look-ups). A guest can
/// hold one for good, by opening a FIFO for instance, so they are bounded.
const BLOCKING_THREADS: usize = 64;

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
    /// Guests run on threads of their own: whatever they do, the operating
    /// system keeps scheduling the protocol's. `None` only while dropping.
    runtime: Option<Runtime>,
}

impl Sandbox {
    /// Starts the engine and the guests' runtime.
    ///
    /// `slots` is how many guests may live at once; an exhausted pool fails
    /// calls at once, so it must be above what admission lets in. `ceiling`
    /// shapes the pool: no guest can be given more.
    ///
    /// # Errors
    ///
    /// The machine refuses threads or memory.
    pub fn new(slots: u32, stack: ByteSize, ceiling: &Limits) -> anyhow::Result<Self> {
        let engine = engine::build(slots, stack, ceiling)?;
        let linker = prepared::linker(&engine).map_err(|error| anyhow!("failed to link the world: {error:#}"))?;
        let ticker = Ticker::start(&engine)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("toolbay-guest")
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            // Calls arrive through the injection queue: look there often.
            .global_queue_interval(4)
            .build()
            .context("failed to start the guests' runtime")?;
        Ok(Self { inner: Arc::new(Inner { engine, linker, ticker, stack, runtime: Some(runtime) }) })
    }

    /// Compiles and links a component. Blocks, for seconds with megabytes of code.
    ///
    /// # Errors
    ///
    /// Why the bytes are not a plugin.
    pub fn prepare(&self, bytes: &[u8]) -> Result<Prepared, PrepareError> {
        Prepared::new(&self.inner.engine, &self.inner.linker, bytes)
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

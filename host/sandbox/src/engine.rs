//! The wasmtime engines: their configuration, their pools of slots, and the thread that ticks their epochs.
//!
//! The ordinary one runs all components but those with async functions, which need another one: in it, each call costs
//! more, and more code can be reached by strangers.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use toolbay_model::Limits;
use wasmtime::{
    Collector, Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
};

use crate::concurrency::TASKED;

/// Tables per component. No toolchain uses more than a few; `QuickJS` and composed components have one for each core
/// module.
pub(super) const TABLES: usize = 16;

/// Interval at which the epoch advances while calls run. A guest yields at least this often, even during host calls
/// that use no fuel.
const TICK: Duration = Duration::from_millis(2);

/// Ticks without a guest after which the thread sleeps. Waking it costs a call more than all ticks until the next one, if
/// that comes soon.
const IDLE: u32 = 50;

/// Host functions need space on the guest's stack in addition to what the guest may use.
const HOST_STACK: usize = 512 << 10;

/// What the pool keeps of each stack where stacks are given back after use: more than most calls need.
const KEPT_STACK: usize = 16 << 10;

/// Bytes with which the heap of objects begins that are garbage-collected. It grows by doubling: to 120 MiB under a limit of
/// 128 MiB, so that a sixteenth of each limit that is a power of two is left to linear memories.
///
/// Half of it is where objects are made until they are collected. Each collection yields eight times, whatever there is to
/// collect, so that one for each few kilobytes of objects would mostly yield.
const GC_HEAP: u64 = 3840 << 10;

/// Native stacks of a component with async functions: one for each instance within it that has functions, one that waits
/// for the next task, and one while the component is instantiated.
const STACKS: u32 = TASKED + 2;

/// Builds the engine with a pool for `slots` components. Falls back to a smaller pool or to none if the system refuses
/// the address space. Also returns the number of components for which the pool has room, whatever they consist of.
pub(super) fn build(slots: u32, stack: ByteSize, ceiling: &Limits) -> anyhow::Result<(Engine, Option<u32>)> {
    let (least, mut slots) = (slots.min(16), slots);
    while slots > 0 && slots >= least {
        let mut config = config(stack);
        config.allocation_strategy(pool(slots, 1, ceiling));
        match Engine::new(&config) {
            Ok(engine) => return Ok((engine, Some(slots))),
            Err(error) => {
                tracing::warn!(
                    slots,
                    error = %error.root_cause(),
                    "not enough address space for the instance pool; trying a smaller one"
                );
                slots /= 2;
            }
        }
    }
    tracing::warn!("running without an instance pool: every call allocates its memory, which is several times slower");
    let engine = Engine::new(config(stack).allocation_strategy(InstanceAllocationStrategy::OnDemand));
    Ok((engine.map_err(|error| anyhow!("wasmtime rejected the configuration: {error:#}"))?, None))
}

/// Builds the engine for components with async functions, with as large a pool as that of [`build`]. Without the address
/// space for a second one, it has none.
pub(super) fn build_concurrent(slots: Option<u32>, stack: ByteSize, ceiling: &Limits) -> wasmtime::Result<Engine> {
    if let Some(slots) = slots {
        let mut config = concurrent(config(stack));
        config.allocation_strategy(pool(slots, STACKS, ceiling));
        match Engine::new(&config) {
            Ok(engine) => return Ok(engine),
            Err(error) => tracing::warn!(
                slots,
                error = %error.root_cause(),
                "not enough address space for an instance pool of components with async functions: each of their calls \
                 allocates its memory, which is several times slower"
            ),
        }
    }
    Engine::new(concurrent(config(stack)).allocation_strategy(InstanceAllocationStrategy::OnDemand))
}

/// An engine that compiles but runs nothing: it has no pool, because a limited child could not reserve the address
/// space.
///
/// The engine of [`build`] can open its code; a test of the compile cache checks that.
pub(super) fn compiler(stack: ByteSize) -> wasmtime::Result<Engine> {
    Engine::new(config(stack).allocation_strategy(InstanceAllocationStrategy::OnDemand))
}

/// The same for components with async functions. The engine of [`build_concurrent`] can open its code.
pub(super) fn concurrent_compiler(stack: ByteSize) -> wasmtime::Result<Engine> {
    Engine::new(concurrent(config(stack)).allocation_strategy(InstanceAllocationStrategy::OnDemand))
}

/// The native stack of one task, with what host functions need of it.
pub(super) fn stack_size(stack: ByteSize) -> usize {
    usize::try_from(stack.as_u64()).unwrap_or(HOST_STACK).saturating_add(HOST_STACK)
}

/// All settings of the ordinary engine that affect compiled code. The pool does not.
pub(super) fn config(stack: ByteSize) -> Config {
    let stack = usize::try_from(stack.as_u64()).unwrap_or(HOST_STACK);
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        // It costs every call several microseconds, and adds code that strangers can reach.
        .concurrency_support(false)
        .memory_init_cow(true)
        .max_wasm_stack(stack)
        .async_stack_size(stack + HOST_STACK)
        // Multi-memory stays on, because the adapters that connect composed components need it.
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        // What Kotlin, Dart, Java, OCaml and Scheme compile to. A component that uses neither has no heap of objects.
        .wasm_gc(true)
        .wasm_exceptions(true)
        // It gives the processor back after each few thousand objects that it looked at.
        .collector(Collector::Copying)
        .gc_heap_initial_size(GC_HEAP)
        .cranelift_opt_level(OptLevel::Speed);
    config
}

/// The same settings for the engine of components with async functions: what wit-bindgen and the tools of other languages
/// use of the component model's async, and no more.
fn concurrent(mut config: Config) -> Config {
    config
        .concurrency_support(true)
        .wasm_component_model_async(true)
        // A call may fill many stacks. What it touched of them is given back to the system when it ends.
        .async_stack_zeroing(true)
        // Each task that can be suspended anywhere has a stack of its own, and a component could have as many as it liked.
        // Without them it has one for each instance within it: an instance is entered by one task at a time.
        .wasm_component_model_async_stackful(false)
        .wasm_component_model_threading(false)
        .wasm_component_model_more_async_builtins(false)
        .wasm_component_model_error_context(false);
    config
}

/// A pool for `slots` components within `ceiling`, each with so many native stacks.
pub(super) fn pool(slots: u32, stacks: u32, ceiling: &Limits) -> InstanceAllocationStrategy {
    let [instances, memories, tables] =
        [ceiling.instances, ceiling.memories, TABLES].map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(slots)
        .total_stacks(slots.saturating_mul(stacks))
        // As much as each component may have: no component can use up what another one needs.
        .total_core_instances(slots.saturating_mul(instances))
        // The heap of objects of a component is in a memory of its own.
        .total_memories(slots.saturating_mul(memories.saturating_add(1)))
        .total_gc_heaps(slots)
        .total_tables(slots.saturating_mul(tables))
        .max_core_instances_per_component(instances)
        .max_memories_per_component(memories)
        .max_tables_per_component(tables)
        // Per core module. The default is one of each, and some toolchains use several.
        .max_memories_per_module(memories)
        .max_tables_per_module(tables)
        // Without room for a heap of objects, there would be no pool at all. What a component may have is in its limits.
        .max_memory_size(usize::try_from(ceiling.memory.as_u64().max(GC_HEAP)).unwrap_or(usize::MAX))
        .table_elements(ceiling.table_elements)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        // Resetting warm pages in place and skipping untouched ones makes a call twice as fast on one thread and five
        // times as fast on two: without `madvise`, threads do not wait for the lock of the address space.
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(KEPT_STACK)
        .pagemap_scan(Enabled::Auto)
        // Each keeps up to 2 MiB that a guest touched. More than a few dozen would mostly wait for plugins that are
        // seldom called or no longer exist.
        .max_unused_warm_slots(32);
    InstanceAllocationStrategy::Pooling(pool)
}

/// Identifies what decides whether code fits into the engine, besides its settings: the pool and its slots. What was opened
/// under other ones may be too large for these.
pub(super) fn room(slots: Option<u32>, ceiling: &Limits) -> u64 {
    let Limits { instances, memories, memory, table_elements, .. } = ceiling;
    let mut hasher = DefaultHasher::new();
    (slots.is_some(), instances, memories, memory.as_u64(), table_elements, TABLES).hash(&mut hasher);
    hasher.finish()
}

/// Advances the epoch every [`TICK`] while at least one guest runs, and a little longer; sleeps otherwise.
#[derive(Clone)]
pub(super) struct Ticker {
    shared: Arc<Shared>,
}

struct Shared {
    guests: Mutex<Guests>,
    changed: Condvar,
    /// The engines whose epochs it advances. They share one rhythm: a tick costs as much as a store to memory.
    engines: Mutex<Vec<EngineWeak>>,
}

#[derive(Default)]
struct Guests {
    running: usize,
    closed: bool,
    /// Whether the thread sleeps until a guest runs.
    asleep: bool,
}

impl Ticker {
    /// Starts the thread. It ends with the engine or with [`Ticker::close`].
    pub(super) fn start(engine: &Engine) -> anyhow::Result<Self> {
        let engines = Mutex::new(vec![engine.weak()]);
        let shared = Arc::new(Shared { guests: Mutex::default(), changed: Condvar::new(), engines });
        let ticker = Self { shared: Arc::clone(&shared) };
        std::thread::Builder::new()
            .name("toolbay-epoch".into())
            .spawn(move || {
                let mut idle = 0;
                while shared.wait(&mut idle) && shared.tick() {}
            })
            .context("failed to start the epoch thread")?;
        Ok(ticker)
    }

    /// Advances the epoch of this engine as well, from now on.
    pub(super) fn add(&self, engine: &Engine) {
        self.shared.engines.lock().unwrap_or_else(PoisonError::into_inner).push(engine.weak());
    }

    /// Keeps the epoch advancing until the value is dropped.
    pub(super) fn run(&self) -> Ticking {
        self.change(|state| state.running += 1);
        Ticking { ticker: self.clone() }
    }

    /// Whether a guest runs.
    pub(super) fn is_running(&self) -> bool {
        self.shared.guests.lock().unwrap_or_else(PoisonError::into_inner).running > 0
    }

    /// Ends the thread.
    pub(super) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    fn change(&self, work: impl FnOnce(&mut Guests)) {
        let mut state = self.shared.guests.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut state);
        if state.asleep && state.running > 0 || state.closed {
            self.shared.changed.notify_one();
        }
    }
}

impl Shared {
    /// Advances the epochs; false if there is no engine left.
    fn tick(&self) -> bool {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.retain(|engine| {
            engine.upgrade().is_some_and(|engine| {
                engine.increment_epoch();
                true
            })
        });
        !engines.is_empty()
    }

    /// Waits for one tick while a guest runs, or has run within [`IDLE`] ticks; false if the ticker is closed. `idle` counts
    /// the ticks without one.
    fn wait(&self, idle: &mut u32) -> bool {
        let mut state = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        *idle = if state.running > 0 { 0 } else { *idle + 1 };
        if *idle > IDLE {
            state.asleep = true;
            state = self
                .changed
                .wait_while(state, |state| state.running == 0 && !state.closed)
                .unwrap_or_else(PoisonError::into_inner);
            state.asleep = false;
            *idle = 0;
        }
        let (state, _) =
            self.changed.wait_timeout_while(state, TICK, |state| !state.closed).unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }
}

/// A running guest. Dropping it means that it no longer needs the epoch.
pub(super) struct Ticking {
    ticker: Ticker,
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.ticker.change(|state| state.running = state.running.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_address_space_gets_a_smaller_pool_or_none() {
        // 2^31 slots of 4 GiB each exceed what any machine can map.
        let engine = build(u32::MAX / 2, ByteSize::kib(512), &Limits::CEILING);
        assert!(engine.is_ok());
    }
}

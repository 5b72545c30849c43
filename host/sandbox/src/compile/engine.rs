//! The wasmtime engines: their configuration, their pools of slots, and the thread that advances
//! their epochs.
//!
//! The synchronous engine runs all components except those with async functions. Components with
//! async functions run in a second engine, in which each call costs more and guests can reach more
//! host code.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use bytesize::ByteSize;
use parking_lot::{Condvar, Mutex};
use toolbay_model::Limits;
use wasmtime::{
    Collector, Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, OptLevel,
    PoolingAllocationConfig,
};

use crate::component::concurrency::MAX_ASYNC_INSTANCES;

/// Maximum number of tables of a component. No toolchain uses more than a few. `QuickJS` and
/// composed components have one table for each core module.
pub(crate) const MAX_TABLES: usize = 16;

/// Interval at which the epoch advances while calls run. A guest yields at least this often, even
/// during host calls that use no fuel.
const TICK_INTERVAL: Duration = Duration::from_millis(2);

/// Number of ticks without a running guest after which the thread sleeps. If a call arrives soon,
/// waking the thread costs the call more than all the ticks until then.
const MAX_IDLE_TICKS: u32 = 50;

/// Stack space that host functions need in addition to the space for the guest, in bytes.
const HOST_STACK_BYTES: usize = 512 << 10;

/// Bytes of each stack that the pool keeps resident after a call. This is more than most calls
/// need.
const RESIDENT_STACK_BYTES: usize = 16 << 10;

/// Initial size of the garbage-collected heap, in bytes. The heap grows by doubling: to 120 MiB
/// under a limit of 128 MiB, so that a sixteenth of each power-of-two limit remains for linear
/// memories.
///
/// New objects are allocated in one half of the heap until a collection. Each collection yields
/// eight times, however little there is to collect. With a small heap, a guest would spend most of
/// its time yielding.
const INITIAL_GC_HEAP_BYTES: u64 = 3840 << 10;

/// Number of native stacks of a component with async functions: one for each instance with
/// functions, one that waits for the next task, and one during instantiation.
const ASYNC_STACKS_PER_COMPONENT: u32 = MAX_ASYNC_INSTANCES + 2;

/// Builds the synchronous engine with a pool for `slots` components. If the system refuses the
/// address space, falls back to a smaller pool or to no pool. Also returns the number of slots of
/// the pool.
pub(crate) fn build(
    slots: u32,
    stack: ByteSize,
    ceiling: &Limits,
) -> anyhow::Result<(Engine, Option<u32>)> {
    let min_slots = slots.min(16);
    let mut slots = slots;
    while slots > 0 && slots >= min_slots {
        let mut config = config(stack);
        config.allocation_strategy(pooling_strategy(slots, 1, ceiling));
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
    tracing::warn!(
        "running without an instance pool: every call allocates its memory, which is several times slower"
    );
    let engine =
        Engine::new(config(stack).allocation_strategy(InstanceAllocationStrategy::OnDemand));
    Ok((
        engine.map_err(|error| anyhow!("wasmtime rejected the configuration: {error:#}"))?,
        None,
    ))
}

/// Builds the engine for components with async functions, with as many slots as the pool of
/// [`build`]. If the address space does not suffice for a second pool, the engine has none.
pub(crate) fn build_async(
    slots: Option<u32>,
    stack: ByteSize,
    ceiling: &Limits,
) -> wasmtime::Result<Engine> {
    if let Some(slots) = slots {
        let mut config = enable_async(config(stack));
        config.allocation_strategy(pooling_strategy(slots, ASYNC_STACKS_PER_COMPONENT, ceiling));
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
    Engine::new(
        enable_async(config(stack)).allocation_strategy(InstanceAllocationStrategy::OnDemand),
    )
}

/// Builds an engine that compiles but runs nothing. It has no pool, because the child process with
/// its address-space limit could not reserve one.
///
/// The engine of [`build`] can open its code. A test of the compile cache checks this.
pub(crate) fn build_compiler(stack: ByteSize) -> wasmtime::Result<Engine> {
    Engine::new(config(stack).allocation_strategy(InstanceAllocationStrategy::OnDemand))
}

/// Like [`build_compiler`], for components with async functions. The engine of [`build_async`] can
/// open its code.
pub(crate) fn build_async_compiler(stack: ByteSize) -> wasmtime::Result<Engine> {
    Engine::new(
        enable_async(config(stack)).allocation_strategy(InstanceAllocationStrategy::OnDemand),
    )
}

/// Returns the size of the native stack of one task, in bytes, including the space for host
/// functions.
pub(crate) fn stack_size(stack: ByteSize) -> usize {
    usize::try_from(stack.as_u64())
        .unwrap_or(HOST_STACK_BYTES)
        .saturating_add(HOST_STACK_BYTES)
}

/// Returns the configuration of the synchronous engine: all settings that affect compiled code. The
/// pool does not affect it.
pub(crate) fn config(stack: ByteSize) -> Config {
    let stack = usize::try_from(stack.as_u64()).unwrap_or(HOST_STACK_BYTES);
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        // It costs every call several microseconds and lets guests reach more host code.
        .concurrency_support(false)
        .memory_init_cow(true)
        .max_wasm_stack(stack)
        .async_stack_size(stack + HOST_STACK_BYTES)
        // Multi-memory stays on, because the adapters that connect composed components need it.
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        // Kotlin, Dart, Java, OCaml and Scheme compile to these. A component that uses neither has
        // no garbage-collected heap.
        .wasm_gc(true)
        .wasm_exceptions(true)
        // This collector yields after every few thousand objects that it visits.
        .collector(Collector::Copying)
        .gc_heap_initial_size(INITIAL_GC_HEAP_BYTES)
        .cranelift_opt_level(OptLevel::Speed);
    config
}

/// Turns the configuration into that of the engine for components with async functions. It enables
/// only the parts of component-model async that wit-bindgen and the toolchains of other languages
/// use.
fn enable_async(mut config: Config) -> Config {
    config
        .concurrency_support(true)
        .wasm_component_model_async(true)
        // A call may touch many stacks. Their pages are returned to the system when the call ends.
        .async_stack_zeroing(true)
        // A task that can be suspended anywhere needs its own stack, and a component could create
        // any number of these. Without stackful tasks, a component has one stack per instance,
        // because only one task at a time can be inside an instance.
        .wasm_component_model_async_stackful(false)
        .wasm_component_model_threading(false)
        .wasm_component_model_more_async_builtins(false)
        .wasm_component_model_error_context(false);
    config
}

/// Returns the settings of a pool for `slots` components within `ceiling`, each with `stacks`
/// native stacks.
pub(crate) fn pooling_strategy(
    slots: u32,
    stacks: u32,
    ceiling: &Limits,
) -> InstanceAllocationStrategy {
    let [instances, memories, tables] = [ceiling.instances, ceiling.memories, MAX_TABLES]
        .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(slots)
        .total_stacks(slots.saturating_mul(stacks))
        // Every slot gets the maximum, so that no component can exhaust the share of another one.
        .total_core_instances(slots.saturating_mul(instances))
        // The garbage-collected heap of a component is in a separate memory.
        .total_memories(slots.saturating_mul(memories.saturating_add(1)))
        .total_gc_heaps(slots)
        .total_tables(slots.saturating_mul(tables))
        .max_core_instances_per_component(instances)
        .max_memories_per_component(memories)
        .max_tables_per_component(tables)
        // Per core module. The default is one of each, but some toolchains use several.
        .max_memories_per_module(memories)
        .max_tables_per_module(tables)
        // Below the initial size of the garbage-collected heap, wasmtime rejects the pool. The
        // limits of the component still apply.
        .max_memory_size(
            usize::try_from(ceiling.memory.as_u64().max(INITIAL_GC_HEAP_BYTES))
                .unwrap_or(usize::MAX),
        )
        .table_elements(ceiling.table_elements)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        // Resetting warm pages in place and skipping untouched ones makes a call twice as fast on
        // one thread and five times as fast on two: without `madvise`, threads do not wait for the
        // lock of the address space.
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(RESIDENT_STACK_BYTES)
        .pagemap_scan(Enabled::Auto)
        // Each warm slot keeps up to 2 MiB that a guest touched. More than a few dozen warm slots
        // would mostly wait for plugins that are seldom called or no longer exist.
        .max_unused_warm_slots(32);
    InstanceAllocationStrategy::Pooling(pool)
}

/// Returns a fingerprint of the settings, apart from the engine configuration, that decide whether
/// code fits into the engine: the pool and the size of its slots. Code that was opened under other
/// settings may be too large for these.
pub(crate) fn pool_fingerprint(slots: Option<u32>, ceiling: &Limits) -> u64 {
    let Limits {
        instances,
        memories,
        memory,
        table_elements,
        ..
    } = ceiling;
    let mut hasher = DefaultHasher::new();
    (
        slots.is_some(),
        instances,
        memories,
        memory.as_u64(),
        table_elements,
        MAX_TABLES,
    )
        .hash(&mut hasher);
    hasher.finish()
}

/// Handle of the thread that advances the epochs every [`TICK_INTERVAL`] while at least one guest
/// runs, and for [`MAX_IDLE_TICKS`] ticks after that. The rest of the time, the thread sleeps.
#[derive(Clone)]
pub(crate) struct EpochTicker {
    shared: Arc<TickerState>,
}

struct TickerState {
    guests: Mutex<RunningGuests>,
    changed: Condvar,
    /// The engines whose epochs advance. They share one timer, because a tick costs only as much as
    /// a store to memory.
    engines: Mutex<Vec<EngineWeak>>,
}

#[derive(Default)]
struct RunningGuests {
    running: usize,
    closed: bool,
    /// True if the thread sleeps until a guest runs.
    asleep: bool,
}

impl EpochTicker {
    /// Starts the thread. It ends when all engines are dropped or with [`EpochTicker::close`].
    pub(crate) fn start(engine: &Engine) -> anyhow::Result<Self> {
        let engines = Mutex::new(vec![engine.weak()]);
        let shared = Arc::new(TickerState {
            guests: Mutex::default(),
            changed: Condvar::new(),
            engines,
        });
        let ticker = Self {
            shared: Arc::clone(&shared),
        };
        std::thread::Builder::new()
            .name("toolbay-epoch".into())
            .spawn(move || {
                let mut idle = 0;
                while shared.wait(&mut idle) && shared.tick() {}
            })
            .context("failed to start the epoch thread")?;
        Ok(ticker)
    }

    /// Also advances the epoch of `engine`.
    pub(crate) fn add_engine(&self, engine: &Engine) {
        self.shared.engines.lock().push(engine.weak());
    }

    /// Keeps the epochs advancing until the returned guard is dropped.
    pub(crate) fn start_guest(&self) -> TickGuard {
        self.update(|state| state.running += 1);
        TickGuard {
            ticker: self.clone(),
        }
    }

    /// Returns whether a guest runs.
    pub(crate) fn is_running(&self) -> bool {
        self.shared.guests.lock().running > 0
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.update(|state| state.closed = true);
    }

    fn update(&self, work: impl FnOnce(&mut RunningGuests)) {
        let mut state = self.shared.guests.lock();
        work(&mut state);
        if state.asleep && state.running > 0 || state.closed {
            self.shared.changed.notify_one();
        }
    }
}

impl TickerState {
    /// Advances the epochs. Returns false if no engine is left.
    fn tick(&self) -> bool {
        let mut engines = self.engines.lock();
        engines.retain(|engine| {
            engine.upgrade().is_some_and(|engine| {
                engine.increment_epoch();
                true
            })
        });
        !engines.is_empty()
    }

    /// Waits for one tick while a guest runs or has run within [`MAX_IDLE_TICKS`] ticks. Otherwise,
    /// sleeps until a guest runs. Returns false if the ticker is closed. `idle` counts the ticks
    /// without a guest.
    fn wait(&self, idle: &mut u32) -> bool {
        let mut state = self.guests.lock();
        *idle = if state.running > 0 { 0 } else { *idle + 1 };
        if *idle > MAX_IDLE_TICKS {
            state.asleep = true;
            self.changed
                .wait_while(&mut state, |state| state.running == 0 && !state.closed);
            state.asleep = false;
            *idle = 0;
        }
        self.changed
            .wait_while_for(&mut state, |state| !state.closed, TICK_INTERVAL);
        !state.closed
    }
}

/// Guard of a running guest. Dropping it means that the guest no longer needs the epoch.
pub(crate) struct TickGuard {
    ticker: EpochTicker,
}

impl Drop for TickGuard {
    fn drop(&mut self) {
        self.ticker
            .update(|state| state.running = state.running.saturating_sub(1));
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

//! The engines and the host interfaces that are linked in them. There is a synchronous engine and
//! one for components with async functions, which is built when the first such component is opened.

use std::sync::OnceLock;

use anyhow::anyhow;
use bytesize::ByteSize;
use toolbay_model::Limits;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::compile::engine::{self, EpochTicker};
use crate::prepare::linker::build_linker;
use crate::store::state::StoreState;

/// An engine and its linker with the host interfaces. Only the engine for components with async
/// functions has those of WASI 0.3.
pub(crate) struct LinkedEngine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<StoreState>,
}

impl LinkedEngine {
    fn new(engine: Engine, is_async: bool) -> anyhow::Result<Self> {
        let linker = build_linker(&engine, is_async)
            .map_err(|error| anyhow!("failed to link the host's interfaces: {error:#}"))?;
        Ok(Self { engine, linker })
    }
}

/// The two engines and their shared settings.
pub(crate) struct EnginePair {
    sync_engine: LinkedEngine,
    /// The engine for components with async functions, or the error that prevented its
    /// construction.
    async_engine: OnceLock<Result<LinkedEngine, String>>,
    /// True if the second engine is allowed.
    allows_async: bool,
    /// Number of slots of each pool, or `None` without a pool.
    slots: Option<u32>,
    stack: ByteSize,
    ceiling: Limits,
    ticker: EpochTicker,
}

impl EnginePair {
    /// Builds the synchronous engine, with a pool for `slots` components, and starts the epoch
    /// thread.
    pub(crate) fn new(
        slots: u32,
        stack: ByteSize,
        ceiling: Limits,
        allows_async: bool,
    ) -> anyhow::Result<Self> {
        let (engine, slots) = engine::build(slots, stack, &ceiling)?;
        let ticker = EpochTicker::start(&engine)?;
        let sync_engine = LinkedEngine::new(engine, false)?;
        let async_engine = OnceLock::new();
        Ok(Self {
            sync_engine,
            async_engine,
            allows_async,
            slots,
            stack,
            ceiling,
            ticker,
        })
    }

    pub(crate) fn sync_engine(&self) -> &LinkedEngine {
        &self.sync_engine
    }

    /// Returns the engine for a component with async functions in `async_instances` instances, or
    /// the synchronous engine for `None`. Builds the second engine if necessary, which takes
    /// milliseconds.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no engine for components with async functions.
    pub(crate) fn engine_for(&self, async_instances: Option<u32>) -> Result<&LinkedEngine, String> {
        if async_instances.is_none() {
            return Ok(&self.sync_engine);
        }
        if !self.allows_async {
            return Err("engine.async is false".to_owned());
        }
        let async_engine = self.async_engine.get_or_init(|| {
            let engine = engine::build_async(self.slots, self.stack, &self.ceiling);
            let linked = engine
                .map_err(|error| format!("{error:#}"))
                .and_then(|engine| {
                    self.ticker.add_engine(&engine);
                    LinkedEngine::new(engine, true).map_err(|error| format!("{error:#}"))
                });
            linked.map_err(|why| {
                format!("cannot prepare the engine of components with async functions: {why}")
            })
        });
        async_engine.as_ref().map_err(Clone::clone)
    }

    /// Returns the number of slots of the pool of each engine, or `None` without a pool.
    pub(crate) fn slots(&self) -> Option<u32> {
        self.slots
    }

    /// Returns whether the configuration allows the engine that [`EnginePair::engine_for`] returns.
    pub(crate) fn supports(&self, async_instances: Option<u32>) -> bool {
        async_instances.is_none() || self.allows_async
    }

    /// Returns the fingerprint of the pool that code must fit into: see
    /// [`engine::pool_fingerprint`].
    pub(crate) fn pool_fingerprint(&self) -> u64 {
        engine::pool_fingerprint(self.slots, &self.ceiling)
    }

    pub(crate) fn stack(&self) -> ByteSize {
        self.stack
    }

    pub(crate) fn ticker(&self) -> &EpochTicker {
        &self.ticker
    }

    /// Returns the number of pool entries in use. It is zero if no guest is alive.
    pub(crate) fn pool_usage(&self) -> u64 {
        let async_engine = self
            .async_engine
            .get()
            .and_then(|result| result.as_ref().ok());
        let engines = std::iter::once(&self.sync_engine).chain(async_engine);
        engines
            .filter_map(|linked| linked.engine.pooling_allocator_metrics())
            .map(|pool| {
                let parts = pool.memories() + pool.tables() + pool.stacks();
                pool.component_instances() + pool.core_instances() + parts as u64
            })
            .sum()
    }

    /// Returns whether the engine for components with async functions was built.
    #[cfg(test)]
    fn has_async_engine(&self) -> bool {
        self.async_engine.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::test_sandbox::{TrialComponent, sandbox};

    const MODULE: &str = r#"(core module $m
        (import "" "return" (func $return (param i32)))
        (func (export "two") (result i32) (i32.const 2))
        (func (export "three") (result i32) (call $return (i32.const 3)) (i32.const 0))
        (func (export "callback") (param i32 i32 i32) (result i32) unreachable))"#;
    const TWO: &str = r#"(func (export "two") (result u32) (canon lift (core func $i "two")))"#;

    #[test]
    fn the_second_engine_is_made_for_the_first_component_with_async_functions() {
        let sandbox = sandbox();
        let ordinary = r#"(component (core module $m (func (export "two") (result i32) (i32.const 2)))
            (core instance $i (instantiate $m))"#;
        let ordinary = TrialComponent::new(
            &sandbox,
            wat::parse_str(format!("{ordinary} {TWO})")).unwrap(),
        )
        .unwrap();
        let two = |loaded: &TrialComponent| {
            loaded
                .call("two", &json!({}))
                .unwrap()
                .structured
                .unwrap()
                .to_string()
        };
        assert_eq!(two(&ordinary), r#"{"result":2}"#);
        assert!(!sandbox.engines().has_async_engine());
        let text = format!(
            r#"(component {MODULE} (core func $return (canon task.return (result u32)))
              (core instance $i (instantiate $m (with "" (instance (export "return" (func $return))))))
              {TWO}
              (func (export "three") async (result u32)
                (canon lift (core func $i "three") async (callback (core func $i "callback")))))"#
        );
        let concurrent = TrialComponent::new(&sandbox, wat::parse_str(text).unwrap()).unwrap();
        assert!(sandbox.engines().has_async_engine());
        let three = concurrent
            .call("three", &json!({}))
            .unwrap()
            .structured
            .unwrap()
            .to_string();
        assert_eq!(
            (two(&concurrent), three),
            (two(&ordinary), r#"{"result":3}"#.to_owned())
        );
        assert_eq!(
            sandbox.pool_usage(),
            0,
            "all slots of both pools are free again"
        );
    }
}

//! Limits the memory and tables of one store, and charges them to the call's memory budget.

use wasmtime::ResourceLimiter;

use toolbay_model::Limits;

use crate::capability::memory_budget::MemoryBudget;

/// Size of a table element, in bytes: a pointer.
const TABLE_ELEMENT_BYTES: usize = size_of::<usize>();

/// Resource limiter that counts all memories of a component together. `wasmtime::StoreLimits`
/// bounds each one separately, so that a component with eight memories would get eight times the
/// limit.
#[derive(Debug)]
pub(crate) struct StoreLimiter {
    memory_budget: MemoryBudget,
    table_limit: usize,
    instances: usize,
    memories: usize,
    /// True if the growth of a table was denied.
    pub(crate) table_refused: bool,
    /// The sizes of the first and the last memory whose growth was denied, in bytes.
    memory_refused: Option<(usize, usize)>,
}

impl StoreLimiter {
    pub(crate) fn new(limits: &Limits, memory_budget: MemoryBudget) -> Self {
        Self {
            memory_budget,
            table_limit: limits.table_elements,
            instances: limits.instances,
            memories: limits.memories,
            table_refused: false,
            memory_refused: None,
        }
    }

    /// Returns whether the growth of a linear memory was denied. `heap` is the size of the
    /// garbage-collected heap of the store. The heap is a memory, too, but if it cannot grow it is
    /// collected, so its denial is not significant.
    pub(crate) fn memory_refused(&self, heap: usize) -> bool {
        let is_linear = |size: usize| size == 0 || size != heap;
        self.memory_refused
            .is_some_and(|(first, last)| is_linear(first) || is_linear(last))
    }
}

impl ResourceLimiter for StoreLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = self
            .memory_budget
            .try_charge(desired.saturating_sub(current))
            .is_ok();
        if !granted {
            let first = self.memory_refused.map_or(current, |(first, _)| first);
            self.memory_refused = Some((first, current));
        }
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.table_limit {
            self.table_refused = true;
            return Ok(false);
        }
        Ok(self
            .memory_budget
            .charge(
                desired
                    .saturating_sub(current)
                    .saturating_mul(TABLE_ELEMENT_BYTES),
            )
            .is_ok())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.memories
    }

    fn tables(&self) -> usize {
        crate::compile::engine::MAX_TABLES
    }
}

#[cfg(test)]
mod tests {
    use bytesize::ByteSize;

    use super::*;

    #[test]
    fn memories_and_tables_count_together() {
        let account = MemoryBudget::new(ByteSize::b(100));
        let mut limiter = StoreLimiter::new(&Limits::DEFAULT, account.clone());
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(
            !limiter.memory_growing(0, 60, None).unwrap(),
            "a second memory of 60 makes 120"
        );
        assert!(limiter.memory_refused(0));
        assert!(limiter.table_growing(0, 5, None).unwrap());
        assert_eq!(account.peak(), 100);
        assert!(!limiter.table_growing(5, 6, None).unwrap());
        assert!(!limiter.table_refused, "it was the memory");
    }

    #[test]
    fn denied_growth_of_the_gc_heap_does_not_count() {
        let mut limiter = StoreLimiter::new(&Limits::DEFAULT, MemoryBudget::new(ByteSize::b(100)));
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(60, 120, None).unwrap());
        assert!(!limiter.memory_refused(60) && limiter.memory_refused(0));
        assert!(!limiter.memory_growing(20, 80, None).unwrap());
        assert!(!limiter.memory_growing(60, 120, None).unwrap());
        assert!(
            !limiter.memory_refused(60),
            "the heap was refused first and last"
        );
        assert!(!limiter.memory_growing(0, 80, None).unwrap());
        assert!(limiter.memory_refused(60), "a memory could not even begin");
    }
}

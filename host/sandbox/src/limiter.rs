//! Limits the memory and tables of one store, and records the peak.

use wasmtime::ResourceLimiter;

use toolbay_model::Limits;

/// Counts all memories of a component together. `wasmtime::StoreLimits` limits each one separately, so a component with
/// eight memories would get eight times the limit.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_limit: usize,
    table_limit: usize,
    instances: usize,
    memories: usize,
    memory: usize,
    /// The peak of linear memory in bytes.
    pub(crate) peak: usize,
    /// The growth of a memory was denied.
    pub(crate) memory_refused: bool,
    /// The growth of a table was denied.
    pub(crate) table_refused: bool,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory_limit: usize::try_from(limits.memory.as_u64()).unwrap_or(usize::MAX),
            table_limit: limits.table_elements,
            instances: limits.instances,
            memories: limits.memories,
            memory: 0,
            peak: 0,
            memory_refused: false,
            table_refused: false,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let memory = self.memory.saturating_add(desired.saturating_sub(current));
        if memory > self.memory_limit {
            self.memory_refused = true;
            return Ok(false);
        }
        self.memory = memory;
        self.peak = self.peak.max(memory);
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table_limit {
            self.table_refused = true;
            return Ok(false);
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.memories
    }

    fn tables(&self) -> usize {
        crate::engine::TABLES
    }
}

#[cfg(test)]
mod tests {
    use bytesize::ByteSize;

    use super::*;

    #[test]
    fn memories_count_together() {
        let mut limiter = Limiter::new(&Limits { memory: ByteSize::b(100), ..Limits::DEFAULT });
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap(), "a second memory of 60 makes 120");
        assert!(limiter.memory_refused);
        assert!(limiter.memory_growing(60, 100, None).unwrap());
        assert_eq!(limiter.peak, 100);
    }
}

//! Memory and tables of one store: refuses growth past the limits, and draws the rest from the call's account.

use wasmtime::ResourceLimiter;

use toolbay_model::Limits;

use crate::account::Account;

/// Bytes of a table's element: a pointer.
const ELEMENT: usize = size_of::<usize>();

/// Counts all memories of a component together: `wasmtime::StoreLimits` bounds each alone,
/// so that a component with eight of them would get eight times the limit.
#[derive(Debug)]
pub(crate) struct Limiter {
    account: Account,
    table_limit: usize,
    instances: usize,
    memories: usize,
    /// A table was refused its growth.
    pub(crate) table_refused: bool,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits, account: Account) -> Self {
        Self {
            account,
            table_limit: limits.table_elements,
            instances: limits.instances,
            memories: limits.memories,
            table_refused: false,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.account.take(desired.saturating_sub(current)).is_ok())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table_limit {
            self.table_refused = true;
            return Ok(false);
        }
        Ok(self.account.take(desired.saturating_sub(current).saturating_mul(ELEMENT)).is_ok())
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
    fn memories_and_tables_count_together() {
        let account = Account::new(ByteSize::b(100));
        let mut limiter = Limiter::new(&Limits::DEFAULT, account.clone());
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap(), "a second memory of 60 makes 120");
        assert!(account.is_overdrawn());
        assert!(limiter.table_growing(0, 5, None).unwrap());
        assert_eq!(account.peak(), 100);
        assert!(!limiter.table_growing(5, 6, None).unwrap());
        assert!(!limiter.table_refused, "it was the memory");
    }
}

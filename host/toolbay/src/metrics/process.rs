//! What the system says of this process.

use std::time::Duration;

use procfs::process::{LimitValue, Process as Proc};
use procfs::{page_size, ticks_per_second};

/// What the system says of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessFigures {
    /// Time on processors, in user code and in the system.
    pub(crate) cpu: Duration,
    /// Bytes of memory that are there.
    pub(crate) resident: u64,
    /// Bytes of address space.
    pub(crate) virtual_memory: u64,
    /// Threads.
    pub(crate) threads: u64,
    /// Descriptors that are open.
    pub(crate) descriptors: Option<u64>,
    /// How many can be; `None` if nothing limits it.
    pub(crate) most_descriptors: Option<u64>,
}

impl ProcessFigures {
    /// This process; `None` if the system does not say. Blocks for as long as the system takes to count descriptors.
    pub(crate) fn read() -> Option<Self> {
        let process = Proc::myself().ok()?;
        let stat = process.stat().ok()?;
        let most = process.limits().ok().map(|limits| limits.max_open_files.soft_limit);
        let ticks = u32::try_from(ticks_per_second()).ok()?.max(1);
        Some(Self {
            cpu: Duration::from_secs(stat.utime.saturating_add(stat.stime)) / ticks,
            resident: stat.rss.saturating_mul(page_size()),
            virtual_memory: stat.vsize,
            threads: u64::try_from(stat.num_threads).unwrap_or_default(),
            descriptors: process.fd_count().ok().map(|count| count as u64),
            most_descriptors: most.and_then(|most| match most {
                LimitValue::Value(most) => Some(most),
                LimitValue::Unlimited => None,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_threads_and_descriptors() {
        let process = ProcessFigures::read().unwrap();
        assert!(process.resident > 1 << 20 && process.virtual_memory >= process.resident, "{process:?}");
        assert!(process.threads >= 1 && process.descriptors.unwrap() >= 3, "{process:?}");
    }
}

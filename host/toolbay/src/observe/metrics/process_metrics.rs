//! Figures of this process, as the system reports them.

use std::time::Duration;

use procfs::process::{LimitValue, Process as Proc};
use procfs::{page_size, ticks_per_second};

/// Figures of this process, as the system reports them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessGauges {
    /// CPU time in user and kernel mode.
    pub(crate) cpu: Duration,
    /// Resident memory in bytes.
    pub(crate) resident: u64,
    /// Size of the address space in bytes.
    pub(crate) virtual_memory: u64,
    /// Number of threads.
    pub(crate) threads: u64,
    /// Number of open descriptors.
    pub(crate) descriptors: Option<u64>,
    /// Maximum number of open descriptors; `None` if unlimited.
    pub(crate) most_descriptors: Option<u64>,
}

impl ProcessGauges {
    /// Reads the figures of this process. Returns `None` if the system does not provide them.
    /// Blocks while the system counts descriptors.
    pub(crate) fn read() -> Option<Self> {
        let process = Proc::myself().ok()?;
        let stat = process.stat().ok()?;
        let most = process
            .limits()
            .ok()
            .map(|limits| limits.max_open_files.soft_limit);
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
        let process = ProcessGauges::read().unwrap();
        assert!(
            process.resident > 1 << 20 && process.virtual_memory >= process.resident,
            "{process:?}"
        );
        assert!(
            process.threads >= 1 && process.descriptors.unwrap() >= 3,
            "{process:?}"
        );
    }
}

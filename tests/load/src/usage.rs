//! The resources that a server and its child processes use.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use toolbay_testkit::process_usage::vitals;

/// Returns the CPU time of a process and its children. The scheduler counts it in nanoseconds,
/// which is finer than the clock ticks of `stat`. It excludes threads that have ended.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))
        .context("the server has ended")?
        .flatten()
    {
        // A thread may end while it is inspected.
        let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else {
            continue;
        };
        let spent = text
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .context("no times of threads")?;
        sum += Duration::from_nanos(spent);
    }
    for child in children(pid) {
        sum += cpu(child).unwrap_or_default();
    }
    Ok(sum)
}

/// The memory of a process and its children, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// The resident memory. Shared pages count for each process.
    pub resident: u64,
    /// The part that is not backed by a file, such as the program: the kernel cannot reload it.
    pub own: u64,
}

/// Returns the memory of a process and its children.
pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let vitals = vitals(pid)?;
    let mut sum = Memory {
        resident: vitals.resident,
        own: vitals.anonymous,
    };
    for child in children(pid) {
        let Memory { resident, own } = memory(child).unwrap_or_default();
        sum = Memory {
            resident: sum.resident + resident,
            own: sum.own + own,
        };
    }
    Ok(sum)
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        assert!(cpu(std::process::id()).unwrap() > Duration::ZERO);
        let Memory { resident, own } = memory(std::process::id()).unwrap();
        assert!(0 < own && own < resident);
    }
}

//! The resource usage of a running process, as reported by Linux.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// A snapshot of the resource usage of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// Resident memory, in KiB.
    pub resident: u64,
    /// Resident memory that is not backed by a file, in KiB.
    pub anonymous: u64,
    /// Resident memory that is backed by a file, in KiB.
    pub files: u64,
    /// Maximum resident memory since [`reset_peak_memory`], in KiB.
    pub peak: u64,
    /// Number of threads.
    pub threads: u64,
    /// Number of open file descriptors.
    pub descriptors: u64,
    /// CPU time used so far, in user and kernel mode.
    pub cpu: Duration,
}

/// Reads the resource usage of a process. Fails if there is no `/proc`.
pub fn vitals(pid: u32) -> Result<ProcessUsage> {
    system::vitals(pid)
}

/// Resets the peak resident memory of a process. Fails if there is no `/proc` or the process
/// belongs to another user.
pub fn reset_peak_memory(pid: u32) -> Result<()> {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5")
        .context("failed to forget the peak of memory")
}

/// Returns the CPU time of all descendant processes that have exited and been waited for. Fails if
/// there is no `/proc`.
pub fn cpu_of_children() -> Result<Duration> {
    system::cpu_of_children()
}

/// Returns the load average of the last minute. Fails if there is no `/proc`.
pub fn load_average() -> Result<f64> {
    system::load_average()
}

#[cfg(target_os = "linux")]
mod system {
    use std::time::Duration;

    use anyhow::{Context, Result};
    use procfs::Current as _;
    use procfs::process::Process;

    use super::ProcessUsage;

    pub(super) fn vitals(pid: u32) -> Result<ProcessUsage> {
        let read = || -> Result<ProcessUsage> {
            let process = Process::new(pid.try_into()?)?;
            let status = process.status()?;
            let stat = process.stat()?;
            Ok(ProcessUsage {
                resident: status.vmrss.context("no VmRSS")?,
                anonymous: status.rssanon.context("no RssAnon")?,
                files: status.rssfile.context("no RssFile")?,
                peak: status.vmhwm.context("no VmHWM")?,
                threads: status.threads,
                descriptors: process.fd_count()? as u64,
                cpu: ticks(stat.utime + stat.stime),
            })
        };
        read().with_context(|| format!("failed to read what process {pid} holds"))
    }

    pub(super) fn cpu_of_children() -> Result<Duration> {
        let stat = Process::myself()
            .and_then(|process| process.stat())
            .context("failed to read /proc/self/stat")?;
        let ticks_of_children = u64::try_from(stat.cutime + stat.cstime).unwrap_or_default();
        Ok(ticks(ticks_of_children))
    }

    pub(super) fn load_average() -> Result<f64> {
        let load = procfs::LoadAverage::current().context("failed to read the load average")?;
        // Round to two decimal digits, as Linux reports it.
        Ok((f64::from(load.one) * 100.0).round() / 100.0)
    }

    fn ticks(ticks: u64) -> Duration {
        Duration::from_millis(ticks * 1000 / procfs::ticks_per_second().max(1))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use anyhow::{Result, bail};

    use super::ProcessUsage;

    pub(super) fn vitals(_: u32) -> Result<ProcessUsage> {
        bail!("what a process holds is read from /proc, which Linux has")
    }

    pub(super) fn cpu_of_children() -> Result<std::time::Duration> {
        bail!("the processor time of children is read from /proc, which Linux has")
    }

    pub(super) fn load_average() -> Result<f64> {
        bail!("the load average is read from /proc, which Linux has")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_resources_of_this_process_are_read() {
        let vitals = vitals(std::process::id()).unwrap();
        assert!(vitals.resident > 0 && vitals.resident >= vitals.anonymous);
        assert!(
            vitals.peak >= vitals.resident - vitals.resident / 10 && vitals.resident > vitals.files
        );
        reset_peak_memory(std::process::id()).unwrap();
        assert!(vitals.threads > 0 && vitals.descriptors > 2);
        assert!(load_average().unwrap() >= 0.0);
        assert!(cpu_of_children().is_ok());
        assert!(super::vitals(u32::MAX).is_err());
    }
}

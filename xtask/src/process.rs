//! What a running process holds, as Linux tells it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Processor time is told in hundredths of a second, whatever the kernel's own clock does (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// What a process holds at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vitals {
    /// Resident memory, in KiB.
    pub(crate) resident: u64,
    /// The part of it that is no page of a file, in KiB.
    pub(crate) anonymous: u64,
    /// Threads.
    pub(crate) threads: u64,
    /// Open file descriptors.
    pub(crate) descriptors: u64,
    /// Processor time used so far.
    pub(crate) cpu: Duration,
}

/// Reads what a process holds.
pub(crate) fn vitals(pid: u32) -> Result<Vitals> {
    let read = |name: &str| {
        let path = format!("/proc/{pid}/{name}");
        fs::read_to_string(&path).with_context(|| format!("failed to read {path} (this command needs Linux)"))
    };
    let status = read("status")?;
    let resident = number(&status, "VmRSS:")?;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).context("failed to list the open files")?.count();
    Ok(Vitals {
        resident,
        anonymous: number(&status, "RssAnon:")?,
        threads: number(&status, "Threads:")?,
        descriptors: descriptors as u64,
        cpu: cpu(&read("stat")?)?,
    })
}

/// The processor time of all processes that this one started and that have ended, and of theirs; `None` where there is
/// no `/proc`.
pub(crate) fn cpu_of_children() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    times(&stat, 13).ok()
}

/// The value of a line of `status`.
fn number(status: &str, name: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    value.with_context(|| format!("no {name} in what Linux says of the process"))
}

/// What the process itself used: the 14th and 15th field of `stat`.
fn cpu(stat: &str) -> Result<Duration> {
    times(stat, 11)
}

/// The sum of the times in user and in kernel mode, so many fields after the program's name.
fn times(stat: &str, after: usize) -> Result<Duration> {
    // The second field is the program's name, which may hold anything; a parenthesis ends it.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: Vec<u32> = fields.skip(after).take(2).filter_map(|field| field.parse().ok()).collect();
    match ticks.as_slice() {
        [user, system] => Ok(TICK * (user + system)),
        _ => anyhow::bail!("no times in what Linux says of the process"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_read() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 25 17 0 0 20 0 5 0 100";
        assert_eq!(cpu(stat).unwrap(), Duration::from_millis(420));
        assert_eq!(times(stat, 13).unwrap(), Duration::ZERO);
        assert_eq!(number("VmPeak:\t 9 kB\nVmRSS:\t    1234 kB\n", "VmRSS:").unwrap(), 1234);
        assert!(number("", "VmRSS:").is_err() && cpu("").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_holds_something() {
        let vitals = vitals(std::process::id()).unwrap();
        assert!(vitals.resident > 0 && vitals.threads > 0 && vitals.descriptors > 2);
    }
}

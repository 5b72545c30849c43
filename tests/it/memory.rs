//! The memory of a running server.

use std::fs;

/// Returns the resident memory of a process in KiB, without file-backed pages. Those contain the
/// parts of its program that were needed so far.
pub(crate) fn resident(pid: u32) -> u64 {
    status(pid, "VmRSS:") - status(pid, "RssFile:")
}

/// Returns a value of a process in KiB (proc(5), `status`).
pub(crate) fn status(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

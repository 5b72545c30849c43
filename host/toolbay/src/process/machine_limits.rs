//! Memory and descriptor limits of the machine, as they apply to this process.

use std::sync::OnceLock;

use bytesize::ByteSize;
use procfs::{Current as _, Meminfo};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Highest descriptor limit that this process requests. Some systems allow a billion.
const MAX_DESCRIPTORS: u64 = 1 << 20;

/// Number of files that a server with some dozens of plugins and clients opens. With fewer, it may
/// refuse connections.
pub(crate) const COMMON_DESCRIPTORS: u64 = 1_024;

/// Number of threads that a server starts on a machine with many processors.
pub(crate) const COMMON_THREADS: u64 = 256;

/// Returns one line for each limit of the shell or the service manager that is too low for a common
/// server, with the number and the remedy.
pub(crate) fn low_limits() -> Vec<String> {
    low_limits_of(
        getrlimit(Resource::Nofile).maximum,
        getrlimit(Resource::Nproc).maximum,
        getrlimit(Resource::As).current,
    )
}

fn low_limits_of(
    descriptors: Option<u64>,
    threads: Option<u64>,
    address_space: Option<u64>,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(limit) = descriptors.filter(|limit| *limit < COMMON_DESCRIPTORS) {
        lines.push(format!(
            "only {limit} files can be open (ulimit -n), and a server commonly needs {COMMON_DESCRIPTORS}: connections and \
             plugins may fail; raise the limit"
        ));
    }
    if let Some(limit) = threads.filter(|limit| *limit < COMMON_THREADS) {
        lines.push(format!(
            "only {limit} threads of this account can run (ulimit -u), and a server commonly needs {COMMON_THREADS}: calls and \
             compilations may fail; raise the limit"
        ));
    }
    if let Some(limit) = address_space {
        lines.push(format!(
            "the address space is limited to {} (ulimit -v): calls and compilations may fail, because sandboxes reserve address \
             space in advance; remove this limit, and limit memory with a control group",
            ByteSize::b(limit).display().iec()
        ));
    }
    lines
}

/// Returns the machine's memory in bytes, or the smallest limit of a control group above this
/// process if that is less. Returns 0 if neither can be read. Reads the system once.
pub(crate) fn available_memory() -> u64 {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    *MEMORY.get_or_init(read_memory)
}

fn read_memory() -> u64 {
    let machine = Meminfo::current().map_or(0, |memory| memory.mem_total);
    cgroup_memory_limit().map_or(machine, |group| group.min(machine))
}

/// Raises the limit of open files as far as the system allows. Shells commonly start programs with
/// 1,024, which a thousand plugins exceed. A failure is only logged.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let target = maximum.map_or(MAX_DESCRIPTORS, |maximum| maximum.min(MAX_DESCRIPTORS));
    if current.is_none_or(|current| current >= target) {
        return;
    }
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(target),
            maximum,
        },
    ) {
        Ok(()) => tracing::debug!("raised the number of files that can be open to {target}"),
        Err(error) => {
            tracing::warn!(
                "cannot raise the number of files that can be open to {target}: {error}"
            );
        }
    }
}

/// Returns the smallest `memory.max` from this process's control group up to the root. Returns
/// `None` if there is no limit, or only one of control groups version 1.
fn cgroup_memory_limit() -> Option<u64> {
    let groups = procfs::process::Process::myself().ok()?.cgroups().ok()?;
    // Version 2 has one hierarchy, with number 0.
    let group = groups.into_iter().find(|group| group.hierarchy == 0)?;
    let path =
        std::path::PathBuf::from("/sys/fs/cgroup").join(group.pathname.trim_start_matches('/'));
    let limits = path
        .ancestors()
        .take_while(|folder| folder.starts_with("/sys/fs/cgroup"));
    limits
        .filter_map(|folder| {
            std::fs::read_to_string(folder.join("memory.max"))
                .ok()?
                .trim()
                .parse()
                .ok()
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_reported_with_its_number() {
        assert!(low_limits_of(None, None, None).is_empty());
        assert!(low_limits_of(Some(1_024), Some(256), None).is_empty());
        let lines = low_limits_of(Some(64), Some(20), Some(1 << 30)).join("\n");
        for part in [
            "only 64 files can be open (ulimit -n)",
            "only 20 threads of this account can run (ulimit -u)",
            "limited to 1.0 GiB (ulimit -v)",
        ] {
            assert!(lines.contains(part), "{lines}");
        }
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(available_memory() > 1 << 20);
    }
}

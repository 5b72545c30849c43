//! Memory and descriptor limits of the machine, as they apply to this process.

use std::sync::OnceLock;

use procfs::{Current as _, Meminfo};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Highest descriptor limit that this process requests. Some systems allow a billion.
const MAX_DESCRIPTORS: u64 = 1 << 20;

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
    fn this_machine_has_memory() {
        assert!(available_memory() > 1 << 20);
    }
}

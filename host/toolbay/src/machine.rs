//! What the machine has, as far as this process may use it.

use procfs::{Current as _, Meminfo};

/// Bytes of memory of the machine, or of the smallest control group above this process. 0 if neither can be read.
pub(crate) fn memory() -> u64 {
    let machine = Meminfo::current().map_or(0, |memory| memory.mem_total);
    group_limit().map_or(machine, |group| group.min(machine))
}

/// The smallest `memory.max` from this process's control group up to the root; `None` if nothing limits it, or only by
/// version 1 of control groups.
fn group_limit() -> Option<u64> {
    let groups = procfs::process::Process::myself().ok()?.cgroups().ok()?;
    // Version 2 has one hierarchy, whose number is 0.
    let group = groups.into_iter().find(|group| group.hierarchy == 0)?;
    let path = std::path::PathBuf::from("/sys/fs/cgroup").join(group.pathname.trim_start_matches('/'));
    let limits = path.ancestors().take_while(|folder| folder.starts_with("/sys/fs/cgroup"));
    limits.filter_map(|folder| std::fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        assert!(memory() > 1 << 20);
    }
}

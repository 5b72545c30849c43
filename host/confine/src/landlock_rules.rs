//! Landlock: restricts file access and denies listening on TCP ports.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, PathFd, RestrictSelfAttr as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope,
};

use crate::landlock_versions::missing_restrictions;
use crate::plan::ConfinementPlan;
use crate::reachable_files::ReachableFiles;

/// Newest Landlock version whose restrictions have been reviewed for this crate. On a newer kernel,
/// these are enforced.
const REVIEWED_ABI: ABI = ABI::V8;

/// Restrictions that Landlock enforces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LandlockReport {
    /// Landlock version of the kernel.
    pub(crate) version: u32,
    /// Promised restrictions that are not enforced; empty if nothing is missing.
    pub(crate) missing: Vec<String>,
    pub(crate) reachable_files: ReachableFiles,
}

/// Restricts the process to the files of `plan`.
///
/// # Errors
///
/// Returns the reason, as the end of a sentence.
pub(crate) fn restrict(plan: &ConfinementPlan) -> Result<LandlockReport, String> {
    let mut reachable_files = ReachableFiles::default();
    // Not every kernel can confine all threads, so request it only if there are several.
    let is_single_threaded = count_threads() == Some(1);
    let status = enforce(plan, is_single_threaded, &mut reachable_files)
        .map_err(|error| error.to_string())?;
    match (status.landlock, status.ruleset) {
        (LandlockStatus::NotEnabled, _) => Err("the kernel has it switched off".to_owned()),
        (LandlockStatus::NotImplemented, _) => Err("the kernel does not have it".to_owned()),
        (_, RulesetStatus::NotEnforced) => Err("the kernel enforces nothing of it".to_owned()),
        (
            LandlockStatus::Available {
                effective_abi,
                kernel_abi,
            },
            enforced,
        ) => {
            let version = kernel_abi
                .and_then(|version| u32::try_from(version).ok())
                .unwrap_or(effective_abi as u32);
            let is_fully_enforced = enforced == RulesetStatus::FullyEnforced;
            Ok(LandlockReport {
                version,
                missing: missing_restrictions(
                    version,
                    is_fully_enforced,
                    is_single_threaded || status.all_threads,
                ),
                reachable_files,
            })
        }
    }
}

fn enforce(
    plan: &ConfinementPlan,
    is_single_threaded: bool,
    reachable_files: &mut ReachableFiles,
) -> Result<landlock::RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(REVIEWED_ABI))?
        // The server's sockets already listen. Outgoing connections are not restricted here because
        // grants change at run time.
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::Signal)?
        .scope(Scope::AbstractUnixSocket)?;
    let mut created_ruleset = ruleset.create()?.all_threads(!is_single_threaded)?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // Devices, sockets and pipes cannot be created, and written files cannot be executed.
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let execute = AccessFs::ReadFile | AccessFs::Execute;
    let remove = BitFlags::from(AccessFs::RemoveFile);
    for (paths, access) in [
        (&plan.read, read),
        (&plan.write, write),
        (&plan.remove, remove),
        (&plan.execute, execute),
    ] {
        for path in paths {
            // Paths that do not exist need no rule.
            let Ok(path_fd) = PathFd::new(path) else {
                continue;
            };
            created_ruleset = created_ruleset
                .add_rule(PathBeneath::new(path_fd, applicable_access(path, access)))?;
            if access != remove {
                reachable_files.insert(path, access == write);
            }
        }
    }
    created_ruleset.restrict_self()
}

/// Returns the part of `access` that applies to `path`: files support fewer rights than
/// directories.
fn applicable_access(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(REVIEWED_ABI)
    }
}

/// Returns the number of threads of this process.
fn count_threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

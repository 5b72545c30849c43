//! Landlock: which files can be used, and no listening on ports.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    RestrictSelfAttr as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use crate::plan::ConfinementPlan;
use crate::promise::missing;
use crate::reach::ReachableFiles;

/// The newest version of Landlock whose restrictions were thought through here. A newer kernel enforces these.
const KNOWN: ABI = ABI::V8;

/// What Landlock enforces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LandlockReport {
    /// The version of Landlock that the kernel has.
    pub(crate) version: u32,
    /// What it does not do of what is promised; empty if nothing is missing.
    pub(crate) missing: Vec<String>,
    pub(crate) reach: ReachableFiles,
}

/// Confines the process to the files of `plan`.
///
/// # Errors
///
/// Why not, as the end of a sentence.
pub(crate) fn restrict(plan: &ConfinementPlan) -> Result<LandlockReport, String> {
    let mut reach = ReachableFiles::default();
    // A kernel that cannot confine all threads is asked to only where there are several.
    let is_alone = threads() == Some(1);
    let status = enforce(plan, is_alone, &mut reach).map_err(|error| error.to_string())?;
    match (status.landlock, status.ruleset) {
        (LandlockStatus::NotEnabled, _) => Err("the kernel has it switched off".to_owned()),
        (LandlockStatus::NotImplemented, _) => Err("the kernel does not have it".to_owned()),
        (_, RulesetStatus::NotEnforced) => Err("the kernel enforces nothing of it".to_owned()),
        (LandlockStatus::Available { effective_abi, kernel_abi }, enforced) => {
            let version = kernel_abi.and_then(|version| u32::try_from(version).ok()).unwrap_or(effective_abi as u32);
            let is_whole = enforced == RulesetStatus::FullyEnforced;
            Ok(LandlockReport { version, missing: missing(version, is_whole, is_alone || status.all_threads), reach })
        }
    }
}

fn enforce(
    plan: &ConfinementPlan,
    is_alone: bool,
    reach: &mut ReachableFiles,
) -> Result<landlock::RestrictionStatus, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        // Whoever serves listens already. Where to connect to is not decided here: grants come and go.
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::Signal)?
        .scope(Scope::AbstractUnixSocket)?;
    let mut created = ruleset.create()?.all_threads(!is_alone)?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // Devices, sockets and pipes are not made, and nothing that was written is executed.
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
    for (paths, access) in [(&plan.read, read), (&plan.write, write), (&plan.remove, remove), (&plan.execute, execute)]
    {
        for path in paths {
            // What is not there needs no rule.
            let Ok(opened) = PathFd::new(path) else { continue };
            created = created.add_rule(PathBeneath::new(opened, fitting(path, access)))?;
            if access != remove {
                reach.note(path, access == write);
            }
        }
    }
    created.restrict_self()
}

/// What of `access` a file can have, if `path` is one.
fn fitting(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(KNOWN) }
}

/// How many threads this process has.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

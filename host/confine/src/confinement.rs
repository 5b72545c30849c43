//! Confines the process and reports the result.

use std::fmt;
use std::sync::Arc;

use crate::plan::ConfinementPlan;
use crate::reachable_files::ReachableFiles;
use crate::{landlock_rules, privileges, seccomp_filters};

/// Result of confining a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinementReport {
    files: Result<landlock_rules::LandlockReport, String>,
    syscalls: Result<(), String>,
    privileges: Result<(), String>,
}

/// Confines this process to `plan`, as far as the kernel supports it. The confinement cannot be
/// undone and also applies to child processes. Call this while the process has one thread.
pub fn confine(plan: &ConfinementPlan) -> ConfinementReport {
    let files = landlock_rules::restrict(plan);
    ConfinementReport {
        files,
        privileges: privileges::drop_capabilities(),
        syscalls: seccomp_filters::install_filters(),
    }
}

impl ConfinementReport {
    /// Returns the files that are still accessible. `None` if file access is not restricted.
    pub fn reachable_files(&self) -> Option<Arc<ReachableFiles>> {
        self.files
            .as_ref()
            .ok()
            .map(|files| Arc::new(files.reachable_files.clone()))
    }

    /// Returns the restrictions that could not be applied; `None` if the process is fully confined.
    pub fn missing_restrictions(&self) -> Option<String> {
        let mut missing = Vec::new();
        match &self.files {
            Ok(files) => missing.extend(
                files
                    .missing
                    .iter()
                    .map(|restriction| format!("landlock: {restriction}")),
            ),
            Err(why) => missing.push(format!("landlock: {why}")),
        }
        if let Err(why) = &self.syscalls {
            missing.push(format!("seccomp: {why}"));
        }
        if let Err(why) = &self.privileges {
            missing.push(format!("privileges: {why}"));
        }
        (!missing.is_empty()).then(|| missing.join("; "))
    }
}

/// Writes the active mechanisms, such as `landlock abi 7, seccomp`, or `nothing`.
impl fmt::Display for ConfinementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.files, &self.syscalls) {
            (Ok(files), Ok(())) => write!(f, "landlock abi {}, seccomp", files.version),
            (Ok(files), Err(_)) => write!(f, "landlock abi {}", files.version),
            (Err(_), Ok(())) => f.write_str("seccomp"),
            (Err(_), Err(_)) => f.write_str("nothing"),
        }
    }
}

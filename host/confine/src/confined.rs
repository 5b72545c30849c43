//! Confines the process and reports the result.

use std::fmt;
use std::sync::Arc;

use crate::plan::ConfinementPlan;
use crate::reach::ReachableFiles;
use crate::{calls, files, privileges};

/// Result of confining a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinementReport {
    files: Result<files::LandlockReport, String>,
    calls: Result<(), String>,
    privileges: Result<(), String>,
}

/// Confines this process to `plan`, as far as the kernel supports it. The confinement cannot be
/// undone and also applies to child processes. Call this while the process has one thread.
pub fn confine(plan: &ConfinementPlan) -> ConfinementReport {
    let files = files::restrict(plan);
    ConfinementReport { files, privileges: privileges::give_up(), calls: calls::refuse() }
}

impl ConfinementReport {
    /// Returns the files that are still accessible. `None` if file access is not restricted.
    pub fn reach(&self) -> Option<Arc<ReachableFiles>> {
        self.files.as_ref().ok().map(|files| Arc::new(files.reach.clone()))
    }

    /// Returns the restrictions that could not be applied; `None` if the process is fully confined.
    pub fn lacks(&self) -> Option<String> {
        let mut lacks = Vec::new();
        match &self.files {
            Ok(files) => lacks.extend(files.missing.iter().map(|what| format!("landlock: {what}"))),
            Err(why) => lacks.push(format!("landlock: {why}")),
        }
        if let Err(why) = &self.calls {
            lacks.push(format!("seccomp: {why}"));
        }
        if let Err(why) = &self.privileges {
            lacks.push(format!("privileges: {why}"));
        }
        (!lacks.is_empty()).then(|| lacks.join("; "))
    }
}

/// Writes the active mechanisms, such as `landlock abi 7, seccomp`, or `nothing`.
impl fmt::Display for ConfinementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.files, &self.calls) {
            (Ok(files), Ok(())) => write!(f, "landlock abi {}, seccomp", files.version),
            (Ok(files), Err(_)) => write!(f, "landlock abi {}", files.version),
            (Err(_), Ok(())) => f.write_str("seccomp"),
            (Err(_), Err(_)) => f.write_str("nothing"),
        }
    }
}

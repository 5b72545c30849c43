//! Confining the process, and what came of it.

use std::fmt;
use std::sync::Arc;

use crate::plan::ConfinementPlan;
use crate::reach::ReachableFiles;
use crate::{calls, files, privileges};

/// What a process is confined by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinementReport {
    files: Result<files::LandlockReport, String>,
    calls: Result<(), String>,
    privileges: Result<(), String>,
}

/// Confines this process to `plan`, as far as the kernel can. There is no way back, also for the processes that it starts.
/// Call it while the process has one thread.
pub fn confine(plan: &ConfinementPlan) -> ConfinementReport {
    let files = files::restrict(plan);
    ConfinementReport { files, privileges: privileges::give_up(), calls: calls::refuse() }
}

impl ConfinementReport {
    /// Which files can still be used. `None`: whichever the user may use.
    pub fn reach(&self) -> Option<Arc<ReachableFiles>> {
        self.files.as_ref().ok().map(|files| Arc::new(files.reach.clone()))
    }

    /// Why the process is not confined as it should be; `None` if it is.
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

/// What is on, such as `landlock abi 7, seccomp`, or `nothing`.
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

//! What a server gives up once it has read its configuration (`server.confine`): a second wall behind the sandbox.
//!
//! The kernel cannot be asked later for what was given up. So the server looks at the grants once, when it starts, and keeps
//! what they need; [`ReachableFiles`](toolbay_confine::ReachableFiles) tells the loader which later grants want more. Programs that print
//! secrets are started by a worker, a process of this program that is not confined: it reads the grants itself, and they
//! are files that the server cannot write.

mod needs;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use toolbay_catalog::{WritablePaths, names_program};
use toolbay_confine::{ConfinementReport, confine};
use toolbay_secrets::ProgramRunner;

pub(crate) use self::needs::ConfinementNeeds;
use crate::config::{Config, ConfigError, Confine};

/// The command that runs the worker.
pub(crate) const WORKER: &str = "secret-worker";

/// What a server is confined by, and what it still has others do.
#[derive(Debug, Default)]
pub(crate) struct ConfinementWall {
    /// `None` if the operator wants no confinement.
    confined: Option<ConfinementReport>,
    /// Folders that were created so that they can be kept, with what for.
    created: Vec<(&'static str, PathBuf)>,
    /// What decides about the server and could still be written.
    overlaps: Vec<String>,
    writable: Option<Arc<WritablePaths>>,
    pub(crate) programs: ProgramRunner,
}

impl ConfinementWall {
    /// Confines this process as `config` wants it, to what it `needs`. Must be called before the process has a second thread.
    ///
    /// # Errors
    ///
    /// The operator requires what the kernel cannot do, or the worker cannot be started.
    pub(crate) fn build(config: &Config, needs: ConfinementNeeds) -> Result<Self, ConfigError> {
        if config.server.confine == Confine::Off {
            return Ok(Self::default());
        }
        let ConfinementNeeds { plan, writable, overlaps, .. } = needs;
        let mut worker = Command::new("/proc/self/exe");
        worker.arg(WORKER).arg("--").arg(&config.plugins);
        if writable.required {
            worker.args(writable.paths());
        }
        let programs = ProgramRunner::started_by(worker).map_err(|error| {
            ConfigError::new(format!("server.confine: cannot start the process that starts programs: {error}"))
        })?;
        let created = create(config);
        let confined = confine(&plan);
        match confined.lacks() {
            Some(lacks) if config.server.confine == Confine::Required => Err(ConfigError::new(format!(
                "server.confine = \"required\": the server cannot be confined completely ({lacks}); use another kernel, or set \
                 server.confine = true"
            ))),
            _ => {
                let writable = Some(Arc::new(writable));
                Ok(Self { confined: Some(confined), created, overlaps, writable, programs })
            }
        }
    }

    /// Logs what is on.
    pub(crate) fn log(&self) {
        for (what, folder) in &self.created {
            tracing::debug!("created the folder {} for {what}", folder.display());
        }
        let Some(confined) = &self.confined else {
            tracing::info!("not confined (server.confine = false)");
            return;
        };
        match confined.lacks() {
            None => tracing::info!("confined: {confined}"),
            Some(lacks) => tracing::warn!("confined: {confined} ({lacks})"),
        }
        for overlap in &self.overlaps {
            tracing::warn!("confined, but code that escaped from a plugin could decide what is allowed: {overlap}");
        }
    }

    /// What the server may still write; `None` if nothing confines it.
    pub(crate) fn writable(&self) -> Option<Arc<WritablePaths>> {
        self.writable.clone()
    }

    /// What is on; `None` if nothing is.
    pub(crate) fn confined(&self) -> Option<&ConfinementReport> {
        self.confined.as_ref()
    }
}

/// Creates the folders that the server will want for itself: only what is there can be kept.
fn create(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let missing = config.own_folders().into_iter().filter(|(_, folder)| !folder.exists());
    // What cannot be created is complained about by whoever needs it.
    missing.filter(|(_, folder)| DirBuilder::new().recursive(true).mode(0o700).create(folder).is_ok()).collect()
}

/// Whether the grant with this file name, as it is now in the plugin folder, has its plugin's secrets printed by this
/// program, none of whose files is `writable` by the server. Blocks.
pub(crate) fn is_granted(folder: &Path, grant: &str, words: &[String], writable: &WritablePaths) -> bool {
    grant.strip_suffix(".toml").is_some_and(|id| !id.contains('/') && names_program(folder, id, words, writable))
}

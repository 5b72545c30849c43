//! Confinement of the server process (`server.confine`), in addition to the sandbox.
//!
//! A process cannot regain access that it has dropped. The server therefore reads the grants once,
//! at startup, and retains the access that they need. With
//! [`ReachableFiles`](toolbay_confine::ReachableFiles), the loader finds later grants that need
//! more. Programs that print secrets are started by a worker: an unconfined process of this
//! program. It reads the grants itself, from files that the server cannot write.

mod required_access;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use toolbay_catalog::{WritablePaths, names_program};
use toolbay_confine::{ConfinementReport, confine};
use toolbay_secrets::ProgramRunner;

pub(crate) use self::required_access::ConfinementNeeds;
use crate::approval::notifier::CommandWorker;
use crate::config::{Config, ConfigError, Confine, NotifyTarget};

/// Subcommand that runs the worker.
pub(crate) const WORKER_COMMAND: &str = "secret-worker";

/// Subcommand that runs the worker of notifications.
const NOTIFY_WORKER_COMMAND: &str = "notify-worker";

/// Confinement of a server, and the worker that starts programs for it.
#[derive(Debug, Default)]
pub(crate) struct ServerConfinement {
    /// `None` if the operator disabled confinement.
    report: Option<ConfinementReport>,
    /// Folders that were created so that access to them is retained, with their purposes.
    created_folders: Vec<(&'static str, PathBuf)>,
    /// Writable files that determine what the server is allowed to do.
    overlaps: Vec<String>,
    writable: Option<Arc<WritablePaths>>,
    pub(crate) programs: ProgramRunner,
    /// Starts the program that is notified of waiting calls, if there is one.
    pub(crate) notify_worker: Option<Arc<CommandWorker>>,
}

impl ServerConfinement {
    /// Confines this process as `config` requires, to the access in `needs`. Must be called before
    /// the process starts a second thread.
    ///
    /// # Errors
    ///
    /// The operator requires what the kernel does not support, or the worker cannot be started.
    pub(crate) fn build(config: &Config, needs: ConfinementNeeds) -> Result<Self, ConfigError> {
        if config.server.confine == Confine::Off {
            return Ok(Self::default());
        }
        let ConfinementNeeds {
            plan,
            writable,
            overlaps,
            ..
        } = needs;
        let mut worker = Command::new("/proc/self/exe");
        worker.arg(WORKER_COMMAND).arg("--").arg(&config.plugins);
        if writable.is_required {
            worker.args(writable.paths());
        }
        let programs = ProgramRunner::with_worker(worker).map_err(|error| {
            ConfigError::new(format!(
                "server.confine: cannot start the process that starts programs: {error}"
            ))
        })?;
        let notify_worker = start_notify_worker(config)?;
        let created = create_folders(config);
        // A confined process cannot open this lookup. Without it, connections from this machine are
        // counted per address instead of per account.
        if let Err(error) = toolbay_socket::open_user_lookup() {
            tracing::debug!(%error, "the accounts of local connections cannot be found");
        }
        let report = confine(&plan);
        match report.missing_restrictions() {
            Some(missing) if config.server.confine == Confine::Required => {
                Err(ConfigError::new(format!(
                    "server.confine = \"required\": the server cannot be confined completely ({missing}); use another kernel, or set \
                 server.confine = true"
                )))
            }
            _ => {
                let writable = Some(Arc::new(writable));
                Ok(Self {
                    report: Some(report),
                    created_folders: created,
                    overlaps,
                    writable,
                    programs,
                    notify_worker,
                })
            }
        }
    }

    /// Logs the state of confinement.
    pub(crate) fn log(&self) {
        for (purpose, folder) in &self.created_folders {
            tracing::debug!("created the folder {} for {purpose}", folder.display());
        }
        let Some(report) = &self.report else {
            tracing::info!("not confined (server.confine = false)");
            return;
        };
        match report.missing_restrictions() {
            None => tracing::info!("confined: {report}"),
            Some(missing) => tracing::warn!("confined: {report} ({missing})"),
        }
        for overlap in &self.overlaps {
            tracing::warn!(
                "confined, but code that escaped from a plugin could change permissions: {overlap}"
            );
        }
    }

    /// Returns what the server may still write, or `None` if it is not confined.
    pub(crate) fn writable(&self) -> Option<Arc<WritablePaths>> {
        self.writable.clone()
    }

    /// Returns the active confinement, or `None` if the server is not confined.
    pub(crate) fn report(&self) -> Option<&ConfinementReport> {
        self.report.as_ref()
    }
}

/// Starts the worker for the program that is notified of waiting calls, if there is one.
fn start_notify_worker(config: &Config) -> Result<Option<Arc<CommandWorker>>, ConfigError> {
    let Some(NotifyTarget::Command(words)) = &config.approve.notify else {
        return Ok(None);
    };
    let mut worker = Command::new("/proc/self/exe");
    worker.arg(NOTIFY_WORKER_COMMAND).arg("--").args(words);
    let started = CommandWorker::start(worker).map_err(|error| {
        ConfigError::new(format!(
            "approve.notify: cannot start the process that starts the program: {error}"
        ))
    })?;
    Ok(Some(Arc::new(started)))
}

/// Creates the folders that the server will use itself, because access can only be retained to
/// existing ones.
fn create_folders(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let missing = config
        .server_folders()
        .into_iter()
        .filter(|(_, folder)| !folder.exists());
    // A failure is reported by the code that uses the folder.
    missing
        .filter(|(_, folder)| {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .is_ok()
        })
        .collect()
}

/// Returns whether the grant with this file name in the plugin folder currently permits this
/// program to print its plugin's secrets, and none of the program's files is `writable` by the
/// server. Blocks.
pub(crate) fn is_program_granted(
    folder: &Path,
    grant: &str,
    command_line: &[String],
    writable: &WritablePaths,
) -> bool {
    grant
        .strip_suffix(".toml")
        .is_some_and(|id| !id.contains('/') && names_program(folder, id, command_line, writable))
}

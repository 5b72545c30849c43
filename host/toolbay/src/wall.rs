//! What a server gives up once it has read its configuration (`server.confine`): a second wall behind the sandbox.
//!
//! The kernel cannot be asked later for what was given up. So the server looks at the grants once, when it starts, and keeps
//! what they need; [`Reach`](toolbay_confine::Reach) tells the loader which later grants want more. Programs that print
//! secrets are started by a worker, a process of this program that is not confined: it reads the grants itself, and they
//! are files that the server cannot write.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use toolbay_catalog::{Grant, names_program, read_grant};
use toolbay_confine::{Confined, Plan, confine, program};
use toolbay_policy::Access;
use toolbay_secrets::{Programs, Source};

use crate::config::{Config, ConfigError, Confine};

/// The command that runs the worker.
pub(crate) const WORKER: &str = "secret-worker";

/// What every server reads of the system: shared libraries, settings of name resolution, certificates, time zones, and what
/// there is of processors and memory.
const SYSTEM: [&str; 19] = [
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/proc",
    "/run/NetworkManager",
    "/run/nscd",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/usr",
];

/// Variables with the paths of certificates, as OpenSSL has them.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// What a server is confined by, and what it still has others do.
#[derive(Debug, Default)]
pub(crate) struct Wall {
    /// `None` if the operator wants no confinement.
    confined: Option<Confined>,
    /// Folders that were created so that they can be kept, with what for.
    created: Vec<(&'static str, PathBuf)>,
    pub(crate) programs: Programs,
}

impl Wall {
    /// Confines this process as `config` wants it. The file of the `socket` on which it listens can still be removed. Must be
    /// called before the process has a second thread.
    ///
    /// # Errors
    ///
    /// The operator requires what the kernel cannot do, or the worker cannot be started.
    pub(crate) fn build(config: &Config, socket: Option<&Path>) -> Result<Self, ConfigError> {
        if config.server.confine == Confine::Off {
            return Ok(Self::default());
        }
        let mut worker = Command::new("/proc/self/exe");
        worker.arg(WORKER).arg(&config.plugins);
        let programs = Programs::started_by(worker).map_err(|error| {
            ConfigError::new(format!("server.confine: cannot start the process that starts programs: {error}"))
        })?;
        let created = create(config);
        let mut plan = plan(config)
            .map_err(|error| ConfigError::new(format!("server.confine: cannot read /proc/self/maps: {error}")))?;
        plan.remove.extend(socket.and_then(|path| Some(std::path::absolute(path).ok()?.parent()?.to_owned())));
        let confined = confine(&plan);
        match confined.lacks() {
            Some(lacks) if config.server.confine == Confine::Required => Err(ConfigError::new(format!(
                "server.confine = \"required\": the server cannot be confined completely ({lacks}); use another kernel, or set \
                 server.confine = true"
            ))),
            _ => Ok(Self { confined: Some(confined), created, programs }),
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
    }

    /// What is on; `None` if nothing is.
    pub(crate) fn confined(&self) -> Option<&Confined> {
        self.confined.as_ref()
    }
}

/// Creates the folders that the server will want for itself: only what is there can be kept.
fn create(config: &Config) -> Vec<(&'static str, PathBuf)> {
    let missing = config.kept().into_iter().filter(|(_, folder)| !folder.exists());
    // What cannot be created is complained about by whoever needs it.
    missing.filter(|(_, folder)| DirBuilder::new().recursive(true).mode(0o700).create(folder).is_ok()).collect()
}

/// What a server with this configuration needs.
fn plan(config: &Config) -> std::io::Result<Plan> {
    let mut plan = Plan { execute: program()?, ..Plan::default() };
    plan.read.extend(SYSTEM.map(PathBuf::from));
    plan.read.extend(CERTIFICATES.iter().filter_map(std::env::var_os).map(PathBuf::from));
    plan.write.push("/dev/null".into());
    plan.write.extend(config.kept().into_iter().map(|(_, folder)| folder));
    plan.write.extend(config.server.confine_folders.iter().cloned());
    if config.learn {
        plan.write.push(config.plugins.clone());
    }
    // Nothing for a recording: its file is open already, and only written to.
    keep(&mut plan.read, &config.plugins);
    config.watched().iter().for_each(|path| keep(&mut plan.read, path));
    let entries = std::fs::read_dir(&config.plugins)?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_symlink() {
            keep(&mut plan.read, &path);
        }
    }
    for grant in grants(&config.plugins) {
        for mount in &grant.permissions.mounts {
            let place = if mount.access == Access::ReadWrite { &mut plan.write } else { &mut plan.read };
            place.push(mount.host.clone());
        }
        for secret in grant.secrets().unwrap_or_default() {
            match &secret.source {
                Source::File(path) => keep(&mut plan.read, &config.plugins.join(path)),
                Source::CallerFolder(path) => plan.read.push(config.plugins.join(path)),
                Source::Environment(_) | Source::Keyring { .. } | Source::Command(_) => {}
            }
        }
    }
    Ok(plan)
}

/// The grants in the plugin folder that can be read.
fn grants(folder: &Path) -> Vec<Grant> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let ids = names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()));
    let parsed = ids.filter_map(|id| {
        let text = read_grant(folder, &id).ok()??;
        Grant::parse(&format!("{id}.toml"), &text, folder).ok()
    });
    parsed.collect()
}

/// Keeps what is at `path`, and what takes its place: as it is written, and where links lead.
fn keep(read: &mut Vec<PathBuf>, path: &Path) {
    let written = std::path::absolute(path).ok();
    for path in [written, path.canonicalize().ok()].into_iter().flatten() {
        // Programs replace a file or a folder by another one with its name, which is found in the folder around it.
        match path.parent() {
            Some(around) if !is_wide(around) => read.push(around.to_owned()),
            _ => {}
        }
        read.push(path);
    }
}

/// Whether a folder has so much in it that is none of the server's business that it is not kept for the sake of one file:
/// the root and the folders in it, the user's home and what is above it, and folders that everybody shares.
fn is_wide(folder: &Path) -> bool {
    let is_top = folder.components().count() <= 2 || folder == Path::new("/var/lib");
    let is_home = std::env::home_dir().is_some_and(|home| home.starts_with(folder));
    let is_shared = folder.metadata().is_ok_and(|found| found.mode() & 0o002 != 0);
    is_top || is_home || is_shared
}

/// Whether the grant with this file name, as it is now in the plugin folder, has its plugin's secrets printed by this
/// program. Blocks.
pub(crate) fn is_granted(folder: &Path, grant: &str, words: &[String]) -> bool {
    grant.strip_suffix(".toml").is_some_and(|id| !id.contains('/') && names_program(folder, id, words))
}

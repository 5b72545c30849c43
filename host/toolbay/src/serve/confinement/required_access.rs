//! Access that a confined server needs, and whether that access could change what determines its
//! rights.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolbay_catalog::{Grant, WritablePaths, read_grant};
use toolbay_confine::{ConfinementPlan, own_program_files};
use toolbay_policy::{MountAccess, MountPermission};
use toolbay_secrets::SecretSource;

use crate::config::{Config, ConfigError, Confine};

/// Paths of the system that every server reads: shared libraries, name resolution, certificates,
/// time zones, processors and memory.
const SYSTEM_PATHS: [&str; 19] = [
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

/// Environment variables with paths of certificates, as OpenSSL defines them.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Access that a confined server needs.
#[derive(Debug, Default)]
pub(crate) struct ConfinementNeeds {
    pub(super) plan: ConfinementPlan,
    /// Paths that the server may write, or remove files from.
    pub(super) writable: WritablePaths,
    /// Writable paths that determine the server's rights, each as a clause.
    pub(super) overlaps: Vec<String>,
    policy_files: PolicyFiles,
}

/// Contents of the plugin folder that determine the server's rights, read once.
#[derive(Debug, Default)]
struct PolicyFiles {
    /// Readable grants, with the ids of their plugins.
    grants: Vec<(String, Grant)>,
    /// Symbolic links in the folder.
    links: Vec<PathBuf>,
}

impl ConfinementNeeds {
    /// Returns the number of writable paths that determine the server's rights.
    pub(crate) fn overlap_count(&self) -> usize {
        self.overlaps.len()
    }

    /// Determines the needs of a server with this configuration. If it listens on a `socket`, it
    /// removes that file at its end. Blocks.
    ///
    /// # Errors
    ///
    /// The needs cannot be determined, or the operator requires that the server can write nothing
    /// that determines its rights, and it could.
    pub(crate) fn from_config(config: &Config, socket: Option<&Path>) -> Result<Self, ConfigError> {
        if config.server.confine == Confine::Off {
            return Ok(Self::default());
        }
        let program = own_program_files().map_err(|error| {
            ConfigError::new(format!(
                "server.confine: cannot read /proc/self/maps: {error}"
            ))
        })?;
        let mut plan = ConfinementPlan {
            execute: program,
            ..ConfinementPlan::default()
        };
        let policy_files = PolicyFiles::read(&config.plugins)?;
        add_common_access(config, &policy_files, &mut plan);
        let required = config.server.confine == Confine::Required;
        let mut writable_paths: Vec<(String, PathBuf)> = Vec::new();
        writable_paths.extend(
            config
                .server_folders()
                .into_iter()
                .map(|(what, path)| (what.to_owned(), path)),
        );
        let folders = config.server.confine_folders.iter();
        writable_paths
            .extend(folders.map(|path| ("server.confine_folders".to_owned(), path.clone())));
        if config.learn {
            writable_paths.push(("--learn".to_owned(), config.plugins.clone()));
        }
        let mut overlaps = Vec::new();
        for (id, grant) in &policy_files.grants {
            for mount in grant
                .permissions
                .mounts
                .iter()
                .filter(|mount| mount.access == MountAccess::ReadWrite)
            {
                let labeled_path = (mount_label(id, mount), mount.host.clone());
                // The plugin will be refused, so the access is not needed.
                let mount_overlaps = if mount.allows_control_files {
                    Vec::new()
                } else {
                    find_overlaps(
                        config,
                        &policy_files,
                        &WritablePaths::new([labeled_path.clone()], required),
                    )
                };
                if mount_overlaps.is_empty() {
                    writable_paths.push(labeled_path);
                }
                overlaps.extend(mount_overlaps);
            }
        }
        plan.write
            .extend(writable_paths.iter().map(|(_, path)| path.clone()));
        // Where files can be removed, a grant can be removed, and with it its restrictions.
        if let Some(folder) = socket.and_then(socket_folder) {
            plan.remove.push(folder.clone());
            writable_paths.push((SOCKET_FOLDER_LABEL.to_owned(), folder));
        }
        let writable = WritablePaths::new(writable_paths, required);
        overlaps.extend(find_overlaps(config, &policy_files, &writable));
        Self {
            plan,
            writable,
            overlaps,
            policy_files,
        }
        .check_overlaps()
    }

    /// Adds the needs of a server that also removes the file of this socket at its end. Blocks.
    ///
    /// # Errors
    ///
    /// As those of [`ConfinementNeeds::from_config`].
    pub(crate) fn with_socket(
        mut self,
        config: &Config,
        socket: &Path,
    ) -> Result<Self, ConfigError> {
        if config.server.confine == Confine::Off {
            return Ok(self);
        }
        let Some(folder) = socket_folder(socket) else {
            return Ok(self);
        };
        self.plan.remove.push(folder.clone());
        let writable = WritablePaths::new(
            [(SOCKET_FOLDER_LABEL.to_owned(), folder)],
            self.writable.is_required,
        );
        self.overlaps
            .extend(find_overlaps(config, &self.policy_files, &writable));
        self.check_overlaps()
    }

    fn check_overlaps(self) -> Result<Self, ConfigError> {
        match self.overlaps.first() {
            Some(overlap) if self.writable.is_required => Err(ConfigError::new(format!(
                "server.confine = \"required\": {overlap}, so code that escaped from a plugin could change permissions; \
                 move one of them, or set server.confine = true"
            ))),
            _ => Ok(self),
        }
    }
}

/// Description of a socket's folder.
const SOCKET_FOLDER_LABEL: &str = "the folder of the server's Unix socket";

fn socket_folder(socket: &Path) -> Option<PathBuf> {
    Some(std::path::absolute(socket).ok()?.parent()?.to_owned())
}

/// Describes a mount of the plugin `id`.
fn mount_label(id: &str, mount: &MountPermission) -> String {
    format!("a mount of {id}.toml, {}", mount.host_as_written.display())
}

/// Returns clauses about `writable` paths that determine the server's rights. With required
/// confinement, this includes the targets of links and the programs of secrets. Otherwise, those
/// are reported per plugin when it is loaded.
fn find_overlaps(
    config: &Config,
    policy_files: &PolicyFiles,
    writable: &WritablePaths,
) -> Vec<String> {
    let mut overlaps: Vec<String> = writable
        .explain_folder_write("the plugin folder", &config.plugins)
        .into_iter()
        .collect();
    let describe_path = |path: &Path| {
        if path == config.file {
            "the configuration".to_owned()
        } else {
            path.display().to_string()
        }
    };
    overlaps.extend(
        config
            .watched_files()
            .iter()
            .filter_map(|path| writable.explain_write(&describe_path(path), path)),
    );
    // A separate process runs this program without confinement.
    let program = config.approve.program_files();
    overlaps.extend(
        program
            .iter()
            .find_map(|path| writable.explain_write("the program of approve.notify", path)),
    );
    if writable.is_required {
        for path in &policy_files.links {
            let name = path.file_name().unwrap_or_default().display().to_string();
            overlaps
                .extend(writable.explain_write(&format!("the target of the link {name}"), path));
        }
        for (id, grant) in &policy_files.grants {
            let programs = writable
                .explain_program_writes(&config.plugins, &grant.secret_specs().unwrap_or_default());
            overlaps.extend(programs.into_iter().map(|why| format!("{why} ({id}.toml)")));
        }
    }
    overlaps
}

/// Adds the paths that the server reads, and those that every server writes.
fn add_common_access(config: &Config, policy_files: &PolicyFiles, plan: &mut ConfinementPlan) {
    plan.read.extend(SYSTEM_PATHS.map(PathBuf::from));
    plan.read.extend(
        CERTIFICATE_VARIABLES
            .iter()
            .filter_map(std::env::var_os)
            .map(PathBuf::from),
    );
    // A recording needs no access: its file is already open, and only written to.
    plan.write.push("/dev/null".into());
    add_path(&mut plan.read, &config.plugins);
    config
        .watched_files()
        .iter()
        .for_each(|path| add_path(&mut plan.read, path));
    for path in &policy_files.links {
        add_path(&mut plan.read, path);
    }
    for (_, grant) in &policy_files.grants {
        let mounts = grant
            .permissions
            .mounts
            .iter()
            .filter(|mount| mount.access == MountAccess::Read);
        plan.read.extend(mounts.map(|mount| mount.host.clone()));
        for secret in grant.secret_specs().unwrap_or_default() {
            match &secret.source {
                SecretSource::File(path) => add_path(&mut plan.read, &config.plugins.join(path)),
                SecretSource::CallerFolder(path) => plan.read.push(config.plugins.join(path)),
                SecretSource::Environment(_)
                | SecretSource::Keyring { .. }
                | SecretSource::Command(_) => {}
            }
        }
    }
}

impl PolicyFiles {
    /// Reads the plugin folder. Skips a grant that is unreadable or invalid: its plugin is refused
    /// later. Blocks.
    fn read(folder: &Path) -> Result<Self, ConfigError> {
        let read_error = |error: std::io::Error| {
            ConfigError::new(format!(
                "cannot read the plugin folder {}: {error}",
                folder.display()
            ))
        };
        let mut policy_files = Self::default();
        for entry in std::fs::read_dir(folder).map_err(read_error)? {
            let path = entry.map_err(read_error)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(id) = name.and_then(|name| name.strip_suffix(".toml")) {
                policy_files
                    .grants
                    .extend(parse_grant_file(folder, id).map(|grant| (id.to_owned(), grant)));
            }
            if path.is_symlink() {
                policy_files.links.push(path);
            }
        }
        Ok(policy_files)
    }
}

fn parse_grant_file(folder: &Path, id: &str) -> Option<Grant> {
    let text = read_grant(folder, id).ok()??;
    Grant::parse(&format!("{id}.toml"), &text, folder).ok()
}

/// Adds `path`, as written and with links resolved, so that it can be read even after it was
/// replaced.
fn add_path(read: &mut Vec<PathBuf>, path: &Path) {
    let absolute = std::path::absolute(path).ok();
    for path in [absolute, path.canonicalize().ok()].into_iter().flatten() {
        // Programs replace a file or folder by renaming another one to it, which requires access to
        // the parent.
        match path.parent() {
            Some(parent) if !is_too_broad(parent) => read.push(parent.to_owned()),
            _ => {}
        }
        read.push(path);
    }
}

/// Returns whether a folder contains too much unrelated data to be readable for one file: the root
/// and its children, the user's home and its ancestors, and world-writable folders.
fn is_too_broad(folder: &Path) -> bool {
    let is_top = folder.components().count() <= 2 || folder == Path::new("/var/lib");
    let is_home = std::env::home_dir().is_some_and(|home| home.starts_with(folder));
    let is_shared = folder
        .metadata()
        .is_ok_and(|found| found.mode() & 0o002 != 0);
    is_top || is_home || is_shared
}

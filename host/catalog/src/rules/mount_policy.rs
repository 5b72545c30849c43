//! Checks that mounts do not contain files that control the server or plugins.
//!
//! Files of the server are compared when a plugin is loaded, and a plugin whose mount contains one
//! of them is refused. Files of other plugins change with each plugin, so they are compared when a
//! snapshot is assembled, over all plugins.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use toolbay_confine::ReachableFiles;
use toolbay_policy::{MountAccess, MountPermission, MountScope, Permissions};
use toolbay_secrets::{SecretSource, SecretSpec};

use crate::folder::plugin_folder::{
    component_path, grant_path, prompts_path, resources_path, skill_path, wit_path,
};
use crate::folder::resolved_path::{FileIdentity, ResolvedPath};
use crate::rules::writable_paths::{WritablePaths, program_files};

/// Advice for a path to which a confined server has no access.
const CONFINED_ADVICE: &str = "when it started, it confined itself to what the grants needed; restart it, or name a folder in which later \
                    grants may have mounts in server.confine_folders";

/// A file or folder of the server that decides what plugins may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedPath {
    /// Description of the path, such as `the plugin folder`.
    pub label: &'static str,
    /// The path, which need not exist.
    pub path: PathBuf,
    /// If set, a plugin must not even read it.
    pub is_secret: bool,
}

/// Locations of a plugin's mounts, files and secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountPlan {
    /// The mounts, in the grant's order.
    mounts: Vec<(MountPermission, ResolvedPath)>,
    /// Files of the plugin that are links, by name.
    links: Vec<(String, ResolvedPath)>,
    /// Files and folders that contain or produce the values of its secrets.
    secrets: Vec<SecretPath>,
}

/// File or folder that contains or produces the value of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SecretPath {
    /// Description of the path, such as `the file of secrets.token`.
    label: String,
    location: ResolvedPath,
    /// If set, a plugin must not even read it. Not set for a program that prints a value.
    is_secret: bool,
    /// True for a folder, in which a plugin must not have a mount either.
    is_folder: bool,
}

impl SecretPath {
    fn resolve_all(secret: &SecretSpec, folder: &Path) -> Vec<Self> {
        let (kind, path, is_folder) = match &secret.source {
            SecretSource::CallerFolder(path) => ("folder", path, true),
            SecretSource::File(path) => ("file", path, false),
            SecretSource::Command(_) | SecretSource::Keyring { .. } => {
                let file = |(label, path): (String, PathBuf)| Self {
                    label,
                    location: ResolvedPath::resolve(&path),
                    is_secret: false,
                    is_folder: false,
                };
                return program_files(secret, folder)
                    .into_iter()
                    .map(file)
                    .collect();
            }
            SecretSource::Environment(_) => return Vec::new(),
        };
        let label = format!("the {kind} of secrets.{}", secret.name);
        vec![Self {
            label,
            location: ResolvedPath::resolve(&folder.join(path)),
            is_secret: true,
            is_folder,
        }]
    }

    /// Returns what a plugin with this mount could do to the file, as a verb; `None` if nothing.
    fn exposed_action(&self, mount: &MountPermission) -> Option<&'static str> {
        match mount.access {
            MountAccess::ReadWrite => Some("change"),
            MountAccess::Read => self.is_secret.then_some("read"),
        }
    }
}

impl GuardedPath {
    /// Guards the plugin folder against changes.
    pub(crate) fn plugin_folder(folder: &Path) -> Self {
        Self {
            label: "the plugin folder",
            path: folder.to_owned(),
            is_secret: false,
        }
    }
}

impl MountPlan {
    /// Resolves the paths of the plugin `id` in `folder`. Blocks.
    pub(crate) fn resolve(
        id: &str,
        folder: &Path,
        permissions: &Permissions,
        secrets: &[SecretSpec],
    ) -> Self {
        let mounts = permissions
            .mounts
            .iter()
            .map(|mount| (mount.clone(), ResolvedPath::resolve(&mount.host)))
            .collect();
        let files = [
            component_path,
            grant_path,
            wit_path,
            prompts_path,
            resources_path,
            skill_path,
        ];
        let files = files.map(|path| path(folder, id));
        let links = files.iter().filter(|path| path.is_symlink()).map(|path| {
            let name = path.file_name().unwrap_or_default().display().to_string();
            (name, ResolvedPath::resolve(path))
        });
        let secrets = secrets
            .iter()
            .flat_map(|secret| SecretPath::resolve_all(secret, folder))
            .collect();
        Self {
            mounts,
            links: links.collect(),
            secrets,
        }
    }

    /// Checks that a confined server can still use the paths that the grant names. Returns warnings
    /// about folders that do not exist yet and that the server could not use.
    ///
    /// # Errors
    ///
    /// The server cannot use a folder that exists.
    pub(crate) fn check_reach(&self, reach: &ReachableFiles) -> Result<Vec<String>, String> {
        let mut remarks = Vec::new();
        for (mount, _) in &self.mounts {
            let is_writable = mount.access == MountAccess::ReadWrite;
            if reach.allows(&mount.host, is_writable) {
                continue;
            }
            let location = &mount.source_location;
            let host_path = mount.host_as_written.display();
            let verb = if is_writable { "write to" } else { "read" };
            if mount.host.exists() {
                return Err(format!(
                    "{location}: permissions.mounts: the server cannot {verb} {host_path}: {CONFINED_ADVICE}"
                ));
            }
            remarks.push(format!(
                "{location}: the server cannot {verb} {host_path} once it exists: {CONFINED_ADVICE}"
            ));
        }
        Ok(remarks)
    }

    /// Returns warnings about files that control the plugin and that a confined server could write.
    ///
    /// # Errors
    ///
    /// There is such a file, and the operator requires that there is none.
    pub(crate) fn check_writable(&self, writable: &WritablePaths) -> Result<Vec<String>, String> {
        let programs = self.secrets.iter().filter(|secret| !secret.is_secret);
        let programs = programs
            .filter_map(|secret| writable.explain_location_write(&secret.label, &secret.location));
        let linked = self.links.iter().filter_map(|(name, location)| {
            writable.explain_location_write(&format!("the target of the link {name}"), location)
        });
        let mut remarks: Vec<String> = programs.chain(linked).collect();
        remarks.dedup();
        match remarks.first() {
            Some(first) if writable.is_required => Err(format!(
                "server.confine = \"required\": {first}; move one of them"
            )),
            _ => Ok(remarks),
        }
    }

    /// Returns warnings about mounts that contain guarded files and are allowed to.
    ///
    /// # Errors
    ///
    /// A mount contains a guarded file and is not allowed to.
    pub(crate) fn check(&self, guarded: &[GuardedPath]) -> Result<Vec<String>, String> {
        let mut remarks = Vec::new();
        if self.mounts.is_empty() {
            return Ok(remarks);
        }
        for secret_path in &self.secrets {
            for (mount, root) in &self.mounts {
                let relation = match secret_path.is_folder && secret_path.location.contains(root) {
                    true => "is in",
                    false if root.contains(&secret_path.location) => "contains",
                    false => continue,
                };
                let (Some(verb), finding) = (
                    secret_path.exposed_action(mount),
                    format!("{relation} {}", secret_path.label),
                ) else {
                    continue;
                };
                if mount.allows_control_files {
                    remarks.push(unsafe_remark(mount, &finding, verb));
                } else {
                    return Err(refusal_message(mount, &finding, verb));
                }
            }
        }
        for guarded in guarded {
            let location = ResolvedPath::resolve(&guarded.path);
            for (mount, root) in &self.mounts {
                let is_writable = mount.access == MountAccess::ReadWrite;
                if !(is_writable || guarded.is_secret) || !root.contains(&location) {
                    continue;
                }
                let verb = if is_writable { "change" } else { "read" };
                if mount.allows_control_files {
                    remarks.push(unsafe_remark(
                        mount,
                        &format!("contains {}", guarded.label),
                        verb,
                    ));
                } else {
                    return Err(refusal_message(
                        mount,
                        &format!("contains {}", guarded.label),
                        verb,
                    ));
                }
            }
        }
        Ok(remarks)
    }
}

/// Result for a plugin whose mounts overlap with the files of plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountOverlaps {
    /// Reason why the plugin must not be in service.
    pub refusal: Option<String>,
    /// Warnings about overlaps that `unsafe = true` allows.
    pub remarks: Vec<String>,
}

impl MountOverlaps {
    fn record(&mut self, mount: &MountPermission, finding: &str, verb: &str) {
        if !mount.allows_control_files {
            self.refusal
                .get_or_insert_with(|| refusal_message(mount, finding, verb));
            return;
        }
        let remark = unsafe_remark(mount, finding, verb);
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

/// Index of items by path, and by identity if the path exists.
struct PathIndex<'a, T> {
    by_path: HashMap<&'a Path, Vec<T>>,
    by_identity: HashMap<FileIdentity, Vec<T>>,
}

impl<'a, T: Copy> PathIndex<'a, T> {
    fn new(items: impl Iterator<Item = (&'a ResolvedPath, T)>) -> Self {
        let (mut by_path, mut by_identity): (HashMap<_, Vec<T>>, HashMap<_, Vec<T>>) =
            Default::default();
        for (location, item) in items {
            let (path, identity) = location.target();
            by_path.entry(path).or_default().push(item);
            if let Some(identity) = identity {
                by_identity.entry(identity).or_default().push(item);
            }
        }
        Self {
            by_path,
            by_identity,
        }
    }

    fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    fn find(&self, path: &Path, identity: Option<FileIdentity>) -> impl Iterator<Item = T> {
        let with_identity = identity.and_then(|identity| self.by_identity.get(&identity));
        self.by_path
            .get(path)
            .into_iter()
            .chain(with_identity)
            .flatten()
            .copied()
    }
}

/// Finds the plugins whose mounts overlap with files that other mounts or plugins depend on.
/// `plugins` are the ids and mount plans of all plugins. Returns the overlaps by plugin id.
pub(crate) fn find_overlaps<'a>(
    plugins: impl Iterator<Item = (&'a str, &'a MountPlan)>,
) -> BTreeMap<&'a str, MountOverlaps> {
    let plugins: Vec<_> = plugins.collect();
    let mounts_of = |(id, plan): &(&'a str, &'a MountPlan)| {
        let id = *id;
        plan.mounts
            .iter()
            .map(move |(mount, location)| (id, mount, location))
    };
    let all_mounts = || plugins.iter().flat_map(mounts_of);
    let mounts = PathIndex::new(all_mounts().map(|(id, mount, location)| (location, (id, mount))));
    let mut overlaps: BTreeMap<&str, MountOverlaps> = BTreeMap::new();
    if mounts.is_empty() {
        return overlaps;
    }
    let secrets_of = |(id, plan): &(&'a str, &'a MountPlan)| {
        let id = *id;
        plan.secrets
            .iter()
            .map(move |secret_path| (id, secret_path))
    };
    let secrets = || plugins.iter().flat_map(secrets_of);
    let folders = PathIndex::new(
        secrets()
            .filter(|(_, secret_path)| secret_path.is_folder)
            .map(|(id, secret_path)| (&secret_path.location, (id, secret_path))),
    );
    for (plugin, plan) in &plugins {
        let mounted_folders = plan.mounts.iter().map(|(mount, location)| {
            let host_path = mount.host_as_written.display();
            match mount.scope {
                None => (
                    format!("the mounted folder {host_path} of plugin {plugin:?}"),
                    location,
                    None,
                ),
                // Each call mounts the folder of its caller, which is below the folder in the
                // grant.
                Some(MountScope::Caller) => {
                    let label = format!(
                        "the mounted folders of the callers in {host_path} of plugin {plugin:?}"
                    );
                    (label, location, Some(location.target()))
                }
            }
        });
        let links = plan
            .links
            .iter()
            .map(|(name, location)| (format!("the target of the link {name}"), location, None));
        for (label, location, callers) in mounted_folders.chain(links) {
            for (path, identity) in location.ancestors().chain(callers) {
                // Two per-caller mounts of the same folder give each caller the same folder, which
                // is not an overlap.
                let is_same = |mount: &MountPermission| {
                    mount.scope.is_some() && callers == Some((path, identity))
                };
                let writers = mounts
                    .find(path, identity)
                    .filter(|(_, mount)| mount.access == MountAccess::ReadWrite && !is_same(mount));
                for (id, mount) in writers {
                    overlaps.entry(id).or_default().record(
                        mount,
                        &format!("contains {label}"),
                        "change",
                    );
                }
            }
        }
    }
    // A plugin's own mounts were compared with its own secrets when it was loaded.
    for (plugin, secret_path) in secrets() {
        for (path, identity) in secret_path.location.visited() {
            for (id, mount) in mounts.find(path, identity).filter(|(id, _)| *id != plugin) {
                if let Some(verb) = secret_path.exposed_action(mount) {
                    let finding = format!("contains {} of plugin {plugin:?}", secret_path.label);
                    overlaps
                        .entry(id)
                        .or_default()
                        .record(mount, &finding, verb);
                }
            }
        }
    }
    if !folders.is_empty() {
        for (id, mount, location) in all_mounts() {
            for (path, identity) in location.ancestors() {
                for (plugin, secret_path) in folders
                    .find(path, identity)
                    .filter(|(plugin, _)| *plugin != id)
                {
                    if let Some(verb) = secret_path.exposed_action(mount) {
                        let finding = format!("is in {} of plugin {plugin:?}", secret_path.label);
                        overlaps
                            .entry(id)
                            .or_default()
                            .record(mount, &finding, verb);
                    }
                }
            }
        }
    }
    overlaps
}

fn refusal_message(mount: &MountPermission, finding: &str, verb: &str) -> String {
    let MountPermission {
        host_as_written: host_path,
        source_location: location,
        ..
    } = mount;
    let written = host_path.display();
    format!(
        "{location}: the mount of {written} {finding}, so the plugin could {verb} it; mount a smaller folder, or add \
         `unsafe = true` to the mount to allow that"
    )
}

fn unsafe_remark(mount: &MountPermission, finding: &str, verb: &str) -> String {
    let MountPermission {
        host_as_written: host_path,
        source_location: location,
        ..
    } = mount;
    format!(
        "{location}: the mount of {} is unsafe: it {finding}, so the plugin can {verb} it",
        host_path.display()
    )
}

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
    place: ResolvedPath,
    /// If set, a plugin must not even read it. Not set for a program that prints a value.
    is_secret: bool,
    /// True for a folder, in which a plugin must not have a mount either.
    is_folder: bool,
}

impl SecretPath {
    fn resolve_all(secret: &SecretSpec, folder: &Path) -> Vec<Self> {
        let (what, path, is_folder) = match &secret.source {
            SecretSource::CallerFolder(path) => ("folder", path, true),
            SecretSource::File(path) => ("file", path, false),
            SecretSource::Command(_) | SecretSource::Keyring { .. } => {
                let file = |(what, path): (String, PathBuf)| Self {
                    label: what,
                    place: ResolvedPath::resolve(&path),
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
        let label = format!("the {what} of secrets.{}", secret.name);
        vec![Self {
            label,
            place: ResolvedPath::resolve(&folder.join(path)),
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
            let writes = mount.access == MountAccess::ReadWrite;
            if reach.allows(&mount.host, writes) {
                continue;
            }
            let place = &mount.source_location;
            let written = mount.host_as_written.display();
            let verb = if writes { "write to" } else { "read" };
            if mount.host.exists() {
                return Err(format!(
                    "{place}: permissions.mounts: the server cannot {verb} {written}: {CONFINED_ADVICE}"
                ));
            }
            remarks.push(format!(
                "{place}: the server cannot {verb} {written} once it exists: {CONFINED_ADVICE}"
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
        let programs = self.secrets.iter().filter(|kept| !kept.is_secret);
        let programs =
            programs.filter_map(|kept| writable.explain_location_write(&kept.label, &kept.place));
        let linked = self.links.iter().filter_map(|(name, place)| {
            writable.explain_location_write(&format!("the target of the link {name}"), place)
        });
        let mut remarks: Vec<String> = programs.chain(linked).collect();
        remarks.dedup();
        match remarks.first() {
            Some(first) if writable.required => Err(format!(
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
        for kept in &self.secrets {
            for (mount, root) in &self.mounts {
                let how = match kept.is_folder && kept.place.contains(root) {
                    true => "is in",
                    false if root.contains(&kept.place) => "contains",
                    false => continue,
                };
                let (Some(verb), what) =
                    (kept.exposed_action(mount), format!("{how} {}", kept.label))
                else {
                    continue;
                };
                if mount.unguarded {
                    remarks.push(unsafe_remark(mount, &what, verb));
                } else {
                    return Err(refusal_message(mount, &what, verb));
                }
            }
        }
        for guarded in guarded {
            let place = ResolvedPath::resolve(&guarded.path);
            for (mount, root) in &self.mounts {
                let writes = mount.access == MountAccess::ReadWrite;
                if !(writes || guarded.is_secret) || !root.contains(&place) {
                    continue;
                }
                let verb = if writes { "change" } else { "read" };
                if mount.unguarded {
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
    fn record(&mut self, mount: &MountPermission, what: &str, verb: &str) {
        if !mount.unguarded {
            self.refusal
                .get_or_insert_with(|| refusal_message(mount, what, verb));
            return;
        }
        let remark = unsafe_remark(mount, what, verb);
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
    fn new(things: impl Iterator<Item = (&'a ResolvedPath, T)>) -> Self {
        let (mut by_path, mut by_identity): (HashMap<_, Vec<T>>, HashMap<_, Vec<T>>) =
            Default::default();
        for (place, thing) in things {
            let (path, identity) = place.target();
            by_path.entry(path).or_default().push(thing);
            if let Some(identity) = identity {
                by_identity.entry(identity).or_default().push(thing);
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
        let same = identity.and_then(|identity| self.by_identity.get(&identity));
        self.by_path
            .get(path)
            .into_iter()
            .chain(same)
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
    let mounted = |(id, places): &(&'a str, &'a MountPlan)| {
        let id = *id;
        places
            .mounts
            .iter()
            .map(move |(mount, place)| (id, mount, place))
    };
    let all = || plugins.iter().flat_map(mounted);
    let mounts = PathIndex::new(all().map(|(id, mount, place)| (place, (id, mount))));
    let mut found: BTreeMap<&str, MountOverlaps> = BTreeMap::new();
    if mounts.is_empty() {
        return found;
    }
    let kept_by = |(id, places): &(&'a str, &'a MountPlan)| {
        let id = *id;
        places.secrets.iter().map(move |kept| (id, kept))
    };
    let secrets = || plugins.iter().flat_map(kept_by);
    let folders = PathIndex::new(
        secrets()
            .filter(|(_, kept)| kept.is_folder)
            .map(|(id, kept)| (&kept.place, (id, kept))),
    );
    for (plugin, places) in &plugins {
        let held = places.mounts.iter().map(|(mount, place)| {
            let written = mount.host_as_written.display();
            match mount.scope {
                None => (
                    format!("the mounted folder {written} of plugin {plugin:?}"),
                    place,
                    None,
                ),
                // Each call mounts the folder of its caller, which is below the folder in the
                // grant.
                Some(MountScope::Caller) => {
                    let what = format!(
                        "the mounted folders of the callers in {written} of plugin {plugin:?}"
                    );
                    (what, place, Some(place.target()))
                }
            }
        });
        let links = places
            .links
            .iter()
            .map(|(name, place)| (format!("the target of the link {name}"), place, None));
        for (what, place, callers) in held.chain(links) {
            for (path, identity) in place.ancestors().chain(callers) {
                // Two per-caller mounts of the same folder give each caller the same folder, which
                // is not an overlap.
                let is_same = |mount: &MountPermission| {
                    mount.scope.is_some() && callers == Some((path, identity))
                };
                let writers = mounts
                    .find(path, identity)
                    .filter(|(_, mount)| mount.access == MountAccess::ReadWrite && !is_same(mount));
                for (id, mount) in writers {
                    found.entry(id).or_default().record(
                        mount,
                        &format!("contains {what}"),
                        "change",
                    );
                }
            }
        }
    }
    // A plugin's own mounts were compared with its own secrets when it was loaded.
    for (plugin, kept) in secrets() {
        for (path, identity) in kept.place.visited() {
            for (id, mount) in mounts.find(path, identity).filter(|(id, _)| *id != plugin) {
                if let Some(verb) = kept.exposed_action(mount) {
                    let what = format!("contains {} of plugin {plugin:?}", kept.label);
                    found.entry(id).or_default().record(mount, &what, verb);
                }
            }
        }
    }
    if !folders.is_empty() {
        for (id, mount, place) in all() {
            for (path, identity) in place.ancestors() {
                for (plugin, kept) in folders
                    .find(path, identity)
                    .filter(|(plugin, _)| *plugin != id)
                {
                    if let Some(verb) = kept.exposed_action(mount) {
                        let what = format!("is in {} of plugin {plugin:?}", kept.label);
                        found.entry(id).or_default().record(mount, &what, verb);
                    }
                }
            }
        }
    }
    found
}

fn refusal_message(mount: &MountPermission, what: &str, verb: &str) -> String {
    let MountPermission {
        host_as_written: written,
        source_location: place,
        ..
    } = mount;
    let written = written.display();
    format!(
        "{place}: the mount of {written} {what}, so the plugin could {verb} it; mount a smaller folder, or add \
         `unsafe = true` to the mount to allow that"
    )
}

fn unsafe_remark(mount: &MountPermission, what: &str, verb: &str) -> String {
    let MountPermission {
        host_as_written: written,
        source_location: place,
        ..
    } = mount;
    format!(
        "{place}: the mount of {} is unsafe: it {what}, so the plugin can {verb} it",
        written.display()
    )
}

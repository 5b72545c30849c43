//! What mounts must not contain: what decides about the server and about plugins.
//!
//! What belongs to the server is compared when a plugin is loaded, and a plugin whose mount contains it is refused. What
//! belongs to other plugins changes with each of them: that is compared when a snapshot is made, over all plugins.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use toolbay_policy::{Access, By, Mount, Permissions};

use crate::folder::{component_path, grant_path, wit_path};
use crate::place::{Identity, Place};

/// A file or folder of the server that decides what plugins may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// What it is, such as `the plugin folder`.
    pub what: &'static str,
    /// Where it is. It need not exist.
    pub path: PathBuf,
    /// Whether a plugin must not even read it.
    pub is_secret: bool,
}

/// Where a plugin's mounts and files are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The mounts, in the grant's order.
    mounts: Vec<(Mount, Place)>,
    /// Its files that are links, by name.
    links: Vec<(String, Place)>,
}

impl Places {
    /// The places of the plugin `id` in `folder`. Blocks.
    pub(crate) fn of(id: &str, folder: &Path, permissions: &Permissions) -> Self {
        let mounts = permissions.mounts.iter().map(|mount| (mount.clone(), Place::of(&mount.host))).collect();
        let files = [component_path(folder, id), grant_path(folder, id), wit_path(folder, id)];
        let links = files.iter().filter(|path| path.is_symlink()).map(|path| {
            let name = path.file_name().unwrap_or_default().display().to_string();
            (name, Place::of(path))
        });
        Self { mounts, links: links.collect() }
    }

    /// Warnings about mounts that contain what is guarded and are allowed to.
    ///
    /// # Errors
    ///
    /// A mount contains what is guarded and is not allowed to.
    pub(crate) fn check(&self, guarded: &[Guarded]) -> Result<Vec<String>, String> {
        let mut remarks = Vec::new();
        if self.mounts.is_empty() {
            return Ok(remarks);
        }
        for guarded in guarded {
            let place = Place::of(&guarded.path);
            for (mount, root) in &self.mounts {
                let writes = mount.access == Access::ReadWrite;
                if !(writes || guarded.is_secret) || !root.contains(&place) {
                    continue;
                }
                let verb = if writes { "change" } else { "read" };
                if mount.unguarded {
                    remarks.push(allowed(mount, guarded.what, verb));
                } else {
                    return Err(refused(mount, guarded.what, verb));
                }
            }
        }
        Ok(remarks)
    }
}

/// The outcome for a plugin whose mounts contain what belongs to plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overlaps {
    /// Why it must not serve.
    pub refused: Option<String>,
    /// What `unsafe = true` allows.
    pub remarks: Vec<String>,
}

/// A mount through which its plugin can write, and that plugin's id.
type Writable<'a> = (&'a str, &'a Mount);

/// Finds the plugins that could write to what other mounts or plugin files depend on, by id. `plugins` are their ids and
/// places.
pub(crate) fn overlaps<'a>(
    plugins: impl Iterator<Item = (&'a str, &'a Places)> + Clone,
) -> BTreeMap<&'a str, Overlaps> {
    let mut by_path: HashMap<&Path, Vec<Writable<'_>>> = HashMap::new();
    let mut by_identity: HashMap<Identity, Vec<Writable<'_>>> = HashMap::new();
    for (plugin, places) in plugins.clone() {
        let writable = places.mounts.iter().filter(|(mount, _)| mount.access == Access::ReadWrite);
        for (mount, place) in writable {
            let (path, identity) = place.end();
            by_path.entry(path).or_default().push((plugin, mount));
            if let Some(identity) = identity {
                by_identity.entry(identity).or_default().push((plugin, mount));
            }
        }
    }
    let mut found: BTreeMap<&str, Overlaps> = BTreeMap::new();
    if by_path.is_empty() {
        return found;
    }
    for (plugin, places) in plugins {
        let mounts = places.mounts.iter().map(|(mount, place)| {
            let written = mount.written.display();
            match mount.by {
                None => (format!("the mounted folder {written} of plugin {plugin:?}"), place, None),
                // What is mounted is below the folder that the grant names.
                Some(By::Caller) => {
                    let what = format!("the mounted folders of the callers in {written} of plugin {plugin:?}");
                    (what, place, Some(place.end()))
                }
            }
        });
        let links = places.links.iter().map(|(name, place)| (format!("what {name} is a link to"), place, None));
        for (what, place, callers) in mounts.chain(links) {
            for (path, identity) in place.above().chain(callers) {
                let writers = by_path.get(path).into_iter().chain(identity.and_then(|id| by_identity.get(&id)));
                // Two mounts of the folders of callers are for the same folders.
                let is_same = |mount: &Mount| mount.by.is_some() && callers == Some((path, identity));
                for (id, mount) in writers.flatten().filter(|(_, mount)| !is_same(mount)) {
                    let overlaps = found.entry(id).or_default();
                    if !mount.unguarded {
                        overlaps.refused.get_or_insert_with(|| refused(mount, &what, "change"));
                        continue;
                    }
                    let remark = allowed(mount, &what, "change");
                    if !overlaps.remarks.contains(&remark) {
                        overlaps.remarks.push(remark);
                    }
                }
            }
        }
    }
    found
}

fn refused(mount: &Mount, what: &str, verb: &str) -> String {
    let Mount { written, place, .. } = mount;
    let written = written.display();
    format!(
        "{place}: the mount of {written} contains {what}, so the plugin could {verb} it; mount a smaller folder, or add \
         `unsafe = true` to the mount to allow that"
    )
}

fn allowed(mount: &Mount, what: &str, verb: &str) -> String {
    let Mount { written, place, .. } = mount;
    format!("{place}: the mount of {} is unsafe: it contains {what}, so the plugin can {verb} it", written.display())
}

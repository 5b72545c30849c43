//! Locations of files and folders: every folder on the path, and every folder that contains a link
//! on the path.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links that are followed for one path. The kernel has the same limit.
const MAX_LINKS: usize = 40;

/// Device and inode of a file or folder.
pub(crate) type FileIdentity = (u64, u64);

/// Resolved path of a file or folder, which may not exist yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// Everything on the path, in order, without links: folders, and at the end the target. A
    /// writer of one of the folders can replace everything after it. An entry that does not exist
    /// has no identity.
    visited: Vec<(PathBuf, Option<FileIdentity>)>,
}

impl ResolvedPath {
    /// Resolves `path`. Blocks.
    pub(crate) fn resolve(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut remaining = component_names(&path);
        let mut current = PathBuf::from("/");
        let mut resolved = Self {
            visited: vec![(current.clone(), read_identity(&current))],
        };
        let mut links = 0;
        while let Some(name) = remaining.pop_front() {
            if name == ".." {
                current.pop();
                continue;
            }
            let next = current.join(&name);
            match fs::read_link(&next) {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    if target.is_absolute() {
                        current = PathBuf::from("/");
                    }
                    for name in component_names(&target).into_iter().rev() {
                        remaining.push_front(name);
                    }
                }
                _ => {
                    current = next;
                    resolved
                        .visited
                        .push((current.clone(), read_identity(&current)));
                }
            }
        }
        // The path may have ended in `..`.
        if resolved.target().0 != current.as_path() {
            resolved
                .visited
                .push((current.clone(), read_identity(&current)));
        }
        resolved
    }

    /// Returns the target of the path.
    pub(crate) fn target(&self) -> (&Path, Option<FileIdentity>) {
        self.visited
            .last()
            .map_or((Path::new("/"), None), |(path, identity)| (path, *identity))
    }

    /// Returns everything on the path except its target.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = (&Path, Option<FileIdentity>)> {
        let (target, identity) = self.target();
        let entries = self
            .visited
            .iter()
            .map(|(path, identity)| (path.as_path(), *identity));
        entries.filter(move |(path, id)| *path != target && (id.is_none() || *id != identity))
    }

    /// Returns everything on the path, including its target.
    pub(crate) fn visited(&self) -> impl Iterator<Item = (&Path, Option<FileIdentity>)> {
        self.visited
            .iter()
            .map(|(path, identity)| (path.as_path(), *identity))
    }

    /// Returns whether this folder is on the path to `other`, or is its target.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let (target, identity) = self.target();
        other
            .visited
            .iter()
            .any(|(path, id)| path == target || (id.is_some() && *id == identity))
    }
}

/// Returns the names in a path.
fn component_names(path: &Path) -> VecDeque<OsString> {
    let name_of = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(name_of).collect()
}

fn read_identity(path: &Path) -> Option<FileIdentity> {
    fs::symlink_metadata(path)
        .ok()
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_contains_what_is_below_it_and_what_is_reached_through_it() {
        let root = tempfile::tempdir().unwrap();
        let path = |path: &str| root.path().join(path);
        fs::create_dir_all(path("a/b/c")).unwrap();
        fs::create_dir_all(path("x/y")).unwrap();
        // The path to `x/y` through this link passes `a/b`, whose writer can replace the link.
        symlink("../../x", path("a/b/link")).unwrap();
        symlink(path("a"), path("absolute")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let contains = |outer: &str, inner: &str| {
            ResolvedPath::resolve(&path(outer)).contains(&ResolvedPath::resolve(&path(inner)))
        };
        for (outer, inner) in [
            ("a", "a"),
            ("a", "a/b/c"),
            ("", "a/b"),
            ("a/b/..", "a/b"),
            ("absolute", "a/b"),
            ("a", "absolute/b"),
            ("a/b", "a/b/link/y"),
            ("x", "a/b/link/y"),
            ("a", "a/not/yet"),
            ("not/yet", "not/yet/either"),
            ("not/./yet", "not/x/../yet/either"),
            ("x/y/..", "x/y"),
        ] {
            assert!(contains(outer, inner), "{outer} contains {inner}");
        }
        for (outer, inner) in [
            ("a/b", "a"),
            ("a", "x"),
            ("a", "ab"),
            ("a/b/c", "a/b/link/y"),
            ("x", "loop"),
            ("not", "a"),
        ] {
            assert!(!contains(outer, inner), "{outer} does not contain {inner}");
        }
    }

    #[test]
    fn a_folder_is_not_above_itself() {
        let root = tempfile::tempdir().unwrap();
        let place = ResolvedPath::resolve(&root.path().join("a/../b"));
        let above: Vec<_> = place.ancestors().map(|(path, _)| path.to_owned()).collect();
        assert!(
            above.contains(&root.path().canonicalize().unwrap())
                && above.contains(&PathBuf::from("/"))
        );
        assert!(above.iter().all(|path| !path.ends_with("b")));
    }
}

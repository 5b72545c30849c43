//! Files that a confined process can still access.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Files that a confined process can still access. Like the kernel, this set identifies files and
/// directories by inode, not by path: a directory that replaces an allowed one is not accessible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReachableFiles {
    read: HashSet<InodeIdentity>,
    write: HashSet<InodeIdentity>,
}

/// Device and inode number of a file.
type InodeIdentity = (u64, u64);

impl ReachableFiles {
    /// Adds the file or directory at `path` as readable, and as writable if `is_writable` is set.
    pub(crate) fn insert(&mut self, path: &Path, is_writable: bool) {
        if let Some(identity) = identity(path) {
            self.read.insert(identity);
            if is_writable {
                self.write.insert(identity);
            }
        }
    }

    /// Returns whether `path` can be read, or written if `for_writing` is set. A path that does not
    /// exist is checked by its closest existing ancestor. Blocks.
    pub fn allows(&self, path: &Path, for_writing: bool) -> bool {
        let allowed = if for_writing { &self.write } else { &self.read };
        // Resolve symbolic links of the longest part of the path that exists.
        let real = path.ancestors().find_map(|path| path.canonicalize().ok());
        let Some(real) = real else { return false };
        real.ancestors()
            .any(|ancestor| identity(ancestor).is_some_and(|identity| allowed.contains(&identity)))
    }
}

fn identity(path: &Path) -> Option<InodeIdentity> {
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn directory_is_identified_by_inode() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["data", "data/deep", "other", "read"] {
            fs::create_dir(at(name)).unwrap();
        }
        let mut reach = ReachableFiles::default();
        reach.insert(&at("data"), true);
        reach.insert(&at("read"), false);
        reach.insert(&at("nowhere"), true);
        symlink(at("data/deep"), at("other/link")).unwrap();
        symlink(at("other"), at("data/out")).unwrap();
        for inside in [
            "data",
            "data/deep",
            "other/link",
            "other/link/new",
            "data/new/deeper",
        ] {
            assert!(
                reach.allows(&at(inside), true) && reach.allows(&at(inside), false),
                "{inside}"
            );
        }
        assert!(reach.allows(&at("read/file"), false) && !reach.allows(&at("read/file"), true));
        for outside in [
            "other",
            "data/out",
            "data/out/x",
            "nowhere",
            "data/../other",
        ] {
            assert!(!reach.allows(&at(outside), false), "{outside}");
        }
        // Rename the old directory instead of removing it, so that its inode number is not reused.
        fs::rename(at("data"), at("old")).unwrap();
        fs::create_dir(at("data")).unwrap();
        assert!(!reach.allows(&at("data"), false) && reach.allows(&at("old"), true));
    }
}

//! Which files a confined process can still use.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Which files a confined process can still use. The kernel knows files and folders by what they are and not by their
/// paths, and so does this: another folder in the place of one that was allowed is not reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReachableFiles {
    read: HashSet<InodeIdentity>,
    write: HashSet<InodeIdentity>,
}

/// The device and the inode of a file.
type InodeIdentity = (u64, u64);

impl ReachableFiles {
    /// Notes that what is at `path` can be read, and written if `writable`.
    pub(crate) fn note(&mut self, path: &Path, writable: bool) {
        if let Some(identity) = identity(path) {
            self.read.insert(identity);
            if writable {
                self.write.insert(identity);
            }
        }
    }

    /// Whether what is at `path` can be read, or written as well. What does not exist is where its folder is. Blocks.
    pub fn reaches(&self, path: &Path, writing: bool) -> bool {
        let allowed = if writing { &self.write } else { &self.read };
        // Where links lead to, as far as there is something.
        let real = path.ancestors().find_map(|path| path.canonicalize().ok());
        let Some(real) = real else { return false };
        real.ancestors().any(|place| identity(place).is_some_and(|identity| allowed.contains(&identity)))
    }
}

fn identity(path: &Path) -> Option<InodeIdentity> {
    let found = path.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_known_by_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["data", "data/deep", "other", "read"] {
            fs::create_dir(at(name)).unwrap();
        }
        let mut reach = ReachableFiles::default();
        reach.note(&at("data"), true);
        reach.note(&at("read"), false);
        reach.note(&at("nowhere"), true);
        symlink(at("data/deep"), at("other/link")).unwrap();
        symlink(at("other"), at("data/out")).unwrap();
        for inside in ["data", "data/deep", "other/link", "other/link/new", "data/new/deeper"] {
            assert!(reach.reaches(&at(inside), true) && reach.reaches(&at(inside), false), "{inside}");
        }
        assert!(reach.reaches(&at("read/file"), false) && !reach.reaches(&at("read/file"), true));
        for outside in ["other", "data/out", "data/out/x", "nowhere", "data/../other"] {
            assert!(!reach.reaches(&at(outside), false), "{outside}");
        }
        // Kept, so that its inode is not given to the next one.
        fs::rename(at("data"), at("old")).unwrap();
        fs::create_dir(at("data")).unwrap();
        assert!(!reach.reaches(&at("data"), false) && reach.reaches(&at("old"), true));
    }
}

//! Opens files in a folder without leaving it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Flags for opening a file. Opening a FIFO does not wait for a writer.
const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Flags for opening a folder.
const FOLDER_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Opens the folder itself. It may be a link, because the operator put it there.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, FOLDER_FLAGS, Mode::empty())
}

/// Opens the folder `name` in `folder`. It must not be a link.
pub(crate) fn open_folder(folder: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    openat(
        folder,
        name,
        FOLDER_FLAGS.union(OFlags::NOFOLLOW),
        Mode::empty(),
    )
}

/// Opens the file at `path` in `root`. Follows links that stay in it.
pub(crate) fn open_file(root: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(root, path, FILE_FLAGS, Mode::empty(), resolve) {
        // The kernel is older than 5.6, the filter of a container does not know the call, or a
        // concurrent rename prevents the kernel from deciding.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => open_file_stepwise(root, path),
        opened => opened,
    }
}

/// Like [`open_file`], but follows no links.
fn open_file_stepwise(root: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let (folders, name) = path
        .rsplit_once('/')
        .map_or((None, path), |(folders, name)| (Some(folders), name));
    let mut parent: Option<OwnedFd> = None;
    for folder in folders.into_iter().flat_map(|folders| folders.split('/')) {
        if folder == ".." {
            return Err(Errno::XDEV);
        }
        parent = Some(open_folder(
            parent.as_ref().map_or(root, AsFd::as_fd),
            folder,
        )?);
    }
    openat(
        parent.as_ref().map_or(root, AsFd::as_fd),
        name,
        FILE_FLAGS.union(OFlags::NOFOLLOW),
        Mode::empty(),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_in_the_folder_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = |path: &str| dir.path().join(path);
        fs::create_dir_all(path("root/sub")).unwrap();
        fs::write(path("outside"), "").unwrap();
        fs::write(path("root/sub/a"), "").unwrap();
        symlink("sub/a", path("root/inside")).unwrap();
        symlink("sub", path("root/folder")).unwrap();
        symlink("../outside", path("root/relative")).unwrap();
        symlink(path("root/sub/a"), path("root/absolute")).unwrap();
        symlink("../..", path("root/sub/up")).unwrap();
        symlink("/proc/self/exe", path("root/magic")).unwrap();
        let root = open_root(&path("root")).unwrap();
        let opens = |open: fn(BorrowedFd<'_>, &str) -> Result<OwnedFd, Errno>, path: &str| {
            open(root.as_fd(), path).is_ok()
        };
        assert!(opens(open_file, "sub/a") && opens(open_file_stepwise, "sub/a"));
        for link in ["inside", "folder/a"] {
            assert!(!opens(open_file_stepwise, link), "{link}");
        }
        for out in [
            "relative",
            "absolute",
            "sub/up/outside",
            "magic",
            "../outside",
            "sub/../../outside",
            "/etc/passwd",
        ] {
            assert!(!opens(open_file, out), "{out}");
        }
        for out in [
            "relative",
            "absolute",
            "sub/up/outside",
            "magic",
            "../outside",
            "sub/../../outside",
        ] {
            assert!(!opens(open_file_stepwise, out), "{out}");
        }
    }
}

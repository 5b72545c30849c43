//! Reads secret files, which only the server's user can access, and whose paths contain no symbolic
//! links.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;
use zeroize::Zeroizing;

/// Flags for opening each directory on the path.
const DIRECTORY_FLAGS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);

/// Flags for opening the file. Without `NONBLOCK`, a FIFO without a writer would block the thread.
const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Environment variable with the folder of the files that systemd passes to a service
/// (`LoadCredential=`).
const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// Period in which a file can change twice without a change of its timestamps. Some file systems
/// store timestamps in seconds.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

/// Metadata of a file. Every change of the file changes at least one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretFileStamp {
    file_id: (u64, u64),
    size: u64,
    times: [(i64, i64); 2],
    owner: (u32, u32),
    /// True if the file had not changed for some time when it was read. Otherwise, a later change
    /// may have left the timestamps unchanged.
    pub(crate) is_old: bool,
}

impl SecretFileStamp {
    fn from_stat(stat: &Stat) -> Self {
        let changed_at = u64::try_from(stat.st_ctime).unwrap_or_default();
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            file_id: (stat.st_dev, stat.st_ino),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            times: [
                (
                    stat.st_mtime,
                    i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
                ),
                (
                    stat.st_ctime,
                    i64::try_from(stat.st_ctime_nsec).unwrap_or_default(),
                ),
            ],
            owner: (stat.st_uid, stat.st_mode),
            is_old: Duration::from_secs(changed_at) + TIMESTAMP_GRANULARITY < now,
        }
    }

    /// Returns whether the file is unchanged, given its current stamp.
    fn is_unchanged(&self, now: &Self) -> bool {
        self.is_old
            && Self {
                is_old: true,
                ..now.clone()
            } == *self
    }
}

/// Result of reading a file again.
#[derive(Debug)]
pub(crate) enum FileChange {
    /// The file is unchanged.
    Unchanged,
    /// Content of the file, within the requested size limit.
    Content(SecretFileStamp, Zeroizing<Vec<u8>>),
}

/// Reads the file `path` of at most `max_bytes` bytes. Follows symbolic links only in the part of
/// the path that `base` contains. Blocks.
///
/// # Errors
///
/// Returns the end of a sentence about the file.
pub(crate) fn read_if_changed(
    base: &Path,
    path: &Path,
    max_bytes: usize,
    previous: Option<&SecretFileStamp>,
) -> Result<FileChange, String> {
    let mut file = File::from(open_without_links(base, path)?);
    let stat = fstat(&file).map_err(errno_message)?;
    let folder = env::var_os(CREDENTIALS_VARIABLE);
    let is_credential = folder.is_some_and(|folder| is_in_folder(path, Path::new(&folder)));
    check_stat(&stat, max_bytes, geteuid().as_raw(), is_credential)?;
    let stamp = SecretFileStamp::from_stat(&stat);
    if previous.is_some_and(|known| known.is_unchanged(&stamp)) {
        return Ok(FileChange::Unchanged);
    }
    // Preallocate the buffer, because growing it would leave a copy of the secret in memory.
    let mut content = Zeroizing::new(Vec::with_capacity(max_bytes.saturating_add(1)));
    let read_limit = max_bytes as u64 + 1;
    let read = file.by_ref().take(read_limit).read_to_end(&mut content);
    read.map_err(|error| format!("cannot be read: {}", error.kind()))?;
    if content.len() > max_bytes {
        return Err(too_large_message(max_bytes));
    }
    Ok(FileChange::Content(stamp, content))
}

/// Maximum size of a file that [`read_secret_file`] reads, in bytes.
const MAX_FILE_BYTES: usize = 64 << 10;

/// Reads a secret file of the operator, with the same checks as for plugins' secrets: it must be a
/// regular file that this user owns and that no other user can read or write, or a credential of
/// the service. Follows symbolic links to its directory, because the operator chose the directory;
/// the file itself must not be a link. Blocks.
///
/// # Errors
///
/// Returns the end of a sentence about the file.
pub fn read_secret_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    match read_if_changed(
        path.parent().unwrap_or(Path::new("")),
        path,
        MAX_FILE_BYTES,
        None,
    )? {
        FileChange::Content(_, content) => Ok(content),
        // Cannot occur without a previous stamp.
        FileChange::Unchanged => Err("cannot be read".to_owned()),
    }
}

/// Returns whether the path leads to a file directly in the folder. The folder must be absolute.
fn is_in_folder(path: &Path, folder: &Path) -> bool {
    let is_direct = |rest: &Path| {
        let mut names = rest.components();
        matches!(names.next(), Some(Component::Normal(_))) && names.next().is_none()
    };
    folder.is_absolute() && path.strip_prefix(folder).is_ok_and(is_direct)
}

/// Checks that the file may contain a secret of the server's user.
///
/// If a file system has access control lists, the credentials of a service belong to root, and a
/// list allows the service's user to read them. The mode then has the list's mask as the bits of
/// the group, although the group has no access.
fn check_stat(stat: &Stat, max_bytes: usize, user: u32, is_credential: bool) -> Result<(), String> {
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err("is not a regular file".to_owned());
    }
    let is_credential_of_root = is_credential && stat.st_uid == 0 && user != 0;
    if stat.st_uid != user && !is_credential_of_root {
        return Err("belongs to another user than the server's; change its owner".to_owned());
    }
    let mode = stat.st_mode & 0o7777;
    let forbidden = if is_credential_of_root { 0o037 } else { 0o077 };
    if mode & forbidden != 0 {
        return Err(format!(
            "is open to other users (mode {mode:04o}); make it 0600"
        ));
    }
    if u64::try_from(stat.st_size).is_ok_and(|size| size > max_bytes as u64) {
        return Err(too_large_message(max_bytes));
    }
    Ok(())
}

fn too_large_message(max_bytes: usize) -> String {
    format!("is larger than {} KiB", max_bytes >> 10)
}

/// Opens a file. Opens each directory on the path through the handle of its parent.
fn open_without_links(base: &Path, path: &Path) -> Result<OwnedFd, String> {
    let (start, rest) = match path.strip_prefix(base) {
        Ok(rest) if base.as_os_str().is_empty() && path.is_relative() => (Path::new("."), rest),
        Ok(rest) if !base.as_os_str().is_empty() => (base, rest),
        _ => (Path::new("/"), path),
    };
    let mut folder = openat(
        CWD,
        start,
        DIRECTORY_FLAGS.difference(OFlags::NOFOLLOW),
        Mode::empty(),
    )
    .map_err(errno_message)?;
    let mut names: Vec<&OsStr> = Vec::new();
    for component in rest.components() {
        match component {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => names.push("..".as_ref()),
            Component::Normal(name) => names.push(name),
        }
    }
    let Some((last, folders)) = names.split_last() else {
        return Err("is not a regular file".to_owned());
    };
    for name in folders {
        folder = openat(&folder, *name, DIRECTORY_FLAGS, Mode::empty())
            .map_err(|error| open_error(&folder, name, error))?;
    }
    openat(&folder, *last, FILE_FLAGS, Mode::empty())
        .map_err(|error| open_error(&folder, last, error))
}

/// Returns the reason that `name` was not opened.
fn open_error(folder: &OwnedFd, name: &OsStr, error: Errno) -> String {
    let is_link = || {
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_symlink())
    };
    if matches!(error, Errno::NOTDIR | Errno::LOOP) && is_link() {
        return "is reached through a symbolic link; write the path that the link leads to"
            .to_owned();
    }
    errno_message(error)
}

fn errno_message(error: Errno) -> String {
    match error {
        Errno::NOENT | Errno::NOTDIR => "does not exist".to_owned(),
        Errno::ACCESS => "cannot be opened by the server: permission denied".to_owned(),
        // A socket, or a missing device.
        Errno::NXIO | Errno::NODEV => "is not a regular file".to_owned(),
        error => format!("cannot be opened: {}", io::Error::from(error).kind()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn write_file(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn content(base: &Path, path: &str) -> Result<String, String> {
        match read_if_changed(base, &base.join(path), 1 << 10, None)? {
            FileChange::Content(_, content) => Ok(String::from_utf8(content.to_vec()).unwrap()),
            FileChange::Unchanged => unreachable!("nothing was known"),
        }
    }

    #[test]
    fn only_private_files_of_the_server_are_read() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("plugins");
        fs::create_dir_all(base.join("folder")).unwrap();
        write_file(&base.join("good"), "value", 0o600);
        write_file(&base.join("read-only"), "value", 0o400);
        write_file(&base.join("folder/good"), "value", 0o600);
        write_file(&root.path().join("outside"), "value", 0o600);
        for path in [
            "good",
            "read-only",
            "folder/good",
            "./folder/../good",
            "../outside",
        ] {
            assert_eq!(content(&base, path).unwrap(), "value", "{path}");
        }
        assert_eq!(
            content(&base, root.path().join("outside").to_str().unwrap()).unwrap(),
            "value"
        );
        write_file(&base.join("group"), "value", 0o640);
        write_file(&base.join("world"), "value", 0o602);
        write_file(&base.join("large"), &"x".repeat((1 << 10) + 1), 0o600);
        write_file(&base.join("largest"), &"x".repeat(1 << 10), 0o600);
        symlink("good", base.join("link")).unwrap();
        symlink("folder", base.join("way")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let fifo = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(CWD, base.join("fifo"), fifo.0, fifo.1, 0).unwrap();
        let _socket = UnixListener::bind(base.join("socket")).unwrap();
        let link = "is reached through a symbolic link; write the path that the link leads to";
        for (path, why) in [
            ("absent", "does not exist"),
            ("good/below", "does not exist"),
            ("", "is not a regular file"),
            ("folder", "is not a regular file"),
            ("fifo", "is not a regular file"),
            ("socket", "is not a regular file"),
            ("/dev/null", "is not a regular file"),
            ("group", "is open to other users (mode 0640); make it 0600"),
            ("world", "is open to other users (mode 0602); make it 0600"),
            ("large", "is larger than 1 KiB"),
            ("link", link),
            ("way/good", link),
            ("loop", link),
        ] {
            assert_eq!(content(&base, path).unwrap_err(), why, "{path:?}");
        }
        assert_eq!(content(&base, "largest").unwrap().len(), 1 << 10);
        assert!(
            content(&base, &"x".repeat(300))
                .unwrap_err()
                .starts_with("cannot be opened")
        );
        assert!(
            content(&base, "a\0b")
                .unwrap_err()
                .starts_with("cannot be opened")
        );
        // The operator chose the path of the plugin folder, so links are allowed in it.
        symlink(&base, root.path().join("linked")).unwrap();
        assert_eq!(
            content(&root.path().join("linked"), "good").unwrap(),
            "value"
        );
    }

    #[test]
    fn the_file_of_another_user_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        write_file(&root.path().join("file"), "value", 0o600);
        let stat = fstat(File::open(root.path().join("file")).unwrap()).unwrap();
        let user = stat.st_uid;
        let other = "belongs to another user than the server's; change its owner";
        assert_eq!(check_stat(&stat, 10, user, false), Ok(()));
        for is_credential in [false, true] {
            let mut stat = stat;
            stat.st_uid = 7;
            assert_eq!(check_stat(&stat, 10, 8, is_credential).unwrap_err(), other);
        }
    }

    #[test]
    fn a_credential_may_belong_to_root() {
        let root = tempfile::tempdir().unwrap();
        write_file(&root.path().join("file"), "value", 0o400);
        let mut stat = fstat(File::open(root.path().join("file")).unwrap()).unwrap();
        let kind = stat.st_mode & !0o7777;
        for (owner, mode, user, is_credential, is_fine) in [
            // With an access control list, and without one.
            (0, 0o440, 7, true, true),
            (7, 0o400, 7, true, true),
            (0, 0o400, 0, true, true),
            (0, 0o440, 7, false, false),
            (0, 0o444, 7, true, false),
            (0, 0o460, 7, true, false),
            (7, 0o440, 7, true, false),
            (0, 0o440, 0, true, false),
            (8, 0o400, 7, true, false),
        ] {
            (stat.st_uid, stat.st_mode) = (owner, kind | mode);
            assert_eq!(
                check_stat(&stat, 10, user, is_credential).is_ok(),
                is_fine,
                "{owner} {mode:o} {user} {is_credential}"
            );
        }
        let folder = Path::new("/run/credentials/toolbay.service");
        for (path, is_fine) in [
            ("/run/credentials/toolbay.service/key", true),
            ("/run/credentials/toolbay.service/./key", true),
            ("/run/credentials/toolbay.service", false),
            ("/run/credentials/toolbay.service/..", false),
            (
                "/run/credentials/toolbay.service/../other.service/key",
                false,
            ),
            ("/run/credentials/toolbay.service/folder/key", false),
            ("/run/credentials/toolbay.service.d/key", false),
            ("key", false),
        ] {
            assert_eq!(is_in_folder(Path::new(path), folder), is_fine, "{path}");
        }
        assert!(!is_in_folder(Path::new("key"), Path::new("")));
        assert!(!is_in_folder(Path::new("a/key"), Path::new("a")));
    }

    #[test]
    fn file_counts_as_unchanged_only_after_a_while() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        write_file(&path, "value", 0o600);
        let read_again = |previous: Option<&SecretFileStamp>| {
            read_if_changed(root.path(), &path, 100, previous).unwrap()
        };
        let FileChange::Content(mut stamp, _) = read_again(None) else {
            panic!("nothing was known")
        };
        // The file was just written, and may be written again within the same timestamp.
        assert!(!stamp.is_old && matches!(read_again(Some(&stamp)), FileChange::Content(..)));
        stamp.is_old = true;
        assert!(matches!(read_again(Some(&stamp)), FileChange::Unchanged));
        fs::write(&path, "other").unwrap();
        assert!(matches!(read_again(Some(&stamp)), FileChange::Content(..)));
    }
}

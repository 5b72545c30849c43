//! Reads files that other programs replace while the server runs.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open};
use zeroize::Zeroizing;

/// Flags for opening a file. Without `NONBLOCK`, a FIFO without a writer would block the thread.
const OPEN_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Reads a regular file of at most `most` bytes. Follows symbolic links. Never waits for a writer.
///
/// # Errors
///
/// Returns a one-line error with the path if the file does not exist, is not a regular file, is
/// larger, or cannot be read.
pub fn read_regular_file(path: &Path, most: usize) -> Result<Zeroizing<Vec<u8>>, String> {
    read_checked(path, most, |_| Ok(()))
}

/// Like [`read_regular_file`], for a file whose metadata passes `check`.
pub(crate) fn read_checked(
    path: &Path,
    most: usize,
    check: fn(&Stat) -> Result<(), String>,
) -> Result<Zeroizing<Vec<u8>>, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let unreadable = |error: io::Error| {
        wrong(match error.kind() {
            io::ErrorKind::NotFound => "does not exist".to_owned(),
            kind => format!("cannot be read: {kind}"),
        })
    };
    let opened = open(path, OPEN_FLAGS, Mode::empty()).map_err(|error| unreadable(error.into()))?;
    let stat = fstat(&opened).map_err(|error| unreadable(error.into()))?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(wrong("is not a regular file".to_owned()));
    }
    check(&stat).map_err(wrong)?;
    // Preallocate the buffer, because growing it would leave a copy of a key in memory.
    let mut content = Zeroizing::new(Vec::with_capacity(most.saturating_add(1)));
    File::from(opened)
        .take(most as u64 + 1)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    if content.len() > most {
        return Err(wrong(format!("is larger than {} KiB", most >> 10)));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, mkfifoat};

    use super::*;

    #[test]
    fn only_a_regular_file_within_the_limit_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let read = |name: &str| {
            read_regular_file(&path(name), 1 << 10)
                .map(|content| content.len())
                .map_err(|why| why.replace(&format!("{}: ", path(name).display()), ""))
        };
        let refused = |why: &str| Err(why.to_owned());
        assert_eq!(read("none"), refused("does not exist"));
        fs::write(path("file"), [7; 1 << 10]).unwrap();
        symlink("file", path("link")).unwrap();
        assert_eq!((read("file"), read("link")), (Ok(1 << 10), Ok(1 << 10)));
        fs::write(path("large"), [7; (1 << 10) + 1]).unwrap();
        assert_eq!(read("large"), refused("is larger than 1 KiB"));
        mkfifoat(CWD, path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        symlink("fifo", path("link-to-fifo")).unwrap();
        for other in ["fifo", "link-to-fifo", ""] {
            assert_eq!(read(other), refused("is not a regular file"), "{other}");
        }
    }
}

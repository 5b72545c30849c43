//! Reads a plugin's files, which must be regular files of a bounded size.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::SystemTime;

use bytesize::ByteSize;
use toolbay_sandbox::CompileSource;

use crate::folder::file_stamp::FileStamp;
use crate::folder::grant_age::GrantSighting;
use crate::folder::known_files::ComponentStamps;
use crate::folder::load_error::LoadError;

/// Maximum size of a `.wit` file, in bytes.
const MAX_WIT_BYTES: u64 = 1 << 20;

/// Reads a component of at most `limit` bytes (`server.component_size`), and the `.wit` file next
/// to it, if any.
///
/// # Errors
///
/// Returns an error if the component does not exist, or if one of the files is not a regular file,
/// is too large, or cannot be read.
pub fn read_source(component: &Path, limit: u64) -> Result<CompileSource, LoadError> {
    Ok(read_source_with_stamps(component, limit)?.0)
}

/// Like [`read_source`], but also returns the stamps of both files if they identify the content.
pub(crate) fn read_source_with_stamps(
    component: &Path,
    limit: u64,
) -> Result<(CompileSource, Option<ComponentStamps>), LoadError> {
    let now = SystemTime::now();
    let file = read_bounded(component, limit, Some("server.component_size"))?;
    let wit = read_text(&component.with_extension("wit"), MAX_WIT_BYTES)?;
    let (wit, wit_stamp) = match wit {
        Some((text, stamp)) => (text, stamp.map(Some)),
        None => (String::new(), Some(None)),
    };
    let stamps = file
        .local_stamp()
        .zip(wit_stamp)
        .and_then(|(component, wit)| ComponentStamps::new(component, wit, now));
    Ok((
        CompileSource {
            file: file.bytes,
            wit,
        },
        stamps,
    ))
}

/// Reads the text of a regular file of at most `limit` bytes; `None` if it does not exist. Errors
/// name the file.
pub(crate) fn read_optional(path: &Path, limit: u64) -> Result<Option<String>, LoadError> {
    Ok(read_text(path, limit)?.map(|(text, _)| text))
}

/// Like [`read_optional`], but also returns the information from which the age of the file is
/// computed.
pub(crate) fn read_with_sighting(
    path: &Path,
    limit: u64,
) -> Result<Option<(String, GrantSighting)>, LoadError> {
    let Some(read) = read_if_present(path, limit)? else {
        return Ok(None);
    };
    let sighting = GrantSighting {
        stamp: read.stamp.clone(),
        is_local: read.is_local,
    };
    Ok(Some((decode_utf8(path, read)?, sighting)))
}

/// Like [`read_optional`], but also returns the stamp if it identifies the content.
fn read_text(path: &Path, limit: u64) -> Result<Option<(String, Option<FileStamp>)>, LoadError> {
    let Some(read) = read_if_present(path, limit)? else {
        return Ok(None);
    };
    let stamp = read.local_stamp();
    Ok(Some((decode_utf8(path, read)?, stamp)))
}

fn decode_utf8(path: &Path, read: FileContent) -> Result<String, LoadError> {
    let name = path.file_name().unwrap_or_default().display();
    String::from_utf8(read.bytes)
        .map_err(|_| LoadError::Refused(format!("{name} is not valid UTF-8")))
}

/// Reads a file; `None` if it does not exist. Errors name the file.
fn read_if_present(path: &Path, limit: u64) -> Result<Option<FileContent>, LoadError> {
    let name = path.file_name().unwrap_or_default().display();
    match read_bounded(path, limit, None) {
        Ok(read) => Ok(Some(read)),
        // The missing target may contain restrictions, so a dangling link is an error.
        Err(LoadError::Gone) if path.is_symlink() => Err(LoadError::Refused(format!(
            "{name} is a link to a file that does not exist"
        ))),
        Err(LoadError::Gone) => Ok(None),
        Err(LoadError::Refused(why)) => Err(LoadError::Refused(format!("{name}: {why}"))),
        Err(LoadError::Transient(why)) => Err(LoadError::Transient(format!("{name}: {why}"))),
        Err(error @ (LoadError::Incomplete(_) | LoadError::Held(_))) => Err(error),
    }
}

/// The content of a file.
struct FileContent {
    bytes: Vec<u8>,
    /// The stamp of the file, if it was the same before and after reading.
    stamp: Option<FileStamp>,
    /// True if the times of the file system are those of this machine's clock.
    is_local: bool,
}

impl FileContent {
    /// Returns the stamp if it identifies the content.
    fn local_stamp(&self) -> Option<FileStamp> {
        self.stamp.clone().filter(|_| self.is_local)
    }
}

/// Reads a regular file of at most `limit` bytes. `key` is the configuration key that raises the
/// limit, if any.
///
/// # Errors
///
/// Returns an error if the file does not exist, is not a regular file, is too large, or cannot be
/// read.
fn read_bounded(path: &Path, limit: u64, key: Option<&str>) -> Result<FileContent, LoadError> {
    let read_error = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Gone,
        // These reasons persist until the file changes. All others, such as too many open files,
        // are transient.
        kind @ (io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory) => {
            LoadError::Refused(format!("cannot be read: {kind}"))
        }
        _ => LoadError::Transient(format!("cannot be read: {error}")),
    };
    // Opening a FIFO without a writer would block the thread forever.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    if !metadata.is_file() {
        return Err(LoadError::Refused("not a regular file".into()));
    }
    let mut bytes = Vec::with_capacity(
        usize::try_from(metadata.len().min(limit))
            .unwrap_or_default()
            .saturating_add(1),
    );
    (&file)
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > limit {
        let limit = ByteSize::b(limit).display().iec();
        let advice = key
            .map(|key| format!(" (to allow more, raise {key})"))
            .unwrap_or_default();
        return Err(LoadError::Refused(format!(
            "the file is larger than {limit}{advice}"
        )));
    }
    let before = FileStamp::from_metadata(&metadata);
    let is_unchanged = file
        .metadata()
        .is_ok_and(|after| FileStamp::from_metadata(&after) == before);
    Ok(FileContent {
        bytes,
        stamp: is_unchanged.then_some(before),
        is_local: is_on_local_file_system(&file),
    })
}

/// Returns whether the file is on a file system whose file times come from this machine's clock and
/// whose file identities are unique.
fn is_on_local_file_system(file: &File) -> bool {
    /// Magic numbers of ext2 to ext4, XFS, Btrfs, F2FS, Bcachefs, ZFS, tmpfs and overlayfs.
    const LOCAL: [u64; 8] = [
        0xEF53,
        0x5846_5342,
        0x9123_683E,
        0xF2F5_2010,
        0xCA45_1A4E,
        0x2FC1_2FC1,
        0x0102_1994,
        0x794C_7630,
    ];
    rustix::fs::fstatfs(file)
        .is_ok_and(|stat| LOCAL.contains(&u64::try_from(stat.f_type).unwrap_or_default()))
}

//! Reads a plugin's files: regular files of a bounded size.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use bytesize::ByteSize;
use toolbay_sandbox::Source;

use crate::load_error::LoadError;

/// Largest `.wit` file.
const WIT_SIZE: u64 = 1 << 20;

/// Reads a component of at most `limit` bytes (`server.component`), and the `.wit` file beside it if there is one.
///
/// # Errors
///
/// The component does not exist, or one of the files is not a regular file, is too large, or cannot be read.
pub fn read_source(component: &Path, limit: u64) -> Result<Source, LoadError> {
    let file = read_bounded(component, limit, Some("server.component"))?;
    let wit = read_optional(&component.with_extension("wit"), WIT_SIZE)?.unwrap_or_default();
    Ok(Source { file, wit })
}

/// Reads the text of a regular file of at most `limit` bytes; `None` if it does not exist. An error names the file.
pub(crate) fn read_optional(path: &Path, limit: u64) -> Result<Option<String>, LoadError> {
    let name = path.file_name().unwrap_or_default().display();
    match read_bounded(path, limit, None) {
        Ok(text) => {
            let text = String::from_utf8(text);
            text.map(Some).map_err(|_| LoadError::Refused(format!("{name} is not valid UTF-8")))
        }
        Err(LoadError::Gone) => Ok(None),
        Err(LoadError::Refused(why)) => Err(LoadError::Refused(format!("{name}: {why}"))),
        Err(LoadError::Hindered(why)) => Err(LoadError::Hindered(format!("{name}: {why}"))),
        Err(LoadError::Incomplete) => Err(LoadError::Incomplete),
    }
}

/// Reads a regular file of at most `limit` bytes; `key` is the configuration key that raises the limit, if there is one.
///
/// # Errors
///
/// The file does not exist, is not a regular file, is too large, or cannot be read.
fn read_bounded(path: &Path, limit: u64, key: Option<&str>) -> Result<Vec<u8>, LoadError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Gone,
        // These reasons hold until the file changes. All others, such as too many open files, may pass.
        kind @ (io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory) => {
            LoadError::Refused(format!("cannot be read: {kind}"))
        }
        _ => LoadError::Hindered(format!("cannot be read: {error}")),
    };
    // Opening a FIFO that has no writer would block the thread forever.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(LoadError::Refused("not a regular file".into()));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > limit {
        let limit = ByteSize::b(limit).display().iec();
        let cure = key.map(|key| format!(" (to allow more, raise {key})")).unwrap_or_default();
        return Err(LoadError::Refused(format!("the file is larger than {limit}{cure}")));
    }
    Ok(bytes)
}

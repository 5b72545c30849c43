//! Reading a plugin's files: regular ones, of a bounded size.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use bytesize::ByteSize;

use crate::load_error::LoadError;

/// Reads a regular file of at most `limit` bytes; `key` is the configuration key that raises the limit, if there is one.
///
/// # Errors
///
/// It is not there, not a regular file, too large, or cannot be read.
pub fn read_bounded(path: &Path, limit: u64, key: Option<&str>) -> Result<Vec<u8>, LoadError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Gone,
        // These change with the file; anything else, such as too many open files, may pass.
        kind @ (io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory) => {
            LoadError::Refused(format!("cannot be read: {kind}"))
        }
        _ => LoadError::Hindered(format!("cannot be read: {error}")),
    };
    // A FIFO without a writer would hold the thread for ever.
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

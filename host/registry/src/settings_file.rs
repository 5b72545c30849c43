//! Reads files of settings that other programs also use.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Returns the text of a file; `None` if there is none. Blocks.
///
/// # Errors
///
/// Returns the reason why the file cannot be read, without its path.
pub(crate) fn read_settings_file(path: &Path) -> Result<Option<String>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err("the file is larger than 1 MiB".to_owned());
    }
    Ok(Some(text))
}

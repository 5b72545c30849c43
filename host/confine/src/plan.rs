//! Access that a process needs after it is confined.

use std::io;
use std::path::{Path, PathBuf};

/// Access that a process needs after it is confined. Paths that do not exist are ignored, because
/// Landlock rules need an existing file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfinementPlan {
    /// Files, and directories with all of their contents, that may be read.
    pub read: Vec<PathBuf>,
    /// Directories in which files may be read, written, created, renamed and removed, and files
    /// that may be written.
    pub write: Vec<PathBuf>,
    /// Directories in which files may only be removed.
    pub remove: Vec<PathBuf>,
    /// Programs that may be started, and the dynamic loaders that they need.
    pub execute: Vec<PathBuf>,
}

/// Returns the running program and its dynamic loader: the files that must be executable so that
/// the process can start this program again.
///
/// # Errors
///
/// Returns an error if `/proc` is not available.
pub fn own_program_files() -> io::Result<Vec<PathBuf>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut programs = vec![PathBuf::from("/proc/self/exe")];
    for path in maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .map(Path::new)
    {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        // Loader names: `ld-linux-x86-64.so.2`, `ld-musl-x86_64.so.1`, `ld.so.1`, `ld-2.31.so`.
        if path.is_absolute() && (name.starts_with(b"ld-") || name.starts_with(b"ld.")) {
            let path = path.to_owned();
            if !programs.contains(&path) {
                programs.push(path);
            }
        }
    }
    Ok(programs)
}

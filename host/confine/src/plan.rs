//! What a process needs after it is confined.

use std::io;
use std::path::{Path, PathBuf};

/// What a process needs after it is confined. What does not exist is left out: nothing can be allowed that is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfinementPlan {
    /// Files, and folders with everything in them, that may be read.
    pub read: Vec<PathBuf>,
    /// Folders in which files may be read, written, created, renamed and removed, and files that may be written.
    pub write: Vec<PathBuf>,
    /// Folders in which files may be removed, and nothing else.
    pub remove: Vec<PathBuf>,
    /// Programs that may be started, and the loaders that these need.
    pub execute: Vec<PathBuf>,
}

/// The running program, and the loader of shared libraries that the kernel starts with it: what it takes to start this
/// program once more.
///
/// # Errors
///
/// The process has no `/proc`.
pub fn program() -> io::Result<Vec<PathBuf>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut programs = vec![PathBuf::from("/proc/self/exe")];
    for path in maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5)).map(Path::new) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        // `ld-linux-x86-64.so.2`, `ld-musl-x86_64.so.1`, `ld.so.1`, `ld-2.31.so`.
        if path.is_absolute() && (name.starts_with(b"ld-") || name.starts_with(b"ld.")) {
            let path = path.to_owned();
            if !programs.contains(&path) {
                programs.push(path);
            }
        }
    }
    Ok(programs)
}

//! Reads and writes `toolbay.plugins.toml` in the plugin folder.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use toolbay_bundle::{MAX_PLUGINS_FILE_BYTES, PLUGINS_FILE_NAME, PluginEntry, PluginsFile};

use super::list::unknown_plugin_message;
use super::manifest::write_atomically;
use crate::config::ConfigError;

/// Mode of a new file: only the server's user can write it.
const FILE_MODE: u32 = 0o644;

/// Pause between two attempts to lock the folder. A command holds the lock for some milliseconds.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of attempts to lock the folder.
const MAX_LOCK_ATTEMPTS: u32 = 100;

/// Reads the file of a plugin folder; an empty one if there is none.
///
/// # Errors
///
/// The file is invalid, which is an error of the configuration, or cannot be read.
pub(super) fn read_plugins_file(folder: &Path) -> anyhow::Result<PluginsFile> {
    let Some(text) = read_text(folder)? else {
        return Ok(PluginsFile::default());
    };
    let invalid = |why| ConfigError::new(format!("{PLUGINS_FILE_NAME}:{why}"));
    Ok(PluginsFile::parse(&text).map_err(invalid)?)
}

fn read_text(folder: &Path) -> anyhow::Result<Option<String>> {
    let context = || format!("cannot read {PLUGINS_FILE_NAME}");
    let file = match File::open(folder.join(PLUGINS_FILE_NAME)) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(context),
    };
    if !file.metadata().with_context(context)?.is_file() {
        bail!("{PLUGINS_FILE_NAME} is not a file");
    }
    let mut text = String::new();
    file.take(MAX_PLUGINS_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(context)?;
    if text.len() as u64 > MAX_PLUGINS_FILE_BYTES {
        bail!("{PLUGINS_FILE_NAME} is larger than {MAX_PLUGINS_FILE_BYTES} bytes");
    }
    Ok(Some(text))
}

/// Sets the entry of a plugin, or removes it. Writes the file only if that changes it.
///
/// # Errors
///
/// The file is invalid, or cannot be read or written.
pub(super) fn write_entry(
    folder: &Path,
    id: &str,
    entry: Option<PluginEntry>,
) -> anyhow::Result<()> {
    // Until the function returns. Another command may have changed the file during a download.
    let _turn = lock_folder(folder)?;
    let before = read_plugins_file(folder)?;
    let mut after = before.clone();
    match entry {
        Some(entry) => after.plugins.insert(id.to_owned(), entry),
        None => after.plugins.remove(id),
    };
    if after == before {
        return Ok(());
    }
    let text = after.render();
    if PluginsFile::parse(&text).as_ref() != Ok(&after) {
        return Err(anyhow!(
            "the plugins cannot be written to {PLUGINS_FILE_NAME}; this is a mistake in Toolbay"
        ));
    }
    let path = folder.join(PLUGINS_FILE_NAME);
    let mode =
        fs::metadata(&path).map_or(FILE_MODE, |metadata| metadata.permissions().mode() & 0o777);
    write_atomically(&path, text.as_bytes(), Permissions::from_mode(mode))
        .with_context(|| format!("failed to write {PLUGINS_FILE_NAME}"))
}

/// Waits until no other command writes the file. The lock ends when the file is dropped.
#[expect(
    clippy::disallowed_methods,
    reason = "the system has no wait for a lock that ends after a time"
)]
fn lock_folder(folder: &Path) -> anyhow::Result<File> {
    let context = || format!("failed to lock {}", folder.display());
    let opened = File::open(folder).with_context(context)?;
    for _ in 0..MAX_LOCK_ATTEMPTS {
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(opened),
            Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(error).with_context(context),
        }
    }
    bail!("another command is writing {PLUGINS_FILE_NAME}; run this one again")
}

/// Returns the selected entries, or all of them if none is selected.
///
/// # Errors
///
/// There is no file, or a selected plugin is not in it.
pub(super) fn select_entries(
    file: PluginsFile,
    selected: &[String],
) -> anyhow::Result<Vec<(String, PluginEntry)>> {
    if file.plugins.is_empty() {
        bail!(
            "no plugin of this folder has a reference: {PLUGINS_FILE_NAME} is missing or empty, and `toolbay add` writes it"
        );
    }
    if let Some(id) = selected.iter().find(|id| !file.plugins.contains_key(*id)) {
        let known = file.plugins.keys().map(String::as_str);
        bail!("{PLUGINS_FILE_NAME}: {}", unknown_plugin_message(id, known));
    }
    let entries = file.plugins.into_iter();
    Ok(entries
        .filter(|(id, _)| selected.is_empty() || selected.contains(id))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_several_commands_at_once_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        thread::scope(|scope| {
            for number in 0..20 {
                scope.spawn(move || {
                    let entry = PluginEntry {
                        reference: "oci://registry.example.com/a:1".parse().unwrap(),
                        pin: None,
                    };
                    write_entry(root, &format!("p{number}"), Some(entry)).unwrap();
                });
            }
        });
        assert_eq!(read_plugins_file(root).unwrap().plugins.len(), 20);
        write_entry(root, "p7", None).unwrap();
        assert_eq!(read_plugins_file(root).unwrap().plugins.len(), 19);
        // A file of the same name that is no file, or too large.
        let path = root.join(PLUGINS_FILE_NAME);
        fs::write(&path, " ".repeat(2 << 20)).unwrap();
        assert!(read_plugins_file(root).is_err());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(read_plugins_file(root).is_err());
    }
}

//! Configuration files, which are replaced atomically.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::mistake::ConfigurationMistake;

/// Maximum size of a configuration, in bytes. Claude Code's configuration also contains data about
/// its projects.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Suffix of a backup's name.
const BACKUP_SUFFIX: &str = ".before-toolbay";

/// Mode of a new file of a user: configurations can contain secrets.
const USER_FILE_MODE: u32 = 0o600;

/// Mode of a new file of a project, before the umask is applied.
const PROJECT_FILE_MODE: u32 = 0o666;

/// Configuration file and its content when it was read.
#[derive(Debug)]
pub struct ConfigFile {
    /// Path of the file, with all symbolic links resolved.
    path: PathBuf,
    /// Content that was read. `None` if the file does not exist.
    existing: Option<ExistingFile>,
}

#[derive(Debug)]
struct ExistingFile {
    text: String,
    metadata: Metadata,
}

/// Error reading or writing a file. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// I/O error.
    #[error("failed to {0} {path}: {1}", path = .2.display())]
    Io(&'static str, #[source] io::Error, PathBuf),
    /// The path is not a regular file, or the file is not text.
    #[error("{path}: {0}", path = .1.display())]
    Unusable(String, PathBuf),
    /// The text has a mistake.
    #[error("{path}:{0}", path = .1.display())]
    Mistake(ConfigurationMistake, PathBuf),
    /// Another program changed the file after it was read.
    #[error("{path} was changed by another program meanwhile; run the command again", path = .0.display())]
    Changed(PathBuf),
}

impl ConfigFile {
    /// Reads a file and follows symbolic links. A file that does not exist has no text.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is not text.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Ok(target) = fs::read_link(path) {
                    let message =
                        format!("it is a link to {}, which does not exist", target.display());
                    return Err(FileError::Unusable(message, path.to_owned()));
                }
                return Ok(Self {
                    path: path.to_owned(),
                    existing: None,
                });
            }
            Err(error) => return Err(FileError::Io("read", error, path.to_owned())),
        };
        let existing = Some(read(&path)?);
        Ok(Self { path, existing })
    }

    /// Returns the path of the file, with all symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of the file. `None` if the file does not exist.
    pub fn text(&self) -> Option<&str> {
        self.existing
            .as_ref()
            .map(|existing| existing.text.as_str())
    }

    /// Returns the path of the backup.
    pub fn backup_path(&self) -> PathBuf {
        let mut name = self
            .path
            .file_name()
            .map(OsString::from)
            .unwrap_or_default();
        name.push(BACKUP_SUFFIX);
        self.path.with_file_name(name)
    }

    /// Replaces the file and keeps its permissions and owner. Creates missing directories. A new
    /// file is accessible only to its user, unless `is_shared` is set. Returns the path of the
    /// backup, if the file existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written, or if another program changed it after it
    /// was read. The file is then unchanged.
    pub fn write(&self, text: &str, is_shared: bool) -> Result<Option<PathBuf>, FileError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)
            .map_err(|error| FileError::Io("create", error, folder.to_owned()))?;
        let new_file = self.create_temporary(folder, text, is_shared)?;
        let backup = match &self.existing {
            Some(existing) => {
                let backup = self.backup_path();
                replace_file(
                    self.create_temporary(folder, &existing.text, is_shared)?,
                    &backup,
                )?;
                Some(backup)
            }
            None => None,
        };
        if !self.is_unchanged() {
            return Err(FileError::Changed(self.path.clone()));
        }
        replace_file(new_file, &self.path)?;
        // The rename is durable only after the directory is synced. Not every file system supports
        // that, so ignore errors.
        drop(File::open(folder).and_then(|folder| folder.sync_all()));
        Ok(backup)
    }

    /// Returns whether the file still has the content that was read.
    fn is_unchanged(&self) -> bool {
        match &self.existing {
            Some(existing) => read(&self.path).is_ok_and(|current| current.text == existing.text),
            None => !self.path.exists(),
        }
    }

    /// Creates a temporary file with `text` in the same directory, with the permissions and owner
    /// of the file.
    fn create_temporary(
        &self,
        folder: &Path,
        text: &str,
        is_shared: bool,
    ) -> Result<NamedTempFile, FileError> {
        let write_error = |error| FileError::Io("write to", error, folder.to_owned());
        let permissions = fs::Permissions::from_mode(if is_shared {
            PROJECT_FILE_MODE
        } else {
            USER_FILE_MODE
        });
        let mut builder = tempfile::Builder::new();
        let mut file = builder
            .prefix(".toolbay-")
            .permissions(permissions)
            .tempfile_in(folder)
            .map_err(write_error)?;
        file.write_all(text.as_bytes()).map_err(write_error)?;
        if let Some(ExistingFile { metadata, .. }) = &self.existing {
            let new_metadata = file.as_file().metadata().map_err(write_error)?;
            if (new_metadata.uid(), new_metadata.gid()) != (metadata.uid(), metadata.gid()) {
                fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid())).map_err(
                    |error| FileError::Io("keep the owner of", error, self.path.clone()),
                )?;
            }
            // Set the mode after the owner, because changing the owner clears permission bits.
            let mode = metadata.permissions().mode() & 0o7777;
            // A Windows drive may not support modes, so set the mode only if it differs.
            if new_metadata.permissions().mode() & 0o7777 != mode
                || new_metadata.uid() != metadata.uid()
            {
                file.as_file()
                    .set_permissions(fs::Permissions::from_mode(mode))
                    .map_err(write_error)?;
            }
        }
        file.as_file().sync_all().map_err(write_error)?;
        Ok(file)
    }
}

fn replace_file(file: NamedTempFile, path: &Path) -> Result<(), FileError> {
    let persisted = file.persist(path).map(drop);
    persisted.map_err(|error| FileError::Io("replace", error.error, path.to_owned()))
}

fn read(path: &Path) -> Result<ExistingFile, FileError> {
    let read_error = |error| FileError::Io("read", error, path.to_owned());
    let unusable = |message: String| FileError::Unusable(message, path.to_owned());
    // Check before opening: opening a pipe blocks until there is a writer.
    if !fs::metadata(path).map_err(read_error)?.is_file() {
        return Err(unusable("it is not a file".to_owned()));
    }
    let file = File::open(path).map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(unusable(format!(
            "it has more than {} MiB",
            MAX_FILE_BYTES >> 20
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid_len = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes().get(..valid_len).unwrap_or_default())
            .into_owned();
        FileError::Mistake(
            ConfigurationMistake::at(&text, valid_len, "this is not UTF-8"),
            path.to_owned(),
        )
    })?;
    Ok(ExistingFile { text, metadata })
}

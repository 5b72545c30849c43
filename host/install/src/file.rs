//! The file of a configuration, which is replaced as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::mistake::ConfigurationMistake;

/// Largest configuration that is read, in bytes. That of Claude Code keeps what its projects are about, too.
const LARGEST: u64 = 64 << 20;

/// What a backup's name has more than that of the file.
const BACKUP: &str = ".before-toolbay";

/// Permissions of a new file of a user: configurations can have secrets.
const PRIVATE: u32 = 0o600;

/// Permissions of a new file of a project, less what the user's mask takes away.
const SHARED: u32 = 0o666;

/// The file of a configuration, as it was read.
#[derive(Debug)]
pub struct ConfigFile {
    /// The file itself, where no link leads further.
    path: PathBuf,
    /// What was in it. `None`: there is no file.
    found: Option<ExistingFile>,
}

#[derive(Debug)]
struct ExistingFile {
    text: String,
    metadata: Metadata,
}

/// Why a file cannot be read or written. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system says so.
    #[error("failed to {0} {path}: {1}", path = .2.display())]
    Io(&'static str, #[source] io::Error, PathBuf),
    /// It is no file, or no text.
    #[error("{path}: {0}", path = .1.display())]
    Unusable(String, PathBuf),
    /// Its text has a mistake.
    #[error("{path}:{0}", path = .1.display())]
    Mistake(ConfigurationMistake, PathBuf),
    /// Another program has written it since it was read.
    #[error("{path} was changed by another program meanwhile; run the command again", path = .0.display())]
    Changed(PathBuf),
}

impl ConfigFile {
    /// Reads a file, following links. A file that does not exist has no text.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no text.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Ok(target) = fs::read_link(path) {
                    let words = format!("it is a link to {}, which does not exist", target.display());
                    return Err(FileError::Unusable(words, path.to_owned()));
                }
                return Ok(Self { path: path.to_owned(), found: None });
            }
            Err(error) => return Err(FileError::Io("read", error, path.to_owned())),
        };
        let found = Some(read(&path)?);
        Ok(Self { path, found })
    }

    /// The file itself, where no link leads further.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it. `None`: there is no file.
    pub fn text(&self) -> Option<&str> {
        self.found.as_ref().map(|found| found.text.as_str())
    }

    /// Where its backup is.
    pub fn backup(&self) -> PathBuf {
        let mut name = self.path.file_name().map(OsString::from).unwrap_or_default();
        name.push(BACKUP);
        self.path.with_file_name(name)
    }

    /// Replaces the file, keeping its permissions and its owner, and creates the folders that are missing. A new file is for
    /// its user alone, unless it is `shared`. Returns the backup of what was in it, if anything was.
    ///
    /// # Errors
    ///
    /// It cannot be written, or another program has written it since it was read. It is as it was.
    pub fn write(&self, text: &str, shared: bool) -> Result<Option<PathBuf>, FileError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(|error| FileError::Io("create", error, folder.to_owned()))?;
        let new = self.temporary(folder, text, shared)?;
        let backup = match &self.found {
            Some(found) => {
                let backup = self.backup();
                persist(self.temporary(folder, &found.text, shared)?, &backup)?;
                Some(backup)
            }
            None => None,
        };
        if !self.is_unchanged() {
            return Err(FileError::Changed(self.path.clone()));
        }
        persist(new, &self.path)?;
        // The name is on the disk when its folder is. A file system that cannot do that keeps the file anyway.
        drop(File::open(folder).and_then(|folder| folder.sync_all()));
        Ok(backup)
    }

    /// Whether the file is what it was when it was read.
    fn is_unchanged(&self) -> bool {
        match &self.found {
            Some(found) => read(&self.path).is_ok_and(|now| now.text == found.text),
            None => !self.path.exists(),
        }
    }

    /// A file with `text` beside the file, with its permissions and its owner.
    fn temporary(&self, folder: &Path, text: &str, shared: bool) -> Result<NamedTempFile, FileError> {
        let failed = |error| FileError::Io("write to", error, folder.to_owned());
        let new = fs::Permissions::from_mode(if shared { SHARED } else { PRIVATE });
        let mut builder = tempfile::Builder::new();
        let mut file = builder.prefix(".toolbay-").permissions(new).tempfile_in(folder).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        if let Some(ExistingFile { metadata, .. }) = &self.found {
            let own = file.as_file().metadata().map_err(failed)?;
            if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
                fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))
                    .map_err(|error| FileError::Io("keep the owner of", error, self.path.clone()))?;
            }
            // After the owner: changing that takes permissions away.
            let mode = metadata.permissions().mode() & 0o7777;
            // A drive of Windows may have none to set.
            if own.permissions().mode() & 0o7777 != mode || own.uid() != metadata.uid() {
                file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
            }
        }
        file.as_file().sync_all().map_err(failed)?;
        Ok(file)
    }
}

fn persist(file: NamedTempFile, path: &Path) -> Result<(), FileError> {
    let persisted = file.persist(path).map(drop);
    persisted.map_err(|error| FileError::Io("replace", error.error, path.to_owned()))
}

fn read(path: &Path) -> Result<ExistingFile, FileError> {
    let failed = |error| FileError::Io("read", error, path.to_owned());
    let unusable = |words: String| FileError::Unusable(words, path.to_owned());
    // Before it is opened: opening a pipe waits for a writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(unusable("it is not a file".to_owned()));
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(unusable(format!("it has more than {} MiB", LARGEST >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default()).into_owned();
        FileError::Mistake(ConfigurationMistake::at(&text, valid, "this is not UTF-8"), path.to_owned())
    })?;
    Ok(ExistingFile { text, metadata })
}

//! Database file: in a private directory, created atomically, and used by one process at a time.

use std::io;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{DatabaseError, ReadableTable as _};
use toolbay_private::{PrivateFolder, TEMPORARY_PREFIX};

use crate::bounds::CACHE_BYTES;
use crate::tables::{FORMAT_VERSION, FORMAT_VERSION_KEY, StateTables};

/// Name of the file in the directory.
pub(crate) const FILE_NAME: &str = "state.redb";

/// Error opening the database.
pub(crate) enum OpenError {
    /// Another process has the database open.
    InUse,
    /// The database cannot be used. Contains a one-line reason.
    Unusable(String),
}

/// Opens the database in the directory. Creates both if necessary. Blocks.
pub(crate) fn open(folder: &Path) -> Result<redb::Database, OpenError> {
    let unusable = |why: &dyn std::fmt::Display| {
        OpenError::Unusable(format!("cannot use {}: {why}", folder.display()))
    };
    let private =
        PrivateFolder::open(folder, "the state of plugins").map_err(OpenError::Unusable)?;
    let file = match private.open_to_write(FILE_NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(&private).map_err(|error| unusable(&error))?;
            private
                .open_to_write(FILE_NAME)
                .map_err(|error| unusable(&error))?
        }
        Err(error) => return Err(unusable(&format!("{FILE_NAME}: {error}"))),
    };
    let result = FileBackend::new(file).and_then(|file| builder().create_with_backend(file));
    let database = match result {
        Ok(database) => database,
        Err(DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch) => {
            return Err(OpenError::InUse);
        }
        Err(error) => return Err(unusable(&format!("{FILE_NAME}: {error}"))),
    };
    match read_format_version(&database) {
        Ok(FORMAT_VERSION) => Ok(database),
        Ok(_) => Err(unusable(&format!(
            "{FILE_NAME} was written by another version of Toolbay"
        ))),
        Err(error) => Err(unusable(&format!("{FILE_NAME}: {error}"))),
    }
}

/// Creates an empty database under a temporary name and renames it, so that other processes never
/// observe a partial file.
fn create(private: &PrivateFolder) -> io::Result<()> {
    let file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .tempfile_in(&private.path)?;
    let created =
        FileBackend::new(file.reopen()?).and_then(|file| builder().create_with_backend(file));
    drop(created.map_err(io::Error::other)?);
    match file.persist_noclobber(private.path.join(FILE_NAME)) {
        // Another process created the file first.
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(rustix::fs::fsync(&rustix::fs::open(
            &private.path,
            rustix::fs::OFlags::RDONLY
                | rustix::fs::OFlags::DIRECTORY
                | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )?)?),
    }
}

fn builder() -> redb::Builder {
    let mut builder = redb::Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder.set_repair_callback(|session| {
        tracing::debug!(
            "checking the state after it was not closed: {:.0} %",
            session.progress() * 100.0
        );
    });
    builder
}

/// Returns the format version of the tables. Creates the tables if they do not exist.
fn read_format_version(database: &redb::Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let (version, is_new) = {
        let mut tables = StateTables::open(&transaction)?;
        let stored_version = tables
            .numbers
            .get(FORMAT_VERSION_KEY)?
            .map(|number| number.value());
        if stored_version.is_none() {
            tables.numbers.insert(FORMAT_VERSION_KEY, FORMAT_VERSION)?;
        }
        (
            stored_version.unwrap_or(FORMAT_VERSION),
            stored_version.is_none(),
        )
    };
    if is_new {
        transaction.commit()?;
    } else {
        transaction.abort()?;
    }
    Ok(version)
}

//! The file with the versions that operators approved in the console.
//!
//! A confined server cannot write the plugin folder, so it cannot change the lock file. An approval in
//! the console is therefore stored in a folder that only the server's user can change. It is bound to
//! two digests: that of the pin that it replaces, and that of the approved version. It decides only
//! which of the files in the plugin folder are served, and the server cannot write those files.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, renameat};
use rustix::io::Errno;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolbay_model::Digest;
use toolbay_model::text::clean_line;
use toolbay_private::{PrivateFolder, TEMPORARY_PREFIX};

use crate::folder::file_stamp::FileStamp;

/// Description of the folder in the log.
const CONTENT: &str = "approvals of plugin versions";

/// Version of the format.
const FORMAT_VERSION: u32 = 1;

/// Maximum number of approvals. A folder with more held plugins is better approved with a command.
const MAX_APPROVALS: usize = 4_096;

/// Maximum size of the file, in bytes. A complete one has at most about 1,100 bytes per approval.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Maximum length of the name of an operator, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// A version of a plugin that an operator approved in the console.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedVersion {
    /// Digest of the pin that the version replaces; `None` if the lock file has no entry of the
    /// plugin. With another pin, the approval is void.
    #[serde(
        default,
        serialize_with = "write_optional",
        deserialize_with = "read_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub base: Option<Digest>,
    /// Digest of the pin of the version.
    #[serde(serialize_with = "write_digest", deserialize_with = "read_digest")]
    pub version: Digest,
    /// SHA-256 of its component; `None` if it has only plain files.
    #[serde(
        default,
        serialize_with = "write_optional",
        deserialize_with = "read_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub component: Option<Digest>,
    /// SHA-256 of its grant; `None` if it has none.
    #[serde(
        default,
        serialize_with = "write_optional",
        deserialize_with = "read_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub grant: Option<Digest>,
    /// The name of the operator.
    pub by: String,
    /// Time of the approval, in seconds since 1970.
    pub at: u64,
}

/// Approvals by plugin ID.
pub type Approvals = BTreeMap<String, ApprovedVersion>;

/// The file with the approvals for one plugin folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalFile {
    folder: PathBuf,
    name: String,
}

/// Reason why the file cannot be read, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalFileError {
    /// It is damaged, or others can change it. It approves nothing.
    Invalid(String),
    /// It cannot be read now, for example for lack of descriptors.
    Transient(String),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ApprovalDocument {
    version: u32,
    approvals: Approvals,
}

impl ApprovalFile {
    /// Returns the file `name` in `folder`, which need not exist.
    pub fn new(folder: PathBuf, name: String) -> Self {
        Self { folder, name }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Returns the stamp of the file; `None` if there is none. Blocks.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        let metadata = std::fs::symlink_metadata(self.path()).ok()?;
        Some(FileStamp::from_metadata(&metadata))
    }

    /// Reads the file. Without a file, there are no approvals. Blocks.
    ///
    /// # Errors
    ///
    /// The file is damaged, others can change it, or it cannot be read. The message begins with its
    /// name.
    pub fn read_approvals(&self) -> Result<Approvals, String> {
        self.read().map_err(|error| match error {
            ApprovalFileError::Invalid(why) | ApprovalFileError::Transient(why) => why,
        })
    }

    /// Like [`ApprovalFile::read_approvals`], with the kind of the error.
    pub(crate) fn read(&self) -> Result<Approvals, ApprovalFileError> {
        // A reader does not create the folder.
        if !self.folder.exists() {
            return Ok(Approvals::new());
        }
        let folder = open_folder(&self.folder).map_err(ApprovalFileError::Invalid)?;
        self.read_in(&folder)
    }

    fn read_in(&self, folder: &PrivateFolder) -> Result<Approvals, ApprovalFileError> {
        let describe = |error: &io::Error| format!("{}: {error}", self.name);
        let file = match folder.open_file(&self.name) {
            Ok((file, _)) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Approvals::new()),
            Err(error) if is_transient(&error) => {
                return Err(ApprovalFileError::Transient(describe(&error)));
            }
            Err(error) => return Err(ApprovalFileError::Invalid(describe(&error))),
        };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|error| ApprovalFileError::Transient(describe(&error)))?;
        parse(&text).map_err(|why| ApprovalFileError::Invalid(format!("{}: {why}", self.name)))
    }

    /// Adds an approval, which replaces an earlier one of the plugin. Removes those that do not
    /// satisfy `is_kept`. A damaged file is replaced. Blocks.
    ///
    /// # Errors
    ///
    /// Returns a one-line reason if the file cannot be written, or has too many approvals.
    pub(crate) fn add(
        &self,
        id: &str,
        mut approval: ApprovedVersion,
        is_kept: impl Fn(&str, &ApprovedVersion) -> bool,
    ) -> Result<(), String> {
        let folder = open_folder(&self.folder)?;
        let describe = |error: io::Error| format!("cannot write {}: {error}", self.name);
        let lock_name = format!("{}.lock", self.name);
        let lock = folder.open_or_create(&lock_name).map_err(describe)?;
        // Released when the descriptor is closed.
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => format!("another server is writing {}; try again", self.name),
            error => describe(error.into()),
        })?;
        let mut approvals = match self.read_in(&folder) {
            Ok(approvals) => approvals,
            Err(ApprovalFileError::Invalid(why)) => {
                tracing::warn!("the approvals of the console are replaced: {why}");
                Approvals::new()
            }
            Err(ApprovalFileError::Transient(why)) => return Err(why),
        };
        approval.by = clean_line(&approval.by, MAX_NAME_BYTES);
        approvals.retain(|id, approval| is_kept(id, approval));
        approvals.insert(id.to_owned(), approval);
        if approvals.len() > MAX_APPROVALS {
            return Err(format!(
                "the console has approved {MAX_APPROVALS} versions; approve them with `toolbay lock`"
            ));
        }
        let document = ApprovalDocument {
            version: FORMAT_VERSION,
            approvals,
        };
        let text = serde_json::to_vec_pretty(&document)
            .map_err(|error| format!("cannot write {}: {error}", self.name))?;
        self.replace(&folder, &text).map_err(describe)
    }

    /// Replaces the file, so that a reader sees the whole old or the whole new content.
    fn replace(&self, folder: &PrivateFolder, text: &[u8]) -> io::Result<()> {
        let temporary = format!("{TEMPORARY_PREFIX}{}", self.name);
        let mut file = folder.open_or_create(&temporary)?;
        file.set_len(0)?;
        file.write_all(text)?;
        file.sync_all()?;
        renameat(&folder.handle, &temporary, &folder.handle, &self.name)?;
        Ok(())
    }
}

fn open_folder(path: &Path) -> Result<PrivateFolder, String> {
    PrivateFolder::open(path, CONTENT)
}

/// Returns whether an error is about this process or the machine, and not about the file.
fn is_transient(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR]
        .into_iter()
        .any(|transient| code == Some(transient))
}

fn parse(text: &[u8]) -> Result<Approvals, String> {
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it is larger than {MAX_FILE_BYTES} bytes"));
    }
    let document: ApprovalDocument =
        serde_json::from_slice(text).map_err(|error| format!("it is damaged: {error}"))?;
    if document.version != FORMAT_VERSION {
        return Err(format!(
            "its format has version {}, and this server reads version {FORMAT_VERSION}",
            document.version
        ));
    }
    if document.approvals.len() > MAX_APPROVALS {
        return Err(format!("it has more than {MAX_APPROVALS} approvals"));
    }
    Ok(document.approvals)
}

fn write_digest<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{}{digest}", Digest::PREFIX))
}

fn read_digest<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
    Digest::from_prefixed_hex(&String::deserialize(from)?)
        .ok_or_else(|| D::Error::custom(format!("expected \"{}\" and 64 digits", Digest::PREFIX)))
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn write_optional<S: Serializer>(digest: &Option<Digest>, to: S) -> Result<S::Ok, S::Error> {
    match digest {
        Some(digest) => write_digest(digest, to),
        None => to.serialize_none(),
    }
}

fn read_optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Digest>, D::Error> {
    read_digest(from).map(Some)
}

#[cfg(test)]
mod tests;

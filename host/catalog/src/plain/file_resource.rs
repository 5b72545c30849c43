//! Resources that are files.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use bytesize::ByteSize;
use rustix::io::Errno;
use serde_json::Map;
use sha2::{Digest as _, Sha256};
use toolbay_model::text::clean;
use toolbay_model::{
    CallError, Digest, EmbeddedResource, Limit, ListedResource, ResourceContent, ResourceItem,
};

use crate::definition::resource_entry::ResourceEntry;
use crate::definition::view;
use crate::folder::file_stamp::FileStamp;
use crate::folder::openat_beneath::open_file;
use crate::plain::media_type;
use crate::resource_uri::uri;

/// Resource that is a file next to the plugins, or a file of a skill.
#[derive(Clone, Debug)]
pub struct FileResource {
    /// Definition of the resource.
    pub entry: Arc<ResourceEntry>,
    source: FileSource,
}

/// Source of the content of a file.
#[derive(Clone, Debug)]
enum FileSource {
    /// File that is read when a client requests it.
    File {
        /// The open folder. If another folder replaces it, the next scan finds the replacement.
        root: Arc<OwnedFd>,
        /// Path of the file in the folder.
        path: Box<str>,
        stamp: FileStamp,
        /// The approved content, if only that may be served.
        required_digest: Option<Digest>,
    },
    /// File of a skill, as it was when it was loaded.
    InMemory {
        digest: Digest,
        size: u64,
        content: ResourceContent,
    },
}

/// Equal if the file is the same and has not changed.
impl PartialEq for FileResource {
    fn eq(&self, other: &Self) -> bool {
        let is_same_source = match (&self.source, &other.source) {
            (
                FileSource::File {
                    path,
                    stamp,
                    required_digest,
                    ..
                },
                FileSource::File {
                    path: other_path,
                    stamp: other_stamp,
                    required_digest: other_digest,
                    ..
                },
            ) => path == other_path && stamp == other_stamp && required_digest == other_digest,
            (
                FileSource::InMemory { digest, .. },
                FileSource::InMemory {
                    digest: other_digest,
                    ..
                },
            ) => digest == other_digest,
            _ => false,
        };
        is_same_source && self.entry.resource == other.entry.resource
    }
}

impl FileResource {
    /// Creates the resource for the file at `path` in the folder `root` of the plugin `id`.
    ///
    /// # Errors
    ///
    /// The URI would be too long. Returns the end of a sentence that begins with the URI.
    pub(crate) fn new(
        id: &str,
        root: &Arc<OwnedFd>,
        path: &str,
        stamp: FileStamp,
    ) -> Result<Self, String> {
        let view = view_path(path);
        let uri = match view {
            Some(path) => uri::for_view(id, path.split('/')),
            None => uri::for_file(id, path.split('/')),
        };
        uri::check(&uri)?;
        let mime_type = view
            .map(|_| view::MIME_TYPE)
            .or_else(|| media_type::from_file_name(path));
        // Neither size nor date is listed, so that a change of the file does not change the list.
        let entry = Arc::new(ResourceEntry::from_file(listed_resource(
            uri, path, mime_type,
        )));
        Ok(Self {
            entry,
            source: FileSource::File {
                root: Arc::clone(root),
                path: path.into(),
                stamp,
                required_digest: None,
            },
        })
    }

    /// Returns a copy that serves only content with this digest.
    pub(crate) fn with_required_digest(&self, digest: Digest) -> Self {
        let mut restricted = self.clone();
        if let FileSource::File {
            required_digest, ..
        } = &mut restricted.source
        {
            *required_digest = Some(digest);
        }
        restricted
    }

    /// Returns the digest of the current content, of at most `max_size`; `None` if the file no longer
    /// exists. Blocks.
    ///
    /// # Errors
    ///
    /// As [`FileResource::read`].
    pub(crate) fn content_digest(&self, max_size: ByteSize) -> Result<Option<Digest>, CallError> {
        match &self.source {
            FileSource::InMemory { digest, .. } => Ok(Some(*digest)),
            FileSource::File { root, path, .. } => {
                Ok(read_file(root, path, max_size)?.map(|bytes| hash(&bytes)))
            }
        }
    }

    /// Creates the resource for a file of a skill. Clients receive these bytes unchanged: as text
    /// only if cleaning would not change them. `name` and `description` are listed for clients, and
    /// `path` determines the MIME type.
    pub(crate) fn from_skill(
        uri: String,
        path: &str,
        name: &str,
        description: Option<String>,
        digest: Digest,
        bytes: Vec<u8>,
    ) -> Self {
        let size = bytes.len() as u64;
        let mime_type = media_type::from_file_name(path);
        let resource = ListedResource {
            description,
            size: Some(size),
            ..listed_resource(uri, name, mime_type)
        };
        let entry = Arc::new(ResourceEntry::from_file(resource));
        Self {
            entry,
            source: FileSource::InMemory {
                digest,
                size,
                content: to_verbatim_content(bytes, mime_type),
            },
        }
    }

    /// Returns the digest and the size of a file of a skill.
    pub(crate) fn skill_identity(&self) -> Option<(Digest, u64)> {
        match &self.source {
            FileSource::InMemory { digest, size, .. } => Some((*digest, *size)),
            FileSource::File { .. } => None,
        }
    }

    /// Reads the current content of the file, of at most `max_size` (`limits.output`). Returns
    /// `None` if the file no longer exists. A file of a skill has the content that was loaded, so
    /// that it matches its digest. Blocks.
    ///
    /// # Errors
    ///
    /// The file is larger, or cannot be read.
    pub fn read(&self, max_size: ByteSize) -> Result<Option<ResourceItem>, CallError> {
        let (root, path, required_digest) = match &self.source {
            FileSource::InMemory { size, .. } if *size > max_size.as_u64() => {
                return Err(CallError::limit(Limit::Output(max_size)));
            }
            FileSource::InMemory { content, .. } => return Ok(Some(self.to_item(content.clone()))),
            FileSource::File {
                root,
                path,
                required_digest,
                ..
            } => (root, path, required_digest),
        };
        let Some(bytes) = read_file(root, path, max_size)? else {
            return Ok(None);
        };
        if required_digest.is_some_and(|digest| digest != hash(&bytes)) {
            return Err(CallError::Failed(
                "the file changed, and the operator has not approved its new content".to_owned(),
            ));
        }
        Ok(Some(self.to_item(to_cleaned_content(
            bytes,
            self.entry.resource.mime_type.as_deref(),
        ))))
    }

    fn to_item(&self, content: ResourceContent) -> ResourceItem {
        let ListedResource { uri, mime_type, .. } = &*self.entry.resource;
        let resource = EmbeddedResource {
            uri: uri.clone(),
            mime_type: mime_type.clone(),
            content,
        };
        ResourceItem {
            resource,
            meta: Map::new(),
        }
    }
}

/// Reads a file of at most `max_size`; `None` if it does not exist. Blocks.
fn read_file(root: &OwnedFd, path: &str, max_size: ByteSize) -> Result<Option<Vec<u8>>, CallError> {
    let read_error =
        |error: io::Error| CallError::Failed(format!("the file cannot be read: {}", error.kind()));
    let too_large = || CallError::limit(Limit::Output(max_size));
    let file = match open_file(root.as_fd(), path) {
        Ok(file) => File::from(file),
        // A link that leads out of the folder counts as missing.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(None),
        Err(error) => return Err(read_error(error.into())),
    };
    let metadata = file.metadata().map_err(read_error)?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let max_bytes = max_size.as_u64();
    if metadata.len() > max_bytes {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

fn hash(bytes: &[u8]) -> Digest {
    Digest::new(Sha256::digest(bytes).into())
}

/// Creates the list entry of a file or a folder.
pub(crate) fn listed_resource(uri: String, name: &str, mime_type: Option<&str>) -> ListedResource {
    ListedResource {
        uri,
        name: clean(&name.replace(char::is_control, " ")).into_owned(),
        title: None,
        description: None,
        mime_type: mime_type.map(str::to_owned),
        size: None,
        audience: Vec::new(),
        priority: None,
        last_modified: None,
        icons: Arc::default(),
        meta: None,
    }
}

/// Converts bytes to unchanged text, if the type allows text and cleaning would not change it.
/// Otherwise returns the bytes.
fn to_verbatim_content(bytes: Vec<u8>, mime_type: Option<&str>) -> ResourceContent {
    if !media_type::is_text(mime_type) {
        return ResourceContent::Blob(bytes.into());
    }
    match String::from_utf8(bytes) {
        Ok(text) if is_clean(&text) => ResourceContent::Text(text),
        Ok(text) => ResourceContent::Blob(text.into_bytes().into()),
        Err(error) => ResourceContent::Blob(error.into_bytes().into()),
    }
}

/// Returns whether cleaning leaves a text unchanged, except for line endings and a byte order mark
/// at the start.
pub(crate) fn is_clean(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text
        .split_inclusive('\n')
        .map(|line| line.strip_suffix("\r\n").unwrap_or(line));
    lines.all(|line| matches!(clean(line), Cow::Borrowed(_)))
}

/// Returns the path of a view within the folder of views; `None` if the file at `path` is not a
/// view.
fn view_path(path: &str) -> Option<&str> {
    let path = path.strip_prefix("ui/")?;
    path.rsplit_once('.')
        .is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("html"))
        .then_some(path)
}

/// Converts bytes to cleaned text, if the type allows text and the bytes are text. Otherwise
/// returns the bytes.
fn to_cleaned_content(bytes: Vec<u8>, mime_type: Option<&str>) -> ResourceContent {
    if !media_type::is_text(mime_type) || bytes.contains(&0) {
        return ResourceContent::Blob(bytes.into());
    }
    match String::from_utf8(bytes) {
        Ok(text) => ResourceContent::Text(clean(&text).into_owned()),
        Err(error) => ResourceContent::Blob(error.into_bytes().into()),
    }
}

#[cfg(test)]
mod tests;

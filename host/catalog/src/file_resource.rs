//! Resources that are files.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use bytesize::ByteSize;
use rustix::io::Errno;
use serde_json::Map;
use toolbay_model::text::clean;
use toolbay_model::{
    CallError, Digest, EmbeddedResource, Limit, ListedResource, ResourceContent, ResourceItem,
};

use crate::file_stamp::FileStamp;
use crate::media_type;
use crate::openat_beneath::open_file;
use crate::resource_entry::ResourceEntry;
use crate::{uri, view};

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
        /// The folder, held open. If another folder replaces it, the next scan finds that one.
        root: Arc<OwnedFd>,
        /// Path of the file in the folder.
        path: Box<str>,
        stamp: FileStamp,
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
        let same = match (&self.source, &other.source) {
            (
                FileSource::File { path, stamp, .. },
                FileSource::File {
                    path: other,
                    stamp: changed,
                    ..
                },
            ) => path == other && stamp == changed,
            (FileSource::InMemory { digest, .. }, FileSource::InMemory { digest: other, .. }) => {
                digest == other
            }
            _ => false,
        };
        same && self.entry.resource == other.entry.resource
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
            },
        })
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

    /// Reads the current content of the file, of at most `most` bytes (`limits.output`). Returns
    /// `None` if the file no longer exists. A file of a skill has the content that was loaded, so
    /// that it matches its digest. Blocks.
    ///
    /// # Errors
    ///
    /// The file is larger, or cannot be read.
    pub fn read(&self, most: ByteSize) -> Result<Option<ResourceItem>, CallError> {
        let limit = CallError::Limit {
            limit: Limit::Output(most),
            tool: None,
        };
        let failed = |error: io::Error| {
            CallError::Failed(format!("the file cannot be read: {}", error.kind()))
        };
        let (root, path) = match &self.source {
            FileSource::InMemory { size, .. } if *size > most.as_u64() => return Err(limit),
            FileSource::InMemory { content, .. } => return Ok(Some(self.to_item(content.clone()))),
            FileSource::File { root, path, .. } => (root, path),
        };
        let file = match open_file(root.as_fd(), path) {
            Ok(file) => File::from(file),
            // A link that leads out of the folder counts as missing.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(None),
            Err(error) => return Err(failed(error.into())),
        };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let bound = most.as_u64();
        if metadata.len() > bound {
            return Err(limit);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        file.take(bound.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > bound {
            return Err(limit);
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
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::openat_beneath::open_root;
    use crate::plain_tree::{TreeKind, scan};

    fn resource(folder: &Path, path: &str) -> FileResource {
        let tree = scan(folder, TreeKind::Resources, 100).unwrap();
        let root = Arc::new(open_root(folder).unwrap());
        FileResource::new("docs", &root, path, tree.files[path].clone()).unwrap()
    }

    #[test]
    fn a_file_is_text_or_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let cases: [(&str, &[u8], Option<&str>); 7] = [
            ("a.md", b"# A\x1b[31m", Some("# A")),
            ("b.png", b"text", None),
            ("c.txt", b"\xff\xfe", None),
            ("d.json", b"a\0b", None),
            ("e", b"plain \xc3\xbc", Some("plain ü")),
            ("f", b"\xff", None),
            ("g.svg", b"<svg/>", Some("<svg/>")),
        ];
        for (name, bytes, text) in cases {
            fs::write(dir.path().join(name), bytes).unwrap();
            let item = resource(dir.path(), name)
                .read(ByteSize::kib(1))
                .unwrap()
                .unwrap();
            let expected = match text {
                Some(text) => ResourceContent::Text(text.into()),
                None => ResourceContent::Blob(bytes::Bytes::copy_from_slice(bytes)),
            };
            assert_eq!(
                (item.resource.content, item.resource.mime_type.as_deref()),
                (expected, media_type::from_file_name(name))
            );
            assert_eq!(item.resource.uri, format!("toolbay://docs/{name}"));
        }
    }

    #[test]
    fn a_file_is_read_as_it_is_and_within_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(dir.path().join("outside"), "").unwrap();
        let path = root.join("sub/a.txt");
        fs::write(&path, "x".repeat(10)).unwrap();
        let file = resource(&root, "sub/a.txt");
        assert!(file.read(ByteSize::b(10)).unwrap().is_some());
        let limit = CallError::Limit {
            limit: Limit::Output(ByteSize::b(9)),
            tool: None,
        };
        assert_eq!(file.read(ByteSize::b(9)).unwrap_err(), limit);
        fs::write(&path, "later").unwrap();
        let item = file.read(ByteSize::b(9)).unwrap().unwrap();
        assert_eq!(item.resource.content, ResourceContent::Text("later".into()));
        fs::remove_file(&path).unwrap();
        assert_eq!(file.read(ByteSize::b(9)), Ok(None));
        // A replacement is not read.
        for target in ["/etc/passwd", "../../outside", "..", "nowhere"] {
            symlink(target, &path).unwrap();
            assert_eq!(file.read(ByteSize::mib(1)), Ok(None), "{target}");
            fs::remove_file(&path).unwrap();
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        assert_eq!(
            file.read(ByteSize::mib(1)),
            Ok(None),
            "nobody waits for a writer"
        );
    }

    #[test]
    fn a_page_in_the_folder_of_views_is_a_view() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("ui/sub")).unwrap();
        fs::create_dir_all(dir.path().join("sub/ui")).unwrap();
        for (path, uri) in [
            ("ui/a b.html", "ui://docs/a%20b.html"),
            ("ui/sub/b.HTML", "ui://docs/sub/b.HTML"),
            ("ui/c.css", "toolbay://docs/ui/c.css"),
            ("sub/ui/d.html", "toolbay://docs/sub/ui/d.html"),
            ("e.html", "toolbay://docs/e.html"),
            ("ui/html", "toolbay://docs/ui/html"),
        ] {
            fs::write(dir.path().join(path), "<!doctype html>").unwrap();
            let file = resource(dir.path(), path);
            let listed = &file.entry.resource;
            assert_eq!(listed.uri, uri);
            let expected = if uri.starts_with("ui:") {
                Some(view::MIME_TYPE)
            } else {
                media_type::from_file_name(path)
            };
            assert_eq!(listed.mime_type.as_deref(), expected);
            let item = file.read(ByteSize::kib(1)).unwrap().unwrap();
            assert_eq!(
                item.resource.content,
                ResourceContent::Text("<!doctype html>".into())
            );
        }
    }

    #[test]
    fn a_path_becomes_a_uri_and_a_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a b\n?.md"), "").unwrap();
        let listed = resource(dir.path(), "a b\n?.md").entry.resource.clone();
        assert_eq!(
            (listed.uri.as_str(), listed.name.as_str()),
            ("toolbay://docs/a%20b%0A%3F.md", "a b ?.md")
        );
        let root = Arc::new(open_root(dir.path()).unwrap());
        let FileSource::File { stamp, .. } = resource(dir.path(), "a b\n?.md").source else {
            panic!("it is a file")
        };
        let deep: Vec<String> = (0..10).map(|_| "ü".repeat(100)).collect();
        assert!(FileResource::new("docs", &root, &deep.join("/"), stamp).is_err());
    }

    #[test]
    fn a_file_of_a_skill_is_what_its_digest_is_of() {
        let kept = |path: &str, bytes: &[u8]| {
            let uri = format!("skill://pdf/{path}");
            let file = FileResource::from_skill(
                uri,
                path,
                path,
                None,
                Digest::new([7; 32]),
                bytes.to_vec(),
            );
            let identity = file.skill_identity();
            assert_eq!(identity, Some((Digest::new([7; 32]), bytes.len() as u64)));
            file.read(ByteSize::b(bytes.len() as u64))
                .unwrap()
                .unwrap()
                .resource
                .content
        };
        for text in [
            "# A\n\ttab\n",
            "one\r\ntwo\r\n",
            "\u{feff}# A",
            "",
            "\u{1f469}\u{200d}\u{1f467} ü",
        ] {
            assert_eq!(
                kept("a.md", text.as_bytes()),
                ResourceContent::Text(text.into()),
                "{text:?}"
            );
        }
        // Cleaning would change these.
        for text in [
            "\u{1b}[31m",
            "one\rtwo",
            "a\0b",
            "a\u{202e}b",
            "\u{e0041}",
            "a\u{feff}",
            "\r",
            "\u{200d}\u{1f469}",
            "a\u{e0100}",
        ] {
            let expected = ResourceContent::Blob(bytes::Bytes::copy_from_slice(text.as_bytes()));
            assert_eq!(kept("a.md", text.as_bytes()), expected, "{text:?}");
        }
        assert!(matches!(kept("a.md", b"\xff"), ResourceContent::Blob(_)));
        assert!(matches!(kept("a.png", b"text"), ResourceContent::Blob(_)));
        let file = FileResource::from_skill(
            "skill://pdf/a".into(),
            "a",
            "a",
            None,
            Digest::new([7; 32]),
            vec![0; 10],
        );
        let limit = CallError::Limit {
            limit: Limit::Output(ByteSize::b(9)),
            tool: None,
        };
        assert_eq!(file.read(ByteSize::b(9)).unwrap_err(), limit);
    }
}

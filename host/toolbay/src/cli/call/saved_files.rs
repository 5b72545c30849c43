//! `toolbay call --output`: saves the images, audio and files of a result in a folder.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use toolbay_model::text::clean_line;
use toolbay_model::{CallReply, CallResult, ContentBody, EmbeddedResource, ResourceContent};

/// Maximum length of a file name without its extension, in bytes.
const MAX_STEM_BYTES: usize = 100;

/// Maximum number of names that are tried for one file.
const MAX_ATTEMPTS: usize = 1_000;

/// Maximum length of a printed path, in bytes.
const MAX_PATH_BYTES: usize = 1_000;

/// The extensions of saved files, by MIME type. Files of other types are saved as `.bin`, or as
/// `.txt` if they are text.
const EXTENSIONS: [(&str, &str); 20] = [
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/svg+xml", "svg"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("application/zip", "zip"),
    ("application/xml", "xml"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/css", "css"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
];

/// A file in a result.
struct ResultFile<'a> {
    bytes: &'a [u8],
    mime_type: &'a str,
    /// The name in its URI, if it has one.
    name: Option<&'a str>,
    is_text: bool,
}

/// Saves the files of a result in `folder`, which is created if it does not exist. Returns one line
/// for each file. No existing file is replaced: a file whose name is taken gets a number.
///
/// The names come from the plugin, so only their harmless characters are used, and each file is
/// directly in the folder.
///
/// # Errors
///
/// The folder or a file cannot be written.
pub(super) fn save_files(
    result: &CallResult,
    tool: &str,
    folder: &Path,
) -> anyhow::Result<Vec<String>> {
    let Ok(CallReply::Tool(output)) = &result.result else {
        return Ok(Vec::new());
    };
    let files = output
        .content
        .iter()
        .filter_map(|block| result_file(&block.body));
    let mut lines = Vec::new();
    for (index, file) in files.enumerate() {
        if index == 0 {
            std::fs::create_dir_all(folder).map_err(|error| {
                anyhow::anyhow!("cannot create {}: {}", folder.display(), error.kind())
            })?;
        }
        let (stem, extension) = file_name(&file, tool, index + 1);
        let (path, is_renamed) = save(folder, &stem, &extension, file.bytes)?;
        let shown = clean_line(&path.display().to_string(), MAX_PATH_BYTES);
        let taken = if is_renamed {
            format!("; {stem}.{extension} exists and was not replaced")
        } else {
            String::new()
        };
        lines.push(format!(
            "saved {shown} ({}, {} bytes{taken})",
            clean_line(file.mime_type, MAX_PATH_BYTES),
            file.bytes.len()
        ));
    }
    if lines.is_empty() {
        lines.push("the result has no images or files: nothing was saved".to_owned());
    }
    Ok(lines)
}

fn result_file(body: &ContentBody) -> Option<ResultFile<'_>> {
    match body {
        ContentBody::Text(_) | ContentBody::ResourceLink(_) => None,
        ContentBody::Image(media) | ContentBody::Audio(media) => Some(ResultFile {
            bytes: &media.data,
            mime_type: &media.mime_type,
            name: None,
            is_text: false,
        }),
        ContentBody::Resource(EmbeddedResource {
            uri,
            mime_type,
            content,
        }) => {
            let (bytes, is_text) = match content {
                ResourceContent::Text(text) => (text.as_bytes(), true),
                ResourceContent::Blob(bytes) => (&bytes[..], false),
            };
            let path = uri.split(['?', '#']).next().unwrap_or_default();
            Some(ResultFile {
                bytes,
                mime_type: mime_type.as_deref().unwrap_or(if is_text {
                    "text/plain"
                } else {
                    "application/octet-stream"
                }),
                name: path.rsplit('/').next().filter(|name| !name.is_empty()),
                is_text,
            })
        }
    }
}

/// Returns the name of a file and its extension, of harmless characters.
fn file_name(file: &ResultFile<'_>, tool: &str, number: usize) -> (String, String) {
    let media_type = file.mime_type.split(';').next().unwrap_or_default().trim();
    let extension = EXTENSIONS
        .iter()
        .find(|(mime_type, _)| media_type.eq_ignore_ascii_case(mime_type))
        .map_or(if file.is_text { "txt" } else { "bin" }, |(_, known)| known);
    let (stem, own_extension) = match file.name.map(|name| name.rsplit_once('.').ok_or(name)) {
        Some(Ok((stem, own))) => (harmless(stem), Some(harmless(own))),
        Some(Err(name)) => (harmless(name), None),
        None => (String::new(), None),
    };
    let stem = if stem.is_empty() {
        format!("{}-{number}", harmless(tool))
    } else {
        stem
    };
    let own_extension = own_extension.filter(|own| !own.is_empty());
    (stem, own_extension.unwrap_or_else(|| extension.to_owned()))
}

/// Returns a name without path separators, control characters, spaces and leading dots or dashes.
fn harmless(name: &str) -> String {
    let replaced: String = name
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '_',
        })
        .take(MAX_STEM_BYTES)
        .collect();
    replaced.trim_matches(['.', '-', '_']).to_owned()
}

/// Saves a file under the first name that is free. Returns its path, and whether the first name was
/// taken.
fn save(
    folder: &Path,
    stem: &str,
    extension: &str,
    bytes: &[u8],
) -> anyhow::Result<(PathBuf, bool)> {
    for attempt in 1..=MAX_ATTEMPTS {
        let name = match attempt {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{attempt}.{extension}"),
        };
        let path = folder.join(name);
        // Never follows a link and never opens an existing file.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                write(file, &path, bytes)?;
                return Ok((path, attempt > 1));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => bail!("cannot create {}: {}", path.display(), error.kind()),
        }
    }
    bail!(
        "{} has {MAX_ATTEMPTS} files named {stem}.{extension}: nothing more was saved",
        folder.display()
    )
}

fn write(mut file: File, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        drop(std::fs::remove_file(path));
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use toolbay_model::{ContentBlock, MediaContent, ToolOutput};

    use super::*;

    fn result(bodies: Vec<ContentBody>) -> CallResult {
        let content = bodies
            .into_iter()
            .map(|body| ContentBlock {
                body,
                audience: Vec::new(),
                priority: None,
                last_modified: None,
            })
            .collect();
        CallResult {
            result: Ok(CallReply::Tool(ToolOutput {
                content,
                ..ToolOutput::default()
            })),
            usage: None,
        }
    }

    fn resource(uri: &str, mime_type: Option<&str>, text: &str) -> ContentBody {
        ContentBody::Resource(EmbeddedResource {
            uri: uri.to_owned(),
            mime_type: mime_type.map(str::to_owned),
            content: ResourceContent::Text(text.to_owned()),
        })
    }

    #[test]
    fn files_stay_in_the_folder_and_replace_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("out");
        std::fs::create_dir(&folder).unwrap();
        // A link out of the folder is not followed, and not replaced.
        std::os::unix::fs::symlink(dir.path().join("target"), folder.join("link.txt")).unwrap();
        std::fs::write(folder.join("plot-2.png"), "mine").unwrap();
        let image = || {
            ContentBody::Image(MediaContent {
                data: b"png".as_slice().into(),
                mime_type: "image/png".to_owned(),
            })
        };
        let lines = save_files(
            &result(vec![
                resource("file:///a/../../../etc/passwd", None, "1"),
                image(),
                resource("x://y/..%2F..%2Fup.sh", None, "2"),
                resource("x://y/link.txt", None, "3"),
                resource("x://y/.bashrc", None, "4"),
                resource("x://y/", Some("text/html; charset=utf-8"), "5"),
                resource("x://y/a\u{202e}b\nc.md?q=/z.exe#/f", None, "6"),
                ContentBody::Text("not a file".to_owned()),
            ]),
            "plot",
            &folder,
        )
        .unwrap();
        let said = lines
            .join("\n")
            .replace(&dir.path().display().to_string(), "");
        insta::assert_snapshot!(said, @r"
        saved /out/passwd.txt (text/plain, 1 bytes)
        saved /out/plot-2-2.png (image/png, 3 bytes; plot-2.png exists and was not replaced)
        saved /out/2F.._2Fup.sh (text/plain, 1 bytes)
        saved /out/link-2.txt (text/plain, 1 bytes; link.txt exists and was not replaced)
        saved /out/plot-5.bashrc (text/plain, 1 bytes)
        saved /out/plot-6.html (text/html; charset=utf-8, 1 bytes)
        saved /out/a_b_c.md (text/plain, 1 bytes)
        ");
        assert!(!dir.path().join("target").exists());
        assert_eq!(std::fs::read(folder.join("plot-2.png")).unwrap(), b"mine");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_result_without_files_creates_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("out");
        let lines = save_files(
            &result(vec![ContentBody::Text(String::new())]),
            "a",
            &folder,
        )
        .unwrap();
        assert!(lines.concat().contains("nothing was saved") && !folder.exists());
        // A file is in the place of the folder.
        std::fs::write(&folder, "").unwrap();
        let error = save_files(&result(vec![resource("x:a", None, "")]), "a", &folder);
        assert!(error.unwrap_err().to_string().contains("cannot create"));
    }
}

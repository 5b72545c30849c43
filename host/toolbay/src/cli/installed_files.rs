//! The digest of a plugin's files, in an archive and in the plugin folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use toolbay_bundle::PluginArchive;
use toolbay_model::Digest;

use super::installation::{EXTENSIONS, installed_path};

/// Digests of files, by their path in the plugin folder.
type FileDigests = BTreeMap<String, [u8; 32]>;

/// Returns the digest that the files of an archive have in a plugin folder.
pub(super) fn archive_digest(archive: &PluginArchive) -> Digest {
    let files = archive.files.iter().map(|(path, content)| {
        let path = installed_path(&archive.id, path);
        (path.display().to_string(), Sha256::digest(content).into())
    });
    combine(&files.collect())
}

/// Returns the digest of the files of a plugin in the folder, without its grant. Returns `None` if
/// there are none, if something among them is not a file or a folder, or if they have more than
/// `limit` bytes: then they are not those of an archive.
///
/// # Errors
///
/// A file cannot be read.
pub(super) fn installed_digest(folder: &Path, id: &str, limit: u64) -> io::Result<Option<Digest>> {
    let mut files = FileDigests::new();
    let mut rest = limit;
    for extension in EXTENSIONS {
        let name = format!("{id}.{extension}");
        if !add_file(&mut files, &folder.join(&name), name, &mut rest)? {
            return Ok(None);
        }
    }
    Ok((!files.is_empty()).then(|| combine(&files)))
}

/// Adds the digest of a file, or of the files in a folder. Returns false if there is something else,
/// or if they are larger than `rest`.
fn add_file(
    files: &mut FileDigests,
    path: &Path,
    name: String,
    rest: &mut u64,
) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let Ok(inner) = entry.file_name().into_string() else {
                return Ok(false);
            };
            if !add_file(files, &entry.path(), format!("{name}/{inner}"), rest)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if !metadata.is_file() || metadata.len() > *rest {
        return Ok(false);
    }
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?.take(*rest);
    let read = io::copy(&mut file, &mut hasher)?;
    *rest = rest.saturating_sub(read);
    files.insert(name, hasher.finalize().into());
    Ok(true)
}

fn combine(files: &FileDigests) -> Digest {
    let mut hasher = Sha256::new();
    for (path, digest) in files {
        hasher.update(path.as_bytes());
        // No path contains it.
        hasher.update([0]);
        hasher.update(digest);
    }
    Digest::new(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::cli::installation::Installation;

    #[test]
    fn an_installed_archive_has_its_digest_until_something_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let file = |path: &str| (path.to_owned(), path.as_bytes().to_vec());
        let archive = PluginArchive {
            id: "a".to_owned(),
            files: ["a.wasm", "a.resources/x/y", "README.md"].map(file).into(),
            ..PluginArchive::default()
        };
        let expected = archive_digest(&archive);
        let digest = || installed_digest(root, "a", 1_000).unwrap();
        assert_eq!(digest(), None);
        Installation::plan(root, &archive)
            .install(root, &archive)
            .unwrap();
        assert_eq!(digest(), Some(expected));
        // A grant and other plugins do not count.
        fs::write(root.join("a.toml"), "x").unwrap();
        fs::write(root.join("ab.wasm"), "x").unwrap();
        assert_eq!(digest(), Some(expected));
        assert_eq!(installed_digest(root, "a", 3).unwrap(), None);
        fs::write(root.join("a.resources/x/z"), "x").unwrap();
        assert_ne!(digest(), Some(expected));
        fs::remove_file(root.join("a.resources/x/z")).unwrap();
        assert_eq!(digest(), Some(expected));
        fs::rename(root.join("a.resources/x/y"), root.join("a.resources/x/w")).unwrap();
        assert_ne!(digest(), Some(expected));
        symlink("/dev/zero", root.join("a.resources/z")).unwrap();
        assert_eq!(digest(), None);
    }
}

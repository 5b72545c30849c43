//! Reproducible tar archives: sorted, owned by root, and with one time for all files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// The mode of directories and programs.
pub(crate) const PROGRAM: u32 = 0o755;

/// The mode of all other files.
pub(crate) const DATA: u32 = 0o644;

/// A tar archive under construction.
pub(crate) struct Tarred<W: Write> {
    builder: Builder<W>,
    time: u64,
    folders: BTreeSet<String>,
}

/// Compresses its input. The result contains no time and no file name.
pub(crate) fn gzip<W: Write>(out: W) -> GzEncoder<W> {
    GzEncoder::new(out, Compression::default())
}

impl<W: Write> Tarred<W> {
    /// Creates an empty archive whose files have this time.
    pub(crate) fn new(out: W, time: u64) -> Self {
        Self {
            builder: Builder::new(out),
            time,
            folders: BTreeSet::new(),
        }
    }

    /// Adds a file and its parent directories.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        self.folders_to(path)?;
        let mut header = self.header(EntryType::Regular, mode);
        header.set_size(content.len() as u64);
        self.builder
            .append_data(&mut header, path, content)
            .with_context(|| format!("failed to pack {path}"))
    }

    /// Like [`Self::file`], with the content of a file on disk.
    pub(crate) fn copy(&mut self, path: &str, mode: u32, from: &Path) -> Result<()> {
        let content =
            fs::read(from).with_context(|| format!("failed to read {}", from.display()))?;
        self.file(path, mode, &content)
    }

    /// Adds an empty directory owned by `owner`.
    pub(crate) fn folder(&mut self, path: &str, mode: u32, owner: u64) -> Result<()> {
        self.folders_to(path)?;
        let mut header = self.header(EntryType::Directory, mode);
        header.set_uid(owner);
        header.set_gid(owner);
        self.folders.insert(path.to_owned());
        self.builder
            .append_data(&mut header, format!("{path}/"), &[][..])
            .with_context(|| format!("failed to pack {path}"))
    }

    /// Finishes the archive.
    pub(crate) fn finish(self) -> Result<W> {
        self.builder
            .into_inner()
            .context("failed to end the archive")
    }

    fn folders_to(&mut self, path: &str) -> Result<()> {
        let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        for end in ends {
            let folder = path.get(..end).unwrap_or_default();
            if !folder.is_empty() && self.folders.insert(folder.to_owned()) {
                let mut header = self.header(EntryType::Directory, PROGRAM);
                self.builder
                    .append_data(&mut header, format!("{folder}/"), &[][..])?;
            }
        }
        Ok(())
    }

    fn header(&self, kind: EntryType, mode: u32) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(self.time);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut tarred = Tarred::new(gzip(Vec::new()), 1_700_000_000);
        tarred.file("top/bin/toolbay", PROGRAM, b"program").unwrap();
        tarred.file("top/bin/other", DATA, b"").unwrap();
        tarred.folder("top/data", 0o700, 65_532).unwrap();
        tarred.finish().unwrap().finish().unwrap()
    }

    #[test]
    fn what_is_packed_is_there_once_with_its_rights_and_time() {
        let archive = archive();
        let mut read = tar::Archive::new(flate2::read::GzDecoder::new(&archive[..]));
        let entries = read.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 1_700_000_000);
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            (
                path,
                header.mode().unwrap(),
                header.uid().unwrap(),
                header.size().unwrap(),
            )
        });
        let expected = [
            ("top/", 0o755, 0, 0),
            ("top/bin/", 0o755, 0, 0),
            ("top/bin/toolbay", 0o755, 0, 7),
            ("top/bin/other", 0o644, 0, 0),
            ("top/data/", 0o700, 65_532, 0),
        ];
        assert_eq!(
            entries.collect::<Vec<_>>(),
            expected.map(|(path, mode, uid, size)| (path.to_owned(), mode, uid, size))
        );
    }

    #[test]
    fn the_same_content_makes_the_same_archive() {
        assert_eq!(archive(), archive());
    }
}

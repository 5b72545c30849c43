//! Reads the entries of archives of strangers, within bounds.
//!
//! Only what [`archive_writer`](crate::archive_writer) writes is accepted: one gzip member with a
//! tar archive of regular files in the format `ustar`. Other kinds of entries (links, devices,
//! folders, extended headers, which can replace names and sizes) are refused, so that every reader
//! sees the same files.

use std::io::Read as _;

use flate2::bufread::GzDecoder;
use tar::{Archive, EntryType};
use toolbay_model::text::clean_line;

use crate::archive_error::{ArchiveError, refused};

/// Maximum number of files.
const MAX_FILES: usize = 2_000;

/// Maximum ratio of the unpacked to the packed size. Components reach about 5.
const MAX_RATIO: u64 = 200;

/// Size up to which the ratio does not count, in bytes: small archives consist of padding.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// The limits of an archive, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Maximum size of the archive.
    pub packed: u64,
    /// Maximum size of the tar archive in it, which contains all files.
    pub unpacked: u64,
}

impl ArchiveLimits {
    /// Size that the files other than the component can have, in bytes.
    const OTHER_FILES_BYTES: u64 = 32 << 20;

    /// Returns the limits for plugins whose component has at most `component` bytes.
    pub fn for_component_size(component: u64) -> Self {
        let unpacked = component.saturating_add(Self::OTHER_FILES_BYTES);
        Self {
            packed: unpacked,
            unpacked,
        }
    }
}

/// Returns paths and contents of the files, in the order of the archive.
pub(crate) fn read_entries(
    bytes: &[u8],
    limits: ArchiveLimits,
) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
    let tar = decompress(bytes, limits)?;
    let mut archive = Archive::new(tar.as_slice());
    let damaged = |why: &std::io::Error| {
        ArchiveError(format!(
            "it is damaged: {}",
            clean_line(&why.to_string(), 200)
        ))
    };
    let mut files = Vec::new();
    for entry in archive.entries().map_err(|why| damaged(&why))?.raw(true) {
        let mut entry = entry.map_err(|why| damaged(&why))?;
        if files.len() >= MAX_FILES {
            return Err(ArchiveError(format!("it has more than {MAX_FILES} files")));
        }
        let path = match String::from_utf8(entry.path_bytes().into_owned()) {
            Ok(path) => path,
            Err(name) => {
                return Err(refused(
                    &String::from_utf8_lossy(name.as_bytes()),
                    "its name is not UTF-8",
                ));
            }
        };
        let header = entry.header();
        let is_plain_file = header.as_ustar().is_some()
            && header.entry_type() == EntryType::Regular
            && header.link_name_bytes().is_none();
        if !is_plain_file {
            return Err(refused(
                &path,
                "only regular files are accepted, as `toolbay pack` writes them, and no folders, links, devices or extensions",
            ));
        }
        let mut content = Vec::new();
        entry
            .read_to_end(&mut content)
            .map_err(|why| damaged(&why))?;
        if u64::try_from(content.len()).ok() != header_size(entry.header()) {
            return Err(refused(&path, "the archive ends before the file does"));
        }
        files.push((path, content));
    }
    if archive.into_inner().iter().any(|byte| *byte != 0) {
        return Err(ArchiveError("it continues after its end".to_owned()));
    }
    Ok(files)
}

fn header_size(header: &tar::Header) -> Option<u64> {
    header.size().ok()
}

fn decompress(bytes: &[u8], limits: ArchiveLimits) -> Result<Vec<u8>, ArchiveError> {
    let packed = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if packed > limits.packed {
        return Err(ArchiveError(format!(
            "it is larger than {} bytes",
            limits.packed
        )));
    }
    let by_ratio = packed.saturating_mul(MAX_RATIO).max(RATIO_FREE_BYTES);
    let limit = limits.unpacked.min(by_ratio);
    let mut decoder = GzDecoder::new(bytes);
    let mut tar = Vec::new();
    decoder
        .by_ref()
        .take(limit.saturating_add(1))
        .read_to_end(&mut tar)
        .map_err(|why| {
            ArchiveError(format!(
                "it is not an archive, or it is damaged: {}",
                clean_line(&why.to_string(), 200)
            ))
        })?;
    if u64::try_from(tar.len()).unwrap_or(u64::MAX) > limit {
        return Err(ArchiveError(if limit == limits.unpacked {
            format!("its files are larger than {limit} bytes together")
        } else {
            format!("its files are more than {MAX_RATIO} times as large as the archive")
        }));
    }
    if !decoder.into_inner().is_empty() {
        return Err(ArchiveError("it continues after its end".to_owned()));
    }
    Ok(tar)
}

//! Writes archives: a tar archive, compressed with gzip, that depends only on its content.

use std::collections::BTreeMap;
use std::io;

use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use crate::archive_error::{ArchiveError, MANIFEST_FILE, refused};

/// The operating system in the header of gzip: unknown.
const UNKNOWN_SYSTEM: u8 = 255;

/// The permissions of every file.
const FILE_MODE: u32 = 0o644;

/// Returns an archive with the manifest first, then the files by name. Each has the same mode, time
/// and owner.
pub(crate) fn write(
    manifest: &str,
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<Vec<u8>, ArchiveError> {
    let compressor = GzBuilder::new()
        .mtime(0)
        .operating_system(UNKNOWN_SYSTEM)
        .write(Vec::new(), Compression::default());
    let mut tar = tar::Builder::new(compressor);
    let manifest = (MANIFEST_FILE, manifest.as_bytes());
    let files = files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_slice()));
    for (path, content) in [manifest].into_iter().chain(files) {
        let header = file_header(path, content).map_err(|why| refused(path, &why.to_string()))?;
        tar.append(&header, content)
            .map_err(|why| cannot_write(&why))?;
    }
    let finished = tar.into_inner().and_then(flate2::write::GzEncoder::finish);
    finished.map_err(|why| cannot_write(&why))
}

fn file_header(path: &str, content: &[u8]) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX));
    header.set_entry_type(EntryType::Regular);
    header.set_mode(FILE_MODE);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    Ok(header)
}

fn cannot_write(why: &io::Error) -> ArchiveError {
    ArchiveError(format!("cannot write the archive: {}", why.kind()))
}

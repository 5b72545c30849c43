//! Verification of a log. Finds every line that was changed, truncated, swapped or inserted.

mod chain_verifier;
mod count_words;
mod damaged_lines;
mod report;

use std::io::Read as _;
use std::path::Path;

use toolbay_model::Digest;

use crate::anchor::CrossAnchor;
use crate::error::AuditError;
use crate::folder::{list_files, open_to_read};
use crate::head::{self, HeadState};
use crate::key::PublicKey;
use crate::key_file::PUBLIC_KEY_FILE_NAME;
use crate::line_reader::LineReader;
use crate::part::LogPart;

use self::chain_verifier::ChainVerifier;
pub use self::report::{PartReport, VerifyFinding, VerifyReport};

/// Maximum number of retries if the files of a log cannot be read.
const MAX_RETRIES: u32 = 3;

/// Maximum number of bytes of the public key's file that are read.
const MAX_KEY_FILE_BYTES: u64 = 1 << 10;

/// Verifies the log in `folder` with `key`, or with the public key in the directory. `expected` is
/// the number and hash of a line that was recorded elsewhere.
///
/// # Errors
///
/// Returns an error if the directory, its public key or its files cannot be read.
pub fn verify(
    folder: &Path,
    key: Option<PublicKey>,
    expected: Option<(u64, Digest)>,
) -> Result<VerifyReport, AuditError> {
    let key = match key {
        Some(key) => key,
        None => public_key(folder)?,
    };
    let mut retries = MAX_RETRIES;
    loop {
        match verify_once(folder, key, expected) {
            // A running server deletes old files.
            Err(_) if retries > 0 => retries -= 1,
            result => return result,
        }
    }
}

fn verify_once(
    folder: &Path,
    key: PublicKey,
    expected: Option<(u64, Digest)>,
) -> Result<VerifyReport, AuditError> {
    let (mut report, anchor) = verify_part(folder, LogPart::Main, key, expected, None)?;
    // Read the other part after the main part: a running server writes the other part first.
    let has_no_head = head::read_head(folder, LogPart::Rejected, &key)
        .is_ok_and(|head| head == HeadState::Missing);
    let has_no_files = list_files(folder, LogPart::Rejected).is_ok_and(|files| files.is_empty());
    // Earlier versions had no second part, and their main part does not refer to it.
    if anchor.is_some() || !has_no_head || !has_no_files {
        let (other, _) = verify_part(folder, LogPart::Rejected, key, None, anchor)?;
        report.merge(other);
    }
    Ok(report)
}

/// Verifies a part. Also returns the newest line of the other part that this part refers to.
/// `anchor` is a line of this part that the other part refers to.
fn verify_part(
    folder: &Path,
    part: LogPart,
    key: PublicKey,
    expected: Option<CrossAnchor>,
    anchor: Option<CrossAnchor>,
) -> Result<(VerifyReport, Option<CrossAnchor>), AuditError> {
    // Read the head before the lines: a running server continues to append.
    let head = head::read_head(folder, part, &key)
        .map_err(|error| AuditError::from_io("read", folder, &error))?;
    let lines = LineReader::open(folder, part)?;
    let mut verifier = ChainVerifier::new(part, key, head, [expected, anchor], lines.file_count());
    for line in lines {
        verifier.check_line(&line?);
    }
    let other_anchor = verifier.other_anchor;
    Ok((verifier.finish(), other_anchor))
}

fn public_key(folder: &Path) -> Result<PublicKey, AuditError> {
    let path = folder.join(PUBLIC_KEY_FILE_NAME);
    let mut text = String::new();
    open_to_read(&path)
        .and_then(|file| file.take(MAX_KEY_FILE_BYTES).read_to_string(&mut text))
        .map_err(|error| AuditError::from_io("read", &path, &error))?;
    PublicKey::parse(&text)
        .ok_or_else(|| AuditError(format!("{} is not a public key", path.display())))
}

#[cfg(test)]
mod tests;

//! The head: a small signed file with the number and hash of the newest line. An attacker who
//! truncates the log cannot create a matching head.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::chain::parse_hash;
use crate::claim::{SignedClaim, SignedHead};
use crate::folder::{LogFolder, open_to_read};
use crate::key::{LogKey, PublicKey};
use crate::part::LogPart;

/// Maximum number of bytes that are read.
const MAX_HEAD_BYTES: u64 = 4 << 10;

/// The result of reading a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadState {
    /// A head with a valid signature.
    Signed(SignedHead),
    /// A file without a valid signature of the log's key.
    Forged,
    /// No file exists.
    Missing,
}

#[derive(Deserialize, Serialize)]
struct SerializedHead {
    seq: String,
    hash: String,
    oldest: String,
    state: String,
    signature: String,
}

/// A head file, open for writing.
#[derive(Debug)]
pub(crate) struct HeadFile {
    file: File,
    part: LogPart,
}

impl HeadFile {
    /// Opens the file. Creates it if it does not exist.
    pub(crate) fn open(folder: &LogFolder, part: LogPart) -> io::Result<Self> {
        let file = folder.create(
            part.head_file_name(),
            OFlags::empty(),
            Mode::from_raw_mode(0o600),
        )?;
        Ok(Self { file, part })
    }

    /// Replaces the contents of the file in one write: all heads have the same length.
    pub(crate) fn write(&self, head: SignedHead, key: &LogKey) -> io::Result<()> {
        let SignedHead {
            seq,
            hash,
            oldest,
            ended,
        } = head;
        let signature = key.sign(self.part, SignedClaim::Head(head));
        let state = if ended { "shut" } else { "open" }.to_owned();
        let seq = format!("{seq:020}");
        let oldest = format!("{oldest:020}");
        let text = SerializedHead {
            seq,
            hash: hash.to_string(),
            oldest,
            state,
            signature,
        };
        let mut text = serde_json::to_vec(&text)?;
        text.push(b'\n');
        self.file.write_all_at(&text, 0)
    }

    /// Replaces the file that is written to.
    #[cfg(test)]
    pub(crate) fn redirect(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    /// Waits until the file is on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Writes the heads of a log without lines, and waits until they are on the disk. `key` is a new
/// key that is not in the directory yet: a key without heads then proves that files are missing.
/// Retains a head that names a line, because it belongs to a log whose key is missing.
pub(crate) fn write_empty_heads(folder: &LogFolder, key: &LogKey) -> io::Result<()> {
    for part in LogPart::ALL {
        if names_line(folder, part) {
            continue;
        }
        let head = HeadFile::open(folder, part)?;
        head.file.set_len(0)?;
        head.write(SignedHead::EMPTY, key)?;
        head.file.sync_all()?;
    }
    folder.sync();
    Ok(())
}

/// Returns whether there is a head that names a line, with any signature.
fn names_line(folder: &LogFolder, part: LogPart) -> bool {
    let mut text = Vec::new();
    let read = folder
        .open_own(part.head_file_name())
        .and_then(|(file, _)| file.take(MAX_HEAD_BYTES).read_to_end(&mut text));
    let head: Option<SerializedHead> = serde_json::from_slice(&text).ok();
    read.is_ok()
        && head
            .and_then(|head| head.seq.parse::<u64>().ok())
            .is_some_and(|seq| seq > 0)
}

/// Reads the head of a part of the log in `folder`.
pub(crate) fn read_head(folder: &Path, part: LogPart, key: &PublicKey) -> io::Result<HeadState> {
    let mut text = Vec::new();
    match open_to_read(&folder.join(part.head_file_name())) {
        Ok(file) => file.take(MAX_HEAD_BYTES).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HeadState::Missing),
        Err(error) => return Err(error),
    };
    Ok(parse_head(&text, part, key).map_or(HeadState::Forged, HeadState::Signed))
}

fn parse_head(text: &[u8], part: LogPart, key: &PublicKey) -> Option<SignedHead> {
    let text: SerializedHead = serde_json::from_slice(text).ok()?;
    let seq = text.seq.parse().ok()?;
    let oldest = text.oldest.parse().ok()?;
    let hash = parse_hash(text.hash.as_bytes())?;
    let ended = match text.state.as_str() {
        "open" => false,
        "shut" => true,
        _ => return None,
    };
    let head = SignedHead {
        seq,
        hash,
        oldest,
        ended,
    };
    key.verifies(&text.signature, part, SignedClaim::Head(head))
        .then_some(head)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use toolbay_model::Digest;

    use super::*;

    #[test]
    fn head_is_valid_only_with_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LogFolder::open(dir.path()).unwrap();
        let key = LogKey::load_or_create(&folder, true).unwrap();
        let read = || super::read_head(dir.path(), LogPart::Main, &key.public_key()).unwrap();
        assert_eq!(read(), HeadState::Signed(SignedHead::EMPTY));
        fs::remove_file(dir.path().join(LogPart::Main.head_file_name())).unwrap();
        assert_eq!(read(), HeadState::Missing);
        let file = HeadFile::open(&folder, LogPart::Main).unwrap();
        assert_eq!(read(), HeadState::Forged, "an empty file");
        for (seq, ended) in [(1, false), (u64::MAX, true), (2, false)] {
            let head = SignedHead {
                seq,
                hash: Digest::new([7; 32]),
                oldest: 1,
                ended,
            };
            file.write(head, &key).unwrap();
            assert_eq!(read(), HeadState::Signed(head));
            fs::copy(
                dir.path().join(LogPart::Main.head_file_name()),
                dir.path().join(LogPart::Rejected.head_file_name()),
            )
            .unwrap();
            let other = super::read_head(dir.path(), LogPart::Rejected, &key.public_key()).unwrap();
            assert_eq!(
                other,
                HeadState::Forged,
                "a head of one part is none of the other"
            );
        }
        let text = fs::read_to_string(dir.path().join(LogPart::Main.head_file_name())).unwrap();
        for (from, to) in [
            ("open", "shut"),
            ("02", "03"),
            ("0707", "0708"),
            ("open", "ajar"),
            ("{", ""),
        ] {
            assert!(text.contains(from));
            fs::write(
                dir.path().join(LogPart::Main.head_file_name()),
                text.replacen(from, to, 1),
            )
            .unwrap();
            assert_eq!(read(), HeadState::Forged, "{from} {to}");
        }
    }
}

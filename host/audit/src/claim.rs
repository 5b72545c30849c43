//! What a signature says.

use toolbay_model::Digest;

use crate::part::LogPart;

/// What signatures are about, so that none can stand for another.
const CHECKPOINT: &str = "toolbay audit 1 checkpoint";
const HEAD: &str = "toolbay audit 1 head";
const REJECTED_CHECKPOINT: &str = "toolbay audit 1 rejected checkpoint";
const REJECTED_HEAD: &str = "toolbay audit 1 rejected head";

/// What a signature says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SignedClaim {
    /// The line with this number is a checkpoint, and the line before it has this hash.
    Checkpoint(u64, Digest),
    /// The newest line.
    Head(SignedHead),
}

/// The newest line that was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignedHead {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
    /// Number of the first line that is kept.
    pub oldest: u64,
    /// Whether the server ended with it.
    pub ended: bool,
}

impl SignedClaim {
    /// The bytes that are signed. A signature of one part is none of the other.
    pub(crate) fn text(self, part: LogPart) -> String {
        let (checkpoint, head) = match part {
            LogPart::Main => (CHECKPOINT, HEAD),
            LogPart::Rejected => (REJECTED_CHECKPOINT, REJECTED_HEAD),
        };
        match self {
            Self::Checkpoint(seq, prev) => format!("{checkpoint}\n{seq}\n{prev}\n"),
            Self::Head(SignedHead { seq, hash, oldest, ended }) => {
                format!("{head}\n{seq}\n{hash}\n{oldest}\n{ended}\n")
            }
        }
    }
}

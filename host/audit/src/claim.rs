//! The statements that signatures confirm.

use toolbay_model::Digest;

use crate::chain::NO_PREVIOUS_HASH;
use crate::part::LogPart;

/// Domain separators: a signature of one kind is not valid for another kind.
const CHECKPOINT_DOMAIN: &str = "toolbay audit 1 checkpoint";
const HEAD_DOMAIN: &str = "toolbay audit 1 head";
const REJECTED_CHECKPOINT_DOMAIN: &str = "toolbay audit 1 rejected checkpoint";
const REJECTED_HEAD_DOMAIN: &str = "toolbay audit 1 rejected head";

/// A statement that is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SignedClaim {
    /// The line with this number is a checkpoint, and the previous line has this hash.
    Checkpoint(u64, Digest),
    /// The newest line of the log.
    Head(SignedHead),
}

/// The newest line that was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignedHead {
    /// Number of the line; 0 if no line was written yet.
    pub seq: u64,
    /// Hash of the line.
    pub hash: Digest,
    /// Number of the first line that is retained.
    pub oldest: u64,
    /// True if the server stopped after this line.
    pub ended: bool,
}

impl SignedHead {
    /// The head of a log without lines.
    pub(crate) const EMPTY: Self = Self {
        seq: 0,
        hash: NO_PREVIOUS_HASH,
        oldest: 1,
        ended: false,
    };
}

impl SignedClaim {
    /// Returns the bytes that are signed. A signature for one part is not valid for the other part.
    pub(crate) fn to_signed_text(self, part: LogPart) -> String {
        let (checkpoint, head) = match part {
            LogPart::Main => (CHECKPOINT_DOMAIN, HEAD_DOMAIN),
            LogPart::Rejected => (REJECTED_CHECKPOINT_DOMAIN, REJECTED_HEAD_DOMAIN),
        };
        match self {
            Self::Checkpoint(seq, prev) => format!("{checkpoint}\n{seq}\n{prev}\n"),
            Self::Head(SignedHead {
                seq,
                hash,
                oldest,
                ended,
            }) => {
                format!("{head}\n{seq}\n{hash}\n{oldest}\n{ended}\n")
            }
        }
    }
}

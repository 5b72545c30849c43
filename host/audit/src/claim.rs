//! What a signature says.

use toolbay_model::Digest;

/// What signatures are about, so that none can stand for another.
const CHECKPOINT: &str = "toolbay audit 1 checkpoint";
const HEAD: &str = "toolbay audit 1 head";

/// What a signature says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Claim {
    /// The line with this number is a checkpoint, and the line before it has this hash.
    Checkpoint(u64, Digest),
    /// The newest line.
    Head(Head),
}

/// The newest line that was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
    /// Number of the first line that is kept.
    pub oldest: u64,
    /// Whether the server ended with it.
    pub ended: bool,
}

impl Claim {
    /// The bytes that are signed.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Checkpoint(seq, prev) => format!("{CHECKPOINT}\n{seq}\n{prev}\n"),
            Self::Head(Head { seq, hash, oldest, ended }) => format!("{HEAD}\n{seq}\n{hash}\n{oldest}\n{ended}\n"),
        }
    }
}

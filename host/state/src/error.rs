//! Why an operation fails.

use bytesize::ByteSize;
use toolbay_model::text::thousands;

use crate::bounds::{BATCH, BATCH_KEYS, BUCKET, KEY, VALUE};

/// Why an operation fails, as a guest is told. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The owner may not keep as many bytes.
    #[error("the quota of {} is used up (permissions.state.size)", iec(*.0))]
    Size(ByteSize),
    /// The owner may not keep as many keys.
    #[error("the quota of {} keys is used up (permissions.state.keys)", thousands(*.0))]
    Keys(u64),
    /// The server may not keep as much for all plugins together.
    #[error("the server keeps no more than {} for all plugins together (state.size)", iec(*.0))]
    Total(ByteSize),
    /// The name of a bucket is too long, or has control characters.
    #[error("the name of a bucket has at most {BUCKET} bytes and no control characters")]
    Bucket,
    /// The key has this many bytes.
    #[error("the key has {} bytes; the longest has {}", thousands(*.0 as u64), thousands(KEY as u64))]
    Key(usize),
    /// The value has this many bytes.
    #[error("the value has {} bytes; the largest has {}", thousands(*.0 as u64), thousands(VALUE as u64))]
    Value(usize),
    /// One operation has too many keys, or too many bytes.
    #[error(
        "one operation has at most {} keys, and {} of keys and values",
        thousands(BATCH_KEYS as u64),
        iec(ByteSize::b(BATCH as u64))
    )]
    Batch,
    /// The value to be incremented is not a number in decimal digits.
    #[error("the value is not a whole number in decimal digits")]
    NotANumber,
    /// The number after an increment would be out of range.
    #[error("the number would be out of range")]
    OutOfRange,
    /// What pays for the operation has no memory left, or nobody waits for it any more.
    #[error("the call has no memory or no time left")]
    Stopped,
    /// The database cannot be used; the text is for the operator.
    #[error("the state is not available at the moment; the server's log says why")]
    Unavailable(String),
}

impl StateError {
    /// For the operator: what happened, with details that a guest is not told.
    pub fn details(&self) -> String {
        match self {
            Self::Unavailable(why) => why.clone(),
            other => other.to_string(),
        }
    }
}

fn iec(size: ByteSize) -> String {
    size.display().iec().to_string()
}

//! Errors of state operations.

use bytesize::ByteSize;
use toolbay_model::text::format_thousands;

use crate::bounds::{
    MAX_BUCKET_NAME_BYTES, MAX_KEY_BYTES, MAX_OPERATION_BYTES, MAX_OPERATION_KEYS, MAX_VALUE_BYTES,
};

/// Error of an operation, as reported to a guest. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The owner's quota of bytes is used up.
    #[error("the quota of {} is used up (permissions.state.size)", iec(*.0))]
    Size(ByteSize),
    /// The owner's quota of keys is used up.
    #[error("the quota of {} keys is used up (permissions.state.keys)", format_thousands(*.0))]
    Keys(u64),
    /// The server's limit for all plugins together is reached.
    #[error("the server keeps no more than {} for all plugins together (state.size)", iec(*.0))]
    Total(ByteSize),
    /// The name of a bucket is too long or has control characters.
    #[error(
        "the name of a bucket has at most {MAX_BUCKET_NAME_BYTES} bytes and no control characters"
    )]
    Bucket,
    /// The key is too long. Contains its length in bytes.
    #[error("the key has {} bytes; the longest has {}", format_thousands(*.0 as u64), format_thousands(MAX_KEY_BYTES as u64))]
    Key(usize),
    /// The value is too large. Contains its size in bytes.
    #[error("the value has {} bytes; the largest has {}", format_thousands(*.0 as u64), format_thousands(MAX_VALUE_BYTES as u64))]
    Value(usize),
    /// The operation has too many keys or too many bytes.
    #[error(
        "one operation has at most {} keys, and {} of keys and values",
        format_thousands(MAX_OPERATION_KEYS as u64),
        iec(ByteSize::b(MAX_OPERATION_BYTES as u64))
    )]
    Batch,
    /// The value to increment is not a number in decimal digits.
    #[error("the value is not a whole number in decimal digits")]
    NotANumber,
    /// The result of an increment is out of range.
    #[error("the number would be out of range")]
    OutOfRange,
    /// The payer has no memory left, or the operation is no longer needed.
    #[error("the call has no memory or no time left")]
    Stopped,
    /// The database cannot be used. The text is for the operator.
    #[error("the state is not available at the moment; the server's log states the reason")]
    Unavailable(String),
}

impl StateError {
    /// Returns the error with details for the operator, which guests do not receive.
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

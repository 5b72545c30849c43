//! References from one part of the log to the other.

use toolbay_model::Digest;

/// Number and hash of a line in the other part of the log.
pub(crate) type CrossAnchor = (u64, Digest);

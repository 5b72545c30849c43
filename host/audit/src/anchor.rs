//! Where a part of the log was at one moment.

use toolbay_model::Digest;

/// Number and hash of a line of the other part of the log.
pub(crate) type CrossAnchor = (u64, Digest);

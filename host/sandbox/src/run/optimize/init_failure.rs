//! The error that ends the initialization of a plugin.

use thiserror::Error;

/// Error that ends the initialization, with the reason for the author.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub(super) struct InitFailure(pub(super) String);

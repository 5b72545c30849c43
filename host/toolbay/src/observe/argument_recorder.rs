//! The record of a call's arguments, for the audit log and the console.

use std::sync::Arc;
use std::time::Instant;

use tokio::time::timeout_at;
use toolbay_audit::{ArgumentsRecord, hash};
use toolbay_model::CallerIdentity;
use toolbay_secrets::{SecretFilter, SecretVault};

/// Maximum length of recorded arguments, in bytes.
const MAX_ARGUMENTS_BYTES: usize = 16 << 10;

/// Records the arguments of one call.
#[derive(Clone)]
pub(crate) struct ArgumentRecorder {
    /// The secrets to redact from the arguments; `None` to record only a digest.
    redacted: Option<Arc<SecretFilter>>,
}

impl ArgumentRecorder {
    /// Creates a recorder for a call of `caller`. If `full` is set, it records complete arguments
    /// without the secrets of `vault`. Otherwise, or if the secrets are not available by
    /// `deadline`, it records only a digest.
    pub(crate) async fn open(
        full: bool,
        vault: &SecretVault,
        caller: Option<&CallerIdentity>,
        deadline: Instant,
    ) -> Self {
        if !full {
            return Self { redacted: None };
        }
        // A secret can be stored in a file, and a file system can hang.
        let opened = timeout_at(deadline.into(), vault.open(caller)).await;
        let opened = opened.ok().and_then(Result::ok);
        Self {
            redacted: opened.map(|opened| Arc::clone(&opened.filter)),
        }
    }

    /// Returns the record of the arguments. Takes time in proportion to their length.
    pub(crate) fn record(&self, text: &str) -> ArgumentsRecord {
        let digest = Some(hash(text.as_bytes()));
        let Some(secrets) = &self.redacted else {
            return ArgumentsRecord {
                digest,
                ..ArgumentsRecord::default()
            };
        };
        let is_truncated = text.len() > MAX_ARGUMENTS_BYTES;
        let shown = if is_truncated {
            secrets.scrub_truncated(
                text.get(..text.floor_char_boundary(MAX_ARGUMENTS_BYTES))
                    .unwrap_or_default(),
            )
        } else {
            secrets.scrub(text).into_owned()
        };
        ArgumentsRecord {
            digest,
            text: Some(shown),
            is_truncated,
        }
    }
}

//! Reasons why a registry did not deliver or accept something.

use thiserror::Error;
use toolbay_model::Digest;
use toolbay_outgoing::SendError;

/// Maximum length of a text of a registry or a helper in a message, in bytes.
pub(crate) const MAX_SHOWN_BYTES: usize = 200;

/// The reason why a registry did not deliver or accept something, in words for the person who named
/// the reference. Texts of the registry are single lines of bounded length.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// No answer, or the connection ended.
    #[error("{host}: {}", sentence(reason))]
    Connection {
        /// The host that was to answer.
        host: String,
        /// What failed.
        reason: SendError,
    },
    /// 404.
    #[error(
        "{what} does not exist in the registry, or the registry shows it only to users with the right to read it (404)"
    )]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// 401.
    #[error("{registry} refused the credentials (401): {advice}{details}")]
    Unauthorized {
        /// The registry.
        registry: String,
        /// What the person can do.
        advice: String,
        /// The registry's own words, after a semicolon.
        details: String,
    },
    /// 403.
    #[error(
        "{registry} denies access (403): the account has no right to {action} {repository}{details}"
    )]
    Forbidden {
        /// The registry.
        registry: String,
        /// What was attempted: `read` or `write`.
        action: &'static str,
        /// The repository.
        repository: String,
        /// The registry's own words, after a semicolon.
        details: String,
    },
    /// 429.
    #[error("{registry} allows no more requests for now (429): {advice}")]
    TooManyRequests {
        /// The registry.
        registry: String,
        /// When to try again.
        advice: String,
    },
    /// Any other status.
    #[error("{host} answered with status {status}{details}")]
    Status {
        /// The host that answered.
        host: String,
        /// The status.
        status: u16,
        /// The registry's own words, after a semicolon.
        details: String,
    },
    /// A redirect that is not followed.
    #[error("{host} redirects, which is refused: {why}")]
    Redirect {
        /// The host that answered.
        host: String,
        /// The reason.
        why: String,
    },
    /// Content with another digest than the one that was asked for.
    #[error(
        "{what} has the digest sha256:{received}, and not sha256:{expected}: the registry or something before it changed it"
    )]
    WrongDigest {
        /// What was asked for.
        what: String,
        /// The digest that it must have.
        expected: Digest,
        /// The digest of what arrived.
        received: Digest,
    },
    /// Content that is larger than it may be.
    #[error("{what} has {size}, and at most {limit} bytes are accepted")]
    TooLarge {
        /// What was asked for.
        what: String,
        /// Its size, or a lower bound of it.
        size: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// Content with a size that its manifest does not state.
    #[error("{what} has not the {declared} bytes that its manifest states")]
    WrongSize {
        /// What was asked for.
        what: String,
        /// The size in the manifest, in bytes.
        declared: u64,
    },
    /// The connection ended too often before the content was complete.
    #[error(
        "the download of {what} was interrupted {attempts} times; {received} of its bytes had arrived: {reason}"
    )]
    Interrupted {
        /// What was asked for.
        what: String,
        /// The number of attempts.
        attempts: u32,
        /// The bytes that had arrived.
        received: u64,
        /// The last error.
        reason: String,
    },
    /// Something that is not a plugin, or not one that can be chosen without a person.
    #[error("{what} {why}")]
    NotAPlugin {
        /// What was asked for.
        what: String,
        /// What it is.
        why: String,
    },
    /// An answer that does not follow the specification.
    #[error("{host} gave an invalid answer: {why}")]
    InvalidAnswer {
        /// The host that answered.
        host: String,
        /// The reason.
        why: String,
    },
    /// Credentials that cannot be read.
    #[error("{0}")]
    Credentials(String),
    /// Settings of the connection that cannot be used.
    #[error("{0}")]
    Settings(String),
}

/// Returns an error of the client, with its details for operators.
fn sentence(reason: &SendError) -> String {
    let text = match reason {
        SendError::AddressesRefused(_) => {
            "its address is in a private network, which only a host that you name can be".to_owned()
        }
        SendError::LimitExceeded(_) => "it sent more than was asked for".to_owned(),
        SendError::Deadline => "the transfer took too long".to_owned(),
        other => other.to_string(),
    };
    match reason.details() {
        Some(details) if !matches!(reason, SendError::AddressesRefused(_)) => {
            format!("{} ({details})", text.trim_end_matches('.'))
        }
        _ => text.trim_end_matches('.').to_owned(),
    }
}

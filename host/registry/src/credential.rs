//! Credentials for a registry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Name with which a credential helper marks a token instead of a password.
const TOKEN_USER: &str = "<token>";

/// Credentials for one registry. They have no `Debug`, so that no message can show them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum RegistryCredential {
    /// A name and a password, or a name and an access token.
    Password {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// A token that is exchanged for other tokens.
    Refresh(String),
    /// A token for the requests themselves.
    Access(String),
}

impl RegistryCredential {
    /// Creates the credentials of a name and a secret, as credential helpers return them.
    pub(crate) fn new(username: String, secret: String) -> Self {
        if username == TOKEN_USER {
            return Self::Refresh(secret);
        }
        Self::Password {
            username,
            password: secret,
        }
    }

    /// Parses `name:password` in Base64.
    pub(crate) fn from_basic(text: &str) -> Option<Self> {
        let decoded = String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()?;
        let (username, password) = decoded.split_once(':')?;
        // Docker pads the password with zeros.
        Some(Self::new(
            username.to_owned(),
            password.trim_end_matches('\0').to_owned(),
        ))
    }

    /// Returns the value of the header `Authorization` for a name and a password.
    pub(crate) fn basic(username: &str, password: &str) -> String {
        format!(
            "Basic {}",
            STANDARD.encode(format!("{username}:{password}"))
        )
    }
}

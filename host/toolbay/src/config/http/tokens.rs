//! `[[http.tokens]]`: bearer tokens.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_mcp::{CallerRights, NamePattern, http};
use toolbay_model::{ArgumentCheck, CallerPreferences, SchemaForm};

/// A bearer token, stored as a hash (`[[http.tokens]]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Name of the token's owner, for the log. Unique and not empty.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// SHA-256 of the token: 64 hexadecimal digits.
    #[serde(deserialize_with = "sha256")]
    pub sha256: [u8; 32],
    /// The tools that the token may list and call. `None` means all.
    pub tools: Option<Vec<NamePattern>>,
    /// If set, the owner is an operator, who may access data of all callers (`/metrics`). Default:
    /// false.
    #[serde(default)]
    pub admin: bool,
    /// The check of arguments in calls with this token, see
    /// [`ServerConfig::arguments`](crate::config::ServerConfig::arguments). `None`: the server's setting.
    #[serde(default)]
    pub arguments: Option<ArgumentCheck>,
    /// The form of schemas in responses to this token, see
    /// [`ServerConfig::schemas`](crate::config::ServerConfig::schemas). `None`: the server's setting.
    #[serde(default)]
    pub schemas: Option<SchemaForm>,
}

impl Token {
    /// Returns the token as the HTTP server checks it.
    pub(super) fn options(&self) -> http::BearerToken {
        let rights = self
            .tools
            .clone()
            .map_or(CallerRights::All, CallerRights::Only);
        let preferences = CallerPreferences {
            arguments: self.arguments,
            schemas: self.schemas,
        };
        http::BearerToken {
            name: self.name.clone(),
            sha256: self.sha256,
            rights,
            admin: self.admin,
            preferences,
        }
    }
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() {
        Err(D::Error::custom("the name is empty"))
    } else {
        Ok(name)
    }
}

fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut bytes = [0; 32];
    let wrong = |_| {
        D::Error::custom(
            "expected 64 hexadecimal digits; `toolbay token NAME` generates a token and its hash",
        )
    };
    hex::decode_to_slice(text, &mut bytes).map_err(wrong)?;
    Ok(bytes)
}

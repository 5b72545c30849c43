//! `[approve]`: how operators learn that a call waits for their approval.

use std::fmt;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_secrets::SecretSource;
use url::{Host, Url};

/// Maximum number of words of a command.
const MAX_COMMAND_WORDS: usize = 100;

/// How operators learn that a call waits for their approval (`[approve]`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApproveConfig {
    /// Receiver of a notification for each call that an operator can answer. `None` (the default):
    /// nothing is sent.
    pub notify: Option<NotifyTarget>,
}

/// Receiver of notifications about waiting calls: a program, or a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyTarget {
    /// The program and its arguments. It runs without a shell and reads a JSON object from its
    /// standard input.
    #[serde(deserialize_with = "command")]
    Command(Vec<String>),
    /// The URL to which a JSON object is sent with `POST`.
    Webhook(WebhookUrl),
}

/// The URL of a webhook: `https`, or `http` on this machine. `Debug` shows only its host, because
/// the path of such a URL is often a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(pub(crate) Url);

impl ApproveConfig {
    /// Returns the files that determine the behavior of the program that is notified, like those of
    /// a program that prints a secret: the program and the scripts among its arguments. Blocks.
    pub(crate) fn program_files(&self) -> Vec<PathBuf> {
        let Some(NotifyTarget::Command(words)) = &self.notify else {
            return Vec::new();
        };
        // It runs in the current folder of the server.
        let folder = std::env::current_dir().unwrap_or_default();
        SecretSource::Command(words.clone()).program_files(&folder)
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({})", self.0.host_str().unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for WebhookUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Messages never repeat the text, which may be a secret.
        let url = Url::parse(&text).map_err(|_| {
            D::Error::custom(
                "this is not a URL; expected one such as \"https://chat.example.com/hooks/toolbay\"",
            )
        })?;
        let is_local = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err(D::Error::custom(
                "expected a URL that begins with https://, or with http:// and an address of this machine",
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(D::Error::custom(
                "expected a URL without a user and a password",
            ));
        }
        Ok(Self(url))
    }
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.first().is_none_or(String::is_empty) || words.len() > MAX_COMMAND_WORDS {
        return Err(D::Error::custom(format_args!(
            "expected a program and its arguments, 1 to {MAX_COMMAND_WORDS} strings"
        )));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ApproveConfig, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_notification_goes_to_one_program_or_one_server() {
        assert_eq!(parse("").unwrap(), ApproveConfig::default());
        assert!(parse("notify = { command = [\"notify-send\", \"a call waits\"] }").is_ok());
        for url in [
            "https://chat.example.com/hooks/x?key=1",
            "http://127.0.0.1:8080/x",
            "http://[::1]/x",
            "http://localhost:1/",
        ] {
            assert!(
                parse(&format!("notify = {{ webhook = {url:?} }}")).is_ok(),
                "{url}"
            );
        }
        for wrong in [
            "notify = \"echo\"",
            "notify = {}",
            "notify = { command = [] }",
            "notify = { command = [\"\"] }",
            "notify = { command = \"echo a\" }",
            "notify = { commands = [\"echo\"] }",
            "notify = { command = [\"echo\"], webhook = \"https://a.example\" }",
            "notify = { webhook = \"http://a.example/\" }",
            "notify = { webhook = \"http://127.0.0.1.a.example/\" }",
            "notify = { webhook = \"ftp://127.0.0.1/\" }",
            "notify = { webhook = \"https://user:word@a.example/\" }",
            "notify = { webhook = \"a.example\" }",
            "notifi = { command = [\"echo\"] }",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn neither_a_message_nor_debug_output_contains_the_path_of_a_webhook() {
        let why = parse("notify = { webhook = \"http://a.example/s3cret\" }").unwrap_err();
        let message = why.lines().last().unwrap();
        assert!(!message.contains("s3cret"), "{message}");
        let config = parse("notify = { webhook = \"https://a.example/s3cret\" }").unwrap();
        assert_eq!(
            format!("{config:?}"),
            "ApproveConfig { notify: Some(Webhook(WebhookUrl(a.example))) }"
        );
    }
}

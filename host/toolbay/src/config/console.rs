//! `[console]`: the pages for operators.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use toolbay_model::setting::time;

use super::error::ConfigError;
use super::http::Http;

/// Maximum duration of a session.
const MAX_SESSION: Duration = Duration::from_hours(24 * 30);

/// The pages for operators (`[console]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsoleConfig {
    /// If set, the console is served at `/console`, provided that [`Http::listen`] is set. `None`:
    /// it is served on a loopback address if an operator can open it.
    #[serde(deserialize_with = "some")]
    pub enabled: Option<bool>,
    /// If set, the console retains truncated arguments and results of calls, without secrets.
    /// Default: false.
    pub contents: bool,
    /// If set, a server over stdio has a socket for `toolbay console`, unless `enabled` is false.
    /// Default: true.
    pub stdio: bool,
    /// Maximum duration of a session, after which the operator must open the console again, at most
    /// 30 days. Default: 8 h.
    #[serde(deserialize_with = "session")]
    pub session: Duration,
}

/// The operators who can open the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleOpener {
    /// Anyone who can read the log.
    LogReader,
    /// Anyone with an operator's token.
    Admin,
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self {
            enabled: None,
            contents: false,
            stdio: true,
            session: Duration::from_hours(8),
        }
    }
}

impl ConsoleConfig {
    /// Returns who can open the console of a server with these settings. `None` if there is no
    /// console.
    pub(crate) fn opener(&self, http: &Http) -> Option<ConsoleOpener> {
        let address = http.listen.as_ref()?;
        let local = address.is_local();
        // A browser cannot connect to a Unix socket directly.
        if !self
            .enabled
            .unwrap_or(local && address.socket_path().is_none())
        {
            return None;
        }
        if http.needs_token() {
            return http
                .tokens
                .iter()
                .any(|token| token.admin)
                .then_some(ConsoleOpener::Admin);
        }
        // On other addresses, callers without a token are unidentified.
        local.then_some(ConsoleOpener::LogReader)
    }

    /// Returns the reason why a server over HTTP with these settings has no console. `None` if it has
    /// one, or does not serve HTTP.
    pub(crate) fn absence_reason(&self, http: &Http) -> Option<&'static str> {
        let address = http.listen.as_ref()?;
        if self.opener(http).is_some() {
            return None;
        }
        let has_admin = http.tokens.iter().any(|token| token.admin);
        Some(if self.enabled == Some(false) {
            "console.enabled = false"
        } else if http.needs_token() && !has_admin {
            "only a token of http.tokens with admin = true opens it, and there is none"
        } else if address.socket_path().is_some() {
            "a browser cannot connect to a Unix socket; for a proxy before it, set console.enabled = true"
        } else if has_admin {
            "the address is not a loopback address; to serve it there, set console.enabled = true"
        } else {
            "the address is not a loopback address; to serve it there, set console.enabled = true, and add a token with \
             admin = true to http.tokens"
        })
    }

    /// Returns whether a server with these settings has a socket for `toolbay console`.
    pub(crate) fn has_stdio_socket(&self, http: &Http) -> bool {
        http.listen.is_none() && self.stdio && self.enabled != Some(false)
    }

    /// Returns whether a server with these settings can have a console.
    pub(crate) fn is_possible(&self, http: &Http) -> bool {
        self.opener(http).is_some() || self.has_stdio_socket(http)
    }

    /// Checks that an operator can open the console if it is enabled.
    ///
    /// # Errors
    ///
    /// The console is enabled, but no operator could open it.
    pub(super) fn check(&self, http: &Http) -> Result<(), ConfigError> {
        if self.enabled != Some(true) || http.listen.is_none() || self.opener(http).is_some() {
            return Ok(());
        }
        Err(ConfigError(
            "console.enabled = true needs a caller who can open the console: add a token with \
             admin = true to http.tokens"
                .to_owned(),
        ))
    }
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    bool::deserialize(deserializer).map(Some)
}

fn session<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time(deserializer, MAX_SESSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opener(console: &str, http: &str) -> Result<Option<ConsoleOpener>, ConfigError> {
        let (console, http): (ConsoleConfig, Http) = (
            toml::from_str(console).unwrap(),
            toml::from_str(http).unwrap(),
        );
        console.check(&http).map(|()| console.opener(&http))
    }

    #[test]
    fn only_an_operator_opens_the_console() {
        let token = |admin| {
            format!(
                "[[tokens]]\nname = \"a\"\nsha256 = \"{}\"\nadmin = {admin}\n",
                "0".repeat(64)
            )
        };
        let local = "listen = \"127.0.0.1:1\"\n";
        let socket = "listen = \"unix:/a\"\n";
        let public = "listen = \"0.0.0.0:1\"\n";
        let with = token(true);
        let without = token(false);
        for (console, http, expected) in [
            ("", String::new(), None),
            ("enabled = true", String::new(), None),
            ("", local.to_owned(), Some(ConsoleOpener::LogReader)),
            ("enabled = false", local.to_owned(), None),
            ("", format!("{local}{with}"), Some(ConsoleOpener::Admin)),
            ("", format!("{local}{without}"), None),
            ("", format!("{public}{with}"), None),
            (
                "enabled = true",
                format!("{public}{with}"),
                Some(ConsoleOpener::Admin),
            ),
            ("", format!("{public}anonymous = true"), None),
            ("", socket.to_owned(), None),
            (
                "enabled = true",
                socket.to_owned(),
                Some(ConsoleOpener::LogReader),
            ),
            (
                "enabled = true",
                format!("{socket}{with}"),
                Some(ConsoleOpener::Admin),
            ),
        ] {
            assert_eq!(opener(console, &http), Ok(expected), "{console} {http}");
            let (settings, parsed): (ConsoleConfig, Http) = (
                toml::from_str(console).unwrap(),
                toml::from_str(&http).unwrap(),
            );
            let has_reason = settings.absence_reason(&parsed).is_some();
            let is_absent = expected.is_none() && parsed.listen.is_some();
            assert_eq!(has_reason, is_absent, "{console} {http}");
        }
        for http in [
            format!("{public}anonymous = true"),
            format!("{public}{without}"),
            format!("{local}{without}"),
        ] {
            assert!(
                opener("enabled = true", &http)
                    .unwrap_err()
                    .to_string()
                    .contains("admin = true"),
                "{http}"
            );
        }
    }

    #[test]
    fn a_server_over_standard_input_has_a_socket_unless_it_is_off() {
        for (console, http, expected) in [
            ("", "", true),
            ("enabled = true", "", true),
            ("enabled = false", "", false),
            ("stdio = false", "", false),
            ("", "listen = \"127.0.0.1:1\"", false),
        ] {
            let (console, http): (ConsoleConfig, Http) = (
                toml::from_str(console).unwrap(),
                toml::from_str(http).unwrap(),
            );
            assert_eq!(
                console.has_stdio_socket(&http),
                expected,
                "{console:?} {http:?}"
            );
        }
    }

    #[test]
    fn a_session_is_bounded_in_time() {
        assert!(toml::from_str::<ConsoleConfig>("session = \"0s\"").is_err());
        assert!(toml::from_str::<ConsoleConfig>("session = \"31days\"").is_err());
        assert_eq!(
            toml::from_str::<ConsoleConfig>("session = \"1h\"")
                .unwrap()
                .session,
            Duration::from_hours(1)
        );
    }
}

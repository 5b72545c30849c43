//! Parses the values of `[http]`.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserializer;
use serde::de::{Error as _, Unexpected, Visitor};
use toolbay_mcp::http::{ListenAddress, TrustedProxy};
use toolbay_model::setting::{SettingValue as _, size};
use url::Url;

use crate::config::bounds::{MAX_COUNT, many};
use crate::config::text_list::parse_list;

/// Minimum `http.stream_keep_alive`. More frequent comments would load the server.
const MIN_KEEP_ALIVE: Duration = Duration::from_millis(100);

pub(super) fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    many(deserializer).map(Some)
}

pub(super) fn address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ListenAddress>, D::Error> {
    let expected = "an address with a port, such as \"127.0.0.1:8931\", or a Unix socket, such as \"unix:/run/toolbay/mcp.sock\"";
    deserializer
        .deserialize_str(StringVisitor {
            expected,
            parse: |text| text.parse().ok(),
        })
        .map(Some)
}

pub(super) fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let expected = "four octal digits from \"0000\" to \"0777\", such as \"0660\"";
    let parse = |text: &str| {
        let digits = Some(text).filter(|text| text.len() == 4 && text.starts_with('0'));
        u32::from_str_radix(digits?, 8).ok()
    };
    deserializer.deserialize_str(StringVisitor { expected, parse })
}

/// A visitor that parses a string into another type.
struct StringVisitor<T> {
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for StringVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

pub(super) fn keep_alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match Duration::read(deserializer, false)? {
        interval if interval < MIN_KEEP_ALIVE => {
            let [minimum, actual] =
                [MIN_KEEP_ALIVE, interval].map(toolbay_model::text::format_duration);
            Err(D::Error::custom(format_args!(
                "expected a duration of at least {minimum}, not {actual}"
            )))
        }
        time => Ok(time),
    }
}

pub(super) fn poll_after<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    keep_alive(deserializer).map(Some)
}

pub(super) fn resume_size<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(64), ByteSize::tib(4))
}

/// Parses a list of host names.
pub(super) fn allowed_hosts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let hosts = parse_list(deserializer)?;
    // Patterns are not supported. A pattern would never match.
    match hosts
        .iter()
        .find(|host| host.is_empty() || host.contains(['/', ' ', '@', '*']))
    {
        Some(host) => Err(D::Error::custom(format_args!(
            "{host:?} is not a host name; expected one such as \"tools.example.com\""
        ))),
        None => Ok(hosts),
    }
}

/// Parses a list of proxies.
pub(super) fn trusted_proxies<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<TrustedProxy>, D::Error> {
    parse_list(deserializer)?
        .iter()
        .map(|proxy| proxy.parse().map_err(D::Error::custom))
        .collect()
}

/// Parses a number of sessions, or `false` for none.
pub(super) fn sessions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct SessionsVisitor;

    impl Visitor<'_> for SessionsVisitor {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(
                f,
                "a number from 1 to {MAX_COUNT}, or false for no sessions"
            )
        }

        fn visit_bool<E: serde::de::Error>(self, enabled: bool) -> Result<usize, E> {
            if enabled {
                Err(E::invalid_value(Unexpected::Bool(enabled), &self))
            } else {
                Ok(0)
            }
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<usize, E> {
            let sessions = usize::try_from(number)
                .ok()
                .filter(|number| (1..=MAX_COUNT).contains(number));
            sessions.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<usize, E> {
            self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<usize, E> {
            // Variables contain the number as text.
            match (text, text.parse()) {
                ("false", _) => Ok(0),
                (_, Ok(number)) => self.visit_i64(number),
                _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
            }
        }
    }

    deserializer.deserialize_any(SessionsVisitor)
}

/// Parses a list of origins. Each has any scheme, a host and an optional port.
pub(super) fn allowed_origins<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let origins = parse_list(deserializer)?;
    let is_origin = |text: &&String| {
        let url = Url::parse(text).ok().filter(Url::has_host);
        // The path of a non-web origin, such as an extension's, is empty.
        url.is_some_and(|url| {
            matches!(url.path(), "/" | "") && url.query().is_none() && url.username().is_empty()
        }) && !text.ends_with('/')
            && !text.contains(['*', '#', '@'])
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        Some(origin) => Err(D::Error::custom(format_args!(
            "{origin:?} is not an origin; expected one such as \"https://app.example.com\""
        ))),
        None => Ok(origins),
    }
}

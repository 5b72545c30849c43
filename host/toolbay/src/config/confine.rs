//! `server.confine`: whether the server drops privileges that it does not need.

use std::fmt;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// The confinement of `toolbay serve` (`server.confine`): it drops privileges that it does not need
/// after it has read its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confine {
    /// No confinement.
    Off,
    /// Confinement as far as the kernel supports it.
    #[default]
    Possible,
    /// Full confinement. The server does not start if the kernel does not support it.
    Required,
}

/// Writes the value as in the configuration.
impl fmt::Display for Confine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "false",
            Self::Possible => "true",
            Self::Required => "\"required\"",
        })
    }
}

impl<'de> Deserialize<'de> for Confine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConfineVisitor)
    }
}

struct ConfineVisitor;

impl Visitor<'_> for ConfineVisitor {
    type Value = Confine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or \"required\"")
    }

    fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<Confine, E> {
        Ok(if on { Confine::Possible } else { Confine::Off })
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Confine, E> {
        if text == "required" {
            Ok(Confine::Required)
        } else {
            Err(E::invalid_value(Unexpected::Str(text), &self))
        }
    }
}

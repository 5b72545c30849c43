//! `server.confine`: whether the server gives up what it does not need.

use std::fmt;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Whether `toolbay serve` gives up what it does not need, once it has read its configuration (`server.confine`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confine {
    /// No.
    Off,
    /// As far as the kernel can.
    #[default]
    Possible,
    /// Completely; where the kernel cannot, the server does not start.
    Required,
}

impl<'de> Deserialize<'de> for Confine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Said)
    }
}

struct Said;

impl Visitor<'_> for Said {
    type Value = Confine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or \"required\"")
    }

    fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<Confine, E> {
        Ok(if on { Confine::Possible } else { Confine::Off })
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Confine, E> {
        if text == "required" { Ok(Confine::Required) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }
}

//! The values that people write: numbers, times and sizes, with words for what is none of them.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// The longest time that may pass, where the key says nothing else. Later moments may not be countable.
const DAY: Duration = Duration::from_hours(24);

/// A value that a key can have. `Option` is for keys that may be absent.
pub(crate) trait Setting: Sized {
    /// Reads it; 0 only `if zero`.
    fn read<'de, D: Deserializer<'de>>(deserializer: D, zero: bool) -> Result<Self, D::Error>;
}

/// For keys where 0 means something: it allows none.
pub(crate) fn any<'de, T: Setting, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(deserializer, true)
}

/// For keys where 0 would leave nothing that works.
pub(crate) fn positive<'de, T: Setting, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(deserializer, false)
}

/// A number in these bounds, both included.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D, least: usize, most: usize) -> Result<usize, D::Error> {
    let count = usize::read(deserializer, least == 0)?;
    if (least..=most).contains(&count) {
        return Ok(count);
    }
    Err(D::Error::custom(format_args!("expected at most {most}, not {count}")))
}

/// A duration above 0 and of at most `most`.
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D, most: Duration) -> Result<Duration, D::Error> {
    deserializer.deserialize_str(Time { zero: false, most })
}

/// A size in these bounds, both included.
pub(crate) fn size<'de, D: Deserializer<'de>>(
    deserializer: D,
    least: ByteSize,
    most: ByteSize,
) -> Result<ByteSize, D::Error> {
    let size = ByteSize::read(deserializer, true)?;
    if (least..=most).contains(&size) {
        return Ok(size);
    }
    let [size, least, most] = [size, least, most].map(|size| size.display().iec());
    Err(D::Error::custom(format_args!("expected a size from {least} to {most}, not {size}")))
}

impl<T: Setting> Setting for Option<T> {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, zero: bool) -> Result<Self, D::Error> {
        T::read(deserializer, zero).map(Some)
    }
}

impl Setting for u64 {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, zero: bool) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Number { zero, fits: PhantomData })
    }
}

impl Setting for u32 {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, zero: bool) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Number { zero, fits: PhantomData })
    }
}

impl Setting for usize {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, zero: bool) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Number { zero, fits: PhantomData })
    }
}

impl Setting for ByteSize {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, zero: bool) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Size { zero })
    }
}

impl Setting for Duration {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, zero: bool) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Time { zero, most: DAY })
    }
}

struct Number<T> {
    zero: bool,
    fits: PhantomData<T>,
}

impl<T: TryFrom<u64>> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.zero { "a whole number" } else { "a whole number of at least 1" })
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<T, E> {
        let wrong = E::invalid_value(Unexpected::Unsigned(n), &self);
        if n == 0 && !self.zero { Err(wrong) } else { T::try_from(n).map_err(|_| wrong) }
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<T, E> {
        match u64::try_from(n) {
            Ok(n) => self.visit_u64(n),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(n), &self)),
        }
    }
}

struct Size {
    zero: bool,
}

impl Visitor<'_> for Size {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.zero { "a size such as \"64MiB\"" } else { "a size above 0 such as \"64MiB\"" })
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<ByteSize, E> {
        if bytes == 0 && !self.zero {
            return Err(E::invalid_value(Unexpected::Unsigned(bytes), &self));
        }
        Ok(ByteSize::b(bytes))
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<ByteSize, E> {
        match u64::try_from(bytes) {
            Ok(bytes) => self.visit_u64(bytes),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(bytes), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
        match text.parse::<ByteSize>() {
            Ok(size) if size.as_u64() > 0 || self.zero => Ok(size),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

struct Time {
    zero: bool,
    most: Duration,
}

impl Visitor<'_> for Time {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.zero { "a duration such as \"30s\"" } else { "a duration above 0 such as \"30s\"" })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        match humantime::parse_duration(text) {
            Ok(time) if time > self.most => {
                let most = humantime::format_duration(self.most);
                Err(E::custom(format_args!("expected a duration of at most {most}, not {text:?}")))
            }
            Ok(time) if !time.is_zero() || self.zero => Ok(time),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use crate::toml_file::parse;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Keys {
        #[serde(deserialize_with = "super::positive")]
        count: u32,
        #[serde(default, deserialize_with = "super::positive")]
        size: Option<bytesize::ByteSize>,
        #[serde(default, deserialize_with = "super::positive")]
        time: Option<std::time::Duration>,
        #[serde(default, deserialize_with = "super::any")]
        may_be_none: Option<bytesize::ByteSize>,
    }

    #[test]
    fn what_is_right_is_read() {
        for text in ["", "size = 1", "size = \"1KiB\"", "time = \"1ms\"", "may_be_none = 0", "may_be_none = \"0\""] {
            parse::<Keys>("a.toml", &format!("count = 1\n{text}")).unwrap();
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_words() {
        let values = ["0", "-1", "5_000_000_000", "1.5", "\"a lot\"", "true", "[1]", "{ a = 1 }"];
        let mut said = String::new();
        for value in values {
            said += &parse::<Keys>("a.toml", &format!("count = {value}")).unwrap_err();
            said.push('\n');
        }
        for (key, value) in [("size", "0"), ("size", "-1"), ("size", "\"0B\""), ("size", "\"lots\""), ("size", "true")]
        {
            said += &parse::<Keys>("a.toml", &format!("count = 1\n{key} = {value}")).unwrap_err();
            said.push('\n');
        }
        for value in ["\"0s\"", "\"soon\"", "30"] {
            said += &parse::<Keys>("a.toml", &format!("count = 1\ntime = {value}")).unwrap_err();
            said.push('\n');
        }
        insta::assert_snapshot!(said, @r#"
        a.toml:1:9: count: expected a whole number of at least 1, not 0
        a.toml:1:9: count: expected a whole number of at least 1, not -1
        a.toml:1:9: count: expected a whole number of at least 1, not 5000000000
        a.toml:1:9: count: expected a whole number of at least 1, not 1.5
        a.toml:1:9: count: expected a whole number of at least 1, not "a lot"
        a.toml:1:9: count: expected a whole number of at least 1, not true
        a.toml:1:9: count: expected a whole number of at least 1, not a list
        a.toml:1:9: count: expected a whole number of at least 1, not a table
        a.toml:2:8: size: expected a size above 0 such as "64MiB", not 0
        a.toml:2:8: size: expected a size above 0 such as "64MiB", not -1
        a.toml:2:8: size: expected a size above 0 such as "64MiB", not "0B"
        a.toml:2:8: size: expected a size above 0 such as "64MiB", not "lots"
        a.toml:2:8: size: expected a size above 0 such as "64MiB", not true
        a.toml:2:8: time: expected a duration above 0 such as "30s", not "0s"
        a.toml:2:8: time: expected a duration above 0 such as "30s", not "soon"
        a.toml:2:8: time: expected a duration above 0 such as "30s", not 30
        "#);
    }
}

//! Deserialization of values in configuration files: numbers, durations and sizes, with helpful
//! messages for invalid values.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// Maximum duration, unless the key has its own maximum. Later points in time may not be
/// representable.
const DEFAULT_MAX_DURATION: Duration = Duration::from_hours(24);

/// A value of a configuration key. The implementation for `Option` is for optional keys.
pub trait SettingValue: Sized {
    /// Deserializes the value. 0 is an error unless `allows_zero` is true.
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        allows_zero: bool,
    ) -> Result<Self, D::Error>;
}

/// Deserializes the value of a key for which 0 is valid and means "none".
pub fn any<'de, T: SettingValue, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(deserializer, true)
}

/// Deserializes the value of a key that must be above 0.
pub fn positive<'de, T: SettingValue, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::read(deserializer, false)
}

/// Deserializes a number from `min` to `max`, inclusive.
pub fn count<'de, D: Deserializer<'de>>(
    deserializer: D,
    min: usize,
    max: usize,
) -> Result<usize, D::Error> {
    let count = usize::read(deserializer, min == 0)?;
    if (min..=max).contains(&count) {
        return Ok(count);
    }
    Err(D::Error::custom(format_args!(
        "expected at most {max}, not {count}"
    )))
}

/// Deserializes a duration above 0 and at most `max`.
pub fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
    max: Duration,
) -> Result<Duration, D::Error> {
    deserializer.deserialize_str(DurationVisitor {
        allows_zero: false,
        max,
    })
}

/// Deserializes a size from `min` to `max`, inclusive.
pub fn size<'de, D: Deserializer<'de>>(
    deserializer: D,
    min: ByteSize,
    max: ByteSize,
) -> Result<ByteSize, D::Error> {
    let size = ByteSize::read(deserializer, true)?;
    if (min..=max).contains(&size) {
        return Ok(size);
    }
    let [size_text, min_text, max_text] = [size, min, max].map(|size| size.display().iec());
    Err(D::Error::custom(format_args!(
        "expected a size from {min_text} to {max_text}, not {size_text}"
    )))
}

impl<T: SettingValue> SettingValue for Option<T> {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        allows_zero: bool,
    ) -> Result<Self, D::Error> {
        T::read(deserializer, allows_zero).map(Some)
    }
}

impl SettingValue for u64 {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        allows_zero: bool,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(IntegerVisitor {
            allows_zero,
            target: PhantomData,
        })
    }
}

impl SettingValue for u32 {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        allows_zero: bool,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(IntegerVisitor {
            allows_zero,
            target: PhantomData,
        })
    }
}

impl SettingValue for usize {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        allows_zero: bool,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(IntegerVisitor {
            allows_zero,
            target: PhantomData,
        })
    }
}

impl SettingValue for ByteSize {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        allows_zero: bool,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByteSizeVisitor { allows_zero })
    }
}

impl SettingValue for Duration {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        allows_zero: bool,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DurationVisitor {
            allows_zero,
            max: DEFAULT_MAX_DURATION,
        })
    }
}

struct IntegerVisitor<T> {
    allows_zero: bool,
    target: PhantomData<T>,
}

impl<T: TryFrom<u64>> Visitor<'_> for IntegerVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allows_zero {
            "an integer of at least 0"
        } else {
            "an integer of at least 1"
        })
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<T, E> {
        let invalid_value = E::invalid_value(Unexpected::Unsigned(n), &self);
        if n == 0 && !self.allows_zero {
            Err(invalid_value)
        } else {
            T::try_from(n).map_err(|_| invalid_value)
        }
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<T, E> {
        match u64::try_from(n) {
            Ok(n) => self.visit_u64(n),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(n), &self)),
        }
    }
}

struct ByteSizeVisitor {
    allows_zero: bool,
}

impl Visitor<'_> for ByteSizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allows_zero {
            "a size, such as \"64MiB\""
        } else {
            "a size above 0, such as \"64MiB\""
        })
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<ByteSize, E> {
        if bytes == 0 && !self.allows_zero {
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
            Ok(size) if size.as_u64() > 0 || self.allows_zero => Ok(size),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

struct DurationVisitor {
    allows_zero: bool,
    max: Duration,
}

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allows_zero {
            "a duration, such as \"30s\""
        } else {
            "a duration above 0, such as \"30s\""
        })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        match humantime::parse_duration(text) {
            Ok(time) if time > self.max => {
                let max = crate::text::format_duration(self.max);
                Err(E::custom(format_args!(
                    "expected a duration of at most {max}, not {text:?}"
                )))
            }
            Ok(time) if !time.is_zero() || self.allows_zero => Ok(time),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

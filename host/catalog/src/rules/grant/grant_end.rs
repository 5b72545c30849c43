//! The key `until`: the time at which a grant ends.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::value::{Datetime, Offset};
use toolbay_model::GrantEnd;

/// The expected form of the value.
const EXPECTED: &str = "expected a date, which begins in UTC, or a date and time with a zone, such as 2027-01-01 or \
                        2027-01-01T08:00:00+01:00, without quotation marks";

/// Parses the end of a grant.
pub(super) fn grant_end<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<GrantEnd>, D::Error> {
    let value = toml::Value::deserialize(deserializer)?;
    let toml::Value::Datetime(Datetime { date, time, offset }) = value else {
        return Err(D::Error::custom(EXPECTED));
    };
    let date = date.ok_or_else(|| D::Error::custom(EXPECTED))?;
    let date = (date.year, date.month, date.day);
    let end = match (time, offset) {
        (None, _) => GrantEnd::from_civil(date, (0, 0, 0), 0),
        (Some(_), None) => return Err(D::Error::custom(EXPECTED)),
        (Some(time), Some(offset)) => {
            let minutes = match offset {
                Offset::Z => 0,
                Offset::Custom { minutes } => minutes,
            };
            let second = time.second.unwrap_or_default();
            GrantEnd::from_civil(date, (time.hour, time.minute, second), minutes)
        }
    };
    Ok(Some(end))
}

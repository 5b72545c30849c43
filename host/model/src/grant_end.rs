//! The time at which a grant ends.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};

/// Seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// The time at which a grant ends, in whole seconds. From then on, no call of its plugin begins.
/// Earlier ends are less than later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrantEnd {
    unix_seconds: u64,
}

impl GrantEnd {
    /// Creates the end at this Unix time.
    pub const fn from_unix_seconds(unix_seconds: u64) -> Self {
        Self { unix_seconds }
    }

    /// Creates the end from a date of the Gregorian calendar, the time of day and the offset from
    /// UTC, in minutes. A time before 1970 counts as 1970: the grant has ended.
    pub fn from_civil(
        (year, month, day): (u16, u8, u8),
        (hour, minute, second): (u8, u8, u8),
        offset_minutes: i16,
    ) -> Self {
        // Days from civil, by Howard Hinnant: years begin in March.
        let years = i64::from(year) - i64::from(month <= 2);
        let era = years.div_euclid(400);
        let year_of_era = years.rem_euclid(400);
        let shifted_month = (i64::from(month) + 9) % 12;
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        let time = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
        let seconds = days * 86_400 + time - i64::from(offset_minutes) * 60;
        Self::from_unix_seconds(u64::try_from(seconds).unwrap_or_default())
    }

    /// Returns whether the grant has ended at this time.
    pub fn is_over(self, now: SystemTime) -> bool {
        now.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            >= Duration::from_secs(self.unix_seconds)
    }
}

/// Formats the time as in RFC 3339, in UTC.
impl fmt::Display for GrantEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.unix_seconds / DAY_SECONDS + 719_468;
        let seconds = self.unix_seconds % DAY_SECONDS;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

impl Serialize for GrantEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_seconds_and_back() {
        let midnight = (0, 0, 0);
        for (date, time, offset, text) in [
            ((1970, 1, 1), midnight, 0, "1970-01-01T00:00:00Z"),
            ((2027, 1, 1), midnight, 0, "2027-01-01T00:00:00Z"),
            ((2028, 2, 29), (23, 59, 59), 0, "2028-02-29T23:59:59Z"),
            ((2100, 3, 1), midnight, 0, "2100-03-01T00:00:00Z"),
            ((2027, 1, 1), midnight, 60, "2026-12-31T23:00:00Z"),
            ((2026, 12, 31), (20, 30, 0), -330, "2027-01-01T02:00:00Z"),
            ((9999, 12, 31), (23, 59, 59), 0, "9999-12-31T23:59:59Z"),
            ((1969, 12, 31), midnight, 0, "1970-01-01T00:00:00Z"),
        ] {
            let end = GrantEnd::from_civil(date, time, offset);
            assert_eq!(end.to_string(), text);
        }
        assert_eq!(
            GrantEnd::from_civil((2026, 11, 28), (12, 0, 0), 0),
            GrantEnd::from_unix_seconds(1_795_867_200)
        );
    }

    #[test]
    fn a_grant_is_over_from_its_end_on() {
        let end = GrantEnd::from_unix_seconds(100);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(!end.is_over(at(99)) && end.is_over(at(100)) && end.is_over(at(101)));
        assert!(end < GrantEnd::from_unix_seconds(101));
    }
}

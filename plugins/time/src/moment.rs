//! Points in time: parsing and formatting.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::Serialize;
use toolbay_plugin::{Error, JsonSchema, Result, schemars};

/// A moment, as a clock and a calendar in one zone show it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Moment {
    /// The date, the time and the offset, such as `2026-03-01T14:30:00+01:00`.
    time: String,
    /// The time zone.
    zone: String,
    /// What the zone is called at that time, such as `CET`.
    abbreviation: String,
    /// How far the zone is from UTC at that time, such as `+01:00`.
    offset: String,
    /// Whether daylight saving time is in force.
    daylight_saving: bool,
    /// The day of the week.
    weekday: String,
    /// Seconds since 1970-01-01 in UTC.
    #[schemars(range(min = -377_705_116_800_i64, max = 253_402_207_200_i64))]
    unix: i64,
}

impl Moment {
    pub(crate) fn of(moment: &Zoned) -> Self {
        let info = moment.time_zone().to_offset_info(moment.timestamp());
        Self {
            time: moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            zone: moment.time_zone().iana_name().unwrap_or("fixed").to_owned(),
            abbreviation: info.abbreviation().to_owned(),
            offset: moment.strftime("%:z").to_string(),
            daylight_saving: info.dst().is_dst(),
            weekday: moment.strftime("%A").to_string(),
            unix: moment.timestamp().as_second(),
        }
    }
}

/// Parses the argument called `argument`. A zone or offset in the text takes precedence over
/// `zone`.
pub(crate) fn read(argument: &str, text: &str, zone: &TimeZone) -> Result<Zoned> {
    let text = text.trim();
    // From the most to the least specific format.
    if let Ok(moment) = text.parse::<Zoned>() {
        return Ok(moment);
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment.to_zoned(zone.clone()));
    }
    text.parse::<DateTime>()
        .and_then(|moment| moment.to_zoned(zone.clone()))
        .map_err(|error| {
            Error::invalid_arguments(format_args!(
                "`{argument}` is a date and time such as `2026-03-01 14:30`: {error}"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(text: &str) -> i64 {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        read("time", text, &zone).unwrap().timestamp().as_second()
    }

    #[test]
    fn every_form_is_read() {
        let noon = 1_767_265_200;
        assert_eq!(unix("2026-01-01 12:00"), noon);
        assert_eq!(unix(" 2026-01-01T12:00:00 "), noon);
        assert_eq!(unix("2026-01-01T11:00:00Z"), noon);
        assert_eq!(unix("2026-01-01T06:00[America/New_York]"), noon);
        assert_eq!(unix("2026-01-01"), noon - 12 * 3600);
    }

    #[test]
    fn a_mistake_names_the_argument() {
        let error = read("start", "tomorrow", &TimeZone::UTC).unwrap_err();
        assert!(error.is_invalid_arguments());
        assert!(
            error.message().starts_with("`start` is a date and time"),
            "{error}"
        );
    }
}

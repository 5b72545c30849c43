//! Tools for time and time zones.

mod moment;
mod zone;

use jiff::{SpanRound, Timestamp, Unit};
use moment::Moment;
use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    /// The IANA time zone, such as `Europe/Berlin` or `UTC`.
    #[serde(default = "zone::utc")]
    zone: String,
}

/// Returns the current time in a time zone.
#[tool(title = "Time now", read_only, open_world = false)]
fn time_now(args: Place) -> Result<Json<Moment>> {
    let zone = zone::named(&args.zone)?;
    Ok(Json(Moment::of(&Timestamp::now().to_zoned(zone))))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Conversion {
    /// The date and time, such as `2026-03-01 14:30` or `2026-03-01T14:30:00Z`. An offset or a zone
    /// in it takes precedence over `from`.
    time: String,
    /// The IANA time zone of the date and time.
    #[serde(default = "zone::utc")]
    from: String,
    /// The IANA time zone to convert it to, such as `Asia/Tokyo`.
    to: String,
}

#[derive(Serialize, JsonSchema)]
struct Converted {
    /// The given time.
    from: Moment,
    /// The same moment in the other zone.
    to: Moment,
}

/// Converts a date and time from one time zone to another, with the daylight saving rules of that
/// day.
#[tool(title = "Convert time", read_only, idempotent, open_world = false)]
fn convert_time(args: Conversion) -> Result<Json<Converted>> {
    let from = moment::read("time", &args.time, &zone::named(&args.from)?)?;
    let to = from.with_time_zone(zone::named(&args.to)?);
    Ok(Json(Converted {
        from: Moment::of(&from),
        to: Moment::of(&to),
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Interval {
    /// The first date and time, such as `2026-03-01 14:30`, or a date alone.
    start: String,
    /// The second date and time. If it is before the first, the difference is negative.
    end: String,
    /// The IANA time zone of both, unless they contain one.
    #[serde(default = "zone::utc")]
    zone: String,
}

#[derive(Serialize, JsonSchema)]
struct Difference {
    /// The difference in seconds.
    seconds: f64,
    /// The same as an ISO 8601 duration of years, months, days and so on, such
    /// as `P1Y2M3DT4H`.
    iso: String,
    /// The same in words, such as `1y 2mo 3d 4h`.
    text: String,
}

/// Computes the time between two dates and times.
#[tool(title = "Time difference", read_only, idempotent, open_world = false)]
fn time_difference(args: Interval) -> Result<Json<Difference>> {
    let zone = zone::named(&args.zone)?;
    let start = moment::read("start", &args.start, &zone)?;
    // Both in one zone, because the length of a day depends on the rules of a zone.
    let end = moment::read("end", &args.end, &zone)?.with_time_zone(start.time_zone().clone());
    let span = start.until((Unit::Year, &end))?;
    // Neither text contains anything below a millisecond.
    let span = span.round(
        SpanRound::new()
            .smallest(Unit::Millisecond)
            .largest(Unit::Year)
            .relative(&start),
    )?;
    Ok(Json(Difference {
        seconds: end
            .timestamp()
            .duration_since(start.timestamp())
            .as_secs_f64(),
        iso: span.to_string(),
        text: format!("{span:#}"),
    }))
}

export!(time_now, convert_time, time_difference);

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_plugin::{
        serde_json::{Value, json},
        test,
    };

    fn call<T: toolbay_plugin::Tool>(arguments: Value) -> Result<Value> {
        test::call::<T>(arguments, &Context::test()).map(|output| output.json().unwrap())
    }

    #[test]
    fn now_is_now() {
        let before = Timestamp::now().as_second();
        let now = call::<time_now>(json!({"zone": "Asia/Tokyo"})).unwrap();
        let after = Timestamp::now().as_second();
        assert!((before..=after).contains(&now["unix"].as_i64().unwrap()));
        assert_eq!(now["offset"], "+09:00");
        assert_eq!(call::<time_now>(json!({})).unwrap()["zone"], "UTC");
    }

    #[test]
    fn summer_and_winter_differ() {
        let convert = |time| {
            call::<convert_time>(json!({"time": time, "from": "America/New_York", "to": "UTC"}))
                .unwrap()["to"]["time"]
                .clone()
        };
        assert_eq!(convert("2026-01-15 09:00"), "2026-01-15T14:00:00+00:00");
        assert_eq!(convert("2026-07-15 09:00"), "2026-07-15T13:00:00+00:00");
    }

    #[test]
    fn an_offset_in_the_text_wins() {
        let arguments = json!({
            "time": "2026-01-15T09:00:00+02:00", "from": "Asia/Tokyo", "to": "Europe/Paris"
        });
        let converted = call::<convert_time>(arguments).unwrap();
        assert_eq!(converted["to"]["time"], "2026-01-15T08:00:00+01:00");
        assert_eq!(converted["to"]["weekday"], "Thursday");
    }

    #[test]
    fn a_difference_counts_as_people_do() {
        let arguments = json!({"start": "2024-02-29", "end": "2026-03-01 12:00"});
        let difference = call::<time_difference>(arguments).unwrap();
        assert_eq!(difference["iso"], "P2Y1DT12H");
        assert_eq!(difference["text"], "2y 1d 12h");
        assert_eq!(difference["seconds"], 63_201_600.0);
    }

    #[test]
    fn the_day_that_the_clock_changes_is_short() {
        let arguments = json!({
            "start": "2026-03-29", "end": "2026-03-30", "zone": "Europe/Berlin"
        });
        let difference = call::<time_difference>(arguments).unwrap();
        assert_eq!(difference["text"], "1d");
        assert_eq!(difference["seconds"], 82_800.0);
    }

    #[test]
    fn backwards_is_negative() {
        let arguments = json!({"start": "2026-01-02", "end": "2026-01-01"});
        let difference = call::<time_difference>(arguments).unwrap();
        assert_eq!(difference["seconds"], -86_400.0);
        assert_eq!(difference["iso"], "-P1D");
    }
}

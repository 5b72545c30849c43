//! Formatting of values for pages.

use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use toolbay_model::text::format_thousands;

/// Formats a time as `2026-05-01T08:00:00Z`.
pub(crate) fn format_time(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

/// Formats a time as `2026-05-01T08:00:00.123Z`.
pub(crate) fn format_time_millis(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

/// Formats a time as `2026-05-01 08:00:00`.
pub(crate) fn format_date_and_time(at: SystemTime) -> String {
    format_time(at).trim_end_matches('Z').replace('T', " ")
}

/// Formats a time of day as `08:00:00`, with the date unless it is that of `now`.
pub(crate) fn format_recent_time(at: SystemTime, now: SystemTime) -> String {
    let full = format_date_and_time(at);
    let today = format_date_and_time(now);
    if full.get(..10) == today.get(..10) {
        format_time_of_day(at)
    } else {
        full
    }
}

/// Formats a time of day as `08:00:00`.
pub(crate) fn format_time_of_day(at: SystemTime) -> String {
    format_time(at).get(11..19).unwrap_or_default().to_owned()
}

/// Formats a duration in at most four characters and a unit, such as `12 ms`.
pub(crate) fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 0.000_999_5 => format!("{:.0} µs", s * 1e6),
        s if s < 0.009_995 => format!("{:.2} ms", s * 1e3),
        s if s < 0.099_95 => format!("{:.1} ms", s * 1e3),
        s if s < 0.999_5 => format!("{:.0} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1} s"),
        _ => toolbay_model::text::format_duration(Duration::from_secs(time.as_secs())),
    }
}

/// Formats a size in bytes, such as `1.5 MiB`.
pub(crate) fn format_size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Formats a large number in a few characters, such as `12.3 M`.
pub(crate) fn format_amount(number: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = number as f64;
    match number {
        0..10_000 => format_thousands(number),
        10_000..1_000_000 => format!("{:.1} k", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", value / 1e6),
        _ => format!("{:.1} G", value / 1e9),
    }
}

/// Formats a count with its noun: `1 call`, `2 calls`.
pub(crate) fn format_count(number: usize, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        format_thousands(number as u64),
        if number == 1 { "" } else { "s" }
    )
}

/// Returns the first sentence of a text, on one line.
pub(crate) fn first_sentence(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = words
        .find(". ")
        .and_then(|end| words.get(..=end))
        .unwrap_or(&words);
    toolbay_model::text::clean_line(sentence, 200)
}

/// Encodes these pairs as a query string.
pub(crate) fn encode_query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        let times = [0, 999, 1_000, 12_345, 123_456, 1_234_567, 75_000_000]
            .map(|us| format_duration(Duration::from_micros(us)));
        assert_eq!(
            times.join(", "),
            "0 µs, 999 µs, 1.00 ms, 12.3 ms, 123 ms, 1.2 s, 1m 15s"
        );
        assert_eq!(
            [0, 9_999, 12_345, 9_876_543, 12_000_000_000]
                .map(format_amount)
                .join(", "),
            "0, 9,999, 12.3 k, 9.9 M, 12.0 G"
        );
        assert_eq!(
            (format_count(1, "call"), format_count(2_000, "call")),
            ("1 call".to_owned(), "2,000 calls".to_owned())
        );
        let at = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        assert_eq!(
            (format_time(at).as_str(), format_time_of_day(at).as_str()),
            ("2027-01-15T08:00:00Z", "08:00:00")
        );
        let next_day = at + Duration::from_hours(17);
        assert_eq!(format_recent_time(at, at), "08:00:00");
        assert_eq!(format_recent_time(at, next_day), "2027-01-15 08:00:00");
        assert_eq!(format_time_millis(at), "2027-01-15T08:00:00.000Z");
        assert_eq!(
            first_sentence("Counts\nwords. And lines.\n\nMore."),
            "Counts words."
        );
        assert_eq!(
            encode_query(&[("id", "a&b=c d/..é")]),
            "id=a%26b%3Dc+d%2F..%C3%A9"
        );
    }
}

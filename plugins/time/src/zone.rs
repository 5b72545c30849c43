//! Time zones by name.

use jiff::tz::{self, TimeZone};
use toolbay_plugin::{Error, Result};

/// Returns the default time zone.
pub(crate) fn utc() -> String {
    "UTC".to_owned()
}

/// Returns the zone with this name, ignoring case.
pub(crate) fn named(name: &str) -> Result<TimeZone> {
    tz::db()
        .get(name)
        .map_err(|_| Error::invalid_arguments(unknown(name)))
}

fn unknown(name: &str) -> String {
    let wanted = name.to_lowercase();
    let nearest = tz::db()
        .available()
        .map(|known| {
            let known = known.to_string();
            let known_lower = known.to_lowercase();
            // "Tokyo" must find "Asia/Tokyo", so the city is also compared without its region.
            let city = known_lower.rsplit('/').next().unwrap_or_default();
            let likeness = strsim::jaro_winkler(&wanted, &known_lower)
                .max(strsim::jaro_winkler(&wanted, city));
            (likeness, known)
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        // Suggestions that are less similar mislead.
        .filter(|(likeness, _)| *likeness > 0.85);
    match nearest {
        Some((_, known)) => format!("no time zone `{name}`: did you mean `{known}`?"),
        None => format!("no time zone `{name}`: use an IANA name such as `Europe/Berlin`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_matter() {
        assert_eq!(
            named("europe/berlin").unwrap().iana_name(),
            Some("Europe/Berlin")
        );
    }

    #[test]
    fn a_near_miss_is_corrected() {
        let message = |name| named(name).unwrap_err().message().to_owned();
        assert!(message("Europe/Berln").ends_with("did you mean `Europe/Berlin`?"));
        assert!(message("tokyo").ends_with("did you mean `Asia/Tokyo`?"));
        assert!(message("qqq").ends_with("such as `Europe/Berlin`"));
    }
}

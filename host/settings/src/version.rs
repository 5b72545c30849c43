//! Parses and compares versions in the output of programs.

use semver::{Comparator, Op, Version, VersionReq};

/// Returns the first version in a program's output: numbers separated by dots. Missing parts count
/// as zero.
pub fn find_version(output: &str) -> Option<Version> {
    let words = output
        .split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .map(|word| word.trim_matches('.'));
    words.filter(|word| word.contains('.')).find_map(|word| {
        let mut parts = word.split('.').map(|part| part.parse().ok());
        let mut next = || parts.next().unwrap_or(Some(0));
        Some(Version::new(next()?, next()?, next()?))
    })
}

/// Returns whether a version is `minimum` or newer. `minimum` can have fewer parts.
///
/// # Errors
///
/// Returns an error if `minimum` is not a version.
pub fn is_at_least(version: &Version, minimum: &str) -> Result<bool, semver::Error> {
    let mut comparator = Comparator::parse(minimum)?;
    comparator.op = Op::GreaterEq;
    Ok(VersionReq {
        comparators: vec![comparator],
    }
    .matches(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_output_of_programs() {
        for (said, version) in [
            ("go version go1.27.3 linux/amd64", "1.27.3"),
            ("v20.0.0\n", "20.0.0"),
            ("3.10.2", "3.10.2"),
            ("cargo-nextest 0.9.148 (0123456 2026-10-01)", "0.9.148"),
            ("zig 0.16", "0.16.0"),
        ] {
            assert_eq!(find_version(said).unwrap().to_string(), version, "{said}");
        }
        assert_eq!(find_version("many 7"), None);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let at_least = |version: &str, least: &str| {
            is_at_least(&find_version(version).unwrap(), least).unwrap()
        };
        assert!(
            at_least("3.10.2", "3.10") && at_least("20.0.0", "20") && at_least("1.27.3", "1.9.10")
        );
        assert!(!at_least("3.9.18", "3.10") && !at_least("1.9.1", "1.24"));
        assert!(is_at_least(&find_version("1.0").unwrap(), "many").is_err());
    }
}

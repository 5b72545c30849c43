//! Phrases with numbers of lines, for findings.

pub(super) fn describe_missing(from: u64, to: u64) -> String {
    if from >= to {
        format!("line {from} is missing")
    } else {
        format!("lines {from} to {to} are missing")
    }
}

pub(super) fn format_lines(count: u64) -> String {
    if count == 1 {
        "1 line".to_owned()
    } else {
        format!("{count} lines")
    }
}

pub(super) fn was_or_were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

pub(super) fn format_lines_are(count: u64) -> String {
    format!(
        "{} {}",
        format_lines(count),
        if count == 1 { "is" } else { "are" }
    )
}

//! The packages and their measurements, as a table.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bytesize::ByteSize;

use crate::trial::Seen;

/// The packages of a format.
pub(crate) struct Row {
    format: &'static str,
    /// Their files.
    pub(crate) files: Vec<PathBuf>,
    size: u64,
    /// The measurements, if the packages were installed and worked.
    pub(crate) seen: Option<Seen>,
}

impl Row {
    /// Measures the files.
    pub(crate) fn new(format: &'static str, files: Vec<PathBuf>) -> Result<Self> {
        let size = |file: &PathBuf| {
            Ok(fs::metadata(file)
                .with_context(|| format!("failed to read {}", file.display()))?
                .len())
        };
        let size = files.iter().map(size).sum::<Result<u64>>()?;
        Ok(Self {
            format,
            files,
            size,
            seen: None,
        })
    }
}

/// Formats the rows as Markdown.
pub(crate) fn of(rows: &[Row]) -> String {
    let mut lines = vec![
        "| format   |       size | installed in | first call after | handshake and call after |"
            .to_owned(),
        "| -------- | ---------: | -----------: | ---------------: | -----------------------: |"
            .to_owned(),
    ];
    for Row {
        format, size, seen, ..
    } in rows
    {
        let size = ByteSize::b(*size).display().iec().to_string();
        let [installed, call, session] = match seen {
            Some(seen) => [seen.installed, seen.call, seen.session]
                .map(|took| format!("{:.2} s", took.as_secs_f64())),
            None => ["-".to_owned(), "-".to_owned(), "-".to_owned()],
        };
        lines.push(format!(
            "| {format:<8} | {size:>10} | {installed:>12} | {call:>16} | {session:>24} |"
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_line_is_as_long_as_the_title() {
        let seen = Seen {
            installed: Duration::from_millis(1500),
            call: Duration::from_millis(20),
            session: Duration::from_mins(2),
            checks: 5,
        };
        let rows = [
            Row {
                format: "npm",
                files: vec![],
                size: 12_345_678,
                seen: Some(seen),
            },
            Row {
                format: "registry",
                files: vec![],
                size: 12,
                seen: None,
            },
        ];
        let table = of(&rows);
        let lines: Vec<&str> = table.lines().collect();
        assert!(
            lines.iter().all(|line| line.len() == lines[0].len()),
            "{table}"
        );
        assert!(
            table.contains(
                "|   11.8 MiB |       1.50 s |           0.02 s |                 120.00 s |"
            ),
            "{table}"
        );
    }
}

//! The report of a command that checks the server's surroundings: one line per check.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use toolbay_model::text::clean_line;

use super::output::{count_noun, print, print_json};

/// Maximum length of a printed message, in bytes.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// Maximum number of lines about plugins that are printed as text.
const MAX_LINES: usize = 1_000;

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckStatus {
    /// A server works with this.
    Ok,
    /// A server starts, but part of it may not work as intended.
    Warning,
    /// A server does not start, or does not serve a plugin.
    Error,
}

impl CheckStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CheckResult {
    status: CheckStatus,
    /// The subject of the check, such as `audit log`.
    subject: String,
    message: String,
}

/// The results of all checks, in the order in which they were made.
#[derive(Debug, Default, Serialize)]
pub(super) struct CheckReport {
    checks: Vec<CheckResult>,
}

impl CheckReport {
    pub(super) fn add(
        &mut self,
        status: CheckStatus,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.checks.push(CheckResult {
            status,
            subject: subject.into(),
            message: message.into(),
        });
    }

    /// Adds the message of a check that succeeded, or the error of one that failed.
    pub(super) fn add_result(&mut self, subject: &str, result: Result<String, String>) {
        match result {
            Ok(message) => self.add(CheckStatus::Ok, subject, message),
            Err(message) => self.add(CheckStatus::Error, subject, message),
        }
    }

    /// Prints the report. The exit code is 1 if a check found an error.
    ///
    /// # Errors
    ///
    /// The report cannot be represented as JSON.
    pub(super) fn print(&self, as_json: bool) -> anyhow::Result<ExitCode> {
        if as_json {
            print_json(self)?;
        } else {
            print(&self.to_text());
        }
        Ok(if self.count(CheckStatus::Error) == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn to_text(&self) -> String {
        let width = self
            .checks
            .iter()
            .map(|check| check.subject.chars().count())
            .max()
            .unwrap_or_default()
            .min(40);
        let mut out = String::new();
        for check in self.checks.iter().take(MAX_LINES) {
            let subject = clean_line(&check.subject, MAX_MESSAGE_BYTES);
            let message = clean_line(&check.message, MAX_MESSAGE_BYTES);
            let _ = writeln!(
                out,
                "{:7}  {subject:width$}  {message}",
                check.status.as_str()
            );
        }
        if let Some(left_out) = self
            .checks
            .len()
            .checked_sub(MAX_LINES)
            .filter(|left_out| *left_out > 0)
        {
            let _ = writeln!(out, "{left_out} more lines: use --json to see all");
        }
        let _ = writeln!(
            out,
            "\n{}, {}",
            count_noun(self.count(CheckStatus::Error), "error"),
            count_noun(self.count(CheckStatus::Warning), "warning")
        );
        out
    }

    fn count(&self, status: CheckStatus) -> usize {
        self.checks
            .iter()
            .filter(|check| check.status == status)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_aligns_subjects_and_counts_results() {
        let mut report = CheckReport::default();
        report.add(CheckStatus::Ok, "configuration", "is valid");
        report.add_result("TLS", Err("the key\nis missing".to_owned()));
        report.add(CheckStatus::Warning, "weather.wasm", "has a remark");
        insta::assert_snapshot!(report.to_text(), @r"
        ok       configuration  is valid
        error    TLS            the key\nis missing
        warning  weather.wasm   has a remark

        1 error, 1 warning
        ");
        assert!(
            CheckReport::default()
                .to_text()
                .contains("no errors, no warnings")
        );
    }
}

//! Counts passed and failed tests from the output of test programs.

use std::fmt;
use std::ops::AddAssign;
use std::process::Command;

use anstream::println;
use anyhow::{Result, bail};
use toolbay_testkit::command;

/// Numbers of passed and failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    /// Number of passed tests.
    pub(crate) passed: u64,
    /// Number of failed tests.
    pub(crate) failed: u64,
}

impl TestCounts {
    /// Parses a line of cargo's test harness: `test result: ok. 3 passed; 0 failed; …`.
    pub(crate) fn parse_harness_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut counts = counts.split("; ");
        Some(Self {
            passed: parse_count(counts.next()?, "passed")?,
            failed: parse_count(counts.next()?, "failed")?,
        })
    }

    /// Parses a report in `JUnit` format: `<testsuites name="…" tests="3" failures="1" errors="0"
    /// …>`.
    pub(crate) fn parse_junit(report: &str) -> Option<Self> {
        let (_, suites) = report.split_once("<testsuites ")?;
        let (attributes, _) = suites.split_once('>')?;
        let count = |name: &str| -> Option<u64> {
            let (_, value) = attributes.split_once(&format!("{name}=\""))?;
            value.split_once('"')?.0.parse().ok()
        };
        let failed = count("failures")? + count("errors")?;
        Some(Self {
            passed: count("tests")?.checked_sub(failed)?,
            failed,
        })
    }

    /// Parses a line in our own format: `3 passed, 0 failed`.
    pub(crate) fn parse_line(line: &str) -> Option<Self> {
        let (passed, failed) = line.split_once(", ")?;
        Some(Self {
            passed: parse_count(passed, "passed")?,
            failed: parse_count(failed, "failed")?,
        })
    }

    /// Runs a test program and adds the counts that `read` extracts from each line. Fails if the
    /// program fails.
    pub(crate) fn run_and_count(
        &mut self,
        program: &mut Command,
        mut read: impl FnMut(&str) -> Option<Self>,
    ) -> Result<()> {
        let before = self.failed;
        let ok = command::stream(program, |line| *self += read(line).unwrap_or_default())?;
        if ok {
            Ok(())
        } else if self.failed > before {
            bail!("{} failed", self.failed - before)
        } else {
            bail!("it did not come to its end: see above")
        }
    }

    /// Runs a test program that prints its checks and, at the end, the counts in [our own
    /// format](Self::parse_line). Prints all lines except the counts.
    pub(crate) fn run_and_print(&mut self, program: &mut Command) -> Result<()> {
        self.run_and_count(program, |line| {
            // The program's counts are part of the total. They are not printed, because they could
            // be mistaken for the total.
            let count = Self::parse_line(line);
            if count.is_none() {
                println!("{line}");
            }
            count
        })
    }
}

fn parse_count(text: &str, unit: &str) -> Option<u64> {
    text.strip_suffix(unit)?.strip_suffix(' ')?.parse().ok()
}

impl AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_s_lines_are_read() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.02s";
        assert_eq!(
            TestCounts::parse_harness_line(ok),
            Some(TestCounts {
                passed: 12,
                failed: 0
            })
        );
        let failed =
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(
            TestCounts::parse_harness_line(failed),
            Some(TestCounts {
                passed: 1,
                failed: 2
            })
        );
        for line in [
            "",
            "running 3 tests",
            "test a ... ok",
            "test result: odd",
            " test result: ok. 1 passed; 0 failed",
        ] {
            assert_eq!(TestCounts::parse_harness_line(line), None, "{line}");
        }
    }

    #[test]
    fn reports_are_read() {
        let report = "<?xml version=\"1.0\"?>\n<testsuites name=\"nextest-run\" tests=\"7\" failures=\"2\" errors=\"1\" time=\"0.5\">\n";
        assert_eq!(
            TestCounts::parse_junit(report),
            Some(TestCounts {
                passed: 4,
                failed: 3
            })
        );
        for report in [
            "",
            "<testsuites tests=\"x\">",
            "<testsuites tests=\"1\" failures=\"2\" errors=\"0\">",
        ] {
            assert_eq!(TestCounts::parse_junit(report), None, "{report}");
        }
    }

    #[test]
    fn our_own_lines_are_read_as_they_are_written() {
        let tally = TestCounts {
            passed: 23,
            failed: 1,
        };
        assert_eq!(tally.to_string(), "23 passed, 1 failed");
        assert_eq!(TestCounts::parse_line(&tally.to_string()), Some(tally));
        for line in [
            "23 passed",
            "ok 23 passed, 1 failed",
            "23 passed, 1 failed.",
            "23passed, 1failed",
        ] {
            assert_eq!(TestCounts::parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_crash_is_a_failure() {
        let mut tally = TestCounts::default();
        let mut crash = Command::new("sh");
        crash.args(["-c", "echo 1 passed, 0 failed; exit 3"]);
        assert!(
            tally
                .run_and_count(&mut crash, TestCounts::parse_line)
                .is_err()
        );
        assert_eq!(
            tally,
            TestCounts {
                passed: 1,
                failed: 0
            }
        );
    }
}

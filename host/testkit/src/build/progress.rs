//! Reads cargo's progress from its progress bar.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use anstream::adapter::strip_str;
use anyhow::{Context, Result};

/// Width of cargo's progress bar, in columns. It is wide enough for the numbers and does not depend
/// on the terminal.
const PROGRESS_BAR_WIDTH: &str = "80";

/// Prefixes of cargo's messages that only repeat the progress.
const ROUTINE_MESSAGES: [&str; 6] = [
    "Compiling",
    "Building",
    "Fresh",
    "Finished",
    "Downloaded",
    "Locking",
];

/// The progress of a build. Cargo also counts build scripts and crates that are up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildProgress {
    /// Number of crates that are compiled or up to date.
    pub done: u64,
    /// Total number of crates.
    pub total: u64,
}

/// Runs cargo, passes each line of its standard output to `read`, and reports its progress to
/// `run_with_progress`. Forwards cargo's other messages to standard error. Returns whether cargo
/// succeeded.
pub(super) fn run_with_progress(
    cargo: &mut Command,
    watch: &mut dyn FnMut(BuildProgress),
    mut read: impl FnMut(&str) + Send,
) -> Result<bool> {
    cargo
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", PROGRESS_BAR_WIDTH);
    if std::io::stderr().is_terminal() {
        cargo.env("CARGO_TERM_COLOR", "always");
    }
    let piped = cargo
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().context("failed to start cargo")?;
    let stdout = BufReader::new(child.stdout.take().context("no standard output")?);
    let mut stderr = BufReader::new(child.stderr.take().context("no standard error")?);
    thread::scope(|scope| {
        scope.spawn(|| {
            stdout
                .lines()
                .map_while(Result::ok)
                .for_each(|line| read(&line));
        });
        let mut piece = Vec::new();
        let mut last = None;
        // Cargo redraws the bar in place, so a carriage return separates two drawings.
        while stderr
            .read_until(b'\r', &mut piece)
            .context("failed to read what cargo wrote")?
            > 0
        {
            for line in String::from_utf8_lossy(&piece).split(['\r', '\n']) {
                match parse_progress(line) {
                    Some(now) if last == Some(now) => {}
                    Some(now) => {
                        last = Some(now);
                        watch(now);
                    }
                    None if is_notable(line) => writeln!(std::io::stderr(), "{line}")?,
                    None => {}
                }
            }
            piece.clear();
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(child.wait()?.success())
}

/// Parses `Building [=====>   ] 120/310: serde, syn`.
fn parse_progress(line: &str) -> Option<BuildProgress> {
    let line = strip_str(line).to_string();
    let (_, counts) = line
        .trim_start()
        .strip_prefix("Building")?
        .split_once("] ")?;
    let (done, rest) = counts.split_once('/')?;
    let total = rest
        .split_once(|c: char| !c.is_ascii_digit())
        .map_or(rest, |(total, _)| total);
    Some(BuildProgress {
        done: done.parse().ok()?,
        total: total.parse().ok()?,
    })
}

/// Returns whether a line contains more than progress, so that the user should see it.
fn is_notable(line: &str) -> bool {
    let line = strip_str(line).to_string();
    let bare = line.trim();
    !bare.is_empty()
        && !ROUTINE_MESSAGES
            .iter()
            .any(|passing| bare.starts_with(passing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_read() {
        let line =
            "    Building [=====>                 ] 120/310: cranelift-codegen, regalloc2(bu...";
        assert_eq!(
            parse_progress(line),
            Some(BuildProgress {
                done: 120,
                total: 310
            })
        );
        assert_eq!(
            parse_progress("\u{1b}[1m\u{1b}[96m    Building\u{1b}[0m [> ] 0/7"),
            Some(BuildProgress { done: 0, total: 7 })
        );
        for line in [
            "",
            "   Compiling serde v1.0.0",
            " Downloading [=> ] 3 crates",
            "    Finished `dev` profile",
        ] {
            assert_eq!(parse_progress(line), None, "{line}");
        }
    }

    #[test]
    fn only_unusual_lines_are_shown() {
        assert!(is_notable("warning: unused variable: `a`"));
        assert!(is_notable(
            "    Blocking waiting for file lock on build directory"
        ));
        assert!(is_notable(
            "\u{1b}[31merror\u{1b}[0m: could not compile `Building`"
        ));
        for line in [
            "",
            "   ",
            "\u{1b}[K",
            "\u{1b}[32m   Compiling\u{1b}[0m serde v1.0.0",
            "    Finished `dev` profile",
        ] {
            assert!(!is_notable(line), "{line}");
        }
    }

    #[test]
    fn both_streams_are_read_without_delay() {
        let script = "printf '    Building [>] 1/3: a\\r    Building [=>] 1/3: b\\r    Building [==>] 3/3\\r\\n'>&2; echo made";
        let mut seen = Vec::new();
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        let done = run_with_progress(
            command.args(["-c", script]),
            &mut |now| seen.push(now.done),
            |line| {
                lines.push(line.to_owned());
            },
        );
        assert!(done.unwrap());
        assert_eq!((seen, lines), (vec![1, 3], vec!["made".to_owned()]));
    }
}

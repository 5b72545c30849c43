//! Runs `toolbay` commands and normalizes the output, so that it is the same on every run and every
//! machine.

#![allow(
    clippy::panic,
    reason = "tests fail by panicking; `outcome` is for everybody else"
)]

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::TestFolder;

/// A `toolbay` command with a test folder as its working folder.
#[derive(Debug)]
pub struct ToolbayCommand {
    command: Command,
    folder: TestFolder,
}

/// The exit code and output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code.
    pub code: i32,
    /// The normalized standard output.
    pub stdout: String,
    /// The normalized standard error.
    pub stderr: String,
    /// The unchanged standard output.
    pub raw_stdout: String,
}

impl ToolbayCommand {
    /// Creates a command without arguments, whose working folder contains `plugins/`. The
    /// environment contains only the variables that the test sets, so that the user's own settings
    /// do not affect the test.
    pub fn new(folder: &TestFolder) -> Self {
        let mut command = Command::new(folder.program().path());
        command
            .env_clear()
            .current_dir(folder.root())
            .env("HOME", folder.program().home_for(folder.root()));
        Self {
            command,
            folder: folder.clone(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Returns the command and the folder. The folder must exist while the command runs.
    pub fn into_parts(self) -> (Command, TestFolder) {
        (self.command, self.folder)
    }

    /// Runs the command with `input` on standard input.
    pub fn try_run_with(mut self, input: &str) -> Result<CommandOutput> {
        let program = self.folder.program().path().display();
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self
            .command
            .spawn()
            .with_context(|| format!("failed to start {program}"))?;
        // The command may end without reading its input.
        drop(
            child
                .stdin
                .take()
                .map(|mut stdin| stdin.write_all(input.as_bytes())),
        );
        let output = child
            .wait_with_output()
            .with_context(|| format!("failed to wait for {program}"))?;
        let root = self.folder.root().display().to_string();
        let text = |bytes: &[u8]| {
            normalize_output(&String::from_utf8_lossy(bytes).replace(&root, "<root>"))
        };
        Ok(CommandOutput {
            code: output
                .status
                .code()
                .with_context(|| format!("{program} was killed"))?,
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            raw_stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }

    /// Runs the command without input.
    ///
    /// # Panics
    ///
    /// Panics if the command cannot be run or is killed.
    pub fn run(self) -> CommandOutput {
        self.run_with("")
    }

    /// Runs the command with `input` on standard input.
    ///
    /// # Panics
    ///
    /// Panics if the command cannot be run or is killed.
    pub fn run_with(self, input: &str) -> CommandOutput {
        self.try_run_with(input)
            .unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Runs the command without input and ignores its output. Returns whether it succeeds.
    pub fn succeeds(mut self) -> bool {
        let status = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    /// Wraps the command in a shell script, which must end with `exec "$@"`.
    #[must_use]
    pub fn with_shell_wrapper(self, script: &str) -> Self {
        self.wrapped_by(&["sh", "-c", script, "sh"])
    }

    /// Wraps the command in a shell script that runs in separate user and mount namespaces, where
    /// it can mount file systems. The script must end with `exec "$@"`.
    #[must_use]
    pub fn with_mount_namespace(self, script: &str) -> Self {
        self.wrapped_by(&[
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ])
    }

    /// Appends the command to the arguments of another program.
    fn wrapped_by(self, words: &[&str]) -> Self {
        let mut command = Command::new("env");
        command.env_clear().envs(
            self.command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
            .args(words)
            .arg(self.command.get_program())
            .args(self.command.get_args());
        command.current_dir(self.folder.root());
        Self {
            command,
            folder: self.folder,
        }
    }
}

/// A part of the messages that a command prints while plugins compile. Their number depends on the
/// speed of the machine.
const LOADING_MESSAGE: &str = " plugins are loaded; loading ";

/// Omits the messages that the command prints while plugins compile.
impl std::fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            code,
            stdout,
            stderr,
            ..
        } = self;
        let stderr: String = stderr
            .split_inclusive('\n')
            .filter(|line| !line.contains(LOADING_MESSAGE))
            .collect();
        write!(
            f,
            "exit code {code}\n--- standard output\n{stdout}--- standard error\n{stderr}"
        )
    }
}

/// Replaces digests and resource usage in `text` with placeholders.
fn normalize_output(text: &str) -> String {
    let hex =
        |word: &str| matches!(word.len(), 12 | 64) && word.bytes().all(|b| b.is_ascii_hexdigit());
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if line.contains(" peak memory") {
            out.push_str("<used>\n");
            continue;
        }
        for word in line.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let (bare, end) = match word.char_indices().last() {
                Some((at, last)) if !last.is_ascii_alphanumeric() => word.split_at(at),
                _ => (word, ""),
            };
            out.push_str(if hex(bare) { "<digest>" } else { bare });
            out.push_str(end);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_vary_become_placeholders() {
        let digest = "0123456789abcdef".repeat(4);
        let text =
            format!("digest {digest}, short 0123456789ab, word abcdef\n1 ms, 2 MiB peak memory\n");
        assert_eq!(
            normalize_output(&text),
            "digest <digest>, short <digest>, word abcdef\n<used>\n"
        );
    }
}

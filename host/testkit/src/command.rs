//! Runs other programs. Error messages contain the program and the reason.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

/// Returns a command for the cargo that runs this process, in the folder `root`.
pub fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Runs a command that inherits standard output and standard error. Fails if the command fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("failed to start {}", command_line(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(anyhow!("{} failed ({status})", command_line(command)))
    }
}

/// Runs a command and returns its standard output. Fails if the command fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start {}", command_line(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} failed ({}): {}",
            command_line(command),
            output.status,
            stderr.trim()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("failed to read what {} wrote", command_line(command)))
}

/// Runs a command and passes each line of its standard output to `read` as it arrives. Returns
/// whether the command succeeded.
pub fn stream(command: &mut Command, mut read: impl FnMut(&str)) -> Result<bool> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start {}", command_line(command)))?;
    let stdout = child.stdout.take().context("the output is not piped")?;
    for bytes in BufReader::new(stdout).split(b'\n') {
        let bytes = bytes
            .with_context(|| format!("failed to read what {} wrote", command_line(command)))?;
        read(&String::from_utf8_lossy(&bytes));
    }
    Ok(child.wait()?.success())
}

/// Formats a command as a shell command line, with the file name of the program instead of its
/// path.
fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    let text = words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ");
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_a_missing_program() {
        let error = run(&mut Command::new("/nowhere/no-such-program")).unwrap_err();
        assert_eq!(error.to_string(), "failed to start `no-such-program`");
    }

    #[test]
    fn output_is_read_line_by_line() {
        let mut lines = Vec::new();
        let ok = stream(Command::new("printf").arg("a\\nb"), |line| {
            lines.push(line.to_owned());
        })
        .unwrap();
        assert!(ok);
        assert_eq!(lines, ["a", "b"]);
    }
}

//! The binary as a command, and its output in a form that is the same on every run and every machine.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::Folder;

/// `toolbay …` on a folder.
pub(crate) struct Toolbay {
    command: Command,
    folder: Folder,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    /// In a form that is the same on every machine.
    pub(crate) stdout: String,
    /// In a form that is the same on every machine.
    pub(crate) stderr: String,
    /// As it is.
    pub(crate) raw: String,
}

impl Toolbay {
    /// With no environment but what a test gives it, in the folder that has `plugins/` in it.
    pub(crate) fn new(folder: &Folder) -> Self {
        let root = folder.beside("");
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolbay"));
        command.env_clear().current_dir(&root).env("HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/home"));
        Self { command, folder: folder.clone() }
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// The command, and the folder, which must be kept as long as it runs.
    pub(crate) fn into_parts(self) -> (Command, Folder) {
        (self.command, self.folder)
    }

    pub(crate) fn run(self) -> Outcome {
        self.run_with("")
    }

    /// Runs it to its end, with this on standard input.
    pub(crate) fn run_with(mut self, input: &str) -> Outcome {
        let mut child =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that does not read its input is none of our business.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        let root = self.folder.beside("").display().to_string();
        let root = root.trim_end_matches('/');
        let text = |bytes: &[u8]| normal(&String::from_utf8_lossy(bytes).replace(root, "<root>"));
        Outcome {
            code: output.status.code().expect("it was not killed"),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            raw: String::from_utf8_lossy(&output.stdout).into_owned(),
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n--- standard output\n{}--- standard error\n{}", self.code, self.stdout, self.stderr)
    }
}

/// `text` with digests, and what a call used, as placeholders.
fn normal(text: &str) -> String {
    let hex = |word: &str| matches!(word.len(), 12 | 64) && word.bytes().all(|b| b.is_ascii_hexdigit());
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if line.contains(" of memory at most") {
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

impl Toolbay {
    /// Runs by a shell script, in a name space of its own where it may mount; the script ends with `exec "$@"`.
    pub(crate) fn unshared(self, script: &str) -> Self {
        let mut command = Command::new("unshare");
        command.env_clear().envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        command.arg(self.command.get_program()).args(self.command.get_args());
        command.current_dir(self.folder.beside(""));
        Self { command, folder: self.folder }
    }

    /// Whether it succeeds.
    pub(crate) fn run_quietly(mut self) -> bool {
        let outcome = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        outcome.is_ok_and(|status| status.success())
    }
}

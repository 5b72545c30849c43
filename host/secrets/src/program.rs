//! Runs programs that print secrets.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Timeout of a program.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a program's output, in bytes.
pub(crate) const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// Environment variables that are passed to a program: those that programs use to find their files
/// and agents. None of them is intended for secrets.
const PASSED_VARIABLES: [&str; 13] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "GNUPGHOME",
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PASSWORD_STORE_DIR",
    "PATH",
    "TMPDIR",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// Failure of a program, displayed as the end of a sentence about it. It never quotes the program's
/// output, which may contain the secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProgramFailure {
    NotFound,
    Start(String),
    Status(i32),
    Killed,
    Timeout,
    OutputTooLarge,
    /// The current grant does not name the program.
    NotAllowed,
    /// The process that starts programs has ended.
    WorkerGone,
}

impl fmt::Display for ProgramFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("was not found"),
            Self::Start(why) => write!(f, "cannot be started: {why}"),
            Self::NotAllowed => f.write_str("is not the program that the grant names now"),
            Self::WorkerGone => f.write_str(
                "cannot be started: the process that starts programs has ended; restart the server",
            ),
            Self::Status(code) => {
                write!(
                    f,
                    "exited with code {code}; run it yourself, as the user of the server, to see why"
                )
            }
            Self::Killed => f.write_str("was ended by a signal"),
            Self::Timeout => write!(f, "did not end within {} s", PROGRAM_TIMEOUT.as_secs()),
            Self::OutputTooLarge => write!(f, "wrote more than {} KiB", MAX_OUTPUT_BYTES >> 10),
        }
    }
}

/// Runs a program, the first of `words`, with the other words as arguments, and returns its
/// standard output. It runs in `folder`, without a shell and without input. Dropping the future
/// kills the program and its child processes.
pub(crate) async fn run(
    words: &[String],
    folder: &Path,
) -> Result<Zeroizing<Vec<u8>>, ProgramFailure> {
    run_with_timeout(words, folder, PROGRAM_TIMEOUT).await
}

async fn run_with_timeout(
    words: &[String],
    folder: &Path,
    time_limit: Duration,
) -> Result<Zeroizing<Vec<u8>>, ProgramFailure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(ProgramFailure::NotFound);
    };
    let mut command = Command::new(resolve_program(program, folder));
    let variables = PASSED_VARIABLES
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables);
    // Discard standard error: its content and size are not bounded.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ProgramFailure::NotFound,
        kind => ProgramFailure::Start(kind.to_string()),
    })?;
    let mut group = ProcessGroup::from_child(&child);
    let output = timeout(time_limit, read_output(child))
        .await
        .unwrap_or(Err(ProgramFailure::Timeout));
    if !matches!(
        output,
        Err(ProgramFailure::Timeout | ProgramFailure::OutputTooLarge)
    ) {
        // Keep an agent that the program started for later use.
        group.0 = None;
    }
    output
}

/// Resolves a relative path of a program against `folder`. A plain name is looked up in `PATH`.
fn resolve_program(program: &str, folder: &Path) -> PathBuf {
    let is_path = program.contains('/');
    if is_path {
        std::path::absolute(folder.join(program)).unwrap_or_else(|_| folder.join(program))
    } else {
        program.into()
    }
}

async fn read_output(mut child: Child) -> Result<Zeroizing<Vec<u8>>, ProgramFailure> {
    // Preallocate the buffer, because growing it would leave a copy of the secret in memory.
    let mut output = Zeroizing::new(Vec::with_capacity(MAX_OUTPUT_BYTES + 1));
    if let Some(stdout) = &mut child.stdout {
        let mut bounded = stdout.take(MAX_OUTPUT_BYTES as u64 + 1);
        while bounded
            .read_buf(&mut *output)
            .await
            .map_err(|error| ProgramFailure::Start(error.kind().to_string()))?
            > 0
        {}
    }
    if output.len() > MAX_OUTPUT_BYTES {
        return Err(ProgramFailure::OutputTooLarge);
    }
    let status = child
        .wait()
        .await
        .map_err(|error| ProgramFailure::Start(error.kind().to_string()))?;
    match status.code() {
        Some(0) => Ok(output),
        Some(code) => Err(ProgramFailure::Status(code)),
        None => Err(ProgramFailure::Killed),
    }
}

/// Process group of a program, which is killed when this is dropped.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn from_child(child: &Child) -> Self {
        Self(
            child
                .id()
                .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)),
        )
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails if the processes have already ended.
            let _ended = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, time: Duration) -> Result<String, ProgramFailure> {
        let words = ["sh", "-c", script].map(str::to_owned);
        let output = run_with_timeout(&words, Path::new("/"), time).await?;
        Ok(String::from_utf8(output.to_vec()).unwrap())
    }

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn a_program_has_no_input_and_few_variables() {
        assert_eq!(
            shell("cat; pwd; echo noise >&2", LONG).await.unwrap(),
            "/\n"
        );
        let names = shell("env | cut -d= -f1", LONG).await.unwrap();
        let allowed = |name: &str| {
            PASSED_VARIABLES.contains(&name) || ["PWD", "SHLVL", "_", "OLDPWD"].contains(&name)
        };
        assert!(
            names.lines().all(allowed) && names.contains("PATH"),
            "{names}"
        );
    }

    #[tokio::test]
    async fn failures_are_reported_without_the_output() {
        assert_eq!(
            shell(
                "echo hunter2-hunter2; echo hunter2-hunter2 >&2; exit 3",
                LONG
            )
            .await,
            Err(ProgramFailure::Status(3))
        );
        assert_eq!(shell("kill -9 $$", LONG).await, Err(ProgramFailure::Killed));
        assert_eq!(
            shell("yes", LONG).await,
            Err(ProgramFailure::OutputTooLarge)
        );
        assert_eq!(
            shell("head -c 65536 /dev/zero | tr '\\0' x", LONG)
                .await
                .unwrap()
                .len(),
            MAX_OUTPUT_BYTES
        );
        let missing = run(&["no-such-program-of-toolbay".to_owned()], Path::new("/")).await;
        assert_eq!(missing, Err(ProgramFailure::NotFound));
        assert!(matches!(
            run(&["/dev/null".to_owned()], Path::new("/")).await,
            Err(ProgramFailure::Start(_))
        ));
        assert!(
            ProgramFailure::Status(3)
                .to_string()
                .starts_with("exited with code 3; run it yourself")
        );
    }

    #[tokio::test]
    async fn timeout_kills_the_program_and_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("alive");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        // A grandchild holds the FIFO open: the end of the file marks the end of the program's last
        // process.
        let script = format!("exec 3<> {0}; sleep 1000 & sleep 1000", fifo.display());
        let outcome = shell(&script, Duration::from_millis(100)).await;
        assert_eq!(outcome, Err(ProgramFailure::Timeout));
        let path = fifo.clone();
        let read = tokio::task::spawn_blocking(move || {
            // With its own writer, opening does not block. Dropping the writer leaves only those of
            // the program, if any.
            let both = std::fs::File::options()
                .read(true)
                .write(true)
                .open(&path)
                .unwrap();
            let mut reader = std::fs::File::open(&path).unwrap();
            drop(both);
            io::Read::read_to_end(&mut reader, &mut Vec::new())
        });
        assert_eq!(timeout(LONG, read).await.unwrap().unwrap().unwrap(), 0);
    }

    #[test]
    fn a_path_is_relative_to_the_plugin_folder_and_a_name_is_not() {
        assert_eq!(
            resolve_program("pass", Path::new("/plugins")),
            Path::new("pass")
        );
        assert_eq!(
            resolve_program("./token.sh", Path::new("/plugins")),
            Path::new("/plugins/token.sh")
        );
        assert_eq!(
            resolve_program("/bin/cat", Path::new("/plugins")),
            Path::new("/bin/cat")
        );
    }
}

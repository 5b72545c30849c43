//! The program that receives notifications, as a child of this process or of a worker.
//!
//! A confined server cannot start programs. So it starts a worker before it confines itself: a
//! process of the same program that knows only the configured command and runs it once for each
//! line that it reads. The worker bounds the length of a line and the rate, so code that escaped
//! from the sandbox can cause no more than notifications.

use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use parking_lot::Mutex as BlockingMutex;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
    BufReader,
};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// Time limit for the program.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(8);

/// Pause of the worker after each program.
const WORKER_PAUSE: Duration = Duration::from_millis(500);

/// Maximum length of a line between the server and the worker, in bytes.
const MAX_LINE_BYTES: u64 = 8 << 10;

/// Response of the worker if the program succeeded.
const SUCCESS: &str = "ok";

/// The program that receives notifications.
pub(crate) enum NotifyCommand {
    /// It is started by this process.
    InProcess(Vec<String>),
    /// It is started by a worker.
    Worker(std::sync::Arc<CommandWorker>),
}

/// A process that starts the program for a confined server.
#[derive(Debug)]
pub(crate) struct CommandWorker {
    /// Pipes to the worker, before the first notification.
    pipes: BlockingMutex<Option<(ChildStdin, ChildStdout)>>,
    /// Pipes to the worker, afterwards.
    open: Mutex<Option<WorkerPipes>>,
    /// The worker, which ends when its standard input is closed.
    _child: Child,
}

#[derive(Debug)]
struct WorkerPipes {
    input: tokio::process::ChildStdin,
    output: BufReader<tokio::process::ChildStdout>,
}

impl NotifyCommand {
    /// Runs the program once, with `line` on its standard input.
    ///
    /// # Errors
    ///
    /// The program cannot be started, fails, or takes too long.
    pub(super) async fn send(&self, line: String) -> Result<(), String> {
        match self {
            Self::InProcess(words) => run(words, &line).await,
            Self::Worker(worker) => worker.send(&line).await,
        }
    }
}

impl CommandWorker {
    /// Starts the worker: a program that calls [`serve_commands`].
    ///
    /// # Errors
    ///
    /// The worker cannot be started.
    pub(crate) fn start(mut worker: std::process::Command) -> io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let mut child = worker
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self {
            pipes: BlockingMutex::new(child.stdin.take().zip(child.stdout.take())),
            open: Mutex::new(None),
            _child: child,
        })
    }

    async fn send(&self, line: &str) -> Result<(), String> {
        let gone = || "the process that starts the program has ended".to_owned();
        let mut open = self.open.lock().await;
        let pipes = self.pipes.lock().take();
        if let Some((input, output)) = pipes {
            let opened = tokio::process::ChildStdin::from_std(input)
                .and_then(|input| Ok((input, tokio::process::ChildStdout::from_std(output)?)));
            *open = opened.ok().map(|(input, output)| WorkerPipes {
                input,
                output: BufReader::new(output),
            });
        }
        // Taken out: after a timeout, a late response must not count for the next line.
        let mut pipes = open.take().ok_or_else(gone)?;
        pipes
            .input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .map_err(|_| gone())?;
        let response = read_line(&mut pipes.output).await.ok().flatten();
        let response = response.ok_or_else(gone)?;
        *open = Some(pipes);
        drop(open);
        if response == SUCCESS {
            Ok(())
        } else {
            Err(response)
        }
    }
}

/// Runs the program of `words` once for each line of `input`, and writes a line with the outcome.
///
/// # Errors
///
/// The server has ended, or sends a line that is too long.
pub(crate) async fn serve_commands(
    input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    words: &[String],
) -> io::Result<()> {
    let mut input = input;
    while let Some(line) = read_line(&mut input).await? {
        let outcome = match run(words, &line).await {
            Ok(()) => SUCCESS.to_owned(),
            Err(why) => why.replace('\n', " "),
        };
        output.write_all(format!("{outcome}\n").as_bytes()).await?;
        output.flush().await?;
        sleep(WORKER_PAUSE).await;
    }
    Ok(())
}

/// Reads a line without its end. Returns `None` at the end of the input.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = String::new();
    if input.take(MAX_LINE_BYTES).read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    match line.pop() {
        Some('\n') => Ok(Some(line)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Runs a program, the first of `words`, with `line` on its standard input, without a shell.
async fn run(words: &[String], line: &str) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| format!("{program} cannot be started: {}", error.kind()))?;
    let mut input = child.stdin.take();
    let work = async {
        if let Some(pipe) = &mut input {
            // A program that ends without reading its input does not fail because of that.
            drop(pipe.write_all(format!("{line}\n").as_bytes()).await);
        }
        drop(input);
        child.wait().await
    };
    let status = timeout(COMMAND_TIMEOUT, work)
        .await
        .map_err(|_| {
            format!(
                "{program} did not end within {} s",
                COMMAND_TIMEOUT.as_secs()
            )
        })?
        .map_err(|error| format!("{program}: {}", error.kind()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{program} failed: {status}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_program_receives_the_line_and_no_shell_reads_its_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a; touch b").display().to_string();
        let copy = words(&["tee", &file]);
        run(&copy, "{\"id\":7}").await.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"id\":7}\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_program_that_fails_or_does_not_exist_is_an_error_with_its_name() {
        let why = run(&words(&["false"]), "{}").await.unwrap_err();
        assert!(why.starts_with("false failed: "), "{why}");
        let why = run(&words(&["/no/such/program"]), "{}").await.unwrap_err();
        assert!(
            why.starts_with("/no/such/program cannot be started: "),
            "{why}"
        );
        // It does not read its input.
        run(&words(&["true"]), &"x".repeat(1 << 20)).await.unwrap();
    }

    #[tokio::test]
    async fn a_worker_runs_only_its_own_program_once_per_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lines").display().to_string();
        let append = words(&["tee", "--append", &file]);
        let mut responses = Vec::new();
        let input = BufReader::new(&b"one\ntwo\n"[..]);
        serve_commands(input, &mut responses, &append)
            .await
            .unwrap();
        assert_eq!(responses, b"ok\nok\n");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
        let long = "x".repeat(1 << 20);
        let input = BufReader::new(long.as_bytes());
        serve_commands(input, &mut responses, &append)
            .await
            .unwrap_err();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    }
}

//! Runs a program and reads its output line by line.

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use parking_lot::{Mutex, MutexGuard};

use crate::observable_value::ObservableValue;

/// An event of an output stream.
#[derive(Clone, Copy, Debug)]
pub enum StreamEvent<'a> {
    /// A line without its line terminator, and the time at which it was read.
    Line(&'a [u8], Instant),
    /// The stream cannot be read any further. The end of the stream follows.
    ReadError(&'a std::io::Error),
    /// The stream has ended. No further event follows.
    End,
}

/// A running program. Dropping it kills the program unless it has exited.
#[derive(Debug)]
pub struct ProgramProcess {
    /// The time at which the program was started.
    pub start_time: Instant,
    child: Child,
    /// The standard input, or `None` if it was closed or is used by another writer.
    input: Mutex<Option<ChildStdin>>,
    /// True if the standard output has ended.
    output_ended: Arc<ObservableValue<bool>>,
    readers: Vec<JoinHandle<()>>,
}

impl ProgramProcess {
    /// Starts a command. Reads standard output and standard error on a separate thread each, which
    /// passes the events to `output` and `errors`. Standard input is a pipe only if `command`
    /// configures it so.
    pub fn start(
        command: &mut Command,
        mut output: impl FnMut(StreamEvent<'_>) + Send + 'static,
        errors: impl FnMut(StreamEvent<'_>) + Send + 'static,
    ) -> Result<Self> {
        let started = Instant::now();
        let spawned = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned
            .with_context(|| format!("failed to start {}", command.get_program().display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let input = Mutex::new(child.stdin.take());
        let silent = Arc::new(ObservableValue::new(false));
        let ended = Arc::clone(&silent);
        let until_silent = move |heard: StreamEvent<'_>| {
            output(heard);
            if let StreamEvent::End = heard {
                ended.update(|silent| *silent = true);
            }
        };
        let readers = vec![read_lines(stdout, until_silent), read_lines(stderr, errors)];
        Ok(Self {
            start_time: started,
            child,
            input,
            output_ended: silent,
            readers,
        })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes to the standard input.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut input = self.input();
        input
            .as_mut()
            .context("the program's input is closed")?
            .write_all(bytes)
            .context("the program has ended")
    }

    /// Writes a line to the standard input.
    pub fn write_line(&self, line: impl Display) -> Result<()> {
        self.write(format!("{line}\n").as_bytes())
    }

    /// Closes the standard input.
    pub fn close_input(&self) {
        drop(self.input().take());
    }

    /// Transfers the standard input to another writer. Returns `None` if the input is closed.
    pub fn take_input(&self) -> Option<ChildStdin> {
        self.input().take()
    }

    /// Returns the standard input to the process after [`take_input`](Self::take_input).
    pub fn restore_input(&self, input: ChildStdin) {
        *self.input() = Some(input);
    }

    /// Waits until the program has exited and all of its output has been read. If that takes longer
    /// than `patience`, the program is killed, which is an error.
    pub fn wait_for_exit(&mut self, patience: Duration) -> Result<ExitStatus> {
        let ended = self.output_ended.wait_until(patience, |silent| *silent);
        if !ended {
            drop(self.child.kill());
        }
        let status = self
            .child
            .wait()
            .context("failed to wait for the program")?;
        if !ended {
            bail!("the program did not end within {} s", patience.as_secs());
        }
        for reader in self.readers.drain(..) {
            // A thread that panicked has printed the reason.
            drop(reader.join());
        }
        Ok(status)
    }

    /// Sends SIGTERM to the program. Does not wait.
    pub fn terminate(&self) -> Result<()> {
        let sent = Command::new("kill")
            .arg(self.pid().to_string())
            .status()
            .context("failed to start kill")?;
        if sent.success() {
            Ok(())
        } else {
            bail!("the program has ended already")
        }
    }

    /// Returns whether the program has exited. Does not wait.
    pub fn has_exited(&mut self) -> Result<bool> {
        Ok(self
            .child
            .try_wait()
            .context("failed to check whether the program has ended")?
            .is_some())
    }

    /// Kills the program with SIGKILL and waits until it has exited.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().context("failed to kill the program")?;
        self.child
            .wait()
            .context("failed to wait for the program")?;
        Ok(())
    }

    fn input(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.input.lock()
    }
}

impl Drop for ProgramProcess {
    fn drop(&mut self) {
        // Both calls have no effect if the program has exited.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads a stream on a separate thread and passes its events to `hear`.
pub(crate) fn read_lines(
    stream: impl Read + Send + 'static,
    mut hear: impl FnMut(StreamEvent<'_>) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::with_capacity(256 << 10, stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match stream.read_until(b'\n', &mut line) {
                Ok(0) => return hear(StreamEvent::End),
                Ok(_) => {
                    let bare = line.strip_suffix(b"\n").unwrap_or(&line);
                    hear(StreamEvent::Line(
                        bare.strip_suffix(b"\r").unwrap_or(bare),
                        Instant::now(),
                    ));
                }
                Err(error) => {
                    hear(StreamEvent::ReadError(&error));
                    return hear(StreamEvent::End);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Runs a shell script and returns the lines of its output.
    fn script(script: &str) -> (ProgramProcess, Receiver<String>) {
        let (sender, lines) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        let hear = move |heard: StreamEvent<'_>| {
            if let StreamEvent::Line(line, _) = heard {
                sender
                    .send(String::from_utf8_lossy(line).into_owned())
                    .unwrap();
            }
        };
        (
            ProgramProcess::start(&mut command, hear, |_| ()).unwrap(),
            lines,
        )
    }

    #[test]
    fn input_is_read_and_answered_line_by_line() {
        let (mut process, lines) =
            script("while read -r line; do echo \"got $line\"; done; printf last; exit 3");
        process.write(b"one\ntwo\n").unwrap();
        assert_eq!(
            (lines.recv().unwrap(), lines.recv().unwrap()),
            ("got one".to_owned(), "got two".to_owned())
        );
        process.close_input();
        assert_eq!(
            process.wait_for_exit(crate::DEADLINE).unwrap().code(),
            Some(3)
        );
        assert_eq!(lines.try_recv().unwrap(), "last");
        assert!(process.write_line("more").is_err());
    }

    #[test]
    fn a_program_that_does_not_end_in_time_is_killed() {
        let (mut process, _lines) = script("cat");
        let error = process
            .wait_for_exit(Duration::from_millis(10))
            .unwrap_err();
        assert_eq!(error.to_string(), "the program did not end within 0 s");
        assert!(process.has_exited().unwrap());
    }

    #[test]
    fn an_error_names_a_missing_program() {
        let error = ProgramProcess::start(
            &mut Command::new("/nowhere/no-such-program"),
            |_| (),
            |_| (),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to start /nowhere/no-such-program"
        );
    }
}

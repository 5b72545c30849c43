//! A running program whose output is read line by line.

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::signal::Signal;

/// An event of one of the program's output streams.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// A line without its line feed, and when it was read.
    Line(&'a [u8], Instant),
    /// The stream cannot be read any further; the text says why.
    Broken(&'a std::io::Error),
    /// The stream has ended. No further event follows.
    End,
}

/// A running program. Dropping it kills it unless it has ended.
#[derive(Debug)]
pub struct Process {
    /// When it was started.
    pub started: Instant,
    child: Child,
    /// `None` if its input was closed, or is used by another writer.
    input: Mutex<Option<ChildStdin>>,
    /// Whether its standard output has ended.
    silent: Arc<Signal<bool>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts a command. Reads each of its output streams on a separate thread, which passes the events on. The input
    /// is a pipe if `command` says so.
    pub fn start(
        command: &mut Command,
        mut output: impl FnMut(Heard<'_>) + Send + 'static,
        errors: impl FnMut(Heard<'_>) + Send + 'static,
    ) -> Result<Self> {
        let started = Instant::now();
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.with_context(|| format!("failed to start {}", command.get_program().display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let input = Mutex::new(child.stdin.take());
        let silent = Arc::new(Signal::new(false));
        let ended = Arc::clone(&silent);
        let until_silent = move |heard: Heard<'_>| {
            output(heard);
            if let Heard::End = heard {
                ended.update(|silent| *silent = true);
            }
        };
        let readers = vec![listen(stdout, until_silent), listen(stderr, errors)];
        Ok(Self { started, child, input, silent, readers })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes to its input.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut input = self.input();
        input.as_mut().context("the program's input is closed")?.write_all(bytes).context("the program has ended")
    }

    /// Writes a line to its input.
    pub fn write_line(&self, line: impl Display) -> Result<()> {
        self.write(format!("{line}\n").as_bytes())
    }

    /// Ends its input.
    pub fn close_input(&self) {
        drop(self.input().take());
    }

    /// Hands its input to another writer; `None` if it is closed.
    pub fn take_input(&self) -> Option<ChildStdin> {
        self.input().take()
    }

    /// Takes its input back.
    pub fn give_input(&self, input: ChildStdin) {
        *self.input() = Some(input);
    }

    /// Waits until it has ended and all of its output was read. If that takes longer than `patience`, it is killed,
    /// which is an error.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let ended = self.silent.wait_until(patience, |silent| *silent);
        if !ended {
            drop(self.child.kill());
        }
        let status = self.child.wait().context("failed to wait for the program")?;
        if !ended {
            bail!("the program did not end within {} s", patience.as_secs());
        }
        for reader in self.readers.drain(..) {
            // A thread that panicked has printed why.
            drop(reader.join());
        }
        Ok(status)
    }

    /// Asks it to end, with SIGTERM. Does not wait.
    pub fn ask_to_end(&self) -> Result<()> {
        let sent = Command::new("kill").arg(self.pid().to_string()).status().context("failed to start kill")?;
        if sent.success() { Ok(()) } else { bail!("the program has ended already") }
    }

    /// Whether it has ended. Does not wait.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("failed to check whether the program has ended")?.is_some())
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().context("failed to kill the program")?;
        self.child.wait().context("failed to wait for the program")?;
        Ok(())
    }

    fn input(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both are harmless if it has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads a stream on a separate thread.
pub(crate) fn listen(
    stream: impl Read + Send + 'static,
    mut hear: impl FnMut(Heard<'_>) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::with_capacity(256 << 10, stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match stream.read_until(b'\n', &mut line) {
                Ok(0) => return hear(Heard::End),
                Ok(_) => {
                    let bare = line.strip_suffix(b"\n").unwrap_or(&line);
                    hear(Heard::Line(bare.strip_suffix(b"\r").unwrap_or(bare), Instant::now()));
                }
                Err(error) => {
                    hear(Heard::Broken(&error));
                    return hear(Heard::End);
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
    fn script(script: &str) -> (Process, Receiver<String>) {
        let (sender, lines) = channel();
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        let hear = move |heard: Heard<'_>| {
            if let Heard::Line(line, _) = heard {
                sender.send(String::from_utf8_lossy(line).into_owned()).unwrap();
            }
        };
        (Process::start(&mut command, hear, |_| ()).unwrap(), lines)
    }

    #[test]
    fn input_is_read_and_answered_line_by_line() {
        let (mut process, lines) = script("while read -r line; do echo \"got $line\"; done; printf last; exit 3");
        process.write(b"one\ntwo\n").unwrap();
        assert_eq!((lines.recv().unwrap(), lines.recv().unwrap()), ("got one".to_owned(), "got two".to_owned()));
        process.close_input();
        assert_eq!(process.wait(crate::DEADLINE).unwrap().code(), Some(3));
        assert_eq!(lines.try_recv().unwrap(), "last");
        assert!(process.write_line("more").is_err());
    }

    #[test]
    fn a_program_that_does_not_end_in_time_is_killed() {
        let (mut process, _lines) = script("cat");
        let error = process.wait(Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.to_string(), "the program did not end within 0 s");
        assert!(process.has_ended().unwrap());
    }

    #[test]
    fn an_error_names_a_missing_program() {
        let error = Process::start(&mut Command::new("/nowhere/no-such-program"), |_| (), |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "failed to start /nowhere/no-such-program");
    }
}

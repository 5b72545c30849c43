//! A running program, whose output is heard line by line.

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::signal::Signal;

/// What a stream of the program brings.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// A line without its end, and when it was read.
    Line(&'a [u8], Instant),
    /// The stream cannot be read any further, and why.
    Broken(&'a std::io::Error),
    /// The stream has ended. Nothing comes after this.
    End,
}

/// A running program. Dropped, it is killed unless it has ended.
#[derive(Debug)]
pub struct Process {
    /// When it was started.
    pub started: Instant,
    child: Child,
    /// Taken when its input ends, or by somebody else who writes to it.
    input: Mutex<Option<ChildStdin>>,
    /// Whether its standard output has ended.
    silent: Arc<Signal<bool>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts a command. Each of its output streams is read on a thread of its own, which hands over what it hears.
    /// Its input is a pipe if `command` says so, and is otherwise as the command has it.
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
        input.as_mut().context("the program's input is closed")?.write_all(bytes).context("the program has gone")
    }

    /// Writes a line to its input.
    pub fn write_line(&self, line: impl Display) -> Result<()> {
        self.write(format!("{line}\n").as_bytes())
    }

    /// Ends its input.
    pub fn close_input(&self) {
        drop(self.input().take());
    }

    /// Hands its input to somebody else; `None` if it is closed.
    pub fn take_input(&self) -> Option<ChildStdin> {
        self.input().take()
    }

    /// Takes its input back.
    pub fn give_input(&self, input: ChildStdin) {
        *self.input() = Some(input);
    }

    /// Waits until it has ended and everything that it said was heard. One that is not silent within `patience` is
    /// killed, and that is an error.
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
            // One that panicked has said so.
            drop(reader.join());
        }
        Ok(status)
    }

    /// Whether it has ended; it is not waited for.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("failed to look after the program")?.is_some())
    }

    /// Kills it: it runs no line of its code any more.
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
        // Both are harmless for one that has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads a stream on a thread of its own.
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

    /// A shell script, and the lines of its output.
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
    fn what_is_written_is_read_and_answered_line_by_line() {
        let (mut process, lines) = script("while read -r line; do echo \"got $line\"; done; printf last; exit 3");
        process.write(b"one\ntwo\n").unwrap();
        assert_eq!((lines.recv().unwrap(), lines.recv().unwrap()), ("got one".to_owned(), "got two".to_owned()));
        process.close_input();
        assert_eq!(process.wait(crate::DEADLINE).unwrap().code(), Some(3));
        assert_eq!(lines.try_recv().unwrap(), "last");
        assert!(process.write_line("more").is_err());
    }

    #[test]
    fn one_that_does_not_end_in_time_is_killed() {
        let (mut process, _lines) = script("cat");
        let error = process.wait(Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.to_string(), "the program did not end within 0 s");
        assert!(process.has_ended().unwrap());
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Process::start(&mut Command::new("/nowhere/no-such-program"), |_| (), |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "failed to start /nowhere/no-such-program");
    }
}

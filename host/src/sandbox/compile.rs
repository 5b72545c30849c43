//! Has a component compiled by a child process, and says what became of it.

use std::fs::File;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytesize::ByteSize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::prepared::{PrepareError, one_line};
use super::worker::UNWRITTEN;

/// How much of a child's complaint is read.
const COMPLAINT: u64 = 4096;

/// What a compile may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compile {
    /// Address space.
    pub memory: ByteSize,
    /// Processor time, all threads together.
    pub cpu: Duration,
    /// Wall clock: waiting counts as well.
    pub timeout: Duration,
}

/// Compiles components, each in a child.
#[derive(Debug)]
pub(super) struct Compiler {
    program: PathBuf,
    stack: ByteSize,
    limits: Compile,
}

impl Compiler {
    /// `program` is a `toolbay`.
    pub(super) fn new(program: PathBuf, stack: ByteSize, limits: Compile) -> Self {
        Self { program, stack, limits }
    }

    /// Compiles `bytes` into the file `output`. Dropping the future kills the child.
    pub(super) async fn compile(&self, bytes: &[u8], output: File) -> Result<(), PrepareError> {
        let broken = |what: &str| PrepareError::Hindered(format!("the compiler could not be {what}"));
        let mut child = Command::new(&self.program)
            .arg("compile-worker")
            .arg(self.stack.as_u64().to_string())
            .arg(self.limits.memory.as_u64().to_string())
            .arg(self.limits.cpu.as_secs().max(1).to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| broken(&format!("started: {error}")))?;
        let work = tokio::time::timeout(self.limits.timeout, converse(&mut child, bytes));
        let (status, complaint) = match work.await {
            Ok(done) => done.map_err(|error| broken(&format!("used: {error}")))?,
            Err(_elapsed) => {
                let timeout = humantime::format_duration(self.limits.timeout);
                return Err(PrepareError::Hindered(format!(
                    "compiling it took longer than {timeout} (compile.timeout)"
                )));
            }
        };
        self.judge(status, &complaint)
    }

    fn judge(&self, status: ExitStatus, complaint: &str) -> Result<(), PrepareError> {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal: Option<i32> = None;
        let complaint = one_line(complaint);
        match signal {
            None if status.success() => Ok(()),
            None if status.code() == Some(UNWRITTEN.into()) => Err(PrepareError::Unwritten),
            // A compiler that finds no memory may still unwind far enough to say so.
            None if complaint.contains("memory allocation") => Err(self.out_of_memory()),
            None => Err(PrepareError::Invalid(complaint)),
            // SIGXCPU.
            Some(24) => {
                let cpu = humantime::format_duration(self.limits.cpu);
                Err(PrepareError::Compiler(format!(
                    "compiling it took more than {cpu} of processor time (compile.cpu)"
                )))
            }
            // SIGABRT is how Rust ends when there is no memory.
            Some(6) => Err(self.out_of_memory()),
            // Somebody else's: most likely the machine had no memory left.
            Some(9) => Err(PrepareError::Hindered("compiling it was killed from outside (signal 9)".to_owned())),
            Some(signal) => Err(PrepareError::Compiler(format!("compiling it crashed the compiler (signal {signal})"))),
        }
    }

    fn out_of_memory(&self) -> PrepareError {
        let memory = self.limits.memory.display().iec();
        PrepareError::Compiler(format!("compiling it needs more than {memory} of memory (compile.memory)"))
    }
}

/// Writes the component, and reads the complaint, until the child ends.
async fn converse(child: &mut Child, bytes: &[u8]) -> std::io::Result<(ExitStatus, String)> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A child that ended early has said why, or its status does.
            drop(stdin.write_all(bytes).await);
        }
    };
    let read = async {
        let mut complaint = Vec::new();
        if let Some(stderr) = stderr {
            stderr.take(COMPLAINT).read_to_end(&mut complaint).await?;
        }
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&complaint).into_owned())
    };
    let ((), complaint) = tokio::join!(write, read);
    Ok((child.wait().await?, complaint?))
}

//! Compiles components in a child process, and interprets the child's exit status.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytesize::ByteSize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use toolbay_model::text::{format_duration, join_lines};

use crate::compile::compiler_process::{
    self, EXIT_INVALID, EXIT_WRITE_FAILED, MAX_NOTES_BYTES, WorkerEngines, WorkerJob, WorkerNotes,
};
use crate::compile::preinit;
use crate::compile::source::CompileSource;
use crate::component::prepare_error::PrepareError;

/// Maximum size of error text that is read from a child, in bytes.
const MAX_ERROR_BYTES: usize = 4096;

/// Limits of the compiler process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space, in bytes.
    pub memory: ByteSize,
    /// CPU time of all threads together.
    pub cpu: Duration,
    /// Wall-clock time.
    pub timeout: Duration,
}

/// A compiler that runs in a child process or in this process.
pub(crate) struct Compiler {
    compile_place: CompilePlace,
    limits: CompileLimits,
}

/// The process in which components are compiled.
enum CompilePlace {
    /// A child process for each component. It runs the given `toolbay` executable for guests with a
    /// native stack of this size. The flag is true if guests can have async functions.
    Child(PathBuf, ByteSize, bool),
    /// This process, with the same engines as the child.
    InProcess(Box<WorkerEngines>),
}

impl Compiler {
    /// Creates a compiler. `program` is a `toolbay` executable. `None` compiles in this process.
    pub(crate) fn new(
        program: Option<PathBuf>,
        stack: ByteSize,
        allows_async: bool,
        limits: CompileLimits,
    ) -> wasmtime::Result<Self> {
        let compile_place = match program {
            Some(program) => CompilePlace::Child(program, stack, allows_async),
            None => CompilePlace::InProcess(Box::new(WorkerEngines::new(stack, allows_async)?)),
        };
        Ok(Self {
            compile_place,
            limits,
        })
    }

    /// Compiles `source` into the file `output`. Dropping the future kills the child.
    pub(crate) async fn compile(
        &self,
        source: &CompileSource,
        output: File,
    ) -> Result<WorkerNotes, PrepareError> {
        match &self.compile_place {
            CompilePlace::Child(program, stack, allows_async) => {
                let notes_json = self
                    .run_child(
                        program,
                        *stack,
                        *allows_async,
                        WorkerJob::Compile,
                        (source, &[]),
                        output,
                    )
                    .await?;
                let read = move || {
                    serde_json::from_slice(&notes_json)
                        .map_err(|error| format!("the compiler's output is invalid: {error}"))
                };
                let notes = tokio::task::spawn_blocking(read).await;
                notes
                    .unwrap_or_else(|error| {
                        Err(format!("reading the compiler's output failed: {error}"))
                    })
                    .map_err(PrepareError::Transient)
            }
            CompilePlace::InProcess(engines) => {
                let engines = WorkerEngines::clone(engines);
                let source = source.clone();
                run_in_process(
                    move || compiler_process::compile(&engines, source.file, &source.wit),
                    output,
                )
                .await
            }
        }
    }

    /// Adds exports that expose the state of `source`, and writes the result into the file
    /// `output`.
    pub(crate) async fn instrument(
        &self,
        source: &CompileSource,
        output: File,
    ) -> Result<(), PrepareError> {
        match &self.compile_place {
            CompilePlace::Child(program, stack, allows_async) => {
                let input = (source, [].as_slice());
                self.run_child(
                    program,
                    *stack,
                    *allows_async,
                    WorkerJob::Instrument,
                    input,
                    output,
                )
                .await
                .map(drop)
            }
            CompilePlace::InProcess(_) => {
                let CompileSource { file, wit } = source.clone();
                run_in_process(move || Ok((preinit::instrument(file, &wit)?, ())), output).await
            }
        }
    }

    /// Replaces the state of `source` with the encoded memory snapshot `image`, and writes the
    /// result into the file `output`.
    pub(crate) async fn snapshot(
        &self,
        source: &CompileSource,
        image: Vec<u8>,
        output: File,
    ) -> Result<(), PrepareError> {
        match &self.compile_place {
            CompilePlace::Child(program, stack, allows_async) => {
                let input = (source, image.as_slice());
                self.run_child(
                    program,
                    *stack,
                    *allows_async,
                    WorkerJob::Snapshot,
                    input,
                    output,
                )
                .await
                .map(drop)
            }
            CompilePlace::InProcess(_) => {
                let CompileSource { file, wit } = source.clone();
                run_in_process(
                    move || Ok((compiler_process::snapshot(file, &wit, &image)?, ())),
                    output,
                )
                .await
            }
        }
    }

    /// Runs a job in a child process. Returns the child's standard error, which contains the notes
    /// if the job succeeds.
    async fn run_child(
        &self,
        program: &Path,
        stack: ByteSize,
        allows_async: bool,
        job: WorkerJob,
        (source, rest): (&CompileSource, &[u8]),
        output: File,
    ) -> Result<Vec<u8>, PrepareError> {
        let mut child = Command::new(program)
            .arg("compile-worker")
            .arg(stack.as_u64().to_string())
            .arg(self.limits.memory.as_u64().to_string())
            .arg(self.limits.cpu.as_secs().max(1).to_string())
            .args(allows_async.then_some("--async"))
            .args(match job {
                WorkerJob::Compile => None,
                WorkerJob::Instrument => Some("--instrument"),
                WorkerJob::Snapshot => Some("--snapshot"),
            })
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                PrepareError::Transient(format!("cannot start the compiler: {error}"))
            })?;
        let work = tokio::time::timeout(
            self.limits.timeout,
            exchange_with_child(&mut child, source, rest),
        );
        let (status, error_output) = match work.await {
            Ok(done) => done.map_err(|error| {
                PrepareError::Transient(format!("cannot communicate with the compiler: {error}"))
            })?,
            Err(_elapsed) => {
                let timeout = format_duration(self.limits.timeout);
                return Err(PrepareError::TimedOut(format!(
                    "compiling it took longer than {timeout} (to allow more, raise compile.timeout)"
                )));
            }
        };
        self.check_exit(status, &error_output)?;
        Ok(error_output)
    }

    fn check_exit(&self, status: ExitStatus, error_output: &[u8]) -> Result<(), PrepareError> {
        let signal = status.signal();
        let message = join_lines(&String::from_utf8_lossy(
            error_output.get(..MAX_ERROR_BYTES).unwrap_or(error_output),
        ));
        match signal {
            None if status.success() => Ok(()),
            None if status.code() == Some(EXIT_WRITE_FAILED.into()) => {
                Err(PrepareError::WriteFailed)
            }
            // A compiler that runs out of memory can still unwind and report it.
            None if message.contains("memory allocation") => Err(self.out_of_memory()),
            None if status.code() == Some(EXIT_INVALID.into()) => {
                Err(PrepareError::Invalid(message))
            }
            None => Err(PrepareError::Crashed(message)),
            // SIGXCPU.
            Some(24) => {
                let cpu = format_duration(self.limits.cpu);
                Err(PrepareError::CompilerLimit(format!(
                    "compiling it took more than {cpu} of CPU time (to allow more, raise compile.cpu_time)"
                )))
            }
            // SIGXFSZ: the file exceeds the file size limit of the system.
            Some(25) => Err(PrepareError::WriteFailed),
            // SIGABRT: Rust aborts with this signal when it is out of memory.
            Some(6) => Err(self.out_of_memory()),
            // The signal was sent by another process, most likely because the machine was out of
            // memory.
            Some(9) => Err(PrepareError::Transient(
                "its compiler was killed by another process (signal 9)".to_owned(),
            )),
            Some(signal) => Err(PrepareError::Crashed(format!(
                "the compiler crashed while compiling it (signal {signal})"
            ))),
        }
    }

    fn out_of_memory(&self) -> PrepareError {
        let memory = self.limits.memory.display().iec();
        PrepareError::CompilerLimit(format!(
            "compiling it needs more than {memory} of memory (to allow more, raise compile.memory)"
        ))
    }
}

/// Runs `work` in this process, without limits and without a way to interrupt it.
async fn run_in_process<T: Send + 'static>(
    work: impl FnOnce() -> Result<(Vec<u8>, T), String> + Send + 'static,
    mut output: File,
) -> Result<T, PrepareError> {
    let work = tokio::task::spawn_blocking(move || {
        let (bytes, notes) =
            work().map_err(|complaint| PrepareError::Invalid(join_lines(&complaint)))?;
        output
            .write_all(&bytes)
            .map_err(|_| PrepareError::WriteFailed)?;
        Ok(notes)
    });
    work.await.unwrap_or_else(|error| {
        Err(PrepareError::Transient(format!(
            "compiling it failed: {error}"
        )))
    })
}

/// Writes the source, and reads the notes or the error until the child ends.
async fn exchange_with_child(
    child: &mut Child,
    source: &CompileSource,
    rest: &[u8],
) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let stdin = child.stdin.take();
    let stderr = child.stderr.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // If the child ended early, its error output or exit status has the reason.
            let [file, wit] = [source.file.as_slice(), source.wit.as_bytes()];
            let [file_length, wit_length] =
                [file, wit].map(|part| (part.len() as u64).to_le_bytes());
            for part in [&file_length, file, &wit_length, wit, rest] {
                if stdin.write_all(part).await.is_err() {
                    return;
                }
            }
        }
    };
    let read = async {
        let mut error_output = Vec::new();
        if let Some(stderr) = stderr {
            stderr
                .take((MAX_NOTES_BYTES + MAX_ERROR_BYTES) as u64)
                .read_to_end(&mut error_output)
                .await?;
        }
        Ok::<_, std::io::Error>(error_output)
    };
    let ((), error_output) = tokio::join!(write, read);
    Ok((child.wait().await?, error_output?))
}

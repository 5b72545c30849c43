//! Runs programs that print secrets, as children of this process or of a worker process that has
//! more rights.
//!
//! A server that confines itself can no longer start such programs, and its children would be
//! confined as well. So the server first starts a worker, a process of the same program, and sends
//! requests to it. The worker decides independently: it starts only the programs that the grants
//! name, which the server cannot write ([`serve`]).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::program::{self, MAX_OUTPUT_BYTES, ProgramFailure};

/// Maximum size of a request, in bytes: more than the largest grant.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// Maximum number of requests that wait to be sent.
const MAX_QUEUED_REQUESTS: usize = 64;

/// Maximum number of programs that the worker runs concurrently.
const MAX_RUNNING_PROGRAMS: usize = 64;

type ProgramOutput = Result<Zeroizing<Vec<u8>>, ProgramFailure>;

/// Channels to the callers that wait for a response, by request id.
type OutputWaiters = HashMap<u64, oneshot::Sender<ProgramOutput>>;

/// Runner of programs that print secrets. The default starts them from this process. Clones share
/// the worker.
#[derive(Clone, Default)]
pub struct ProgramRunner(ProgramHost);

/// What starts the programs.
#[derive(Clone, Default)]
enum ProgramHost {
    #[default]
    ThisProcess,
    Worker(Arc<ProgramWorker>),
    /// No program is started.
    Nothing,
}

struct ProgramWorker {
    /// Pipes to the worker, before the first request.
    pipes: Mutex<Option<(ChildStdin, ChildStdout)>>,
    /// Sender of requests, after the first request.
    sender: OnceLock<mpsc::Sender<(ProgramRequest, oneshot::Sender<ProgramOutput>)>>,
    /// The worker, which ends when its standard input is closed.
    _child: Child,
}

struct ProgramRequest {
    grant: String,
    words: Vec<String>,
}

impl ProgramRunner {
    /// Starts the worker: a program that calls [`serve`] with its standard input and output.
    ///
    /// # Errors
    ///
    /// Returns an error if the worker cannot be started.
    pub fn with_worker(mut worker: std::process::Command) -> io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        use std::process::Stdio;
        // Detach the worker from terminal signals: the server receives them and may take time to
        // shut down.
        let mut child = worker
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        Ok(Self(ProgramHost::Worker(Arc::new(ProgramWorker {
            pipes: Mutex::new(pipes),
            sender: OnceLock::new(),
            _child: child,
        }))))
    }

    /// Creates a runner that starts no program: for commands that only show what a grant of a
    /// stranger asks for. The secrets of programs stay unread.
    pub const fn disabled() -> Self {
        Self(ProgramHost::Nothing)
    }

    /// Returns whether no program is started.
    pub(crate) const fn is_disabled(&self) -> bool {
        matches!(self.0, ProgramHost::Nothing)
    }

    /// Runs a program, the first of `words`, in the plugin folder `folder`, and returns its output.
    /// The grant with the file name `grant` names the program. Dropping the future kills a program
    /// that this process started.
    pub(crate) async fn run(&self, grant: &str, words: &[String], folder: &Path) -> ProgramOutput {
        let worker = match &self.0 {
            ProgramHost::ThisProcess => return program::run(words, folder).await,
            ProgramHost::Nothing => return Err(ProgramFailure::NotAllowed),
            ProgramHost::Worker(worker) => worker,
        };
        let sender = worker
            .request_sender()
            .map_err(|error| ProgramFailure::Start(error.kind().to_string()))?;
        let (response_sender, response) = oneshot::channel();
        let request = ProgramRequest {
            grant: grant.to_owned(),
            words: words.to_owned(),
        };
        sender
            .send((request, response_sender))
            .await
            .map_err(|_| ProgramFailure::WorkerGone)?;
        response.await.unwrap_or(Err(ProgramFailure::WorkerGone))
    }
}

impl fmt::Debug for ProgramRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ProgramHost::ThisProcess => "ProgramRunner(in-process)",
            ProgramHost::Worker(_) => "ProgramRunner(worker)",
            ProgramHost::Nothing => "ProgramRunner(disabled)",
        })
    }
}

impl ProgramWorker {
    /// Returns the sender of requests. Must be called on a Tokio runtime.
    fn request_sender(
        &self,
    ) -> io::Result<&mpsc::Sender<(ProgramRequest, oneshot::Sender<ProgramOutput>)>> {
        let pipes = lock(&self.pipes).take();
        if let Some((input, output)) = pipes {
            let input = tokio::process::ChildStdin::from_std(input)?;
            let output = tokio::process::ChildStdout::from_std(output)?;
            let (sender, receiver) = mpsc::channel(MAX_QUEUED_REQUESTS);
            let pending = PendingPrograms::default();
            tokio::spawn(receive_responses(output, pending.clone()));
            tokio::spawn(send_requests(input, receiver, pending));
            // Cannot be set already, because the pipes are taken only once.
            drop(self.sender.set(sender));
        }
        self.sender
            .get()
            .ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

/// Waiting requests; `None` after the worker has ended.
#[derive(Clone)]
struct PendingPrograms(Arc<Mutex<Option<OutputWaiters>>>);

impl Default for PendingPrograms {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(HashMap::new()))))
    }
}

/// Sends requests until all senders are dropped or the worker ends.
async fn send_requests(
    mut worker: impl AsyncWrite + Unpin,
    mut requests: mpsc::Receiver<(ProgramRequest, oneshot::Sender<ProgramOutput>)>,
    pending: PendingPrograms,
) {
    let mut id = 0;
    while let Some((request, waiter)) = requests.recv().await {
        id += 1;
        match &mut *lock(&pending.0) {
            Some(waiters) => drop(waiters.insert(id, waiter)),
            None => return,
        }
        let text = serde_json::json!({"grant": request.grant, "words": request.words}).to_string();
        let sending = async {
            worker.write_u64_le(id).await?;
            worker
                .write_u32_le(u32::try_from(text.len()).unwrap_or(u32::MAX))
                .await?;
            worker.write_all(text.as_bytes()).await?;
            worker.flush().await
        };
        if sending.await.is_err() {
            drop(lock(&pending.0).take());
            return;
        }
    }
}

/// Receives responses until the worker ends. Requests that still wait then fail.
async fn receive_responses(mut worker: impl AsyncRead + Unpin, pending: PendingPrograms) {
    while let Ok((id, output)) = read_response(&mut worker).await {
        let waiter = lock(&pending.0)
            .as_mut()
            .and_then(|waiters| waiters.remove(&id));
        // Fails if the caller no longer waits.
        waiter.map(|sender| sender.send(output));
    }
    drop(lock(&pending.0).take());
}

/// Handles requests from `input` and writes responses to `output` until `input` ends. Then kills
/// the programs that still run. Programs run in the plugin folder `folder`. `allowed` returns
/// whether the grant with this file name names this program with these arguments; it may block.
///
/// # Errors
///
/// Returns an error if a request is invalid.
pub async fn serve(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
    folder: &Path,
    allowed: impl Fn(&str, &[String]) -> bool + Send + Sync + 'static,
) -> io::Result<()> {
    let (response_sender, mut responses) = mpsc::channel::<(u64, ProgramOutput)>(1);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Some((id, response)) = responses.recv().await {
            if write_response(&mut output, id, response).await.is_err() {
                break;
            }
        }
    });
    let permits = Arc::new(Semaphore::new(MAX_RUNNING_PROGRAMS));
    let allowed = Arc::new(allowed);
    loop {
        let Ok(id) = input.read_u64_le().await else {
            return Ok(());
        };
        let length = usize::try_from(input.read_u32_le().await?).unwrap_or(usize::MAX);
        if length > MAX_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = vec![0; length];
        input.read_exact(&mut text).await?;
        let request: serde_json::Value = serde_json::from_slice(&text)?;
        let grant = request
            .get("grant")
            .and_then(|grant| grant.as_str())
            .unwrap_or_default()
            .to_owned();
        let words = request
            .get("words")
            .and_then(|words| words.as_array())
            .into_iter()
            .flatten();
        let words: Vec<String> = words
            .filter_map(|word| word.as_str())
            .map(str::to_owned)
            .collect();
        // The semaphore is never closed.
        let permit = Arc::clone(&permits).acquire_owned().await;
        let task_sender = response_sender.clone();
        let allowed = Arc::clone(&allowed);
        let folder = folder.to_owned();
        tasks.spawn(async move {
            let _permit = permit;
            let checked_words = words.clone();
            let is_allowed = tokio::task::spawn_blocking(move || allowed(&grant, &checked_words))
                .await
                .unwrap_or(false);
            let output = if is_allowed {
                program::run(&words, &folder).await
            } else {
                Err(ProgramFailure::NotAllowed)
            };
            drop(task_sender.send((id, output)).await);
        });
        // Remove finished tasks.
        while tasks.try_join_next().is_some() {}
    }
}

/// Writes a response: the id, the kind of outcome, the exit code, and the length and bytes of the
/// output or of an error message.
async fn write_response(
    to: &mut (impl AsyncWrite + Unpin),
    id: u64,
    output: ProgramOutput,
) -> io::Result<()> {
    let (kind, code, bytes) = match output {
        Ok(output) => (0, 0, output),
        Err(ProgramFailure::NotFound) => (1, 0, Zeroizing::default()),
        Err(ProgramFailure::Start(why)) => (2, 0, Zeroizing::new(why.into_bytes())),
        Err(ProgramFailure::Status(code)) => (3, code, Zeroizing::default()),
        Err(ProgramFailure::Killed) => (4, 0, Zeroizing::default()),
        Err(ProgramFailure::Timeout) => (5, 0, Zeroizing::default()),
        Err(ProgramFailure::OutputTooLarge) => (6, 0, Zeroizing::default()),
        Err(ProgramFailure::NotAllowed | ProgramFailure::WorkerGone) => {
            (7, 0, Zeroizing::default())
        }
    };
    to.write_u64_le(id).await?;
    to.write_u8(kind).await?;
    to.write_i32_le(code).await?;
    to.write_u32_le(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
        .await?;
    to.write_all(&bytes).await?;
    to.flush().await
}

async fn read_response(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(u64, ProgramOutput)> {
    let id = from.read_u64_le().await?;
    let kind = from.read_u8().await?;
    let code = from.read_i32_le().await?;
    let length = usize::try_from(from.read_u32_le().await?).unwrap_or(usize::MAX);
    if length > MAX_OUTPUT_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Allocate the exact size, because growing would leave a copy of the secret in memory.
    let mut bytes = Zeroizing::new(vec![0; length]);
    from.read_exact(&mut bytes).await?;
    let output = match kind {
        0 => Ok(bytes),
        1 => Err(ProgramFailure::NotFound),
        2 => Err(ProgramFailure::Start(
            String::from_utf8_lossy(&bytes).into_owned(),
        )),
        3 => Err(ProgramFailure::Status(code)),
        4 => Err(ProgramFailure::Killed),
        5 => Err(ProgramFailure::Timeout),
        6 => Err(ProgramFailure::OutputTooLarge),
        7 => Err(ProgramFailure::NotAllowed),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok((id, output))
}

// Locks a mutex that is held only briefly and never across an await.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests;

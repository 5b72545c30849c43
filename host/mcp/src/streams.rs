//! The process's standard input and output, not blocking where that is possible.
//!
//! Tokio's own standard streams hop through a thread pool, at twice the
//! latency and a fifth of the throughput. They remain for files and terminals.

use std::pin::Pin;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Duration, interval};

/// How often it is looked whether anybody reads, while that matters: a guest
/// for whom nobody waits any more goes on for no longer than this.
const LOOK: Duration = Duration::from_millis(2);

/// Where a client's messages come from.
pub type Reader = Pin<Box<dyn AsyncRead + Send>>;

/// Where ours go.
pub type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// Standard input and output. Must be called on a tokio runtime.
pub fn standard() -> (Reader, Writer) {
    let reader = unblocked::reader().unwrap_or_else(|| Box::pin(tokio::io::stdin()));
    let writer = unblocked::writer().unwrap_or_else(|| Box::pin(tokio::io::stdout()));
    (reader, writer)
}

/// Waits until nobody reads standard output any more.
pub async fn nobody_reads() {
    // Neither pipes nor sockets wake anybody for this alone.
    let mut looks = interval(LOOK);
    loop {
        looks.tick().await;
        if is_unread() {
            return;
        }
    }
}

/// Whether the other end of standard output is closed; false where that cannot be told.
fn is_unread() -> bool {
    let stdout = std::io::stdout();
    // `poll` reports hang-ups and errors without being asked for them.
    let mut streams = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut streams, Some(&now)).is_ok()
        && streams.iter().any(|stream| stream.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// The streams themselves, without the thread pool.
mod unblocked {
    use std::fs::File;
    use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Reader, Writer};

    /// Pipes are opened anew, so that the description that other processes may
    /// share stays blocking. Sockets (as Node.js makes) cannot be.
    pub(super) fn reader() -> Option<Reader> {
        if let Ok(pipe) = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
            return Some(Box::pin(pipe));
        }
        Some(Box::pin(socket(std::io::stdin().as_fd())?))
    }

    pub(super) fn writer() -> Option<Writer> {
        if let Ok(pipe) = pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
            return Some(Box::pin(pipe));
        }
        Some(Box::pin(socket(std::io::stdout().as_fd())?))
    }

    fn socket(stream: BorrowedFd<'_>) -> Option<UnixStream> {
        let owned = stream.try_clone_to_owned().ok()?;
        let (file, stderr) = (File::from(owned), File::from(std::io::stderr().as_fd().try_clone_to_owned().ok()?));
        let (metadata, other) = (file.metadata().ok()?, stderr.metadata().ok()?);
        // Our log would meet a full buffer where it expects to wait.
        let shared = (metadata.dev(), metadata.ino()) == (other.dev(), other.ino());
        if !metadata.file_type().is_socket() || shared {
            return None;
        }
        let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
        socket.set_nonblocking(true).ok()?;
        UnixStream::from_std(socket).ok()
    }
}

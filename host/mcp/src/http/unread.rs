//! What a client is still sending when it has its response: the rest of a body that nobody reads.
//!
//! A system that closes a socket with unread bytes sends a reset, and a client that gets one loses the response that it has
//! not read yet. So such a connection is closed in two steps (a lingering close): the server says that it sends nothing
//! more, and reads and forgets what still comes, within bounds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use rustix::net::{Shutdown, shutdown};
use tokio::time::{Instant, timeout_at};

use super::stream::SocketStream;
use super::turns::ReadPace;

/// Bytes that are read at a time: as many as the system holds of a connection. They are there only while they are read.
const PIECE: usize = 256 << 10;

/// What is read and forgotten of one connection. It has its place meanwhile, as an idle one has.
const BOUNDS: DrainBounds =
    DrainBounds { bytes: 16 << 20, time: Duration::from_secs(5), silence: Duration::from_secs(1) };

#[derive(Clone, Copy)]
struct DrainBounds {
    /// Several times the longest body that is accepted by default.
    bytes: usize,
    /// How long reading may go on.
    time: Duration,
    /// How long nothing may arrive meanwhile.
    silence: Duration,
}

/// Whether the body of the newest request of a connection was read to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadBody(Arc<AtomicBool>);

/// The body of a request, which notes that it was read to its end.
pub(super) struct TrackedBody {
    body: Incoming,
    unread: UnreadBody,
}

impl UnreadBody {
    /// `body`, of which nothing is read yet.
    pub(super) fn note(&self, body: Incoming) -> TrackedBody {
        self.set(!body.is_end_stream());
        TrackedBody { body, unread: self.clone() }
    }

    /// Whether something of the body may still come.
    pub(super) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, left: bool) {
        self.0.store(left, Ordering::Relaxed);
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.unread.set(false);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Ends the sending side of a connection whose response is written, and forgets what still arrives: until the client closes
/// its side, and within bounds.
pub(super) async fn drain(stream: &SocketStream, pace: &ReadPace) {
    if shutdown(stream, Shutdown::Write).is_ok() {
        // Whatever ends it, the connection is closed now.
        drop(forget(stream, pace, BOUNDS).await);
    }
}

/// Reads within `bounds`, at this pace even if nobody else is there; about how many bytes there were.
async fn forget(stream: &SocketStream, pace: &ReadPace, bounds: DrainBounds) -> io::Result<usize> {
    let end = Instant::now() + bounds.time;
    let mut forgotten = 0;
    while forgotten < bounds.bytes {
        let patience = end.min(Instant::now() + bounds.silence);
        timeout_at(patience, stream.readable()).await??;
        timeout_at(end, pace.next()).await?;
        match stream.try_read_buf(&mut Vec::with_capacity(PIECE)) {
            Ok(0) => break,
            Ok(count) => forgotten += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::turns::FairScheduler;
    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (listener.accept().await.unwrap().0, peer)
    }

    fn pace() -> ReadPace {
        Arc::new(FairScheduler::default()).pace("192.0.2.7")
    }

    #[tokio::test]
    async fn a_client_that_still_sends_gets_its_response() {
        let (mut stream, mut peer) = pair().await;
        let serving = async {
            stream.write_all(b"no").await.unwrap();
            drain(&SocketStream::Tcp(stream), &pace()).await;
        };
        let asking = async {
            peer.write_all(&vec![7; BOUNDS.bytes / 2]).await.unwrap();
            let mut response = Vec::new();
            peer.read_to_end(&mut response).await.unwrap();
            assert_eq!(response, b"no");
            drop(peer);
        };
        tokio::join!(serving, asking);
    }

    /// Reads within `bounds` from a peer that sends as long as it can.
    async fn flooded(bounds: DrainBounds) -> io::Result<usize> {
        let (stream, mut peer) = pair().await;
        let sending = tokio::spawn(async move { while peer.write_all(&vec![7; PIECE]).await.is_ok() {} });
        let stream = SocketStream::Tcp(stream);
        let forgotten = forget(&stream, &pace(), bounds).await;
        drop(stream);
        sending.await.unwrap();
        forgotten
    }

    #[tokio::test]
    async fn what_is_forgotten_is_bounded() {
        const FEW: usize = 4 * PIECE;
        let forgotten = flooded(DrainBounds { bytes: FEW, ..BOUNDS }).await.unwrap();
        assert!((FEW..FEW + PIECE).contains(&forgotten), "{forgotten}");
    }

    #[tokio::test]
    async fn a_client_that_goes_on_for_ever_is_given_up() {
        let time = Duration::from_millis(50);
        let error = flooded(DrainBounds { bytes: usize::MAX, time, ..BOUNDS }).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_neither_sends_nor_closes_is_given_up() {
        let (stream, peer) = pair().await;
        let (stream, silence) = (SocketStream::Tcp(stream), Duration::from_millis(50));
        let error = forget(&stream, &pace(), DrainBounds { time: Duration::from_hours(1), silence, ..BOUNDS })
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(peer);
    }
}

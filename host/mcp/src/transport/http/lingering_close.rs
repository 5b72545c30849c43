//! Lingering close: drains the rest of a request body that the client is still sending after its
//! response.
//!
//! A system that closes a socket with unread bytes sends a reset. A client that gets a reset loses
//! the response that it has not read yet. Such a connection is therefore closed in two steps (a
//! lingering close): the server shuts down its sending side, and then reads and discards the
//! remaining data, within bounds.

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

use super::connection_scheduler::ReadPace;
use super::sockets::SocketStream;

/// Size of the read buffer, in bytes: as large as the system's receive buffer for a connection. It
/// is allocated only during a read.
const DRAIN_BUFFER_BYTES: usize = 256 << 10;

/// Bounds of the drain of one connection. Like an idle connection, it occupies its slot during the
/// drain.
const DRAIN_BOUNDS: DrainBounds = DrainBounds {
    bytes: 16 << 20,
    time: Duration::from_secs(5),
    idle: Duration::from_secs(1),
};

#[derive(Clone, Copy)]
struct DrainBounds {
    /// Maximum number of bytes: several times the largest body accepted by default.
    bytes: usize,
    /// Maximum duration of the drain.
    time: Duration,
    /// Maximum time without data.
    idle: Duration,
}

/// Tracks whether the body of a connection's most recent request was read to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadBody(Arc<AtomicBool>);

/// A request body that records when it was read to its end.
pub(super) struct TrackedBody {
    body: Incoming,
    unread: UnreadBody,
}

impl UnreadBody {
    /// Wraps `body`, of which nothing is read yet.
    pub(super) fn track(&self, body: Incoming) -> TrackedBody {
        self.set_unread(!body.is_end_stream());
        TrackedBody {
            body,
            unread: self.clone(),
        }
    }

    /// Returns whether more of the body may arrive.
    pub(super) fn may_have_more(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set_unread(&self, left: bool) {
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
            self.unread.set_unread(false);
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

/// Shuts down the sending side of a connection whose response is written, and discards incoming
/// data until the client closes its side, within bounds.
pub(super) async fn drain(stream: &SocketStream, pace: &ReadPace) {
    if shutdown(stream, Shutdown::Write).is_ok() {
        // The connection is closed now, whatever the result.
        drop(discard_incoming(stream, pace, DRAIN_BOUNDS).await);
    }
}

/// Reads within `bounds`, rate-limited even if no other network is connected. Returns approximately
/// how many bytes arrived.
async fn discard_incoming(
    stream: &SocketStream,
    pace: &ReadPace,
    bounds: DrainBounds,
) -> io::Result<usize> {
    let end = Instant::now() + bounds.time;
    let mut discarded = 0;
    while discarded < bounds.bytes {
        let deadline = end.min(Instant::now() + bounds.idle);
        timeout_at(deadline, stream.readable()).await??;
        timeout_at(end, pace.wait_for_chunk()).await?;
        match stream.try_read_buf(&mut Vec::with_capacity(DRAIN_BUFFER_BYTES)) {
            Ok(0) => break,
            Ok(count) => discarded += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(discarded)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::connection_scheduler::FairScheduler;
    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        (listener.accept().await.unwrap().0, peer)
    }

    fn pace() -> ReadPace {
        Arc::new(FairScheduler::default()).read_pace("192.0.2.7")
    }

    #[tokio::test]
    async fn a_client_that_still_sends_gets_its_response() {
        let (mut stream, mut peer) = pair().await;
        let serving = async {
            stream.write_all(b"no").await.unwrap();
            drain(&SocketStream::Tcp(stream), &pace()).await;
        };
        let asking = async {
            peer.write_all(&vec![7; DRAIN_BOUNDS.bytes / 2])
                .await
                .unwrap();
            let mut response = Vec::new();
            peer.read_to_end(&mut response).await.unwrap();
            assert_eq!(response, b"no");
            drop(peer);
        };
        tokio::join!(serving, asking);
    }

    /// Drains, within `bounds`, a peer that sends as long as it can.
    async fn flooded(bounds: DrainBounds) -> io::Result<usize> {
        let (stream, mut peer) = pair().await;
        let sending = tokio::spawn(async move {
            while peer.write_all(&vec![7; DRAIN_BUFFER_BYTES]).await.is_ok() {}
        });
        let stream = SocketStream::Tcp(stream);
        let forgotten = discard_incoming(&stream, &pace(), bounds).await;
        drop(stream);
        sending.await.unwrap();
        forgotten
    }

    #[tokio::test]
    async fn what_is_forgotten_is_bounded() {
        const FEW: usize = 4 * DRAIN_BUFFER_BYTES;
        let forgotten = flooded(DrainBounds {
            bytes: FEW,
            ..DRAIN_BOUNDS
        })
        .await
        .unwrap();
        assert!(
            (FEW..FEW + DRAIN_BUFFER_BYTES).contains(&forgotten),
            "{forgotten}"
        );
    }

    #[tokio::test]
    async fn a_client_that_goes_on_for_ever_is_given_up() {
        let time = Duration::from_millis(50);
        let error = flooded(DrainBounds {
            bytes: usize::MAX,
            time,
            ..DRAIN_BOUNDS
        })
        .await
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_neither_sends_nor_closes_is_given_up() {
        let (stream, peer) = pair().await;
        let stream = SocketStream::Tcp(stream);
        let silence = Duration::from_millis(50);
        let error = discard_incoming(
            &stream,
            &pace(),
            DrainBounds {
                time: Duration::from_hours(1),
                idle: silence,
                ..DRAIN_BOUNDS
            },
        )
        .await
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(peer);
    }
}

//! The socket of a connection, with a timeout for peers that stop reading.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connection_scheduler::ReadPace;
use super::sockets::SocketStream;

/// First interval for polling states that the system does not signal. Each interval is twice the
/// previous one.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum polling interval. A client can keep the server polling for as long as it likes.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that are read before other connections are polled, and before the rate limit applies.
const READ_QUANTUM_BYTES: usize = 64 << 10;

/// A connection's socket, as an I/O stream.
pub(super) struct ConnectionSocket {
    stream: Arc<SocketStream>,
    /// Bytes read since other connections were last polled.
    read: usize,
    pace: Arc<ReadPace>,
    /// Completes when the next chunk may be read.
    pause: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Maximum time that the peer may accept nothing while there is data to write.
    timeout: Duration,
    /// Timer that runs while the peer accepts nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl ConnectionSocket {
    /// Creates a socket whose peer may accept nothing for `timeout`.
    pub(super) fn new(stream: Arc<SocketStream>, pace: Arc<ReadPace>, patience: Duration) -> Self {
        Self {
            stream,
            read: 0,
            pace,
            pause: None,
            timeout: patience,
            stalled: None,
        }
    }

    /// Writes as soon as the peer accepts data.
    fn poll_write_with(
        &mut self,
        context: &mut Context<'_>,
        write: impl Fn(&SocketStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        while self.stream.poll_write_ready(context)?.is_ready() {
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.stalled = None;
                    return Poll::Ready(written);
                }
            }
        }
        let patience = self.timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client accepts nothing (http.write_timeout)",
        )))
    }
}

impl AsyncRead for ConnectionSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= READ_QUANTUM_BYTES {
            self.read = 0;
            if self.pace.is_contended() {
                let pace = Arc::clone(&self.pace);
                self.pause = Some(Box::pin(async move { pace.wait_for_chunk().await }));
            } else {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        loop {
            if self.stream.poll_read_ready(context)?.is_pending() {
                self.read = 0;
                return Poll::Pending;
            }
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    self.read += count;
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for ConnectionSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: the socket is closed right after this.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Waits until the peer has closed its sending side. The peer may still read.
pub(super) async fn wait_half_closed(stream: &SocketStream) -> io::Result<()> {
    let mut interval = MIN_POLL_INTERVAL;
    // `peek` waits for data, and returns 0 at the end of the stream.
    while stream.peek().await? > 0 && !stream.readable().await?.is_read_closed() {
        // Data is being read, or waits until the previous request is answered.
        sleep(interval).await;
        interval = (2 * interval).min(MAX_POLL_INTERVAL);
    }
    Ok(())
}

/// Waits until the peer has closed both sides. The system reports this only after data was sent to
/// the peer.
pub(super) async fn wait_closed(stream: &SocketStream) {
    let mut interval = MIN_POLL_INTERVAL;
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        // `poll` always reports hang-ups and errors.
        let mut streams = [PollFd::new(stream, PollFlags::empty())];
        let looked = poll(&mut streams, Some(&now));
        if looked.is_err()
            || streams
                .iter()
                .any(|one| one.revents().intersects(PollFlags::ERR | PollFlags::HUP))
        {
            return;
        }
        sleep(interval).await;
        interval = (2 * interval).min(MAX_POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream, UnixStream};

    use super::super::connection_scheduler::FairScheduler;
    use super::*;

    const NETWORK: &str = "192.0.2.7";

    async fn pair() -> (Arc<SocketStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        (
            Arc::new(SocketStream::Tcp(listener.accept().await.unwrap().0)),
            peer,
        )
    }

    fn alone() -> Arc<ReadPace> {
        Arc::new(Arc::new(FairScheduler::default()).read_pace(NETWORK))
    }

    #[tokio::test]
    async fn a_peer_that_accepts_nothing_is_given_up() {
        let (stream, peer) = pair().await;
        let mut wire = ConnectionSocket::new(stream, alone(), Duration::from_millis(100));
        let piece = vec![0; 1 << 20];
        let error = loop {
            if let Err(error) = wire.write_all(&piece).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(peer);
    }

    #[tokio::test]
    async fn a_peer_that_sends_much_does_not_read_it_all_in_one_turn() {
        const ALL: usize = 8 * READ_QUANTUM_BYTES;
        const PIECE: usize = 16 << 10;
        let (stream, mut peer) = pair().await;
        let sending =
            tokio::spawn(async move { peer.write_all(&vec![7; ALL]).await.map(|()| peer) });
        let mut wire = ConnectionSocket::new(stream, alone(), Duration::from_mins(1));
        let mut buffer = vec![0; PIECE];
        let mut read = 0;
        let mut most = 0;
        while read < ALL {
            let turn = std::future::poll_fn(|context| {
                let mut turn = 0;
                loop {
                    let mut rest = ReadBuf::new(&mut buffer);
                    match Pin::new(&mut wire).poll_read(context, &mut rest) {
                        Poll::Ready(Ok(())) if rest.filled().is_empty() => {
                            return Poll::Ready(Ok(turn));
                        }
                        Poll::Ready(Ok(())) => turn += rest.filled().len(),
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        // The next quantum.
                        Poll::Pending if turn > 0 => return Poll::Ready(Ok(turn)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
            });
            let turn: usize = turn.await.unwrap();
            (read, most) = (read + turn, most.max(turn));
        }
        sending.await.unwrap().unwrap();
        assert!(
            most < READ_QUANTUM_BYTES + PIECE,
            "{most} bytes in one turn"
        );
    }

    #[tokio::test]
    async fn a_peer_that_reads_slowly_is_served() {
        let (stream, mut peer) = pair().await;
        let mut wire = ConnectionSocket::new(stream, alone(), Duration::from_mins(1));
        let writing = tokio::spawn(async move {
            for _ in 0..64 {
                wire.write_all(&vec![7; 1 << 20]).await.unwrap();
            }
        });
        let mut read = 0;
        let mut buffer = vec![0; 1 << 16];
        while read < 64 << 20 {
            read += peer.read(&mut buffer).await.unwrap();
        }
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn one_that_closed_a_side_and_one_that_is_gone_are_told_apart() {
        let (stream, mut peer) = pair().await;
        peer.write_all(b"a request").await.unwrap();
        peer.shutdown().await.unwrap();
        wait_half_closed(&stream).await.unwrap();
        stream.try_write(b"an answer").unwrap();
        let still = tokio::time::timeout(Duration::from_millis(200), wait_closed(&stream)).await;
        assert!(still.is_err(), "it still reads");
        let mut answer = [0; 9];
        peer.read_exact(&mut answer).await.unwrap();
        drop(peer);
        // The closure is detected when data is sent.
        stream.try_write(b"more").unwrap();
        wait_closed(&stream).await;
    }

    #[tokio::test]
    async fn a_unix_socket_tells_them_apart_too() {
        let (stream, mut peer) = UnixStream::pair().unwrap();
        let stream = SocketStream::Unix(stream);
        let more = tokio::time::timeout(Duration::from_millis(50), wait_half_closed(&stream)).await;
        assert!(more.is_err(), "it may still send");
        peer.write_all(b"a request").await.unwrap();
        assert_eq!(stream.peek().await.unwrap(), 1);
        peer.shutdown().await.unwrap();
        wait_half_closed(&stream).await.unwrap();
        let mut read = [0; 16];
        assert_eq!(stream.try_read(&mut read).unwrap(), 9, "it was left there");
        assert_eq!(stream.peek().await.unwrap(), 0);
        stream.try_write(b"an answer").unwrap();
        let still = tokio::time::timeout(Duration::from_millis(200), wait_closed(&stream)).await;
        assert!(still.is_err(), "it still reads");
        drop(peer);
        wait_closed(&stream).await;
    }

    #[tokio::test]
    async fn a_peer_of_a_unix_socket_that_accepts_nothing_is_given_up() {
        let (stream, _peer) = UnixStream::pair().unwrap();
        let mut wire = ConnectionSocket::new(
            Arc::new(SocketStream::Unix(stream)),
            alone(),
            Duration::from_millis(100),
        );
        let error = wire.write_all(&vec![0; 4 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn much_is_read_at_a_pace_if_another_network_is_there() {
        let turns = Arc::new(FairScheduler::default());
        let _mine = turns.schedule(&NETWORK.into(), async {});
        for other in [None, Some("198.51.100.1")] {
            let _other = other.map(|other| turns.schedule(&other.into(), async {}));
            let (stream, mut peer) = pair().await;
            let sending = tokio::spawn(async move {
                peer.write_all(&vec![7; 2 * READ_QUANTUM_BYTES])
                    .await
                    .map(|()| peer)
            });
            let mut wire = ConnectionSocket::new(
                stream,
                Arc::new(turns.read_pace(NETWORK)),
                Duration::from_mins(1),
            );
            let mut buffer = vec![0; 2 * READ_QUANTUM_BYTES];
            // One quantum, in any number of reads.
            while wire.read < READ_QUANTUM_BYTES {
                wire.stream.readable().await.unwrap();
                let most = READ_QUANTUM_BYTES - wire.read;
                let _: usize = wire.read(&mut buffer[..most]).await.unwrap();
            }
            let next = std::future::poll_fn(|context| {
                Poll::Ready(
                    Pin::new(&mut wire)
                        .poll_read(context, &mut ReadBuf::new(&mut buffer))
                        .is_ready(),
                )
            });
            assert!(!next.await);
            assert_eq!(wire.pause.is_some(), other.is_some());
            assert!(wire.read(&mut buffer).await.unwrap() > 0);
            drop(sending.await.unwrap().unwrap());
        }
    }
}

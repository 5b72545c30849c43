//! A transport that limits the bytes that are read before the head of a response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::SendError;

/// The number of bytes that a connection can still read.
///
/// hyper limits the head of a response, but skips any number of interim responses (1xx) before it.
/// This limit covers all of them. It does not apply to the body of a response, which is read on
/// demand.
#[derive(Clone, Debug)]
pub(crate) struct ReadAllowance(Arc<AtomicUsize>);

impl ReadAllowance {
    pub(crate) fn unlimited() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    /// Sets the remaining allowance to `bytes`.
    pub(crate) fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

/// A transport that reads no more than its allowance.
pub(crate) struct MeteredTransport<T> {
    inner: T,
    allowance: ReadAllowance,
}

impl<T> MeteredTransport<T> {
    pub(crate) fn new(inner: T, allowance: ReadAllowance) -> Self {
        Self { inner, allowance }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for MeteredTransport<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let allowed = self.allowance.0.load(Ordering::Relaxed);
        if allowed == usize::MAX {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        if allowed == 0 {
            return Poll::Ready(Err(io::Error::other(SendError::HeadTooLarge)));
        }
        let length = buf.remaining().min(allowed);
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(length));
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        // Does nothing if another allowance was set in the meantime.
        let _changed = self.allowance.0.compare_exchange(
            allowed,
            allowed - read,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for MeteredTransport<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::{MeteredTransport, ReadAllowance};
    use crate::error::SendError;

    #[tokio::test]
    async fn no_more_is_read_than_is_allowed() {
        let allowance = ReadAllowance::unlimited();
        let mut wire = MeteredTransport::new(&b"0123456789abcdef"[..], allowance.clone());
        let mut buffer = [0; 4];
        allowance.set(6);
        assert_eq!(
            (wire.read(&mut buffer).await.unwrap(), &buffer),
            (4, b"0123")
        );
        assert_eq!(wire.read(&mut buffer).await.unwrap(), 2);
        assert_eq!(&buffer[..2], b"45");
        let error = wire.read(&mut buffer).await.unwrap_err();
        assert_eq!(
            error.get_ref().unwrap().downcast_ref(),
            Some(&SendError::HeadTooLarge)
        );
        allowance.set(usize::MAX);
        let mut rest = Vec::new();
        wire.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"6789abcdef");
    }
}

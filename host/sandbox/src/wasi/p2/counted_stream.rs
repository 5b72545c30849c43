//! Byte-counting streams of a TCP connection.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::pipe::{ClosedInputStream, ClosedOutputStream};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

use crate::capability::sockets::tcp_usage::TcpTraffic;

/// A stream whose bytes are counted. Bytes beyond the limit end the call.
struct CountedStream<S> {
    stream: S,
    tcp_usage: Arc<TcpTraffic>,
}

/// Makes an input stream count the bytes that a connection receives.
pub(super) fn count_input(stream: &mut DynInputStream, traffic: Arc<TcpTraffic>) {
    let uncounted = mem::replace(stream, Box::new(ClosedInputStream));
    *stream = Box::new(CountedStream {
        stream: uncounted,
        tcp_usage: traffic,
    });
}

/// Makes an output stream count the bytes that are sent over a connection.
pub(super) fn count_output(stream: &mut DynOutputStream, traffic: Arc<TcpTraffic>) {
    let uncounted = mem::replace(stream, Box::new(ClosedOutputStream));
    *stream = Box::new(CountedStream {
        stream: uncounted,
        tcp_usage: traffic,
    });
}

impl<S> CountedStream<S> {
    fn count(&self, bytes: usize) -> StreamResult<()> {
        self.tcp_usage
            .count_bytes(bytes)
            .map_err(|limit| StreamError::Trap(limit.into()))
    }
}

#[async_trait]
impl Pollable for CountedStream<DynInputStream> {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

/// The default methods read through `read`.
#[async_trait]
impl InputStream for CountedStream<DynInputStream> {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.stream.read(size)?;
        self.count(bytes.len())?;
        Ok(bytes)
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

#[async_trait]
impl Pollable for CountedStream<DynOutputStream> {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

/// The default methods write through `write`.
#[async_trait]
impl OutputStream for CountedStream<DynOutputStream> {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.count(bytes.len())?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.stream.check_write()
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

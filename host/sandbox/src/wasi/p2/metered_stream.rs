//! Streams whose buffer is charged to the call's memory, and which keep their file open.

use std::sync::Arc;

use bytes::Bytes;
use toolbay_model::ByteReservation;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamResult,
};

use crate::capability::files::descriptors::DescriptorHandle;

/// Maximum buffer size of a `wasmtime-wasi` stream, in bytes: the largest read from a file, and the
/// largest write.
pub(super) const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// A stream with the reservation for its buffer, and with its file. The file's handle may be
/// dropped before the stream.
pub(super) struct MeteredStream<S> {
    stream: S,
    _buffer: ByteReservation,
    _file: Option<Arc<DescriptorHandle>>,
}

impl<S> MeteredStream<S> {
    pub(super) fn new(
        stream: S,
        buffer: ByteReservation,
        file: Option<Arc<DescriptorHandle>>,
    ) -> Self {
        Self {
            stream,
            _buffer: buffer,
            _file: file,
        }
    }
}

#[async_trait]
impl Pollable for MeteredStream<DynInputStream> {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[async_trait]
impl InputStream for MeteredStream<DynInputStream> {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.stream.read(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.stream.blocking_read(size).await
    }

    fn skip(&mut self, count: usize) -> StreamResult<usize> {
        self.stream.skip(count)
    }

    async fn blocking_skip(&mut self, count: usize) -> StreamResult<usize> {
        self.stream.blocking_skip(count).await
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

#[async_trait]
impl Pollable for MeteredStream<DynOutputStream> {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[async_trait]
impl OutputStream for MeteredStream<DynOutputStream> {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.stream.check_write()
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.stream.blocking_write_and_flush(bytes).await
    }

    fn write_zeroes(&mut self, count: usize) -> StreamResult<()> {
        self.stream.write_zeroes(count)
    }

    async fn write_ready(&mut self) -> StreamResult<usize> {
        self.stream.write_ready().await
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

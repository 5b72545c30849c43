//! Environment, exit and standard streams. The streams belong to the call: `limits.handles` bounds
//! their number, and their buffers are bounded too.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::oneshot;
use toolbay_model::ByteReservation;
use wasmtime::StoreContextMut;
use wasmtime::component::{
    Destination, FutureReader, Linker, Source, StreamConsumer, StreamProducer, StreamReader,
    StreamResult,
};
use wasmtime_wasi::cli::{StdoutStream as _, WasiCli, WasiCliView as _};
use wasmtime_wasi::p2::{OutputStream, StreamError};
use wasmtime_wasi::p3::bindings::cli::types::ErrorCode;
use wasmtime_wasi::p3::bindings::cli::{
    environment, exit, terminal_input, terminal_output, terminal_stderr, terminal_stdin,
    terminal_stdout,
};

use super::stream_chunks::{MAX_CHUNK_BYTES, STREAM_MEMORY_BYTES, next_chunk, write_chunk};
use super::version::versioned;
use crate::capability::stdio::guest_stdin::GuestStdin;
use crate::store::state::StoreState;

/// Future for the end of a stream, which is never an error.
type StreamEnd = FutureReader<Result<(), ErrorCode>>;

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    environment::add_to_linker::<_, WasiCli>(linker, StoreState::cli)?;
    exit::add_to_linker::<_, WasiCli>(linker, StoreState::cli)?;
    terminal_input::add_to_linker::<_, WasiCli>(linker, StoreState::cli)?;
    terminal_output::add_to_linker::<_, WasiCli>(linker, StoreState::cli)?;
    terminal_stdin::add_to_linker::<_, WasiCli>(linker, StoreState::cli)?;
    terminal_stdout::add_to_linker::<_, WasiCli>(linker, StoreState::cli)?;
    terminal_stderr::add_to_linker::<_, WasiCli>(linker, StoreState::cli)?;
    let mut stdin = linker.instance(versioned!("wasi:cli/stdin"))?;
    stdin.func_wrap("read-via-stream", |store, (): ()| Ok((read_stdin(store)?,)))?;
    let mut stdout = linker.instance(versioned!("wasi:cli/stdout"))?;
    stdout.func_wrap("write-via-stream", |store, (data,): (StreamReader<u8>,)| {
        let state = store.data();
        let stream = state.stdio.stdout();
        let stream = match &state.stdio_transport {
            Some(transport) => transport.stdout(stream).p2_stream(),
            None => Box::new(stream),
        };
        Ok((write_output(store, data, stream)?,))
    })?;
    let mut stderr = linker.instance(versioned!("wasi:cli/stderr"))?;
    stderr.func_wrap("write-via-stream", |store, (data,): (StreamReader<u8>,)| {
        let stream = Box::new(store.data().stdio.stderr());
        Ok((write_output(store, data, stream)?,))
    })
}

fn read_stdin(
    mut store: StoreContextMut<'_, StoreState>,
) -> wasmtime::Result<(StreamReader<u8>, StreamEnd)> {
    let (end_sender, end) = create_end_future(&mut store)?;
    let state = store.data();
    let reader = StdinReader {
        input: state.input.clone(),
        _memory: state.memory_budget.reserve(STREAM_MEMORY_BYTES)?,
        _end: end_sender,
    };
    Ok((StreamReader::new(&mut store, reader)?, end))
}

fn write_output(
    mut store: StoreContextMut<'_, StoreState>,
    data: StreamReader<u8>,
    stream: Box<dyn OutputStream>,
) -> wasmtime::Result<StreamEnd> {
    let (end_sender, end) = create_end_future(&mut store)?;
    let memory = store.data().memory_budget.reserve(STREAM_MEMORY_BYTES)?;
    data.pipe(
        &mut store,
        StdoutWriter {
            stream,
            _memory: memory,
            _end: end_sender,
        },
    )?;
    Ok(end)
}

/// Returns a future that completes when the sender is dropped.
fn create_end_future(
    store: &mut StoreContextMut<'_, StoreState>,
) -> wasmtime::Result<(oneshot::Sender<()>, StreamEnd)> {
    let (end_sender, end_receiver) = oneshot::channel();
    let end = FutureReader::new(store, async move {
        let _dropped = end_receiver.await;
        wasmtime::error::Ok(Ok(()))
    })?;
    Ok((end_sender, end))
}

/// Producer of the guest's standard input.
struct StdinReader {
    input: GuestStdin,
    _memory: ByteReservation,
    _end: oneshot::Sender<()>,
}

impl StreamProducer<StoreState> for StdinReader {
    type Item = u8;
    type Buffer = Bytes;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, StoreState>,
        destination: Destination<'a, u8, Bytes>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let capacity = destination
            .remaining(&mut store)
            .unwrap_or(MAX_CHUNK_BYTES)
            .min(MAX_CHUNK_BYTES);
        if capacity == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        Poll::Ready(Ok(match self.input.poll(context, capacity) {
            Poll::Ready(Some(chunk)) => {
                write_chunk(destination, store, &chunk);
                StreamResult::Completed
            }
            Poll::Ready(None) => StreamResult::Dropped,
            Poll::Pending if finish => StreamResult::Cancelled,
            Poll::Pending => return Poll::Pending,
        }))
    }
}

/// Consumer of the guest's standard output or standard error.
struct StdoutWriter {
    stream: Box<dyn OutputStream>,
    _memory: ByteReservation,
    _end: oneshot::Sender<()>,
}

impl StreamConsumer<StoreState> for StdoutWriter {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        store: StoreContextMut<'_, StoreState>,
        from: Source<'_, u8>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let mut source = from.as_direct(store);
        let chunk = Bytes::copy_from_slice(next_chunk(&mut source));
        let length = chunk.len();
        Poll::Ready(match self.stream.write(chunk) {
            Ok(()) => {
                source.mark_read(length);
                Ok(StreamResult::Completed)
            }
            Err(StreamError::Trap(error)) => Err(error),
            Err(_) => Ok(StreamResult::Dropped),
        })
    }
}

//! Reads the events of a result as the guest writes them.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc::{self, UnboundedSender};
use toolbay_model::Limit;
use wasmtime::component::{Accessor, Source, StreamConsumer, StreamReader, StreamResult};
use wasmtime::{AsContextMut as _, StoreContextMut};

use super::hints;
use super::types::{ActMetadata, ToolEvent};
use crate::store::state::StoreState;

/// Reads a stream to its end or to the first error. Later events are ignored.
///
/// # Errors
///
/// Ends the call: the guest trapped, or wrote more than the call may transfer or hold in memory.
pub(super) async fn read_stream(
    accessor: &Accessor<StoreState>,
    stream: StreamReader<ToolEvent>,
) -> wasmtime::Result<Vec<ToolEvent>> {
    // The memory of the channel's content is already counted.
    let (sender, mut receiver) = mpsc::unbounded_channel();
    accessor.with(|mut access| {
        let remaining_bytes = access.as_context_mut().hostcall_fuel();
        stream.pipe(
            access,
            ActEventReader {
                sender,
                remaining_bytes,
                has_failed: false,
            },
        )
    })?;
    let mut events = Vec::new();
    loop {
        let next = poll_fn(|context| match receiver.poll_recv(context) {
            Poll::Ready(event) => Poll::Ready(Ok(event)),
            // No guest task is left that could write.
            Poll::Pending => accessor.poll_no_interesting_tasks(context).map(Err),
        });
        match next.await {
            Ok(Some(event)) => {
                let is_last = matches!(event, ToolEvent::Error(_));
                events.push(event);
                if is_last {
                    return Ok(events);
                }
            }
            Ok(None) => return Ok(events),
            Err(()) => wasmtime::bail!("it ended without closing the stream of its result"),
        }
    }
}

/// Consumer of the guest's event stream.
struct ActEventReader {
    sender: UnboundedSender<ToolEvent>,
    /// Bytes that the guest may still write.
    remaining_bytes: usize,
    /// True if an error event was received.
    has_failed: bool,
}

impl StreamConsumer<StoreState> for ActEventReader {
    type Item = ToolEvent;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        mut store: StoreContextMut<'_, StoreState>,
        mut from: Source<'_, ToolEvent>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if self.has_failed {
            // Further events are ignored. The guest is not notified that the error was received.
            return if finish {
                Poll::Ready(Ok(StreamResult::Completed))
            } else {
                Poll::Pending
            };
        }
        if self.sender.is_closed() {
            return Poll::Ready(Ok(StreamResult::Dropped));
        }
        // Wasmtime bounds each read. This bounds the sum of all reads by the call's transfer limit.
        let fuel = store.hostcall_fuel();
        store.set_hostcall_fuel(self.remaining_bytes);
        let mut next = None;
        let read = from.read(&mut store, &mut next);
        store.set_hostcall_fuel(fuel);
        read?;
        if let Some(mut event) = next {
            let bytes = event_size(&event);
            self.remaining_bytes = self.remaining_bytes.saturating_sub(bytes);
            let state = store.data();
            state.memory_budget.charge(bytes)?;
            if let ToolEvent::Content(part) = &mut event {
                report_progress(state, &std::mem::take(&mut part.metadata))?;
            }
            self.has_failed = matches!(event, ToolEvent::Error(_));
            // A closed receiver needs no further events.
            let _sent = self.sender.send(event);
            if self.has_failed && !finish {
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// Reports the tool's progress to the caller, if the metadata contain it.
fn report_progress(state: &StoreState, metadata: &ActMetadata) -> Result<(), Limit> {
    if let Some(progress) = hints::read_number(metadata, "std:progress") {
        state.imports.progress(
            progress,
            hints::read_number(metadata, "std:progress-total"),
            None,
        )?;
    }
    Ok(())
}

/// Returns the number of bytes that an event holds.
fn event_size(event: &ToolEvent) -> usize {
    let (texts, metadata) = match event {
        ToolEvent::Content(part) => (
            part.data.len() + part.mime_type.as_ref().map_or(0, String::len),
            &part.metadata,
        ),
        ToolEvent::Error(error) => (error.kind.len() + error.message.size(), &error.metadata),
    };
    let entry =
        |(key, value): &(String, Vec<u8>)| size_of::<(String, Vec<u8>)>() + key.len() + value.len();
    size_of::<ToolEvent>() + texts + metadata.iter().map(entry).sum::<usize>()
}

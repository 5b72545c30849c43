//! Writer thread.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytesize::ByteSize;
use toolbay_background::{BatchSpace, BatchWriter};

use crate::header::RecordingHeader;
use crate::missing_input::MissingInput;
use crate::recorded_call::RecordedCall;
use crate::recording_line::{MAX_LINE_BYTES, RecordingLine};
use crate::reservation::RecordingReservation;

/// Delay before a batch of calls is written. Waking the thread for each call could cost as much as
/// a short call.
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// State shared by the writer thread and the recorders.
#[derive(Debug, Default)]
pub(crate) struct WriterProgress {
    /// Number of calls that were not recorded for lack of memory, and that are not in the file yet.
    pub lost: AtomicU64,
    /// True if the file accepts no more calls.
    pub full: AtomicBool,
}

/// A call in the queue of the writer thread.
pub(crate) struct QueuedRecording {
    /// Constructor of the call.
    pub make: Box<dyn FnOnce() -> RecordedCall + Send>,
    /// The memory reserved until it is written.
    pub reservation: RecordingReservation,
}

/// State of the writer thread.
pub(crate) struct RecordingWriter {
    file: BufWriter<File>,
    /// Name of the file, for messages.
    name: String,
    /// Length of the file, in bytes.
    length: u64,
    /// Maximum length of the file, in bytes.
    max_length: u64,
    progress: Arc<WriterProgress>,
}

impl BatchWriter for RecordingWriter {
    type Item = QueuedRecording;

    const BATCH_DELAY: Duration = BATCH_DELAY;

    fn add(&mut self, call: QueuedRecording) -> BatchSpace {
        // Skip constructing the call if the file is closed.
        if !self.is_full()
            && let Ok(call) = catch_unwind(AssertUnwindSafe(call.make))
        {
            self.write_call(call);
        }
        drop(call.reservation);
        BatchSpace::More
    }

    fn write_batch(&mut self) -> ControlFlow<()> {
        // Readers of the file always find whole lines.
        self.flush();
        ControlFlow::Continue(())
    }

    fn end(&mut self) {
        self.flush();
    }
}

impl RecordingWriter {
    /// Writes the header and returns the writer of calls.
    pub(crate) fn start(
        file: File,
        name: String,
        length: u64,
        max_length: u64,
        header: RecordingHeader,
        progress: Arc<WriterProgress>,
    ) -> io::Result<Self> {
        let mut writer = Self {
            file: BufWriter::new(file),
            name,
            length,
            max_length,
            progress,
        };
        writer.write_line(&RecordingLine::Recording(header))?;
        writer.file.flush()?;
        Ok(writer)
    }

    fn flush(&mut self) {
        self.write_lost();
        let flushed = self.file.flush();
        self.close_on_error(flushed);
    }

    fn write_call(&mut self, call: RecordedCall) {
        let mut line = RecordingLine::Call(Box::new(call));
        let is_long = line
            .to_bytes()
            .map_or(true, |text| text.len() > MAX_LINE_BYTES);
        if is_long && let RecordingLine::Call(call) = line {
            line = RecordingLine::Call(Box::new(call.without_content(MissingInput::TooLarge)));
        }
        let added = self.write_line(&line);
        self.close_on_error(added);
    }

    fn write_lost(&mut self) {
        let calls = self.progress.lost.swap(0, Ordering::Relaxed);
        if calls > 0 && !self.is_full() {
            tracing::warn!(
                calls,
                "calls were not recorded: there was no memory left for them"
            );
            let added = self.write_line(&RecordingLine::Lost { calls });
            self.close_on_error(added);
        }
    }

    fn write_line(&mut self, line: &RecordingLine) -> io::Result<()> {
        let text = line.to_bytes()?;
        let length = self.length.saturating_add(text.len() as u64);
        if length > self.max_length {
            let max_size = ByteSize::b(self.max_length).display().iec();
            self.close(&format!(
                "{} would be larger than {max_size} (record.size)",
                self.name
            ));
            return Ok(());
        }
        self.file.write_all(&text)?;
        self.length = length;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.progress.full.load(Ordering::Relaxed)
    }

    /// Stops recording on an error: the file may contain a partial line, and lines after it could
    /// not be read.
    fn close_on_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.close(&format!("cannot write to {}: {error}", self.name));
        }
    }

    fn close(&mut self, why: &str) {
        if !self.progress.full.swap(true, Ordering::Relaxed) {
            tracing::warn!("calls are no longer recorded: {why}");
        }
    }
}

//! Accepts calls from any thread, with bounded memory and without blocking.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use toolbay_background::{BackgroundQueue, BackgroundWriter};
use toolbay_model::ByteBudget;

use crate::error::RecordingError;
use crate::file::RecordingFile;
use crate::header::{FORMAT_VERSION, RecordingHeader};
use crate::recorded_call::RecordedCall;
use crate::reservation::RecordingReservation;
use crate::writer::{QueuedRecording, RecordingWriter, WriterProgress};

/// Maximum memory of all recordings that are not written yet, in bytes: those of running calls and
/// those in the queue.
const MAX_PENDING_BYTES: usize = 64 << 20;

/// Settings of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSettings {
    /// Path of the file. Calls are appended if it already is a recording.
    pub file: PathBuf,
    /// Maximum size of the file, in bytes. Calls that exceed it are not recorded.
    pub size: u64,
    /// Maximum size of one call, in bytes.
    pub call_size: usize,
}

/// Recorder of calls. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CallRecorder {
    inner: Arc<RecordingQueue>,
}

#[derive(Debug)]
struct RecordingQueue {
    queue: BackgroundQueue<QueuedRecording>,
    pending_bytes: ByteBudget,
    call_size: usize,
    progress: Arc<WriterProgress>,
    last_number: AtomicU64,
    salt: String,
}

impl CallRecorder {
    /// Opens the file and starts the writer thread. `toolbay` is the version of the server. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be used, is readable by other users, is not a recording,
    /// or is in use by another server.
    pub fn open(settings: &RecordingSettings, toolbay: &str) -> Result<Self, RecordingError> {
        Self::start(RecordingFile::open(&settings.file)?, settings, toolbay)
    }

    /// Starts the writer thread for a file that is already open. Ignores the path in `settings`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written, or if the system provides no thread or no
    /// random bytes.
    pub fn start(
        recording_file: RecordingFile,
        settings: &RecordingSettings,
        toolbay: &str,
    ) -> Result<Self, RecordingError> {
        let RecordingFile { file, path, length } = recording_file;
        let name = path.display().to_string();
        let record_error = |error: &dyn std::fmt::Display| {
            RecordingError(format!("cannot record to {}: {error}", path.display()))
        };
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|error| record_error(&error))?;
        let salt = hex::encode(salt);
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let header = RecordingHeader {
            version: FORMAT_VERSION,
            toolbay: toolbay.to_owned(),
            started,
            salt: salt.clone(),
        };
        let progress = Arc::<WriterProgress>::default();
        let writer = RecordingWriter::start(
            file,
            name,
            length,
            settings.size,
            header,
            Arc::clone(&progress),
        );
        let writer = writer.map_err(|error| record_error(&error))?;
        let (writer, queue) = BackgroundWriter::new(writer);
        writer
            .start("toolbay-record")
            .map_err(|error| record_error(&error))?;
        let last_number = AtomicU64::new(0);
        let call_size = settings.call_size;
        let inner = RecordingQueue {
            queue,
            pending_bytes: ByteBudget::new(MAX_PENDING_BYTES),
            call_size,
            progress,
            last_number,
            salt,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Returns an empty reservation for one call; `None` if recording has stopped.
    pub fn new_reservation(&self) -> Option<RecordingReservation> {
        (!self.inner.progress.full.load(Ordering::Relaxed))
            .then(|| RecordingReservation::new(&self.inner.pending_bytes, self.inner.call_size))
    }

    /// Returns the salt of the digests in this recording.
    pub fn salt(&self) -> &str {
        &self.inner.salt
    }

    /// Returns the number of the next call.
    pub fn next_number(&self) -> u64 {
        self.inner.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records a call. The writer thread runs `make`, because redacting takes time. `reservation`
    /// is the memory reserved until the call is written. Does not block.
    pub fn record(
        &self,
        reservation: RecordingReservation,
        make: impl FnOnce() -> RecordedCall + Send + 'static,
    ) {
        // Fails only after the recording has ended.
        drop(self.inner.queue.send(QueuedRecording {
            make: Box::new(make),
            reservation,
        }));
    }

    /// Counts a call that was not recorded because no memory was available. The count is written to
    /// the file.
    pub fn count_lost(&self) {
        self.inner.progress.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the queued calls and stops recording. Waits until they are written, for at most
    /// `max_wait`.
    pub fn finish(&self, max_wait: Duration) {
        if self.inner.queue.end(max_wait).is_err() {
            tracing::error!(
                "the recording could not be ended in time; its last calls may be missing"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;
    use crate::reader::{RecordingItem, RecordingReader};
    use crate::recorded_call::tests::call;

    /// Timeout for events that must happen.
    const LONG: Duration = Duration::from_mins(1);

    fn settings(dir: &std::path::Path, size: u64) -> RecordingSettings {
        RecordingSettings {
            file: dir.join("calls.jsonl"),
            size,
            call_size: 1 << 20,
        }
    }

    fn items(settings: &RecordingSettings) -> Vec<RecordingItem> {
        let mut reader = RecordingReader::open(&settings.file).unwrap();
        std::iter::from_fn(|| reader.next().transpose())
            .collect::<Result<_, _>>()
            .unwrap()
    }

    fn numbers(items: &[RecordingItem]) -> Vec<u64> {
        items
            .iter()
            .filter_map(|item| {
                if let RecordingItem::Call(_, call) = item {
                    Some(call.number)
                } else {
                    None
                }
            })
            .collect()
    }

    #[test]
    fn concurrent_calls_are_recorded_and_a_second_server_appends() {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), 1 << 30);
        for expected in [800, 1600] {
            let recorder = CallRecorder::open(&settings, "0").unwrap();
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            let number = recorder.next_number();
                            recorder
                                .record(recorder.new_reservation().unwrap(), move || call(number));
                        }
                    });
                }
            });
            recorder.finish(LONG);
            recorder.finish(Duration::ZERO);
            recorder.record(recorder.new_reservation().unwrap(), || call(0));
            assert_eq!(numbers(&items(&settings)).len(), expected);
        }
        let headers = items(&settings)
            .into_iter()
            .filter(|item| matches!(item, RecordingItem::Header(_)))
            .count();
        assert_eq!(headers, 2);
    }

    #[test]
    fn full_file_accepts_no_calls_and_stays_valid() {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), 4_000);
        let recorder = CallRecorder::open(&settings, "0").unwrap();
        for number in 0..100 {
            recorder.record(
                RecordingReservation::new(&ByteBudget::new(0), 0),
                move || call(number),
            );
        }
        recorder.finish(LONG);
        assert!(recorder.new_reservation().is_none());
        let written = fs::metadata(&settings.file).unwrap().len();
        assert!((1_000..=4_000).contains(&written), "{written}");
        assert!(!numbers(&items(&settings)).is_empty());
    }

    #[test]
    fn file_contains_the_number_of_lost_calls() {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), 1 << 30);
        let recorder = CallRecorder::open(&settings, "0").unwrap();
        recorder.count_lost();
        recorder.count_lost();
        recorder.record(recorder.new_reservation().unwrap(), || call(1));
        recorder.finish(LONG);
        let lost: u64 = items(&settings)
            .iter()
            .map(|item| {
                if let RecordingItem::Lost(n) = item {
                    *n
                } else {
                    0
                }
            })
            .sum();
        assert_eq!(lost, 2);
    }

    #[test]
    fn panic_in_a_constructor_does_not_end_the_recording() {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), 1 << 30);
        let recorder = CallRecorder::open(&settings, "0").unwrap();
        recorder.record(recorder.new_reservation().unwrap(), || {
            panic!("as it must not")
        });
        recorder.record(recorder.new_reservation().unwrap(), || call(1));
        recorder.finish(LONG);
        assert_eq!(numbers(&items(&settings)), [1]);
    }
}

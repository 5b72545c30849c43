//! Standard error as a stream that never blocks its writers.
//!
//! A full pipe blocks its writer, and writing fails if the reader has exited or the disk is full.
//! None of this may delay a call or end the server. Lines therefore go into a [`StderrQueue`] of
//! bounded size, which a separate thread writes out. That thread may block indefinitely. Other
//! threads wait for it only briefly, when the process ends. Lines that exceed the capacity or
//! cannot be written are counted. Their number is reported as soon as writing succeeds again.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use toolbay_console::ServerActivity;
use toolbay_model::text::clean_line;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

/// Maximum number of bytes in the queue. Up to as many more are being written at the same time.
const QUEUE_CAPACITY: usize = 4 << 20;

/// Capacity that the empty queue retains, in bytes.
const RETAINED_CAPACITY: usize = 64 << 10;

/// Maximum time that the end of the process, or a result, waits for unwritten lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum length of a message's line, in bytes: parts of it come from guests and clients.
const MAX_LINE_BYTES: usize = 4_000;

/// Standard error of the program, as a stream that never blocks and never fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StderrWriter;

impl Write for StderrWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if let Some(activity) = lock_console().upgrade() {
            activity.record_log_lines(&String::from_utf8_lossy(lines));
        }
        match shared_queue() {
            Some(queue) => queue.push(lines),
            // The system has no thread for the queue. A write that may block is better than losing
            // the line.
            None => drop(io::stderr().write_all(lines)),
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends printed lines to a console, too, as long as it exists.
pub(crate) fn set_console(activity: &Arc<ServerActivity>) {
    *lock_console() = Arc::downgrade(activity);
}

/// Locks the console that receives printed lines. Held briefly.
fn lock_console() -> MutexGuard<'static, Weak<ServerActivity>> {
    static CONSOLE_ACTIVITY: Mutex<Weak<ServerActivity>> = Mutex::new(Weak::new());
    CONSOLE_ACTIVITY.lock()
}

/// Prints a message with the prefix `toolbay: `. Control characters are removed, so that each of
/// its lines is one line on a terminal.
pub(crate) fn print_message(message: &str) {
    print_lines(&format!("toolbay: {message}"));
}

/// Prints a message without a prefix. Control characters are removed, so that each of its lines is
/// one line on a terminal.
pub(crate) fn print_lines(message: &str) {
    let lines: Vec<String> = message
        .split('\n')
        .map(|text| clean_line(text, MAX_LINE_BYTES))
        .collect();
    drop(StderrWriter.write((lines.join("\n") + "\n").as_bytes()));
}

/// Guard that flushes the queue when it is dropped, as far as that is possible in a short time.
#[derive(Debug)]
pub(crate) struct FlushGuard;

impl Drop for FlushGuard {
    fn drop(&mut self) {
        flush();
    }
}

/// Waits until the queue is written, for at most [`FLUSH_TIMEOUT`].
pub(crate) fn flush() {
    if let Some(queue) = SHARED_QUEUE.get().and_then(Option::as_ref) {
        queue.flush(FLUSH_TIMEOUT);
    }
}

/// Returns the queue for standard error, or `None` if the system has no thread to empty it.
fn shared_queue() -> Option<&'static StderrQueue> {
    SHARED_QUEUE
        .get_or_init(|| {
            // Not through `std`, because a blocked write would hold its lock.
            let file = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?);
            let thread_builder = thread::Builder::new().name("toolbay-log".to_owned());
            thread_builder
                .spawn(move || shared_queue().map(|queue| queue.write_to(&file)))
                .ok()?;
            Some(StderrQueue::default())
        })
        .as_ref()
}

static SHARED_QUEUE: OnceLock<Option<StderrQueue>> = OnceLock::new();

/// Lines to write.
#[derive(Debug, Default)]
struct StderrQueue {
    state: Mutex<StderrState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct StderrState {
    pending: Vec<u8>,
    /// Number of lines that exceeded the capacity.
    dropped: u64,
    /// True while lines taken from the queue are being written.
    is_writing: bool,
}

impl StderrQueue {
    /// Adds lines, or counts them as dropped if they exceed the capacity.
    fn push(&self, lines: &[u8]) {
        let mut state = self.lock();
        if state.pending.len() + lines.len() > QUEUE_CAPACITY {
            state.dropped += count_lines(lines);
            return;
        }
        state.pending.extend_from_slice(lines);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until everything is written, for at most `timeout`.
    fn flush(&self, timeout: Duration) {
        let unwritten = |state: &mut StderrState| state.is_writing || !state.pending.is_empty();
        self.changed
            .wait_while_for(&mut self.lock(), unwritten, timeout);
    }

    /// Writes current and future lines of the queue to `file`. Never returns.
    fn write_to(&self, file: &File) {
        let mut batch = Vec::new();
        let mut output = BlockingOutput {
            file,
            has_partial_line: false,
        };
        // Lost lines that were not reported yet.
        let mut lost = 0;
        loop {
            batch.clear();
            batch.shrink_to(RETAINED_CAPACITY);
            let mut state = self.lock();
            state.is_writing = false;
            self.changed.notify_all();
            self.changed
                .wait_while(&mut state, |state| state.pending.is_empty());
            std::mem::swap(&mut state.pending, &mut batch);
            let dropped = std::mem::take(&mut state.dropped);
            state.is_writing = true;
            drop(state);
            // Lines that could not be written precede this batch; dropped lines follow it.
            lost = output.report_lost(lost);
            lost += output.write(&batch) + dropped;
            lost = output.report_lost(lost);
        }
    }

    fn lock(&self) -> MutexGuard<'_, StderrState> {
        self.state.lock()
    }
}

/// A file for which writing may block or fail.
struct BlockingOutput<'a> {
    file: &'a File,
    /// True if writing failed within a line.
    has_partial_line: bool,
}

impl BlockingOutput<'_> {
    /// Writes lines. Returns the number of lines that were not written completely.
    fn write(&mut self, lines: &[u8]) -> u64 {
        if self.has_partial_line {
            self.has_partial_line = self.write_all(b"\n") == 0;
        }
        let unwritten = lines.len() - self.write_all(lines);
        let (written, rest) = lines.split_at(lines.len() - unwritten);
        if let Some(last) = written.last() {
            self.has_partial_line = *last != b'\n';
        }
        count_lines(rest)
    }

    /// Writes a notice about lost lines. Returns the number of lost lines that remain unreported.
    fn report_lost(&mut self, lost: u64) -> u64 {
        if lost == 0 || self.write(lost_lines_notice(lost).as_bytes()) == 0 {
            0
        } else {
            lost
        }
    }

    /// Writes as many bytes as possible, and returns their number.
    fn write_all(&mut self, bytes: &[u8]) -> usize {
        let mut file = self.file;
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match file.write(rest) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The stream is shared with another program, which made it non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if retry_on_intr(|| poll(&mut [PollFd::new(file, PollFlags::OUT)], None))
                        .is_err()
                    {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        written
    }
}

/// Returns a log line about lost lines.
fn lost_lines_notice(lost: u64) -> String {
    let mut line = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut line));
    let lines = if lost == 1 {
        "1 log line was".to_owned()
    } else {
        format!("{lost} log lines were")
    };
    line + &format!(
        "  WARN {lines} dropped: standard error was not read in time, or could not be written\n"
    )
}

fn count_lines(lines: &[u8]) -> u64 {
    lines
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .count() as u64
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, PipeReader, pipe};
    use std::os::fd::OwnedFd;

    use super::*;

    const DEADLINE: Duration = Duration::from_mins(1);

    /// Returns a queue, and a reader of its output.
    fn start_queue() -> (Arc<StderrQueue>, BufReader<PipeReader>) {
        let (reader, writer) = pipe().unwrap();
        (
            start_writer(File::from(OwnedFd::from(writer))),
            BufReader::new(reader),
        )
    }

    fn start_writer(file: File) -> Arc<StderrQueue> {
        let queue = Arc::<StderrQueue>::default();
        let writing = Arc::clone(&queue);
        thread::spawn(move || writing.write_to(&file));
        queue
    }

    fn read_line(reader: &mut impl io::BufRead) -> String {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn lines_come_out_in_order() {
        let (queue, mut reader) = start_queue();
        for n in 0..1000 {
            queue.push(format!("{n}\n").as_bytes());
        }
        for n in 0..1000 {
            assert_eq!(read_line(&mut reader), format!("{n}\n"));
        }
        queue.flush(DEADLINE);
    }

    #[test]
    fn a_blocked_reader_delays_no_writer_and_receives_the_count_of_lost_lines() {
        let (queue, mut reader) = start_queue();
        let line = format!("{}\n", "x".repeat(1023));
        let pushed = 4 * QUEUE_CAPACITY / line.len();
        for _ in 0..pushed {
            queue.push(line.as_bytes());
        }
        queue.flush(Duration::ZERO);
        assert!(queue.lock().pending.len() <= QUEUE_CAPACITY);
        // Lost lines are reported in one notice, or in several if the thread took lines in between.
        let mut read = 0;
        let mut reported = 0;
        while read + reported < pushed {
            match read_line(&mut reader) {
                same if same == line => read += 1,
                notice => {
                    let (_, count) = notice.split_once("  WARN ").expect(&notice);
                    let (count, _) = count
                        .split_once(" log lines were dropped: ")
                        .expect(&notice);
                    reported += count.parse::<usize>().expect(&notice);
                }
            }
        }
        assert!(
            reported > 0 && read + reported == pushed,
            "{read} read, {reported} reported"
        );
        queue.push(b"and so on\n");
        assert_eq!(read_line(&mut reader), "and so on\n");
    }

    #[test]
    fn a_closed_pipe_and_a_full_disk_are_not_errors() {
        let (queue, reader) = start_queue();
        drop(reader);
        let full = start_writer(File::options().write(true).open("/dev/full").unwrap());
        for queue in [queue, full] {
            for _ in 0..10 {
                queue.push(b"one\ntwo\n");
                queue.flush(DEADLINE);
                assert!(queue.lock().pending.is_empty());
            }
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_reported() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut output = BlockingOutput {
            file: &full,
            has_partial_line: false,
        };
        assert_eq!(output.write(b"one\ntwo\n"), 2);
        assert_eq!(output.report_lost(2), 2);
        let (reader, writer) = pipe().unwrap();
        let file = File::from(OwnedFd::from(writer));
        let mut reader = BufReader::new(reader);
        // The state after a line that was only partly written.
        let mut output = BlockingOutput {
            file: &file,
            has_partial_line: true,
        };
        assert_eq!(output.report_lost(2), 0);
        assert_eq!(output.write(b"three\n"), 0);
        assert_eq!(read_line(&mut reader), "\n");
        assert!(read_line(&mut reader).ends_with(
            "  WARN 2 log lines were dropped: standard error was not read in time, or could not be written\n"
        ));
        assert_eq!(read_line(&mut reader), "three\n");
        assert!(lost_lines_notice(1).contains(" 1 log line was dropped: "));
    }

    #[test]
    fn a_nonblocking_stream_is_waited_for() {
        let (reader, writer) = pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let queue = start_writer(File::from(OwnedFd::from(writer)));
        let line = format!("{}\n", "x".repeat(1023));
        for _ in 0..200 {
            queue.push(line.as_bytes());
        }
        let mut reader = BufReader::new(reader);
        for _ in 0..200 {
            assert_eq!(read_line(&mut reader), line);
        }
    }
}

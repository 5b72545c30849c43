//! Tests of `background_writer`.

use std::sync::mpsc;

use super::*;

/// Timeout for events that must happen.
const LONG: Duration = Duration::from_mins(1);

/// Maximum number of items in a batch of [`Batches`].
const MAX_BATCH: usize = 3;

/// A writer that sends its batches, and an empty one when it ends.
struct Batches {
    batch: Vec<u32>,
    written: mpsc::Sender<Vec<u32>>,
    timeout: Option<Duration>,
}

impl BatchWriter for Batches {
    type Item = u32;

    fn next_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn add(&mut self, item: u32) -> BatchSpace {
        self.batch.push(item);
        if self.batch.len() < MAX_BATCH {
            BatchSpace::More
        } else {
            BatchSpace::Full
        }
    }

    fn write_batch(&mut self) -> ControlFlow<()> {
        let stops = self.batch.contains(&0) || self.timeout.is_some();
        let _ = self.written.send(std::mem::take(&mut self.batch));
        if stops {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn end(&mut self) {
        let _ = self.written.send(std::mem::take(&mut self.batch));
        let _ = self.written.send(Vec::new());
    }
}

fn batches(
    timeout: Option<Duration>,
) -> (
    BackgroundWriter<Batches>,
    BackgroundQueue<u32>,
    mpsc::Receiver<Vec<u32>>,
) {
    let (written, batches) = mpsc::channel();
    let (writer, queue) = BackgroundWriter::new(Batches {
        batch: Vec::new(),
        written,
        timeout,
    });
    (writer, queue, batches)
}

#[test]
fn queued_items_are_written_in_batches() {
    let (writer, queue, batches) = batches(None);
    for item in 1..=5 {
        queue.send(item).unwrap();
    }
    assert_eq!(queue.end(Duration::ZERO), Err(EndTimeout), "not started");
    writer.run();
    let written: Vec<_> = batches.iter().collect();
    assert_eq!(written, [vec![1, 2, 3], vec![4, 5], vec![]]);
    assert_eq!(queue.send(6), Err(WriterEnded));
    assert_eq!(queue.end(LONG), Ok(()), "it ended before");
}

#[test]
fn an_end_waits_until_everything_is_written() {
    let (writer, queue, batches) = batches(None);
    writer.start("test").unwrap();
    queue.send(1).unwrap();
    assert_eq!(queue.end(LONG), Ok(()));
    let written: Vec<_> = batches.try_iter().flatten().collect();
    assert_eq!(written, [1]);
}

#[test]
fn a_queue_that_is_dropped_ends_its_writer() {
    let (writer, queue, batches) = batches(None);
    queue.send(1).unwrap();
    drop(queue);
    writer.run();
    assert_eq!(
        batches.iter().collect::<Vec<_>>(),
        [vec![1], vec![], vec![]]
    );
}

#[test]
fn a_writer_stops_by_itself_after_a_batch_or_a_timeout() {
    let (writer, queue, batches_of_items) = batches(None);
    queue.send(0).unwrap();
    queue.send(1).unwrap();
    writer.run();
    assert_eq!(batches_of_items.iter().collect::<Vec<_>>(), [vec![0, 1]]);
    assert_eq!(queue.send(2), Err(WriterEnded));
    let (writer, _queue, batches_of_timeout) = batches(Some(Duration::ZERO));
    writer.run();
    assert_eq!(batches_of_timeout.iter().collect::<Vec<_>>(), [vec![0; 0]]);
}

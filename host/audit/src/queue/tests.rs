//! Tests of `queue`.

use std::thread;

use super::*;
use crate::line_reader::LineReader;
use crate::plugin_record::PluginRecord;
use crate::verify::verify;

fn event(text: &str) -> AuditEvent {
    let plugin = PluginRecord {
        plugin: "p".to_owned(),
        ..PluginRecord::default()
    };
    AuditEvent::Refused {
        plugin,
        reason: text.to_owned(),
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

/// A log with queue space for `records` records, whose writer is not running yet.
fn idle(
    dir: &tempfile::TempDir,
    records: usize,
    when_full: WhenFull,
) -> (AuditLog, BackgroundWriter<LogWriter>) {
    let room = event("").max_bytes() as usize * records;
    // Large enough that no file is deleted.
    let journals = PartWriter::open(dir.path(), 1 << 20, [3, 3]).unwrap();
    AuditLog::from_writers(
        journals,
        Duration::from_mins(1),
        room,
        Duration::from_millis(1),
        when_full,
    )
}

#[tokio::test]
async fn with_drop_a_stalled_writer_delays_calls_briefly_and_the_log_reports_losses() {
    let dir = tempfile::tempdir().unwrap();
    let (audit, writer) = idle(&dir, 3, WhenFull::Drop);
    for n in 0..10 {
        audit.record(event(""), soon()).await;
        assert_eq!(
            audit.inner.writer_state.stalled.load(Ordering::Relaxed),
            n > 2
        );
    }
    audit.record_server_event(event("has room of its own"));
    assert_eq!(audit.lost_records(), 7);
    let writing = thread::spawn(move || writer.run());
    audit.end(Duration::from_mins(1));
    writing.join().unwrap();
    let report = verify(dir.path(), None, None).unwrap();
    assert_eq!((report.lost, report.is_intact()), (7, true), "{report:?}");
}

/// Spawns `callers` tasks that record an event each. Returns when the queue is full.
async fn press(audit: &AuditLog, callers: usize) -> Vec<tokio::task::JoinHandle<()>> {
    let record = |_| {
        let audit = audit.clone();
        tokio::spawn(async move { audit.record(event("x"), soon()).await })
    };
    let tasks: Vec<_> = (0..callers).map(record).collect();
    while audit.inner.call_capacity.available_permits() >= event("x").max_bytes() as usize {
        tokio::task::yield_now().await;
    }
    tasks
}

/// Returns the number of recorded events.
fn recorded(dir: &tempfile::TempDir) -> usize {
    let lines = LineReader::open(dir.path(), LogPart::Main)
        .unwrap()
        .map(|line| line.unwrap().bytes);
    lines
        .filter(|line| String::from_utf8_lossy(line).contains("\"refused\""))
        .count()
}

#[tokio::test]
async fn with_wait_nothing_is_lost_while_the_disk_stalls() {
    let dir = tempfile::tempdir().unwrap();
    let (audit, writer) = idle(&dir, 3, WhenFull::Wait);
    let shared = Arc::clone(&audit.inner.writer_state);
    let writing = thread::spawn(move || writer.run());
    // The disk works, stalls, works again, and stalls again.
    for _ in 0..3 {
        audit.record(event("x"), soon()).await;
        let stalled = shared.disk.lock().await;
        let tasks = press(&audit, 50).await;
        audit.record_server_event(event("an operator does not wait"));
        drop(stalled);
        for task in tasks {
            task.await.unwrap();
        }
    }
    audit.end(Duration::from_mins(1));
    writing.join().unwrap();
    let report = verify(dir.path(), None, None).unwrap();
    let recorded = recorded(&dir);
    assert_eq!(
        (
            recorded,
            report.lost,
            audit.lost_records(),
            report.is_intact()
        ),
        (3 * 52, 0, 0, true),
        "{report:?}"
    );
}

#[tokio::test]
async fn with_wait_nothing_is_lost_while_the_disk_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let (audit, writer) = idle(&dir, 3, WhenFull::Wait);
    let shared = Arc::clone(&audit.inner.writer_state);
    shared.full.store(true, Ordering::Relaxed);
    let writing = thread::spawn(move || writer.run());
    audit.record(event("x"), soon()).await;
    while !shared.failing.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    let tasks = press(&audit, 50).await;
    audit.record_server_event(event("an operator does not wait"));
    shared.full.store(false, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    audit.end(Duration::from_mins(1));
    writing.join().unwrap();
    let report = verify(dir.path(), None, None).unwrap();
    let recorded = recorded(&dir);
    assert_eq!(
        (
            recorded,
            report.lost,
            audit.lost_records(),
            report.is_intact()
        ),
        (52, 0, 0, true),
        "{report:?}"
    );
}

#[tokio::test]
async fn wait_ends_at_the_deadline_and_refuse_does_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    for when_full in [WhenFull::Wait, WhenFull::Refuse] {
        let (audit, writer) = idle(&dir, 1, when_full);
        let held = audit.reserve(event("").max_bytes(), soon()).await.unwrap();
        let deadline = if when_full == WhenFull::Wait {
            Instant::now()
        } else {
            soon()
        };
        assert!(
            audit
                .reserve(event("").max_bytes(), deadline)
                .await
                .is_none()
        );
        drop(held);
        assert!(audit.reserve(event("").max_bytes(), soon()).await.is_some());
        audit
            .inner
            .writer_state
            .failing
            .store(true, Ordering::Relaxed);
        assert_eq!(
            audit.reserve(event("").max_bytes(), soon()).await.is_some(),
            when_full == WhenFull::Wait
        );
        drop(writer);
    }
}

#[tokio::test]
async fn rejections_are_all_counted_in_few_lines() {
    let dir = tempfile::tempdir().unwrap();
    let (audit, writer) = idle(&dir, 1, WhenFull::Wait);
    let held = audit.reserve(event("").max_bytes(), soon()).await.unwrap();
    let limit = Some("caller_rate_limit");
    let series = RejectedRecord {
        caller: "a".to_owned(),
        tool: "t".to_owned(),
        outcome: "rate-limited",
        limit,
        count: 1,
    };
    for _ in 0..1_000 {
        audit.record_rejection(&series, [Some(event("x")), None]);
    }
    drop(held);
    let writing = thread::spawn(move || writer.run());
    audit.end(Duration::from_mins(1));
    writing.join().unwrap();
    let lines = LineReader::open(dir.path(), LogPart::Rejected)
        .unwrap()
        .map(|line| line.unwrap().bytes);
    let lines: Vec<_> = lines.map(|line| String::from_utf8(line).unwrap()).collect();
    let counted = |line: &&String| {
        line.contains(r#""event":"rejected","caller":"a","tool":"t","outcome":"rate-limited""#)
    };
    assert_eq!(lines.iter().filter(counted).count(), 1, "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains(r#""count":1000,"#)),
        "{lines:?}"
    );
}

#[tokio::test]
async fn concurrent_records_are_all_written() {
    let dir = tempfile::tempdir().unwrap();
    let settings = AuditSettings {
        folder: dir.path().to_owned(),
        max_file_bytes: 1 << 20,
        files: 9,
        rejected_files: 2,
        checkpoint_interval: Duration::from_millis(1),
        when_full: WhenFull::Wait,
    };
    let audit = AuditLog::open(&settings, 1).unwrap();
    let tasks = (0..8).map(|_| {
        let audit = audit.clone();
        tokio::spawn(async move {
            for _ in 0..500 {
                audit.record(event("x"), soon()).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    audit.end(Duration::from_mins(1));
    audit.end(Duration::ZERO);
    audit.record_server_event(event("after the end"));
    let report = verify(dir.path(), None, None).unwrap();
    assert!(
        report.is_intact() && report.lines >= 4_000 + 3,
        "{report:?}"
    );
}

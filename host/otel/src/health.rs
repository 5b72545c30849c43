//! The export health of a signal, and rate-limited log messages about it.

use std::time::{Duration, Instant};

use toolbay_model::text::{clean_line, format_duration, format_thousands};

use crate::signal::SignalKind;

/// Interval between two messages about an outage.
const OUTAGE_MESSAGE_INTERVAL: Duration = Duration::from_mins(10);

/// Minimum interval between two messages about lost or rejected items.
const LOSS_MESSAGE_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum length of a reason in the log, in bytes. The receiver may supply parts of it.
const MAX_REASON_BYTES: usize = 400;

/// The export health of a signal.
#[derive(Debug)]
pub(crate) struct ExportHealth {
    signal: SignalKind,
    endpoint: String,
    outage: Option<ExportOutage>,
    /// The number of lost items at the last message about losses, and the time of that message.
    last_loss_report: (u64, Option<Instant>),
}

#[derive(Debug)]
struct ExportOutage {
    started_at: Instant,
    last_report: Instant,
    lost_before: u64,
}

impl ExportHealth {
    pub(crate) fn new(signal: SignalKind, endpoint: &str) -> Self {
        Self {
            signal,
            endpoint: endpoint.to_owned(),
            outage: None,
            last_loss_report: (0, None),
        }
    }

    /// Records a failed export and its reason. `total_lost` is the total number of lost items.
    pub(crate) fn record_failure(&mut self, why: &str, total_lost: u64, now: Instant) {
        let signal = self.signal.as_str();
        let endpoint = &self.endpoint;
        let why = clean_line(why, MAX_REASON_BYTES);
        let Some(outage) = &mut self.outage else {
            self.outage = Some(ExportOutage {
                started_at: now,
                last_report: now,
                lost_before: self.last_loss_report.0,
            });
            tracing::warn!(
                "cannot send {signal} to {endpoint}: {why} (otel); calls continue, and sending is retried"
            );
            return;
        };
        if now - outage.last_report >= OUTAGE_MESSAGE_INTERVAL {
            outage.last_report = now;
            let outage_duration = format_seconds(now - outage.started_at);
            let losses = format_losses(self.signal, total_lost - outage.lost_before);
            tracing::warn!(
                "still cannot send {signal} to {endpoint}, for {outage_duration}: {why} (otel); lost so far: {losses}"
            );
        }
    }

    /// Records a successful export.
    pub(crate) fn record_success(&mut self, total_lost: u64, now: Instant) {
        let Some(outage) = self.outage.take() else {
            self.report_overflow(total_lost, now);
            return;
        };
        let signal = self.signal.as_str();
        let endpoint = &self.endpoint;
        let outage_duration = format_seconds(now - outage.started_at);
        let count = total_lost - outage.lost_before;
        if count == 0 {
            tracing::info!(
                "{signal} are sent to {endpoint} again, after {outage_duration}; nothing was lost"
            );
        } else {
            let losses = format_losses(self.signal, count);
            tracing::warn!(
                "{signal} are sent to {endpoint} again, after {outage_duration}; lost: {losses}"
            );
        }
        self.last_loss_report = (total_lost, None);
    }

    /// Records items that the receiver rejected in an accepted request.
    pub(crate) fn record_rejection(
        &mut self,
        count: u64,
        why: &str,
        total_lost: u64,
        now: Instant,
    ) {
        if self
            .last_loss_report
            .1
            .is_none_or(|reported_at| now - reported_at >= LOSS_MESSAGE_INTERVAL)
        {
            let endpoint = &self.endpoint;
            let count = format_losses(self.signal, count);
            let why = clean_line(why, MAX_REASON_BYTES);
            tracing::warn!("{endpoint} rejected {count} (otel): {why}");
            self.last_loss_report = (total_lost, Some(now));
        }
    }

    /// Reports items that were lost because the queue was full.
    fn report_overflow(&mut self, total_lost: u64, now: Instant) {
        let (reported_lost, reported_at) = self.last_loss_report;
        if total_lost > reported_lost
            && reported_at.is_none_or(|told| now - told >= LOSS_MESSAGE_INTERVAL)
        {
            let losses = format_losses(self.signal, total_lost - reported_lost);
            tracing::warn!(
                "data arrives faster than {} accepts it (otel); lost: {losses}",
                self.endpoint
            );
            self.last_loss_report = (total_lost, Some(now));
        }
    }
}

/// Reports items that are lost because the server ends.
pub(crate) fn report_unsent(signal: SignalKind, count: u64) {
    if count > 0 {
        tracing::warn!(
            "the server ends before all data was sent (otel); lost: {}",
            format_losses(signal, count)
        );
    }
}

/// Formats a count of items, such as `1,234 spans`.
fn format_losses(signal: SignalKind, count: u64) -> String {
    match (signal, count) {
        (SignalKind::Traces, 1) => "1 span".to_owned(),
        (SignalKind::Metrics, 1) => "1 report of metrics".to_owned(),
        (SignalKind::Logs, 1) => "1 log line".to_owned(),
        _ => format!("{} {}", format_thousands(count), signal.item_noun()),
    }
}

fn format_seconds(time: Duration) -> String {
    format_duration(Duration::from_secs(time.as_secs().max(1)))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_outage_is_said_once_and_again_after_a_while_and_its_end_with_what_was_lost() {
        let log = Log::default();
        let writer = log.clone();
        let format = tracing_subscriber::fmt()
            .without_time()
            .with_target(false)
            .with_ansi(false);
        let _logging =
            tracing::subscriber::set_default(format.with_writer(move || writer.clone()).finish());
        let mut health = ExportHealth::new(SignalKind::Traces, "http://a:4318");
        let started_at = Instant::now();
        let minute = Duration::from_mins(1);
        health.record_success(0, started_at);
        for minutes in 0..25_u32 {
            health.record_failure(
                "no connection:\x1b[2J refused",
                u64::from(minutes) * 1000,
                started_at + minutes * minute,
            );
        }
        let now = started_at + 25 * minute;
        health.record_success(25_000, now);
        health.record_success(25_000, now);
        health.record_failure("late", 25_000, now);
        health.record_success(25_000, now);
        for lost in [25_001, 25_002, 26_000] {
            health.record_success(lost, now);
        }
        health.record_success(26_000, now + minute);
        for _ in 0..3 {
            health.record_rejection(1, "too old", 26_001, now + 2 * minute);
        }
        report_unsent(SignalKind::Logs, 1);
        report_unsent(SignalKind::Logs, 0);
        let log_text = String::from_utf8(log.0.lock().clone()).unwrap();
        insta::assert_snapshot!(log_text.trim_end());
    }
}

//! The export health of a signal, and rate-limited log messages about it.

use std::time::{Duration, Instant};

use toolbay_model::text::{duration, line, thousands};

use crate::signal::SignalKind;

/// Interval between two messages about an outage.
const REMINDER: Duration = Duration::from_mins(10);

/// Minimum interval between two messages about lost or rejected items.
const LOSSES: Duration = Duration::from_mins(1);

/// Maximum length of a reason in the log, in bytes. The receiver may supply parts of it.
const LONGEST: usize = 400;

/// The export health of a signal.
#[derive(Debug)]
pub(crate) struct ExportHealth {
    signal: SignalKind,
    endpoint: String,
    outage: Option<ExportOutage>,
    /// The number of lost items at the last message about losses, and the time of that message.
    told: (u64, Option<Instant>),
}

#[derive(Debug)]
struct ExportOutage {
    began: Instant,
    told: Instant,
    lost: u64,
}

impl ExportHealth {
    pub(crate) fn new(signal: SignalKind, endpoint: &str) -> Self {
        Self { signal, endpoint: endpoint.to_owned(), outage: None, told: (0, None) }
    }

    /// Records a failed export and its reason. `lost` is the total number of lost items.
    pub(crate) fn failed(&mut self, why: &str, lost: u64, now: Instant) {
        let (signal, endpoint, why) = (self.signal.as_str(), &self.endpoint, line(why, LONGEST));
        let Some(outage) = &mut self.outage else {
            self.outage = Some(ExportOutage { began: now, told: now, lost: self.told.0 });
            tracing::warn!("cannot send {signal} to {endpoint}: {why} (otel); calls go on, and it is tried again");
            return;
        };
        if now - outage.told >= REMINDER {
            outage.told = now;
            let (since, lost) = (seconds(now - outage.began), losses(self.signal, lost - outage.lost));
            tracing::warn!("still cannot send {signal} to {endpoint}, for {since}: {why} (otel); lost so far: {lost}");
        }
    }

    /// Records a successful export.
    pub(crate) fn worked(&mut self, lost: u64, now: Instant) {
        let Some(outage) = self.outage.take() else {
            self.overflow(lost, now);
            return;
        };
        let (signal, endpoint, since) = (self.signal.as_str(), &self.endpoint, seconds(now - outage.began));
        let count = lost - outage.lost;
        if count == 0 {
            tracing::info!("{signal} are sent to {endpoint} again, after {since}; nothing was lost");
        } else {
            let lost = losses(self.signal, count);
            tracing::warn!("{signal} are sent to {endpoint} again, after {since}; lost: {lost}");
        }
        self.told = (lost, None);
    }

    /// Records items that the receiver rejected in an accepted request.
    pub(crate) fn rejected(&mut self, count: u64, why: &str, lost: u64, now: Instant) {
        if self.told.1.is_none_or(|told| now - told >= LOSSES) {
            let (endpoint, count, why) = (&self.endpoint, losses(self.signal, count), line(why, LONGEST));
            tracing::warn!("{endpoint} rejected {count} (otel): {why}");
            self.told = (lost, Some(now));
        }
    }

    /// Reports items that were lost because the queue was full.
    fn overflow(&mut self, lost: u64, now: Instant) {
        let (before, told) = self.told;
        if lost > before && told.is_none_or(|told| now - told >= LOSSES) {
            let lost_now = losses(self.signal, lost - before);
            tracing::warn!("more comes than {} takes (otel); lost: {lost_now}", self.endpoint);
            self.told = (lost, Some(now));
        }
    }
}

/// Reports items that are lost because the server ends.
pub(crate) fn left(signal: SignalKind, count: u64) {
    if count > 0 {
        tracing::warn!("the server ends before all was sent (otel); lost: {}", losses(signal, count));
    }
}

/// Formats a count of items, such as `1,234 spans`.
fn losses(signal: SignalKind, count: u64) -> String {
    match (signal, count) {
        (SignalKind::Traces, 1) => "1 span".to_owned(),
        (SignalKind::Metrics, 1) => "1 report of metrics".to_owned(),
        (SignalKind::Logs, 1) => "1 log line".to_owned(),
        _ => format!("{} {}", thousands(count), signal.items()),
    }
}

fn seconds(time: Duration) -> String {
    duration(Duration::from_secs(time.as_secs().max(1)))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
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
        let format = tracing_subscriber::fmt().without_time().with_target(false).with_ansi(false);
        let _logging = tracing::subscriber::set_default(format.with_writer(move || writer.clone()).finish());
        let mut health = ExportHealth::new(SignalKind::Traces, "http://a:4318");
        let (begun, minute) = (Instant::now(), Duration::from_mins(1));
        health.worked(0, begun);
        for minutes in 0..25_u32 {
            health.failed("no connection:\x1b[2J refused", u64::from(minutes) * 1000, begun + minutes * minute);
        }
        let now = begun + 25 * minute;
        health.worked(25_000, now);
        health.worked(25_000, now);
        health.failed("late", 25_000, now);
        health.worked(25_000, now);
        for lost in [25_001, 25_002, 26_000] {
            health.worked(lost, now);
        }
        health.worked(26_000, now + minute);
        for _ in 0..3 {
            health.rejected(1, "too old", 26_001, now + 2 * minute);
        }
        left(SignalKind::Logs, 1);
        left(SignalKind::Logs, 0);
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        insta::assert_snapshot!(said.trim_end());
    }
}

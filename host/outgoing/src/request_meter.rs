//! Accounting of the HTTP requests of a call.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::traffic_count::TrafficCount;

/// The limit that a call has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// The number of its requests.
    Requests,
    /// The total bytes of all requests and responses.
    Bytes,
}

/// Counts the requests of one call and their bytes, and rejects what exceeds the limits.
///
/// Bytes are those of bodies, and of heads in the format of HTTP/1.1: the lines with method, target
/// and status, and `name: value` with its line ending. The bytes that HTTP/2 and TLS send differ.
#[derive(Debug)]
pub struct RequestMeter {
    requests: TrafficCount,
    bytes: TrafficCount,
    /// 0, or the [`ExceededLimit`] that was exceeded first, plus 1.
    exceeded: AtomicU8,
}

impl RequestMeter {
    /// Creates a meter for at most this many requests, and this many bytes of all requests
    /// together.
    pub fn new(requests: u64, bytes: u64) -> Self {
        Self {
            requests: TrafficCount::new(requests),
            bytes: TrafficCount::new(bytes),
            exceeded: AtomicU8::new(0),
        }
    }

    /// Returns the limit that was exceeded first, if anything was rejected.
    pub fn exceeded(&self) -> Option<ExceededLimit> {
        match self.exceeded.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(ExceededLimit::Requests),
            _ => Some(ExceededLimit::Bytes),
        }
    }

    /// Returns the number of requests, without rejected ones.
    pub fn requests(&self) -> u64 {
        self.requests.used()
    }

    /// Returns the number of bytes, without rejected ones.
    pub fn bytes(&self) -> u64 {
        self.bytes.used()
    }

    /// Counts a request.
    pub(crate) fn count_request(&self) -> Result<(), ExceededLimit> {
        self.record(self.requests.try_add(1), ExceededLimit::Requests)
    }

    /// Counts bytes that were sent or received.
    pub(crate) fn count_bytes(&self, bytes: usize) -> Result<(), ExceededLimit> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.record(self.bytes.try_add(bytes), ExceededLimit::Bytes)
    }

    fn record(&self, within: bool, which: ExceededLimit) -> Result<(), ExceededLimit> {
        if within {
            return Ok(());
        }
        let code = if which == ExceededLimit::Requests {
            1
        } else {
            2
        };
        let _first_one_stays =
            self.exceeded
                .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
        Err(which)
    }
}

#[cfg(test)]
mod tests {
    use super::{ExceededLimit, RequestMeter};

    #[test]
    fn what_is_over_a_limit_is_refused_and_not_counted() {
        let meter = RequestMeter::new(2, 10);
        meter.count_request().unwrap();
        meter.count_request().unwrap();
        meter.count_bytes(10).unwrap();
        assert_eq!(meter.exceeded(), None);
        assert_eq!(meter.count_bytes(1), Err(ExceededLimit::Bytes));
        assert_eq!(meter.count_request(), Err(ExceededLimit::Requests));
        assert_eq!((meter.requests(), meter.bytes()), (2, 10));
        assert_eq!(
            meter.exceeded(),
            Some(ExceededLimit::Bytes),
            "the first one stays"
        );
    }

    #[test]
    fn a_count_never_overflows() {
        let meter = RequestMeter::new(u64::MAX, u64::MAX);
        meter.count_bytes(usize::MAX).unwrap();
        assert_eq!(meter.count_bytes(usize::MAX), Err(ExceededLimit::Bytes));
        assert_eq!(meter.bytes(), usize::MAX as u64);
    }
}

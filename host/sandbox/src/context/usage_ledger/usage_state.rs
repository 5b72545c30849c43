//! The bookkeeping of a ledger, without I/O.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::directory_scan::{DirectoryUsage, FullReason, InodeId, ScanResult};

/// Duration for which a scan is trusted. Other programs can change the directory as well.
const SCAN_TRUST_DURATION: Duration = Duration::from_mins(1);

/// Minimum duration for which a scan is trusted, as a multiple of the duration of the scan:
/// scanning takes at most a hundredth of the time.
const MIN_TRUST_FACTOR: u32 = 100;

/// Like [`MIN_TRUST_FACTOR`], for a full directory, because another program may have freed space.
const MIN_TRUST_FACTOR_IF_FULL: u32 = 10;

/// The usage and the open files of a directory.
#[derive(Debug, Default)]
pub(super) struct UsageState {
    /// The usage of the directory, including open files without a name.
    usage: DirectoryUsage,
    /// The reason why the directory counts as full regardless of changes, until the next scan.
    full_reason: Option<FullReason>,
    /// The largest bounds of any of its mounts.
    max_bounds: DirectoryUsage,
    /// The last scan.
    last_scan: Option<ScanTime>,
    /// Files that calls of this server have open.
    open: HashMap<InodeId, OpenInode>,
}

/// The time and the duration of a scan.
#[derive(Clone, Copy, Debug)]
struct ScanTime {
    at: Instant,
    duration: Duration,
}

/// An open file.
#[derive(Debug, Default)]
struct OpenInode {
    handles: usize,
    /// The length of the file if it has no name. It takes space until the last handle is closed.
    unlinked_length: Option<u64>,
}

impl UsageState {
    /// Returns whether the directory must be scanned before it is changed.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.last_scan.is_none_or(|counted| {
            counted.is_older_than(
                SCAN_TRUST_DURATION.max(counted.duration.saturating_mul(MIN_TRUST_FACTOR)),
                now,
            )
        })
    }

    /// Returns whether another scan is worthwhile because the directory seems to be full.
    pub(super) fn may_gain_space(&self, now: Instant) -> bool {
        self.last_scan.is_some_and(|counted| {
            counted.is_older_than(
                counted.duration.saturating_mul(MIN_TRUST_FACTOR_IF_FULL),
                now,
            )
        })
    }

    /// Records the result of a scan.
    pub(super) fn record_scan(&mut self, result: ScanResult, at: Instant, duration: Duration) {
        let (scanned, full) = match result {
            ScanResult::All(holds) => (holds, None),
            ScanResult::Full(full) => (DirectoryUsage::default(), Some(full)),
        };
        let nameless = self
            .open
            .values()
            .filter_map(|open| open.unlinked_length)
            .fold(0, u64::saturating_add);
        self.usage = DirectoryUsage {
            bytes: scanned.bytes.saturating_add(nameless),
            ..scanned
        };
        self.full_reason = full;
        self.last_scan = Some(ScanTime { at, duration });
    }

    /// Returns the usage of the directory, or the maximum if it counts as full.
    pub(super) fn usage(&self) -> DirectoryUsage {
        if self.full_reason.is_some() {
            DirectoryUsage {
                bytes: u64::MAX,
                entries: u64::MAX,
            }
        } else {
            self.usage
        }
    }

    /// Returns the reason why the last scan stopped early.
    pub(super) fn full_reason(&self) -> Option<FullReason> {
        self.full_reason
    }

    /// Registers the bounds of a mount. If they exceed the bounds at the last scan, a directory
    /// that was full may have space.
    pub(super) fn raise_bounds(&mut self, bytes: u64, entries: u64) {
        let max_bounds = DirectoryUsage {
            bytes: self.max_bounds.bytes.max(bytes),
            entries: self.max_bounds.entries.max(entries),
        };
        if max_bounds != self.max_bounds && self.full_reason == Some(FullReason::Quota) {
            self.last_scan = None;
        }
        self.max_bounds = max_bounds;
    }

    /// Returns the largest bounds of any of its mounts.
    pub(super) fn max_bounds(&self) -> DirectoryUsage {
        self.max_bounds
    }

    /// Adds created entries, or subtracts removed ones.
    pub(super) fn add_entries(&mut self, change: i64) {
        self.usage.entries = self.usage.entries.saturating_add_signed(change);
    }

    /// Records that the length of a file changed.
    pub(super) fn update_length(&mut self, file: InodeId, before: u64, after: u64) {
        let change = |bytes: u64| bytes.saturating_add(after).saturating_sub(before);
        self.usage.bytes = change(self.usage.bytes);
        if let Some(nameless) = self
            .open
            .get_mut(&file)
            .and_then(|open| open.unlinked_length.as_mut())
        {
            *nameless = change(*nameless);
        }
    }

    /// Records that a file lost its last name.
    pub(super) fn record_unlinked(&mut self, file: InodeId, length: u64) {
        match self.open.get_mut(&file) {
            Some(open) if open.unlinked_length.is_none() => open.unlinked_length = Some(length),
            // The file is not open, or it was opened after it lost its name, which counted it
            // again.
            _ => self.usage.bytes = self.usage.bytes.saturating_sub(length),
        }
    }

    /// Records a new handle of a file. `nameless` is its length if it has no name.
    pub(super) fn record_open(&mut self, file: InodeId, nameless: Option<u64>) {
        let open = self.open.entry(file).or_default();
        open.handles += 1;
        if let (Some(length), None) = (nameless, open.unlinked_length) {
            open.unlinked_length = Some(length);
            self.usage.bytes = self.usage.bytes.saturating_add(length);
        }
    }

    /// Records that a handle was closed.
    pub(super) fn record_close(&mut self, file: InodeId) {
        let Some(open) = self.open.get_mut(&file) else {
            return;
        };
        open.handles -= 1;
        if open.handles == 0 {
            let freed = open.unlinked_length.unwrap_or_default();
            self.open.remove(&file);
            self.usage.bytes = self.usage.bytes.saturating_sub(freed);
        }
    }
}

impl ScanTime {
    fn is_older_than(self, age: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= age
    }
}

#[cfg(test)]
mod tests;

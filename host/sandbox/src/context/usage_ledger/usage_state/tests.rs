//! Tests of `usage_state`.

use super::*;

const FILE: InodeId = (1, 2);

fn counted(bytes: u64, entries: u64) -> UsageState {
    let mut books = UsageState::default();
    books.record_scan(
        ScanResult::All(DirectoryUsage { bytes, entries }),
        Instant::now(),
        Duration::ZERO,
    );
    books
}

#[test]
fn a_file_without_a_name_takes_space_until_it_is_closed() {
    let mut books = counted(10, 1);
    books.record_open(FILE, None);
    books.record_open(FILE, None);
    books.record_unlinked(FILE, 10);
    books.add_entries(-1);
    books.update_length(FILE, 10, 30);
    assert_eq!(
        books.usage(),
        DirectoryUsage {
            bytes: 30,
            entries: 0
        }
    );
    // A scan does not find it.
    books.record_scan(
        ScanResult::All(DirectoryUsage {
            bytes: 5,
            entries: 1,
        }),
        Instant::now(),
        Duration::ZERO,
    );
    assert_eq!(books.usage().bytes, 35);
    books.record_close(FILE);
    assert_eq!(books.usage().bytes, 35);
    books.record_close(FILE);
    assert_eq!(books.usage().bytes, 5);
    books.record_close(FILE);
    assert_eq!(books.usage().bytes, 5, "closed twice");
}

#[test]
fn a_file_that_is_not_open_is_freed_with_its_last_name() {
    let mut books = counted(10, 1);
    books.record_unlinked(FILE, 10);
    assert_eq!(books.usage().bytes, 0);
    books.record_unlinked(FILE, 10);
    assert_eq!(books.usage().bytes, 0, "never below nothing");
}

#[test]
fn a_file_that_is_opened_while_it_loses_its_name_counts_once() {
    let mut books = counted(10, 1);
    books.record_open(FILE, Some(10));
    books.record_unlinked(FILE, 10);
    assert_eq!(books.usage().bytes, 10);
    books.record_close(FILE);
    assert_eq!(books.usage().bytes, 0);
}

#[test]
fn a_scan_is_trusted_for_a_while() {
    let mut books = UsageState::default();
    let now = Instant::now();
    assert!(books.is_stale(now), "never counted");
    assert!(!books.may_gain_space(now));
    books.record_scan(
        ScanResult::All(DirectoryUsage::default()),
        now,
        Duration::from_millis(1),
    );
    let after = |millis| now + Duration::from_millis(millis);
    assert!(!books.is_stale(after(59_999)) && books.is_stale(after(60_000)));
    assert!(!books.may_gain_space(after(9)) && books.may_gain_space(after(10)));
    // Scanning a large directory takes long, so it happens less often.
    books.record_scan(
        ScanResult::All(DirectoryUsage::default()),
        now,
        Duration::from_secs(2),
    );
    assert!(!books.is_stale(after(199_999)) && books.is_stale(after(200_000)));
    assert!(!books.may_gain_space(after(19_999)) && books.may_gain_space(after(20_000)));
}

#[test]
fn a_folder_counts_as_full_until_a_scan_completes() {
    let mut books = UsageState::default();
    books.raise_bounds(10, 20);
    books.raise_bounds(30, 5);
    assert_eq!(
        books.max_bounds(),
        DirectoryUsage {
            bytes: 30,
            entries: 20
        }
    );
    let now = Instant::now();
    books.record_scan(ScanResult::Full(FullReason::Quota), now, Duration::ZERO);
    // However many entries are removed.
    books.add_entries(-1_000_000);
    books.update_length(FILE, u64::MAX, 0);
    assert_eq!(
        books.usage(),
        DirectoryUsage {
            bytes: u64::MAX,
            entries: u64::MAX
        }
    );
    books.raise_bounds(30, 20);
    assert!(!books.is_stale(now));
    books.raise_bounds(31, 0);
    assert!(books.is_stale(now), "there may be room for this mount");
    books.record_scan(
        ScanResult::All(DirectoryUsage {
            bytes: 1,
            entries: 2,
        }),
        now,
        Duration::ZERO,
    );
    assert_eq!(
        (books.usage(), books.full_reason()),
        (
            DirectoryUsage {
                bytes: 1,
                entries: 2
            },
            None
        )
    );
    books.raise_bounds(32, 0);
    assert!(!books.is_stale(now), "it was counted to its end");
}

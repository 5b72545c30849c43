//! Tests of `usage_ledger`.

use std::fs;

use bytesize::ByteSize;

use super::*;

fn bounds(bytes: u64, entries: u64) -> UsageBounds {
    let limit = Limit::MountQuota(ByteSize::b(bytes));
    UsageBounds {
        bytes: Some((bytes, limit)),
        entries: Some((entries, Limit::MountEntries(0))),
    }
}

#[tokio::test]
async fn a_full_folder_is_scanned_again_for_a_mount_with_a_larger_quota() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        fs::write(root.path().join(name), "12345").unwrap();
    }
    let ledgers = LedgerRegistry::default();
    let folder = Arc::new(File::open(root.path()).unwrap());
    let more = DirectoryUsage {
        bytes: 1,
        entries: 0,
    };
    let measured = async |bounds: UsageBounds| {
        let change = ledgers
            .register(&folder, &bounds)
            .unwrap()
            .change()
            .await
            .unwrap();
        // As if another program deleted an entry: a directory that was not completely scanned
        // stays full.
        change.add_entries(-1);
        change.exceeded_bound(&bounds, more).is_none()
    };
    assert!(!measured(bounds(4, 0)).await);
    assert!(!measured(bounds(4, 0)).await);
    assert!(measured(bounds(11, 5)).await);
    assert!(measured(bounds(11, 5)).await);
}

#[tokio::test]
async fn changes_without_growth_are_allowed_in_a_folder_that_cannot_be_scanned() {
    let root = tempfile::tempdir().unwrap();
    let ledgers = LedgerRegistry::default();
    let folder = Arc::new(File::open(root.path()).unwrap());
    let bounds = bounds(10, 10);
    let change = ledgers
        .register(&folder, &bounds)
        .unwrap()
        .change()
        .await
        .unwrap();
    change.ledger.record_scan(
        ScanResult::Full(FullReason::Memory(1 << 20)),
        Instant::now(),
        Duration::ZERO,
    );
    assert_eq!(
        change.exceeded_bound(&bounds, DirectoryUsage::default()),
        None
    );
    let one = DirectoryUsage {
        bytes: 1,
        entries: 0,
    };
    assert_eq!(
        change.exceeded_bound(&bounds, one),
        bounds.bytes.map(|(_, limit)| limit)
    );
    // The next scan happens as soon as another program may have freed space.
    let change = change.scan().await.unwrap();
    assert_eq!(change.exceeded_bound(&bounds, one), None);
}

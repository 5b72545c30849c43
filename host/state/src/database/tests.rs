//! Tests the database with every operation that guests can perform.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use proptest::prelude::*;
use toolbay_model::CallerIdentity;
use toolbay_private::PrivateFolder;

use super::*;
use crate::bounds::{MAX_KEY_BYTES, MAX_OPERATION_KEYS, MAX_PAGE_KEYS, MAX_VALUE_BYTES};
use crate::owner::StateOwner;
use crate::value_version::ValueVersion;

const AMPLE: StateQuota = StateQuota {
    size: ByteSize::mib(64),
    keys: 100_000,
};

/// Payer with this many bytes.
#[derive(Debug, Default)]
struct Purse {
    bytes: AtomicUsize,
    is_due: AtomicBool,
}

impl WorkPayer for Purse {
    fn charge_memory(&self, bytes: usize) -> bool {
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .is_ok()
    }

    fn charge_cpu_time(&self, _time: Duration) {}

    fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }
}

/// Bucket of a database, with a quota.
#[derive(Clone)]
struct Kept {
    database: StateDatabase,
    bucket: StateBucket,
    quota: StateQuota,
}

impl Kept {
    async fn set(&self, key: &str, value: &[u8]) -> Result<ChangeOutcome, StateError> {
        self.change(BucketChange::Set(vec![(key.to_owned(), value.to_vec())]))
            .await
    }

    async fn change(&self, change: BucketChange) -> Result<ChangeOutcome, StateError> {
        self.database
            .change(&self.bucket, self.quota, change, Arc::new(UnmeteredPayer))
            .await
    }

    async fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.database
            .get(&self.bucket, vec![key.to_owned()], Arc::new(UnmeteredPayer))
            .await
            .unwrap()
            .remove(0)
    }

    async fn keys(&self, start: PageStart) -> KeyPage {
        self.database
            .keys(&self.bucket, start, Arc::new(UnmeteredPayer))
            .await
            .unwrap()
    }
}

fn database(folder: &tempfile::TempDir) -> StateDatabase {
    StateDatabase::new(folder.path().join("state"), ByteSize::gib(1))
}

fn bucket(plugin: &str, caller: Option<&str>, name: &str) -> StateBucket {
    let caller = caller.map(|caller| CallerIdentity::from_name(caller).unwrap());
    StateBucket::new(
        StateOwner {
            plugin: plugin.into(),
            caller,
        },
        name,
    )
    .unwrap()
}

fn new_owner_state(database: &StateDatabase, quota: StateQuota) -> Kept {
    Kept {
        database: database.clone(),
        bucket: bucket("notes", None, ""),
        quota,
    }
}

/// Checks that the reported usage of each owner equals the content of its buckets, and returns it.
async fn audited(database: &StateDatabase) -> Vec<OwnerUsage> {
    let holdings = database.usage_by_owner().await.unwrap();
    for holding in &holdings {
        let sum = |of: fn(&QuotaUsage) -> u64| holding.buckets.values().map(of).sum::<u64>();
        assert_eq!(
            holding.total,
            QuotaUsage {
                bytes: sum(|used| used.bytes),
                keys: sum(|used| used.keys)
            },
            "{holding:?}"
        );
    }
    holdings
}

#[tokio::test]
async fn values_are_readable_until_deleted_and_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    {
        let notes = new_owner_state(&database(&folder), AMPLE);
        assert_eq!(notes.get("a").await, None);
        notes.set("a", b"1").await.unwrap();
        notes.set("a", b"22").await.unwrap();
        notes.set("", b"").await.unwrap();
        assert_eq!(notes.get("a").await.unwrap(), b"22");
        assert_eq!(notes.get("").await.unwrap(), b"");
        assert!(
            notes
                .database
                .exists(&notes.bucket, "a".into(), Arc::new(UnmeteredPayer))
                .await
                .unwrap()
        );
        assert_eq!(
            audited(&notes.database).await[0].total,
            QuotaUsage { bytes: 3, keys: 2 }
        );
        notes
            .change(BucketChange::Delete(vec![String::new(), "no".into()]))
            .await
            .unwrap();
        assert!(
            !notes
                .database
                .exists(&notes.bucket, String::new(), Arc::new(UnmeteredPayer))
                .await
                .unwrap()
        );
    }
    let notes = new_owner_state(&database(&folder), AMPLE);
    assert_eq!(notes.get("a").await.unwrap(), b"22");
    notes
        .change(BucketChange::Delete(vec!["a".into()]))
        .await
        .unwrap();
    assert_eq!(
        audited(&notes.database).await,
        [],
        "who keeps nothing has no row"
    );
}

#[tokio::test]
async fn owners_and_buckets_are_isolated() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(&folder);
    let buckets = [
        bucket("a", None, "default"),
        bucket("a", None, "b"),
        bucket("a", Some("stdio"), ""),
        bucket("a", Some("token:x"), ""),
        bucket("a", Some("token:x"), "b"),
        bucket("ab", None, ""),
        bucket("a:x", None, ""),
    ];
    let owner_state = |bucket: &StateBucket| Kept {
        database: database.clone(),
        bucket: bucket.clone(),
        quota: AMPLE,
    };
    for (index, bucket) in buckets.iter().enumerate() {
        owner_state(bucket)
            .set("key", &[u8::try_from(index).unwrap()])
            .await
            .unwrap();
        owner_state(bucket)
            .set(&format!("own-{index}"), b"")
            .await
            .unwrap();
    }
    for (index, bucket) in buckets.iter().enumerate() {
        assert_eq!(
            owner_state(bucket).get("key").await.unwrap(),
            [u8::try_from(index).unwrap()]
        );
        assert_eq!(
            owner_state(bucket).keys(PageStart::First).await.keys,
            ["key".to_owned(), format!("own-{index}")]
        );
    }
    assert_eq!(
        bucket("a", None, ""),
        buckets[0],
        "the empty name is the default bucket's"
    );
    let cleared = database
        .clear("a", Some("token:x"), Some("b"))
        .await
        .unwrap();
    assert_eq!(
        cleared,
        QuotaUsage {
            bytes: 3 + 1 + 5,
            keys: 2
        }
    );
    assert_eq!(owner_state(&buckets[4]).get("key").await, None);
    assert!(owner_state(&buckets[3]).get("key").await.is_some());
    assert_eq!(
        database.clear("a", Some(""), None).await.unwrap().keys,
        4,
        "what all callers share"
    );
    assert_eq!(database.clear("a", None, None).await.unwrap().keys, 4);
    let remaining: Vec<_> = audited(&database)
        .await
        .into_iter()
        .map(|holding| holding.plugin)
        .collect();
    assert_eq!(remaining, ["a:x", "ab"]);
}

#[tokio::test]
async fn quota_bounds_bytes_and_keys_but_never_reductions() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(&folder);
    let notes = new_owner_state(
        &database,
        StateQuota {
            size: ByteSize::b(20),
            keys: 3,
        },
    );
    notes.set("a", &[0; 19]).await.unwrap();
    assert_eq!(
        notes.set("a", &[0; 20]).await,
        Err(StateError::Size(ByteSize::b(20)))
    );
    assert_eq!(
        notes.get("a").await.unwrap().len(),
        19,
        "the value before it is there"
    );
    assert_eq!(
        notes.set("b", b"").await,
        Err(StateError::Size(ByteSize::b(20)))
    );
    notes.set("a", &[0; 4]).await.unwrap();
    let batch = |keys: &[&str]| {
        BucketChange::Set(keys.iter().map(|key| ((*key).to_owned(), vec![])).collect())
    };
    assert_eq!(
        notes.change(batch(&["b", "c", "d"])).await,
        Err(StateError::Keys(3))
    );
    assert_eq!(
        notes.keys(PageStart::First).await.keys,
        ["a"],
        "all of a batch or nothing"
    );
    notes.change(batch(&["b", "c", "b"])).await.unwrap();
    let increment = BucketChange::Increment {
        key: "n".into(),
        delta: 1,
        range: 0..=9,
    };
    assert_eq!(notes.change(increment).await, Err(StateError::Keys(3)));
    let lowered = Kept {
        quota: StateQuota {
            size: ByteSize::b(2),
            keys: 1,
        },
        ..notes.clone()
    };
    lowered.set("a", &[0; 3]).await.unwrap();
    assert_eq!(
        lowered.set("a", &[0; 4]).await,
        Err(StateError::Size(ByteSize::b(2)))
    );
    lowered
        .change(BucketChange::Delete(vec!["b".into()]))
        .await
        .unwrap();
    audited(&database).await;
}

#[tokio::test]
async fn the_whole_database_has_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let database = StateDatabase::new(folder.path().join("state"), ByteSize::kib(4));
    let mut refused = 0;
    for owner in 0..10 {
        let bucket = bucket("notes", Some(&format!("token:{owner}")), "");
        let kept = Kept {
            database: database.clone(),
            bucket,
            quota: AMPLE,
        };
        match kept.set("k", b"").await {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error, StateError::Total(ByteSize::kib(4)));
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 4, "owners with one byte each");
    database.clear("notes", None, None).await.unwrap();
    let kept = new_owner_state(&database, AMPLE);
    kept.set("k", &[0; 3000]).await.unwrap();
    kept.change(BucketChange::Delete(vec!["k".into()]))
        .await
        .unwrap();
    kept.set("k", &[0; 3000]).await.unwrap();
}

#[tokio::test]
async fn oversized_operations_are_rejected_before_queueing() {
    let folder = tempfile::tempdir().unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    let key = |bytes: usize| "k".repeat(bytes);
    assert_eq!(
        notes.set(&key(MAX_KEY_BYTES + 1), b"").await,
        Err(StateError::Key(MAX_KEY_BYTES + 1))
    );
    assert_eq!(
        notes.set("k", &vec![0; MAX_VALUE_BYTES + 1]).await,
        Err(StateError::Value(MAX_VALUE_BYTES + 1))
    );
    let many =
        |count: usize, size: usize| (0..count).map(|n| (n.to_string(), vec![0; size])).collect();
    assert_eq!(
        notes
            .change(BucketChange::Set(many(MAX_OPERATION_KEYS + 1, 0)))
            .await,
        Err(StateError::Batch)
    );
    assert_eq!(
        notes
            .change(BucketChange::Set(many(5, MAX_VALUE_BYTES)))
            .await,
        Err(StateError::Batch)
    );
    let keys = (0..=MAX_OPERATION_KEYS).map(|n| n.to_string()).collect();
    assert_eq!(
        notes
            .database
            .get(&notes.bucket, keys, Arc::new(UnmeteredPayer))
            .await,
        Err(StateError::Batch)
    );
    assert!(StateBucket::new(notes.bucket.owner().clone(), &key(65)).is_err());
    assert!(StateBucket::new(notes.bucket.owner().clone(), "a\nb").is_err());
    assert!(
        !notes.database.has_file(),
        "nothing was created for what is refused"
    );
    notes
        .set(&key(MAX_KEY_BYTES), &vec![7; MAX_VALUE_BYTES])
        .await
        .unwrap();
    assert_eq!(
        notes.get(&key(MAX_KEY_BYTES)).await.unwrap(),
        vec![7; MAX_VALUE_BYTES]
    );
}

#[tokio::test]
async fn a_payer_without_memory_or_time_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    notes.set("k", &[0; 1000]).await.unwrap();
    let get = |purse: Purse| {
        notes
            .database
            .get(&notes.bucket, vec!["k".into()], Arc::new(purse))
    };
    assert_eq!(
        get(Purse {
            bytes: 999.into(),
            ..Purse::default()
        })
        .await,
        Err(StateError::Stopped)
    );
    assert_eq!(
        get(Purse {
            bytes: 1000.into(),
            ..Purse::default()
        })
        .await
        .unwrap()[0]
            .as_ref()
            .unwrap()
            .len(),
        1000
    );
    let keys = notes
        .database
        .keys(&notes.bucket, PageStart::First, Arc::new(Purse::default()))
        .await;
    assert_eq!(keys, Err(StateError::Stopped));
    let expired = Arc::new(Purse {
        bytes: 1000.into(),
        is_due: true.into(),
    });
    let change = BucketChange::Set(vec![("late".into(), vec![])]);
    assert_eq!(
        notes
            .database
            .change(&notes.bucket, AMPLE, change, expired)
            .await,
        Err(StateError::Stopped)
    );
    assert_eq!(notes.get("late").await, None);
}

#[tokio::test]
async fn keys_are_listed_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    let all: Vec<String> = (0..2_500).map(|n| format!("{n:05}")).collect();
    for part in all.chunks(MAX_OPERATION_KEYS) {
        notes
            .change(BucketChange::Set(
                part.iter().map(|key| (key.clone(), vec![])).collect(),
            ))
            .await
            .unwrap();
    }
    let mut after = Vec::new();
    let mut skipped = Vec::new();
    let mut start = PageStart::First;
    loop {
        let page = notes.keys(start).await;
        assert!(page.keys.len() <= MAX_PAGE_KEYS);
        after.extend(page.keys);
        if !page.more {
            break;
        }
        start = PageStart::After(after.last().unwrap().clone());
    }
    assert_eq!(after, all);
    loop {
        let page = notes.keys(PageStart::Skip(skipped.len() as u64)).await;
        skipped.extend(page.keys);
        if !page.more {
            break;
        }
    }
    assert_eq!(skipped, all);
    assert_eq!(
        notes.keys(PageStart::Skip(u64::MAX)).await,
        KeyPage::default()
    );
    assert_eq!(
        notes.keys(PageStart::After("99999".into())).await,
        KeyPage::default()
    );
    assert_eq!(
        notes.keys(PageStart::After("0249".into())).await.keys.len(),
        10,
        "a cursor need not be a key"
    );
    let long: Vec<_> = (0..100).map(|n| (format!("{n:01000}"), vec![])).collect();
    let other = Kept {
        bucket: bucket("long", None, ""),
        ..notes
    };
    other.change(BucketChange::Set(long)).await.unwrap();
    let page = other.keys(PageStart::First).await;
    assert!(
        page.more && page.keys.len() == 66,
        "a page ends after 64 KiB, too: {}",
        page.keys.len()
    );
}

#[tokio::test]
async fn numbers_are_decimal_digits_within_their_range() {
    let folder = tempfile::tempdir().unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    let add = |delta: i128| BucketChange::Increment {
        key: "n".into(),
        delta,
        range: -10..=10,
    };
    assert_eq!(notes.change(add(7)).await, Ok(ChangeOutcome::Number(7)));
    assert_eq!(notes.change(add(-9)).await, Ok(ChangeOutcome::Number(-2)));
    assert_eq!(notes.get("n").await.unwrap(), b"-2");
    for delta in [13, -9, i128::MAX, i128::MIN] {
        assert_eq!(
            notes.change(add(delta)).await,
            Err(StateError::OutOfRange),
            "{delta}"
        );
    }
    for text in ["", "x", "1.0", "99999999999999999999999999999999999999999"] {
        notes.set("n", text.as_bytes()).await.unwrap();
        assert_eq!(
            notes.change(add(1)).await,
            Err(StateError::NotANumber),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_increments_and_swaps_lose_nothing() {
    const EACH: u64 = 50;
    let folder = tempfile::tempdir().unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let notes = notes.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    let range = 0..=i128::from(u64::MAX);
                    notes
                        .change(BucketChange::Increment {
                            key: "n".into(),
                            delta: 1,
                            range,
                        })
                        .await
                        .unwrap();
                    loop {
                        let now = notes.get("swapped").await;
                        let next = now.as_ref().map_or(1, |now| now.len() + 1);
                        let expected = ValueVersion::from_value(now.as_deref());
                        let value = vec![b'x'; next];
                        match notes
                            .change(BucketChange::Swap {
                                key: "swapped".into(),
                                expected,
                                value,
                            })
                            .await
                            .unwrap()
                        {
                            ChangeOutcome::Done => break,
                            ChangeOutcome::Conflict(found) => assert_ne!(found, expected),
                            ChangeOutcome::Number(_) => unreachable!(),
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(notes.get("n").await.unwrap(), b"400");
    assert_eq!(notes.get("swapped").await.unwrap().len(), 400);
    audited(&notes.database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_holds_under_eight_parallel_writers() {
    let folder = tempfile::tempdir().unwrap();
    let quota = StateQuota {
        size: ByteSize::b(10_000),
        keys: 60,
    };
    let notes = new_owner_state(&database(&folder), quota);
    let tasks: Vec<_> = (0..8)
        .map(|writer| {
            let notes = notes.clone();
            tokio::spawn(async move {
                let mut accepted = 0;
                for n in 0..50 {
                    let size = 100 * (n % 7);
                    match notes.set(&format!("{writer}-{n}"), &vec![0; size]).await {
                        Ok(_) => accepted += 1,
                        Err(error) => assert!(
                            matches!(error, StateError::Size(_) | StateError::Keys(_)),
                            "{error}"
                        ),
                    }
                }
                accepted
            })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        accepted += task.await.unwrap();
    }
    let used = audited(&notes.database).await[0].total;
    assert_eq!(
        used.keys, accepted,
        "what was acknowledged is there, and nothing else"
    );
    assert!(
        used.keys <= quota.keys && used.bytes <= quota.size.as_u64(),
        "{used:?}"
    );
    assert!(
        used.keys == quota.keys || used.bytes > 9_000,
        "the quota can be used: {used:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_leave_no_partial_changes() {
    let folder = tempfile::tempdir().unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    let tasks: Vec<_> = (0..200)
        .map(|n: usize| {
            let notes = notes.clone();
            let pair = move |side: &str| (format!("{n}-{side}"), vec![0; 2_000]);
            tokio::spawn(async move {
                notes
                    .change(BucketChange::Set(vec![pair("a"), pair("b")]))
                    .await
            })
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        if n % 3 == 0 {
            task.await.unwrap().unwrap();
        } else {
            task.abort();
        }
    }
    // A change is applied after the queued ones.
    notes.set("last", b"").await.unwrap();
    audited(&notes.database).await;
    for n in 0..200 {
        let a = notes.get(&format!("{n}-a")).await;
        let b = notes.get(&format!("{n}-b")).await;
        assert_eq!(a, b);
        assert!(n % 3 != 0 || a.is_some());
    }
    assert_eq!(
        notes.database.0.queue_permits.available_permits(),
        MAX_QUEUED_BYTES,
        "nothing waits any more"
    );
}

#[tokio::test]
async fn idle_database_is_released_to_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let first = new_owner_state(&database(&folder), AMPLE);
    let second = new_owner_state(&database(&folder), AMPLE);
    first.set("a", b"1").await.unwrap();
    // Waits until the first process has closed the database.
    assert_eq!(second.get("a").await.unwrap(), b"1");
    second.set("a", b"2").await.unwrap();
    assert_eq!(first.get("a").await.unwrap(), b"2");
}

#[tokio::test]
async fn database_in_use_is_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    let Ok(_held) = database_file::open(notes.database.folder()) else {
        panic!("it can be opened")
    };
    let impatient = Arc::new(Purse {
        is_due: true.into(),
        ..Purse::default()
    });
    let error = notes
        .database
        .get(&notes.bucket, vec!["a".into()], impatient)
        .await
        .unwrap_err();
    assert!(
        error
            .details()
            .contains("another process uses the state in"),
        "{error:?}"
    );
    assert!(error.details().contains("state.folder"), "{error:?}");
    assert!(
        !error
            .to_string()
            .contains(notes.database.folder().to_str().unwrap()),
        "a guest is told no path"
    );
}

#[tokio::test]
async fn file_of_another_kind_is_rejected_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let private = PrivateFolder::open(&state, "tests").unwrap();
    let notes = new_owner_state(&database(&folder), AMPLE);
    let file = private.path.join(FILE_NAME);
    let failure = async || notes.database.open().await.unwrap_err().details();
    for text in ["", "no database", &"x".repeat(100_000)] {
        fs::write(&file, text).unwrap();
        if text.is_empty() {
            notes.database.open().await.unwrap();
            fs::remove_file(&file).unwrap();
            *notes.database.0.lock_current() = None;
            continue;
        }
        assert!(failure().await.contains(FILE_NAME));
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    assert!(failure().await.contains(FILE_NAME));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(failure().await.contains(FILE_NAME));
    fs::remove_dir(&file).unwrap();
    notes.set("a", b"1").await.unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn damaged_file_fails_only_operations() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state").join(FILE_NAME);
    {
        let notes = new_owner_state(&database(&folder), AMPLE);
        for n in 0..50 {
            notes.set(&n.to_string(), &[n; 3_000]).await.unwrap();
        }
    }
    // The handle is dropped, and the thread closes the file.
    let size = loop {
        if let Ok(opened) = database_file::open(&folder.path().join("state")) {
            drop(opened);
            break fs::metadata(&file).unwrap().len();
        }
        tokio::task::yield_now().await;
    };
    let contents = fs::read(&file).unwrap();
    for cut in [size / 2, size - 1, 5_000, 600, 100, 10] {
        fs::write(&file, &contents[..usize::try_from(cut).unwrap()]).unwrap();
        let notes = new_owner_state(&database(&folder), AMPLE);
        let _ = notes
            .database
            .get(&notes.bucket, vec!["7".into()], Arc::new(UnmeteredPayer))
            .await;
        let _ = notes.set("8", b"x").await;
    }
    for start in (0..contents.len()).step_by(4_096) {
        let mut bytes = contents.clone();
        bytes
            .iter_mut()
            .skip(start)
            .take(64)
            .for_each(|byte| *byte ^= 0xA5);
        fs::remove_file(&file).unwrap();
        fs::write(&file, &bytes).unwrap();
        let notes = new_owner_state(&database(&folder), AMPLE);
        let _ = notes
            .database
            .get(&notes.bucket, vec!["7".into()], Arc::new(UnmeteredPayer))
            .await;
        let _ = notes.set("8", b"x").await;
    }
}

/// One step of a guest, for a comparison with a map.
#[derive(Clone, Debug)]
enum Step {
    Set(Vec<(String, Vec<u8>)>),
    Delete(Vec<String>),
    Swap(String, Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || "[a-e]{0,2}";
    let value = || prop::collection::vec(any::<u8>(), 0..60);
    let step = prop_oneof![
        prop::collection::vec((key(), value()), 0..4).prop_map(Step::Set),
        prop::collection::vec(key(), 0..4).prop_map(Step::Delete),
        (key(), value()).prop_map(|(key, value)| Step::Swap(key, value)),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn store_behaves_like_a_map_within_a_quota(steps in steps()) {
        const MOST: u64 = 200;
        const KEYS: u64 = 6;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let notes = new_owner_state(&database(&folder), StateQuota { size: ByteSize::b(MOST), keys: KEYS });
            let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
            let size = |map: &BTreeMap<String, Vec<u8>>| map.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum::<u64>();
            for step in steps {
                let mut next = model.clone();
                let change = match step {
                    Step::Set(entries) => {
                        next.extend(entries.iter().cloned());
                        BucketChange::Set(entries)
                    }
                    Step::Delete(keys) => {
                        next.retain(|key, _| !keys.contains(key));
                        BucketChange::Delete(keys)
                    }
                    Step::Swap(key, value) => {
                        let expected = ValueVersion::from_value(model.get(&key).map(Vec::as_slice));
                        next.insert(key.clone(), value.clone());
                        BucketChange::Swap { key, expected, value }
                    }
                };
                let fits = (size(&next) <= MOST || size(&next) <= size(&model))
                    && (next.len() as u64 <= KEYS || next.len() <= model.len());
                let changed = notes.change(change).await;
                assert_eq!(changed.is_ok(), fits, "{changed:?}");
                if fits {
                    model = next;
                }
            }
            let keys: Vec<String> = model.keys().cloned().collect();
            assert_eq!(notes.keys(PageStart::First).await.keys, keys);
            let values = notes.database.get(&notes.bucket, keys, Arc::new(UnmeteredPayer)).await.unwrap();
            assert_eq!(values.into_iter().map(Option::unwrap).collect::<Vec<_>>(), model.values().cloned().collect::<Vec<_>>());
            let usage = audited(&notes.database).await.first().map_or(QuotaUsage::default(), |holding| holding.total);
            assert_eq!(usage, QuotaUsage { bytes: size(&model), keys: model.len() as u64 });
        });
    }
}

//! State usage of owners, for the operator.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable as _, WriteTransaction};

use crate::queries::OperationFailure;
use crate::quota::QuotaUsage;
use crate::tables::{ENTRIES, OWNERS, StateTables, TOTAL_FILE_BYTES_KEY};

/// Maximum number of owners whose entries one transaction deletes. Other changes wait for its end.
const OWNERS_PER_PAGE: usize = 500;

/// State usage of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerUsage {
    /// Id of the plugin.
    pub plugin: String,
    /// Name of the caller; `None` if all callers of the plugin share the state.
    pub caller: Option<String>,
    /// Usage of all buckets together.
    pub total: QuotaUsage,
    /// Usage of each bucket, by name.
    pub buckets: BTreeMap<String, QuotaUsage>,
}

/// Returns the usage of all owners, by plugin and caller.
pub(crate) fn usage_by_owner(
    transaction: &ReadTransaction,
) -> Result<Vec<OwnerUsage>, OperationFailure> {
    let owners = transaction.open_table(OWNERS)?;
    let entries = transaction.open_table(ENTRIES)?;
    let mut usages = Vec::new();
    for row in owners.iter()? {
        let (name, row) = row?;
        let (plugin, caller) = name.value();
        let (number, bytes, keys) = row.value();
        let mut buckets: BTreeMap<String, QuotaUsage> = BTreeMap::new();
        for entry in entries.range((number, "", "")..(number.saturating_add(1), "", ""))? {
            let (key, value) = entry?;
            let (_, bucket, key) = key.value();
            let size = key.len() + value.value().len();
            match buckets.get_mut(bucket) {
                Some(usage) => *usage = usage.with_entry(size),
                None => {
                    buckets.insert(bucket.to_owned(), QuotaUsage::default().with_entry(size));
                }
            }
        }
        let caller = Some(caller.to_owned()).filter(|caller| !caller.is_empty());
        usages.push(OwnerUsage {
            plugin: plugin.to_owned(),
            caller,
            total: QuotaUsage { bytes, keys },
            buckets,
        });
    }
    Ok(usages)
}

/// Selection of entries to delete.
#[derive(Clone, Debug)]
pub(crate) struct EntrySelection {
    pub(crate) plugin: String,
    /// Caller; `None` selects all callers and the shared state.
    pub(crate) caller: Option<String>,
    /// Bucket; `None` selects all buckets.
    pub(crate) bucket: Option<String>,
}

/// Name of an owner: the plugin and the caller.
pub(crate) type OwnerName = (String, String);

/// Numbers of an owner: its own, and its usage in bytes and keys.
type OwnerRow = (u64, u64, u64);

/// Deletes entries. Returns their total size.
pub(crate) fn delete_entries(
    transaction: &WriteTransaction,
    selection: &EntrySelection,
) -> Result<QuotaUsage, OperationFailure> {
    let mut tables = StateTables::open(transaction)?;
    let mut rows = Vec::new();
    for row in tables.owners.range((selection.plugin.as_str(), "")..)? {
        let (name, row) = row?;
        let (plugin, caller) = name.value();
        if plugin != selection.plugin {
            break;
        }
        if selection
            .caller
            .as_deref()
            .is_none_or(|selected| selected == caller)
        {
            rows.push((caller.to_owned(), row.value()));
        }
    }
    let is_selected = |bucket: &str, _: &str, _: &[u8]| {
        selection
            .bucket
            .as_deref()
            .is_none_or(|selected| selected == bucket)
    };
    let mut cleared = QuotaUsage::default();
    for (caller, row) in rows {
        let name = (selection.plugin.as_str(), caller.as_str());
        cleared.add(delete_from_owner(&mut tables, name, row, is_selected)?);
    }
    Ok(cleared)
}

/// Deletes the entries for whose key and value `is_deleted` returns true, of the next owners whose
/// plugin begins with `prefix`: those after `after`, at most [`OWNERS_PER_PAGE`]. Returns the total
/// size of the deleted entries, and the last of these owners if others follow.
pub(crate) fn delete_page(
    transaction: &WriteTransaction,
    prefix: &str,
    after: Option<&OwnerName>,
    is_deleted: impl Fn(&str, &[u8]) -> bool,
) -> Result<(QuotaUsage, Option<OwnerName>), OperationFailure> {
    let mut tables = StateTables::open(transaction)?;
    let after = after.map(|(plugin, caller)| (plugin.as_str(), caller.as_str()));
    let mut rows: Vec<(OwnerName, OwnerRow)> = Vec::new();
    let mut has_more = false;
    for row in tables.owners.range(after.unwrap_or((prefix, ""))..)? {
        let (name, row) = row?;
        let name = name.value();
        if !name.0.starts_with(prefix) {
            break;
        }
        if after == Some(name) {
            continue;
        }
        if rows.len() >= OWNERS_PER_PAGE {
            has_more = true;
            break;
        }
        rows.push(((name.0.to_owned(), name.1.to_owned()), row.value()));
    }
    let mut deleted = QuotaUsage::default();
    for ((plugin, caller), row) in &rows {
        let is_selected = |_: &str, key: &str, value: &[u8]| is_deleted(key, value);
        deleted.add(delete_from_owner(
            &mut tables,
            (plugin.as_str(), caller.as_str()),
            *row,
            is_selected,
        )?);
    }
    let last = rows.pop().filter(|_| has_more).map(|(name, _)| name);
    Ok((deleted, last))
}

/// Deletes the entries of one owner for whose bucket, key and value `is_deleted` returns true.
/// Returns their total size.
fn delete_from_owner(
    tables: &mut StateTables<'_>,
    name: (&str, &str),
    (number, bytes, keys): OwnerRow,
    is_deleted: impl Fn(&str, &str, &[u8]) -> bool,
) -> Result<QuotaUsage, OperationFailure> {
    let before = QuotaUsage { bytes, keys };
    let mut after = before;
    tables.entries.retain_in(
        (number, "", "")..(number.saturating_add(1), "", ""),
        |(_, bucket, key), value| {
            let is_deleted = is_deleted(bucket, key, value);
            if is_deleted {
                after = after.without_entry(key.len() + value.len());
            }
            !is_deleted
        },
    )?;
    if after == before {
        return Ok(QuotaUsage::default());
    }
    let total_bytes = crate::writer::total_file_bytes(tables, before, after)?;
    tables.numbers.insert(TOTAL_FILE_BYTES_KEY, total_bytes)?;
    if after.keys == 0 {
        tables.owners.remove(name)?;
    } else {
        tables
            .owners
            .insert(name, (number, after.bytes, after.keys))?;
    }
    Ok(QuotaUsage {
        bytes: before.bytes.saturating_sub(after.bytes),
        keys: before.keys.saturating_sub(after.keys),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytesize::ByteSize;
    use toolbay_model::CallerIdentity;

    use super::*;
    use crate::{
        BucketChange, StateBucket, StateDatabase, StateOwner, StateQuota, StateStore as _,
        UnmeteredPayer,
    };

    const QUOTA: StateQuota = StateQuota {
        size: ByteSize::kib(1),
        keys: 9,
    };

    fn change(
        database: &StateDatabase,
        plugin: &str,
        caller: Option<usize>,
        value: &str,
    ) -> crate::StateFuture<crate::ChangeOutcome> {
        let caller = caller.map(|number| format!("token:{number}"));
        let owner = StateOwner {
            plugin: plugin.into(),
            caller: caller.and_then(|name| CallerIdentity::from_name(&name)),
        };
        let bucket = StateBucket::new(owner, "").unwrap();
        let set = BucketChange::Set(vec![("k".to_owned(), value.into())]);
        database.change(&bucket, QUOTA, set, Arc::new(UnmeteredPayer))
    }

    #[tokio::test]
    async fn entries_are_deleted_by_their_values_on_all_pages_and_only_below_the_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let database = StateDatabase::new(folder.path().join("state"), ByteSize::mib(16));
        let count = 2 * OWNERS_PER_PAGE + 1;
        let value = |number| if number % 2 == 0 { "old" } else { "new" };
        let changes = (0..count)
            .map(|number| change(&database, "b/one", Some(number), value(number)))
            .chain([
                change(&database, "a", None, "old"),
                change(&database, "b/", None, "old"),
                change(&database, "b/two", None, "old"),
                change(&database, "c", None, "old"),
            ]);
        for changed in futures_util::future::join_all(changes).await {
            changed.unwrap();
        }
        let is_old = || Arc::new(|key: &str, value: &[u8]| key == "k" && value == b"old");
        let deleted = database.delete_where("b/", is_old()).await.unwrap();
        let old = count.div_ceil(2) as u64 + 2;
        assert_eq!((deleted.keys, deleted.bytes), (old, old * 4));
        let left = database.usage_by_owner().await.unwrap();
        assert_eq!(left.len(), count / 2 + 2);
        assert!(left.iter().all(|owner| owner.plugin != "b/two"));
        let again = database.delete_where("b/", is_old()).await.unwrap();
        assert_eq!(again, QuotaUsage::default());
    }
}

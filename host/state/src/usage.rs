//! State usage of owners, for the operator.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable as _, WriteTransaction};

use crate::queries::OperationFailure;
use crate::quota::QuotaUsage;
use crate::tables::{ENTRIES, OWNERS, StateTables, TOTAL_FILE_BYTES_KEY};

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
    let mut cleared = QuotaUsage::default();
    for (caller, (number, bytes, keys)) in rows {
        let before = QuotaUsage { bytes, keys };
        let mut after = before;
        let is_selected = |bucket: &str| {
            selection
                .bucket
                .as_deref()
                .is_none_or(|selected| selected == bucket)
        };
        tables.entries.retain_in(
            (number, "", "")..(number.saturating_add(1), "", ""),
            |(_, bucket, key), value| {
                if is_selected(bucket) {
                    after = after.without_entry(key.len() + value.len());
                }
                !is_selected(bucket)
            },
        )?;
        let total_bytes = crate::writer::total_file_bytes(&tables, before, after)?;
        tables.numbers.insert(TOTAL_FILE_BYTES_KEY, total_bytes)?;
        let row = (selection.plugin.as_str(), caller.as_str());
        if after.keys == 0 {
            tables.owners.remove(row)?;
        } else {
            tables
                .owners
                .insert(row, (number, after.bytes, after.keys))?;
        }
        cleared.bytes += before.bytes - after.bytes;
        cleared.keys += before.keys - after.keys;
    }
    Ok(cleared)
}

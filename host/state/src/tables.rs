//! Tables of the database.

use redb::{TableDefinition, TableError, WriteTransaction};

/// Owners by plugin and caller: their number and usage (bytes, keys). The caller is empty for
/// shared state.
pub(crate) const OWNERS: TableDefinition<'_, (&str, &str), (u64, u64, u64)> =
    TableDefinition::new("owners");

/// Values by owner number, bucket and key.
pub(crate) const ENTRIES: TableDefinition<'_, (u64, &str, &str), &[u8]> =
    TableDefinition::new("entries");

/// Numbers by name.
pub(crate) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// Name of the number that stores the format version.
pub(crate) const FORMAT_VERSION_KEY: &str = "form";

/// Format version of these tables. Increase it with every change that an older Toolbay would
/// misread.
pub(crate) const FORMAT_VERSION: u64 = 1;

/// Name of the number that stores the next owner number. Owner numbers are never reused.
pub(crate) const NEXT_OWNER_KEY: &str = "next";

/// Name of the number that stores the total file size of all owners
/// ([`QuotaUsage::file_bytes`](crate::QuotaUsage)).
pub(crate) const TOTAL_FILE_BYTES_KEY: &str = "weight";

/// Tables, opened for writing.
pub(crate) struct StateTables<'t> {
    pub(crate) owners: redb::Table<'t, (&'static str, &'static str), (u64, u64, u64)>,
    pub(crate) entries: redb::Table<'t, (u64, &'static str, &'static str), &'static [u8]>,
    pub(crate) numbers: redb::Table<'t, &'static str, u64>,
}

impl<'t> StateTables<'t> {
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, TableError> {
        Ok(Self {
            owners: transaction.open_table(OWNERS)?,
            entries: transaction.open_table(ENTRIES)?,
            numbers: transaction.open_table(NUMBERS)?,
        })
    }
}

//! The tables of the database.

use redb::{TableDefinition, TableError, WriteTransaction};

/// Owners by plugin and caller: their number, and what they keep (bytes, keys). The caller is empty if there is none.
pub(crate) const OWNERS: TableDefinition<'_, (&str, &str), (u64, u64, u64)> = TableDefinition::new("owners");

/// Values by the number of their owner, bucket and key.
pub(crate) const ENTRIES: TableDefinition<'_, (u64, &str, &str), &[u8]> = TableDefinition::new("entries");

/// Numbers by their names.
pub(crate) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// The number of the form of the tables.
pub(crate) const FORM: &str = "form";

/// The form of these tables. Increase it with every change that an older Toolbay would misread.
pub(crate) const THIS_FORM: u64 = 1;

/// The number that the next owner gets. Numbers are never used again.
pub(crate) const NEXT: &str = "next";

/// What all owners weigh together ([`QuotaUsage::weight`](crate::QuotaUsage)).
pub(crate) const WEIGHT: &str = "weight";

/// The tables, opened to change them.
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

//! The memory budget that the patterns of one plugin share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use toolbay_model::ByteBudget;

use super::parse::parse_schema;

/// Maximum total size of the compiled patterns of one plugin, in bytes.
const MAX_TOTAL_PATTERN_BYTES: usize = 16 << 20;

/// Maximum size of one compiled pattern, in bytes. `\p{L}{90}` reaches it.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// Bytes of a pattern's text that get one share of the total: each share may become a separate
/// compiled pattern.
const SOURCE_BYTES_PER_SHARE: usize = 16;

/// Maximum size of the text of a pattern, in bytes. The longest ones in use, for e-mail addresses,
/// have six thousand.
const MAX_SOURCE_BYTES: usize = 16 << 10;

/// Maximum bytes of text that the control characters in a pattern may make the library read. It
/// reads the whole text for each of them.
const MAX_CONTROL_SCAN_BYTES: usize = 4 << 20;

/// The memory budget for the patterns of one plugin. It is divided among all patterns. Clones share
/// it.
#[derive(Clone, Debug)]
pub struct PatternBudget {
    max_pattern_size: usize,
    /// Bytes that automata cache between searches.
    cached_bytes: ByteBudget,
    /// Bytes that are reserved for the automata for names. Not a [`ByteBudget`]: nothing is
    /// released, and after one refusal nothing more is reserved.
    name_automata_bytes: Arc<AtomicUsize>,
}

impl PatternBudget {
    /// Maximum bytes that automata may cache between searches.
    pub(super) const MAX_CACHED_BYTES: usize = 4 << 20;

    /// Maximum bytes that the automata for names may need. The library retains them.
    const MAX_NAME_BYTES: usize = 32 << 20;

    /// Bytes that are reserved for an automaton for names that is not known to need less.
    pub(super) const LARGE_NAME_BYTES: usize = 2 << 20;

    /// Creates the budget of a plugin with these schemas. Schemas that cannot be parsed are
    /// skipped, because compiling them reports the error.
    pub fn for_schemas<'a>(schemas: impl IntoIterator<Item = &'a str>) -> Self {
        let shares: usize = schemas
            .into_iter()
            .filter_map(|text| parse_schema(text).ok())
            .map(|schema| {
                pattern_sources(&schema)
                    .into_iter()
                    .map(|source| 1 + source.len() / SOURCE_BYTES_PER_SHARE)
                    .sum::<usize>()
            })
            .sum();
        Self {
            max_pattern_size: (MAX_TOTAL_PATTERN_BYTES / shares.max(1)).min(MAX_PATTERN_BYTES),
            cached_bytes: ByteBudget::new(Self::MAX_CACHED_BYTES),
            name_automata_bytes: Arc::default(),
        }
    }

    /// Returns the maximum size of one compiled pattern, in bytes.
    pub(super) fn max_pattern_size(&self) -> usize {
        self.max_pattern_size
    }

    pub(super) fn cached_bytes(&self) -> &ByteBudget {
        &self.cached_bytes
    }

    /// Reserves `size` bytes for an automaton for names.
    ///
    /// # Errors
    ///
    /// The budget is exhausted.
    pub(super) fn reserve_name_bytes(&self, size: usize) -> Result<(), String> {
        let reserved_before = self.name_automata_bytes.fetch_add(size, Ordering::Relaxed);
        if reserved_before.saturating_add(size) <= Self::MAX_NAME_BYTES {
            return Ok(());
        }
        Err("all patterns for names need too much memory; use fewer or simpler ones".to_owned())
    }
}

/// Returns the patterns in a schema as they are written.
fn pattern_sources(schema: &Value) -> Vec<&str> {
    let mut sources = Vec::new();
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                pending.extend(members.values());
                if let Some(Value::String(pattern)) = members.get("pattern") {
                    sources.push(pattern.as_str());
                }
                if let Some(Value::Object(patterns)) = members.get("patternProperties") {
                    sources.extend(patterns.keys().map(String::as_str));
                }
            }
            _ => {}
        }
    }
    sources
}

/// Rejects patterns whose text is too costly to compile.
pub(super) fn check_pattern_sources(schema: &Value) -> Result<(), String> {
    let is_too_long = |source: &&&str| {
        source.len() > MAX_SOURCE_BYTES
            || source.matches("\\c").count() * source.len() > MAX_CONTROL_SCAN_BYTES
    };
    match pattern_sources(schema).iter().find(is_too_long) {
        Some(source) => Err(format!(
            "contains a pattern of {} bytes, which is too long",
            source.len()
        )),
        None => Ok(()),
    }
}

//! The memory budget that the patterns of one plugin share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::parse::parse;

/// Maximum total size of the compiled patterns of one plugin, in bytes.
const PATTERNS: usize = 16 << 20;

/// Maximum size of one compiled pattern, in bytes. `\p{L}{90}` reaches it.
const PATTERN: usize = 4 << 20;

/// Bytes of a pattern's text that get one share of the total: each share may become a separate
/// compiled pattern.
const SHARE: usize = 16;

/// Maximum size of the text of a pattern, in bytes. The longest ones in use, for e-mail addresses,
/// have six thousand.
const SOURCE: usize = 16 << 10;

/// Maximum bytes of text that the control characters in a pattern may make the library read. It
/// reads the whole text for each of them.
const CONTROLS: usize = 4 << 20;

/// The memory budget for the patterns of one plugin. It is divided among all patterns. Clones share
/// it.
#[derive(Clone, Debug)]
pub struct PatternBudget {
    size: usize,
    /// Bytes that automata cache between searches.
    kept: Arc<AtomicUsize>,
    /// Bytes that are reserved for the automata for names.
    names: Arc<AtomicUsize>,
}

impl PatternBudget {
    /// Maximum bytes that automata may cache between searches.
    pub(super) const KEPT: usize = 4 << 20;

    /// Maximum bytes that the automata for names may need. The library retains them.
    const NAMES: usize = 32 << 20;

    /// Bytes that are reserved for an automaton for names that is not known to need less.
    pub(super) const LARGE_NAME: usize = 2 << 20;

    /// Creates the budget of a plugin with these schemas. Schemas that cannot be parsed are
    /// skipped, because compiling them reports the error.
    pub fn of<'a>(schemas: impl IntoIterator<Item = &'a str>) -> Self {
        let shares: usize = schemas
            .into_iter()
            .filter_map(|text| parse(text).ok())
            .map(|schema| sources(&schema).into_iter().map(|source| 1 + source.len() / SHARE).sum::<usize>())
            .sum();
        Self { size: (PATTERNS / shares.max(1)).min(PATTERN), kept: Arc::default(), names: Arc::default() }
    }

    /// Returns the maximum size of one compiled pattern, in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn kept(&self) -> &AtomicUsize {
        &self.kept
    }

    /// Reserves `size` bytes for an automaton for names.
    ///
    /// # Errors
    ///
    /// The budget is exhausted.
    pub(super) fn take_names(&self, size: usize) -> Result<(), String> {
        let before = self.names.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) <= Self::NAMES {
            return Ok(());
        }
        Err("its patternProperties need too much memory: use fewer or simpler patterns".to_owned())
    }
}

/// Returns the patterns in a schema as they are written.
fn sources(schema: &Value) -> Vec<&str> {
    let (mut found, mut open) = (Vec::new(), vec![schema]);
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                open.extend(members.values());
                if let Some(Value::String(pattern)) = members.get("pattern") {
                    found.push(pattern.as_str());
                }
                if let Some(Value::Object(patterns)) = members.get("patternProperties") {
                    found.extend(patterns.keys().map(String::as_str));
                }
            }
            _ => {}
        }
    }
    found
}

/// Rejects patterns whose text is too costly to compile.
pub(super) fn measure(schema: &Value) -> Result<(), String> {
    let long = |source: &&&str| source.len() > SOURCE || source.matches("\\c").count() * source.len() > CONTROLS;
    match sources(schema).iter().find(long) {
        Some(source) => Err(format!("contains a pattern of {} bytes, which is too long", source.len())),
        None => Ok(()),
    }
}

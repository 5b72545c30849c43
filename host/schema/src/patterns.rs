//! What the patterns of one plugin may have together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::parse::parse;

/// How large the compiled patterns of one plugin may be together, in bytes.
const PATTERNS: usize = 16 << 20;

/// How large one of them may be. `\p{L}{90}` is.
const PATTERN: usize = 4 << 20;

/// So many bytes of a pattern's text have one share of that: each may become a pattern of its own.
const SHARE: usize = 16;

/// How long the text of a pattern may be, in bytes. The longest in use, for addresses of e-mail, have six thousand.
const SOURCE: usize = 16 << 10;

/// How many bytes of text the control characters in a pattern may make the library read: all of it for each of them.
const CONTROLS: usize = 4 << 20;

/// What the patterns of one plugin may have: its size is divided by all that it has. Clones share it.
#[derive(Clone, Debug)]
pub struct PatternBudget {
    size: usize,
    /// Bytes that automata keep between searches.
    kept: Arc<AtomicUsize>,
    /// Bytes that the automata for names may come to need.
    names: Arc<AtomicUsize>,
}

impl PatternBudget {
    /// How many bytes automata may keep between searches.
    pub(super) const KEPT: usize = 4 << 20;

    /// How many bytes the automata for names may come to need: the library keeps them.
    const NAMES: usize = 32 << 20;

    /// How many bytes an automaton for names may come to need that is not known to need less.
    pub(super) const LARGE_NAME: usize = 2 << 20;

    /// For a plugin with these schemas. What cannot be parsed will be told of otherwise.
    pub fn of<'a>(schemas: impl IntoIterator<Item = &'a str>) -> Self {
        let shares: usize = schemas
            .into_iter()
            .filter_map(|text| parse(text).ok())
            .map(|schema| sources(&schema).into_iter().map(|source| 1 + source.len() / SHARE).sum::<usize>())
            .sum();
        Self { size: (PATTERNS / shares.max(1)).min(PATTERN), kept: Arc::default(), names: Arc::default() }
    }

    /// How large one compiled pattern may be, in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn kept(&self) -> &AtomicUsize {
        &self.kept
    }

    /// Takes `size` bytes for an automaton for names.
    ///
    /// # Errors
    ///
    /// There is not so much.
    pub(super) fn take_names(&self, size: usize) -> Result<(), String> {
        let before = self.names.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) <= Self::NAMES {
            return Ok(());
        }
        Err("its patternProperties need too much memory: use fewer or simpler patterns".to_owned())
    }
}

/// The patterns in a schema, as they are written.
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

/// Refuses patterns whose text alone makes them costly.
pub(super) fn measure(schema: &Value) -> Result<(), String> {
    let long = |source: &&&str| source.len() > SOURCE || source.matches("\\c").count() * source.len() > CONTROLS;
    match sources(schema).iter().find(long) {
        Some(source) => Err(format!("contains a pattern of {} bytes, which is too long", source.len())),
        None => Ok(()),
    }
}

//! Log messages and denials of one call, within bounds.

use std::sync::Arc;

use parking_lot::Mutex;
use toolbay_model::text::clean_line;

/// Maximum number of messages, and of denials, of a call.
const MAX_ENTRIES: usize = 50;

/// Maximum length of an entry, in bytes. Plugins supply parts of it.
const MAX_ENTRY_BYTES: usize = 500;

/// Maximum size of all messages, and of all denials, of a call, in bytes. With the maximum number of
/// stored calls, this is 16 MB.
const MAX_TOTAL_BYTES: usize = 8 << 10;

/// The log messages and denials of one call. Clones share their content. The first ones are kept.
#[derive(Clone, Debug, Default)]
pub struct CallTrail(Arc<Mutex<TrailEntries>>);

/// The content of a trail.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrailEntries {
    /// The log messages of the guest, each with its level.
    pub(crate) messages: BoundedTexts,
    /// The denied operations.
    pub(crate) denials: BoundedTexts,
}

/// A bounded list of texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoundedTexts {
    pub(crate) texts: Vec<String>,
    bytes: usize,
    /// Number of texts that were not kept.
    pub(crate) dropped: u64,
}

impl CallTrail {
    /// Records a log message of the guest.
    pub fn record_message(&self, level: &str, message: &str) {
        let text = || clean_line(&format!("{level}: {message}"), MAX_ENTRY_BYTES);
        self.0.lock().messages.add(text);
    }

    /// Records a denied operation.
    pub fn record_denial(&self, operation: &str) {
        let text = || clean_line(operation, MAX_ENTRY_BYTES);
        self.0.lock().denials.add(text);
    }

    /// Returns the content.
    pub(crate) fn entries(&self) -> TrailEntries {
        self.0.lock().clone()
    }
}

impl BoundedTexts {
    fn add(&mut self, text: impl FnOnce() -> String) {
        if self.texts.len() >= MAX_ENTRIES || self.bytes >= MAX_TOTAL_BYTES {
            self.dropped += 1;
            return;
        }
        let text = text();
        self.bytes += text.len();
        self.texts.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entries_are_kept_within_bounds() {
        let trail = CallTrail::default();
        let shared = trail.clone();
        shared.record_message("info", "first\u{1b}[1m\nline");
        for _ in 0..1_000 {
            shared.record_message("info", &"x".repeat(10_000));
            shared.record_denial("y");
        }
        let entries = trail.entries();
        assert!(entries.messages.texts[0].starts_with("info: first"));
        assert!(!entries.messages.texts[0].contains(['\n', '\u{1b}']));
        let bytes: usize = entries.messages.texts.iter().map(String::len).sum();
        assert!(bytes <= MAX_TOTAL_BYTES + MAX_ENTRY_BYTES, "{bytes}");
        let kept = entries.messages.texts.len() as u64;
        assert_eq!(kept + entries.messages.dropped, 1_001);
        assert_eq!(
            (entries.denials.texts.len(), entries.denials.dropped),
            (MAX_ENTRIES, 950)
        );
    }
}

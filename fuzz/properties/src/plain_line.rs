//! Checks that text is safe to display.

use toolbay_model::text::clean;

/// Returns whether `text` can be shown in a log or to a model unchanged: one line without control
/// characters.
pub(crate) fn is_plain_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\t']) && clean(text) == text
}

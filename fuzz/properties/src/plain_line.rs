//! Checks that text can be shown anywhere.

use toolbay_model::text::clean;

/// Whether `text` can be shown in a log or to a model unchanged: one line without control characters.
pub(crate) fn is_plain_line(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\t']) && clean(text) == text
}

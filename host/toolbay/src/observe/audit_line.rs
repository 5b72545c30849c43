//! Formats a line of the audit log for people.

use serde_json::{Map, Value};
use toolbay_model::text::clean_line;

/// Maximum length of the details, in bytes.
const MAX_DETAILS_BYTES: usize = 2_000;

/// Formats the fields that have no column of their own.
pub(crate) fn render_details(record: &Map<String, Value>) -> String {
    let named = |(key, value): (&String, &Value)| match key.as_str() {
        "seq" | "time" | "event" | "outcome" | "caller" | "plugin" | "tool" | "prev" | "hash"
        | "key" | "signature" => None,
        // People compare the start of a digest, as in `toolbay list`.
        digest if digest.ends_with("_sha256") => {
            let name = digest.trim_end_matches("_sha256");
            Some(format!("{name} {}", value.as_str()?.get(..12)?))
        }
        "usage" => Some(format!("{} ms", value.get("wall_ms")?)),
        "message" | "reason" => value.as_str().map(str::to_owned),
        key => Some(format!(
            "{key} {}",
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        )),
    };
    clean_line(
        &record
            .iter()
            .filter_map(named)
            .collect::<Vec<_>>()
            .join(", "),
        MAX_DETAILS_BYTES,
    )
}

/// Returns a text field of a line; empty if it is missing.
pub(crate) fn text_field<'a>(record: &'a Map<String, Value>, key: &str) -> &'a str {
    record.get(key).and_then(Value::as_str).unwrap_or_default()
}
